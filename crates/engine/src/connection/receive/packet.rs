//! A packet that was opened: its frames are read, then it is remembered for acks and for what it says of its path.

use bytes::Bytes;
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::{PathId, Space, TransportError, Violation};
use plait_path::Eliciting;
use plait_path::table::Admission;
use plait_wire::frame::{Frame, Frames, types};
use plait_wire::header::PacketKind;

use super::Arrival;
use super::dispatch::wants_paths;
use crate::connection::Connection;
use crate::connection::paths::arrival::MayRead;

impl Connection {
    /// A packet of `packet_bytes` on the wire, header to tag, holds `payload`, which lies in `memory`.
    pub(crate) fn on_opened(&mut self, at: &Arrival, packet_bytes: usize, payload: &[u8], memory: &Bytes) {
        if !self.lifecycle.is_open() {
            // RFC 9000 10.2.1: only the peer's own close still matters
            let mut frames = Frames::in_packet(payload, at.kind);
            if let Some(close) = frames.find_map(|f| if let Ok(Frame::Close(close)) = f { Some(close) } else { None }) {
                self.drain(at.now, close.into());
            } else if self.lifecycle.awaits_keys() && self.handshake.read_hello(at.kind, payload) {
                self.lifecycle.on_keys(at.now, self.paths.validation_times(PathId::ZERO).give_up);
            }
            return;
        }
        if self.paths.table.has_lent() && (self.paths.opens_path(at) || wants_paths(payload, at.path)) {
            return self.receive.defer(at, packet_bytes, payload);
        }
        if let Err(error) = self.read_packet(at, packet_bytes, payload, memory) {
            self.close_with(at.now, error);
        }
    }

    fn read_packet(
        &mut self,
        at: &Arrival,
        packet_bytes: usize,
        payload: &[u8],
        memory: &Bytes,
    ) -> Result<(), TransportError> {
        if at.space == Space::Data {
            match self.admit(at, payload, memory)? {
                MayRead::Now => {}
                MayRead::AwaitsCids => {
                    self.receive.defer(at, packet_bytes, payload);
                    return Ok(());
                }
                MayRead::Never => {
                    self.events.on_dropped(at.now, packet_bytes, DropReason::UnknownPath);
                    return Ok(());
                }
            }
        }
        let &Arrival { path, space, number, .. } = at;
        let bytes = packet_bytes as u16;
        self.events.observe(at.now, || TraceEvent::PacketReceived { path, space, number, bytes });
        if at.kind == PacketKind::Handshake {
            self.paths.on_handshake_packet();
            if self.side().is_server() {
                // RFC 9001 4.9.1: a client that sends Handshake packets is done with Initial keys
                self.discard_space(at.now, Space::Initial);
            }
        }
        if at.has_token && self.side().is_client() {
            // RFC 9000 17.2.2: servers send no token
            return Err(Violation::InitialTokenFromServer.into());
        }
        let (mut eliciting, mut probing) = (Eliciting::No, true);
        // None: no payload of the application.
        let mut stream_bytes = None;
        for frame in Frames::in_packet(payload, at.kind) {
            let frame = frame?;
            let frame_type = frame.frame_type();
            if types::is_ack_eliciting(frame_type) {
                eliciting = Eliciting::Yes;
            }
            probing &= types::is_probing(frame_type);
            match &frame {
                Frame::Stream(f) => stream_bytes = Some(stream_bytes.unwrap_or(0) + f.data.len() as u64),
                Frame::Datagram(_) => stream_bytes = stream_bytes.or(Some(0)),
                _ => {}
            }
            self.dispatch(at, frame, memory).map_err(|e| e.in_frame(frame_type))?;
        }
        match at.space {
            // The packet itself may have been the last of its level.
            Space::Initial | Space::Handshake => {
                if let Some(level) = self.handshake.level(at.space) {
                    level.receive.on_packet(at.now, at.number, eliciting, at.ecn);
                }
            }
            Space::Data => self.paths.on_packet_received(at, eliciting, stream_bytes),
        }
        self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
        if at.kind == PacketKind::OneRtt && at.newest {
            let is_elsewhere = self.paths.on_newest_packet(at);
            if is_elsewhere && !probing {
                self.paths.follow(at);
            }
            self.on_path_news(at.now);
        }
        Ok(())
    }

    /// Lets a 0-RTT or 1-RTT packet in on its path; opens the path when the packet is the peer's first on it.
    fn admit(&mut self, at: &Arrival, payload: &[u8], memory: &Bytes) -> Result<MayRead, TransportError> {
        // Nearly always the path is open.
        if at.admission == Admission::Open {
            return Ok(MayRead::Now);
        }
        if self.paths.lacks_cids(at) {
            // The first packet on a path may bring the ids that it needs to be answered (RFC 10069 3.1).
            for frame in Frames::in_packet(payload, at.kind) {
                let frame = frame?;
                let frame_type = frame.frame_type();
                if matches!(&frame, Frame::NewCid(new) if new.path == at.path) {
                    self.dispatch(at, frame, memory).map_err(|e| e.in_frame(frame_type))?;
                }
            }
        }
        let may_read = self.paths.admit(at, &mut self.random);
        self.on_path_news(at.now);
        Ok(may_read)
    }
}
