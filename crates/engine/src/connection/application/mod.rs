//! What applications ask of a connection: streams, datagrams, and what is known of the session and its paths.

mod datagrams;
mod paths;
mod policies;
mod session;
mod statistics;
mod streams;

pub use datagrams::ApplicationDatagrams;
pub use policies::Policies;
pub use session::{HandshakeSummary, Session};
pub use statistics::{DroppedDatagrams, PathStatistics};
pub use streams::{RecvStream, SendStream};

use plait_base::probe::TraceEvent;
use plait_base::{Dir, Instant, StreamId};
use plait_crypto::UpdateRefused;

use crate::connection::Connection;

impl Connection {
    /// Opens a stream; none while the peer allows no more.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.open(dir)
    }

    /// The next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }

    /// The sending part of a stream; whether there is one the calls on it say.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        SendStream { streams: &mut self.streams, id }
    }

    /// The receiving part of a stream; whether there is one the calls on it say.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream { streams: &mut self.streams, id }
    }

    /// Application datagrams, those to send and those received.
    pub fn datagrams(&mut self) -> ApplicationDatagrams<'_> {
        let room = self.paths.table.frame_room();
        ApplicationDatagrams { queues: &mut self.datagrams, room }
    }

    /// What TLS agreed on.
    pub fn session(&self) -> Session<'_> {
        Session { handshake: &self.handshake }
    }

    /// Bytes of stream data that the peer acknowledged, each counted once all before it on its stream are.
    pub fn stream_bytes_acked(&self) -> u64 {
        self.streams.acked_bytes()
    }

    /// Bytes that a write could take now, over all streams.
    pub fn send_buffer_room(&self) -> u64 {
        self.streams.send_buffer_room()
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
        let full = &self.scheduling.full_sockets;
        self.paths.ping_any(|tuple| full.hold(tuple));
        Ok(())
    }

    /// Key updates so far, by either side.
    pub fn key_phase(&self) -> u64 {
        self.keys.as_ref().map_or(0, |keys| keys.phase())
    }
}
