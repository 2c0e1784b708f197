//! Each frame that arrived, to its one home.

use bytes::Bytes;
use plait_base::{PathId, TransportError, Violation};
use plait_wire::frame::{AckForm, Frame, Frames};
use plait_wire::header::PacketKind;

use crate::connection::Connection;
use crate::connection::events::Event;
use crate::connection::handshake::Stage;
use crate::connection::receive::Arrival;

/// Who must be at hand when a frame is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The path that it came by, and nobody else.
    OwnPath,
    /// A stream, apart from the path that brought its data.
    Stream,
    /// The connection without its paths: streams, datagrams, the handshake; also the path whose acks came by another.
    Connection,
    /// All paths: what it says may change any of them.
    Paths,
}

/// Who must be at hand to read a frame that came by path `own`.
pub(crate) fn reach(frame: &Frame<'_>, own: PathId) -> Reach {
    match frame {
        Frame::Padding(_) | Frame::Ping | Frame::ImmediateAck => Reach::OwnPath,
        Frame::Ack(ack) if ack.path == own && ack.form != AckForm::Uniflow => Reach::OwnPath,
        Frame::Stream(_) => Reach::Stream,
        Frame::Ack(_)
        | Frame::Crypto(_)
        | Frame::ResetStream(_)
        | Frame::StopSending(_)
        | Frame::MaxData(_)
        | Frame::MaxStreamData(_)
        | Frame::MaxStreams(_)
        | Frame::DataBlocked(_)
        | Frame::StreamDataBlocked(_)
        | Frame::StreamsBlocked(_)
        | Frame::Datagram(_)
        | Frame::NewToken(_)
        | Frame::HandshakeDone
        | Frame::AckFrequency(_)
        | Frame::Close(_) => Reach::Connection,
        Frame::NewCid(_)
        | Frame::RetireCid(_)
        | Frame::PathChallenge(_)
        | Frame::PathResponse(_)
        | Frame::PathAbandon(_)
        | Frame::PathStatus(_)
        | Frame::MaxPathId(_)
        | Frame::PathsBlocked(_)
        | Frame::PathCidsBlocked(_)
        | Frame::AddAddress(_)
        | Frame::RemoveAddress(_)
        | Frame::ReachOut(_)
        | Frame::AdditionalAddresses(_)
        | Frame::Uniflows(_)
        | Frame::PathsInfo(_) => Reach::Paths,
    }
}

/// True for a packet with a frame for which all paths must be here.
pub(crate) fn wants_paths(payload: &[u8], own: PathId) -> bool {
    let is_about_paths = |frame: Frame<'_>| reach(&frame, own) == Reach::Paths;
    Frames::in_packet(payload, PacketKind::OneRtt).any(|frame| frame.is_ok_and(is_about_paths))
}

impl Connection {
    /// One frame of a packet that was opened, which lies in `memory`.
    pub(crate) fn dispatch(&mut self, at: &Arrival, frame: Frame<'_>, memory: &Bytes) -> Result<(), TransportError> {
        match frame {
            Frame::Padding(_) | Frame::Ping => {}
            // RFC 10069 2.3: ACK stays what it is, an ack of path 0
            Frame::Ack(ack) => self.on_ack(at, &ack)?,
            Frame::Crypto(f) => self.handshake.on_crypto(at.space, f.offset, memory.slice_ref(f.data))?,
            Frame::Stream(f) => self.streams.on_stream(f.id, f.offset, f.fin, memory.slice_ref(f.data))?,
            Frame::ResetStream(f) => self.streams.on_reset_stream(f.id, f.code, f.final_size)?,
            Frame::StopSending(f) => self.streams.on_stop_sending(f.id, f.code)?,
            Frame::MaxData(f) => self.streams.on_max_data(f.limit),
            Frame::MaxStreamData(f) => self.streams.on_max_stream_data(f.id, f.limit)?,
            Frame::MaxStreams(f) => self.streams.on_max_streams(f.dir, f.limit)?,
            Frame::DataBlocked(f) => self.streams.on_data_blocked(f.limit),
            Frame::StreamDataBlocked(f) => self.streams.on_stream_data_blocked(f.id, f.limit)?,
            Frame::StreamsBlocked(f) => self.streams.on_streams_blocked(f.dir, f.limit)?,
            Frame::Datagram(f) => {
                if self.datagrams.on_datagram(memory.slice_ref(f.data), f.frame_bytes)? {
                    self.events.push(Event::DatagramReceived);
                }
            }
            Frame::NewToken(f) => {
                let rtt = self.paths.table.path(PathId::ZERO).and_then(|path| path.rtt());
                self.settings.on_new_token(self.handshake.versions.current, f.token, rtt)?;
            }
            Frame::HandshakeDone => {
                if self.handshake.on_done()? == Stage::Complete {
                    self.confirm(at.now);
                }
            }
            Frame::NewCid(f) => self.paths.on_new_cid(&f)?,
            Frame::RetireCid(f) => self.paths.on_retire_cid(&f, &at.dcid, &mut self.random)?,
            Frame::PathChallenge(f) => self.paths.on_challenge(at, f.data),
            Frame::PathResponse(f) => self.paths.on_response(at.now, at.path, f.data, &mut self.random)?,
            Frame::PathAbandon(f) => self.paths.on_path_abandon(at.now, &f, &mut self.random)?,
            Frame::PathStatus(f) => self.paths.on_path_status(&f)?,
            Frame::MaxPathId(f) => self.paths.on_max_path_id(&f, &mut self.random)?,
            Frame::PathsBlocked(f) => self.paths.table.on_paths_blocked(&f)?,
            Frame::PathCidsBlocked(f) => self.paths.on_path_cids_blocked(&f, &mut self.random)?,
            Frame::Close(f) => {
                self.paths.on_close(at, &f);
                self.drain(at.now, f.into());
            }
            Frame::AckFrequency(f) => self.paths.table.on_ack_frequency(&f)?,
            Frame::ImmediateAck => self.paths.on_immediate_ack(at),
            Frame::AddAddress(f) => self.paths.on_add_address(at.now, &f, &mut self.random)?,
            Frame::RemoveAddress(f) => self.paths.on_remove_address(at, &f, &mut self.random)?,
            Frame::Uniflows(f) => self.paths.on_uniflows(&f)?,
            Frame::PathsInfo(f) => self.paths.on_paths_info(&f)?,
            Frame::ReachOut(_) => {
                let hosts = self.paths.table.hosts().ok_or(Violation::AddressesNotNegotiated)?;
                hosts.on_reach_out()?;
            }
            Frame::AdditionalAddresses(f) => self.paths.on_additional_addresses(at.now, &f, &mut self.random)?,
        }
        self.on_path_news(at.now);
        Ok(())
    }
}
