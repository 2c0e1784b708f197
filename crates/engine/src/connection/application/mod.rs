//! What applications ask of a connection: streams, datagrams, and what is known of the session and its paths.

mod policies;

pub use policies::Policies;

use std::time::Duration;

use bytes::Bytes;
use plait_base::probe::{PathState, TraceEvent};
use plait_base::{Dir, FourTuple, Instant, PathId, StreamId};
use plait_crypto::{CipherSuite, ExportError, UpdateRefused};
use plait_path::PathTotals;
use plait_schedule::{Demand, DemandKind, PathView, WhyIdle};
use plait_stream::{Chunk, ClosedStream, Order, Overflow, ReadError, SendDatagramError, WriteError};
use plait_wire::Version;
use smallvec::SmallVec;

use crate::connection::Connection;
use crate::connection::handshake::EarlyData;
use crate::connection::send::scheduling;

/// What the handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeSummary {
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// On a server: the name that the client asked for.
    pub server_name: Option<String>,
    /// The QUIC version; while the handshake goes on, the server may still change it (RFC 9368 2.3).
    pub version: Version,
    /// The cipher suite.
    pub cipher_suite: Option<CipherSuite>,
    /// True when an earlier session was resumed.
    pub resumed: bool,
}

/// What one path did and how it fares; the fields of `paths[]` in results.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStatistics {
    /// Which path.
    pub id: PathId,
    /// Its addresses.
    pub route: FourTuple,
    /// Its state.
    pub state: PathState,
    /// Why it carries no data now; none while it does, in either direction.
    pub why_idle: Option<&'static str>,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Smallest RTT.
    pub rtt_min: Option<Duration>,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Largest datagram, UDP payload bytes.
    pub mtu_bytes: u16,
    /// UDP payload bytes sent.
    pub sent_bytes: u64,
    /// UDP payload bytes received.
    pub received_bytes: u64,
    /// Bytes of STREAM data received, repeated ones too: over all paths they may be more than the application read.
    pub stream_bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets with acks sent on this path.
    pub acks_sent: u64,
    /// Acks received for this path's packets.
    pub acks_received: u64,
}

impl Connection {
    /// Opens a stream; none while the peer allows no more.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.open(dir)
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }

    /// Writes as much of `data` as there is room for.
    ///
    /// # Errors
    /// See [`WriteError`]; `Blocked` is followed by a `Writable` event.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.streams.write(id, data)
    }

    /// As [`Self::write`] without copying: chunks taken become empty, one taken in part keeps its rest.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write_chunks(&mut self, id: StreamId, chunks: &mut [Bytes]) -> Result<usize, WriteError> {
        self.streams.write_chunks(id, chunks)
    }

    /// How many bytes a write to the stream would take now, at least one.
    ///
    /// # Errors
    /// See [`WriteError`]; the stream is told writable after `Blocked`.
    pub fn write_room(&mut self, id: StreamId) -> Result<u64, WriteError> {
        self.streams.room(id)
    }

    /// Bytes of stream data that the peer acknowledged, each counted once all before it on its stream are.
    pub fn stream_bytes_acked(&self) -> u64 {
        self.streams.acked_bytes()
    }

    /// Ends the stream after what was written.
    ///
    /// # Errors
    /// The stream is closed or stopped.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams.finish(id)
    }

    /// Abandons sending with the application's code.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        self.streams.reset(id, code)
    }

    /// Asks the peer to stop sending, with the application's code; unread data is dropped.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        self.streams.stop(id, code)
    }

    /// Streams of higher priority are sent first; 0 at the start.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), ClosedStream> {
        self.streams.set_priority(id, priority)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn priority(&mut self, id: StreamId) -> Result<i32, ClosedStream> {
        self.streams.priority(id)
    }

    /// The code with which the peer asked us to stop sending, if it did.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn stopped(&mut self, id: StreamId) -> Result<Option<u64>, ClosedStream> {
        self.streams.stopped(id)
    }

    /// The next bytes of a stream, at most `max_len`; `Ok(None)` at its end.
    ///
    /// # Errors
    /// See [`ReadError`]; `Blocked` is followed by a `Readable` event.
    pub fn read(&mut self, id: StreamId, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadError> {
        self.streams.read(id, max_len, order)
    }

    /// The code with which the peer reset the stream, if it did.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn received_reset(&mut self, id: StreamId) -> Result<Option<u64>, ClosedStream> {
        self.streams.received_reset(id)
    }

    /// Bytes that a write could take now, over all streams.
    pub fn send_buffer_room(&self) -> u64 {
        self.streams.send_buffer_room()
    }

    /// Queues an application datagram (RFC 9221).
    ///
    /// # Errors
    /// The peer takes none, it is too large, or the queue is full and `overflow` says to refuse.
    pub fn send_datagram(&mut self, data: Bytes, overflow: Overflow) -> Result<(), SendDatagramError> {
        let room = self.datagram_room();
        self.datagrams.send(data, room, overflow)
    }

    /// The oldest received datagram.
    pub fn read_datagram(&mut self) -> Option<Bytes> {
        self.datagrams.read()
    }

    /// Bytes of outgoing datagrams that may be queued now.
    pub fn datagram_send_buffer_room(&self) -> usize {
        self.datagrams.send_buffer_room()
    }

    /// What the handshake agreed on, as far as it is known.
    pub fn handshake_summary(&self) -> HandshakeSummary {
        let tls = &self.handshake.tls;
        HandshakeSummary {
            alpn: tls.alpn().map(<[u8]>::to_vec),
            server_name: tls.server_name().map(str::to_owned),
            version: self.handshake.versions.current,
            cipher_suite: tls.cipher_suite(),
            resumed: tls.is_resumed(),
        }
    }

    /// The peer's certificates in DER, its own first, once they are known.
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        let chain = self.handshake.tls.peer_identity()?;
        Some(chain.iter().map(|certificate| certificate.as_ref().to_vec()).collect())
    }

    /// Whether 0-RTT was accepted: none while unknown or not tried. What was sent in 0-RTT may have been replayed by an
    /// attacker; servers must not act on it in ways that a repetition would harm (RFC 9001 9.2).
    pub fn accepted_0rtt(&self) -> Option<bool> {
        match self.handshake.early_data {
            EarlyData::Accepted => Some(true),
            EarlyData::Rejected => Some(false),
            EarlyData::None | EarlyData::Offered => None,
        }
    }

    /// True while a client may send 0-RTT data.
    pub fn has_0rtt(&self) -> bool {
        self.handshake.early_seal_keys().is_some()
    }

    /// Fills `out` with keying material bound to this session.
    ///
    /// # Errors
    /// The handshake is not complete, or more is asked for than there is.
    pub fn export_keying_material(&self, out: &mut [u8], label: &[u8], context: &[u8]) -> Result<(), ExportError> {
        self.handshake.tls.export_keying_material(out, label, context)
    }

    /// Starts a key update (RFC 9001 6).
    ///
    /// # Errors
    /// Too early; the refusal says when to try again.
    pub fn update_keys(&mut self, now: Instant) -> Result<(), UpdateRefused> {
        let keys = self.keys.as_mut().ok_or(UpdateRefused::HandshakeNotConfirmed)?;
        keys.update(now)?;
        self.events.observe(now, || TraceEvent::KeysUpdated { locally: true });
        // The peer learns of it by the next packet.
        self.request_ping();
        Ok(())
    }

    /// How many application datagrams were dropped unsent: newer ones took their place, or packets shrank.
    pub fn datagrams_dropped_unsent(&self) -> u64 {
        self.datagrams.dropped_outgoing()
    }

    /// How many received application datagrams were dropped unread: the application did not keep up.
    pub fn datagrams_dropped_unread(&self) -> u64 {
        self.datagrams.dropped_incoming()
    }

    /// Key updates so far, by either side.
    pub fn key_phase(&self) -> u64 {
        self.keys.as_ref().map_or(0, |keys| keys.phase())
    }

    /// Ids of all open paths.
    pub fn path_ids(&self) -> Vec<PathId> {
        self.paths.table.open_slots().map(|slot| slot.id).collect()
    }

    /// Ids of all paths that still have state: open and closing ones.
    pub fn all_path_ids(&self) -> Vec<PathId> {
        self.paths.table.slots().filter(|slot| slot.path.is_some()).map(|slot| slot.id).collect()
    }

    /// What all paths did so far, those that are gone included. No figure ever decreases.
    pub fn totals(&self) -> PathTotals {
        let paths = self.paths.table.slots().filter_map(|slot| slot.path.as_deref());
        paths.fold(self.paths.past, |sum, path| sum + path.totals())
    }

    /// What a path did and how it fares; none for paths that are gone or never were.
    pub fn path_statistics(&self, now: Instant, id: PathId) -> Option<PathStatistics> {
        let side = self.side();
        let slot = self.paths.table.slot(id)?;
        let path = slot.snapshot(now, side)?;
        Some(PathStatistics {
            id,
            route: path.tuple,
            state: path.state,
            why_idle: self.why_idle(now, id).map(WhyIdle::name),
            rtt: path.send.rtt,
            rtt_min: path.send.rtt_min,
            cwnd_bytes: path.send.window_bytes,
            in_flight_bytes: path.send.in_flight_bytes,
            mtu_bytes: path.mtu_bytes,
            sent_bytes: path.counters.sent_bytes,
            received_bytes: path.counters.received_bytes,
            stream_bytes_received: path.counters.stream_bytes_received,
            packets_sent: path.send.packets_sent,
            packets_lost: path.send.packets_lost,
            acks_sent: path.acks_sent,
            acks_received: path.send.acks_received,
        })
    }

    /// Why a path carries no data now.
    fn why_idle(&self, now: Instant, id: PathId) -> Option<WhyIdle> {
        let views: SmallVec<[PathView; 8]> =
            scheduling::views(&self.paths.table, now, self.side(), &self.scheduling.full_sockets).collect();
        let demand = self.demand(now).unwrap_or(Demand {
            now,
            kind: DemandKind::Stream,
            unsent_bytes: 0,
            send_credit_bytes: self.streams.send_credit(),
        });
        let view = views.iter().find(|view| view.id == id)?;
        let path = self.paths.table.path(id)?;
        // With nothing of ours to send, it may still bring the peer's data, or await the acks of what was the last of ours.
        let is_in_use = path.brings_payload(now) || path.send.in_flight() > 0;
        let why = plait_schedule::why_idle(view, &views, &demand);
        why.filter(|why| *why != WhyIdle::NoData || !is_in_use)
    }
}
