//! A packet that was opened: its frames are read, then it is remembered for acks and for what it says of its path.

use bytes::Bytes;
use plait_base::probe::TraceEvent;
use plait_base::{CloseCode, PathId, Space, TransportError, Violation};
use plait_path::Eliciting;
use plait_path::addresses::Moved;
use plait_path::table::Admission;
use plait_wire::frame::{Frame, Frames, types};
use plait_wire::header::{PacketKind, ProtectedHeader};

use super::Arrival;
use crate::connection::Connection;

impl Connection {
    pub(super) fn on_opened(&mut self, at: Arrival, header: &ProtectedHeader, payload: &Bytes) {
        if !self.lifecycle.is_open() {
            // RFC 9000 10.2.1: only the peer's own close still matters
            let mut frames = Frames::in_packet(payload, at.kind);
            if frames.any(|f| matches!(f, Ok(Frame::Close(_)))) && self.lifecycle.is_closing() {
                self.lifecycle.drain(at.now, self.paths.table.max_pto());
            }
            return;
        }
        self.events.observe(at.now, || TraceEvent::PacketReceived {
            path: at.path,
            space: at.space,
            number: at.number,
            bytes: payload.len() as u16,
        });
        if let Err(error) = self.read_packet(&at, header, payload) {
            self.close_with(at.now, error);
        }
    }

    fn read_packet(&mut self, at: &Arrival, header: &ProtectedHeader, payload: &Bytes) -> Result<(), TransportError> {
        self.prove_address(at);
        if matches!(header, ProtectedHeader::Initial { token, .. } if self.side().is_client() && !token.is_empty()) {
            // RFC 9000 17.2.2: servers send no token
            return Err(Violation::InitialTokenFromServer.into());
        }
        if at.space == Space::Data && !self.admit(at, payload)? {
            return Ok(());
        }
        let (mut eliciting, mut probing) = (Eliciting::No, true);
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
            self.dispatch(at, frame, payload).map_err(|e| e.in_frame(frame_type))?;
        }
        match at.space {
            // The packet itself may have been the last of its level.
            Space::Initial | Space::Handshake => {
                if let Some(level) = self.handshake.level(at.space) {
                    level.receive.on_packet(at.now, at.number, eliciting, at.ecn);
                }
            }
            Space::Data => self.note_received(at, eliciting, stream_bytes),
        }
        self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
        if at.kind == PacketKind::OneRtt && at.newest && self.is_from_elsewhere(at) && !probing {
            self.paths.follow(at.now, at.path, at.route, at.dcid, at.bytes);
            self.on_path_news(at.now);
        }
        Ok(())
    }

    /// Remembers the packet for acks and what it says of its path; `stream_bytes` where it brought data of the application.
    fn note_received(&mut self, at: &Arrival, eliciting: Eliciting, stream_bytes: Option<u64>) {
        let may_ask = at.kind == PacketKind::OneRtt && self.side().is_client() && self.handshake.is_confirmed();
        let Some(path) = self.paths.table.path_mut(at.path) else { return };
        if let Some(bytes) = stream_bytes {
            path.on_payload(at.now, bytes);
        }
        // RFC 9000 9.3: what would bring more may not find us any more: a NAT forgot us, and only what we send shows the way.
        if may_ask && eliciting == Eliciting::Yes {
            path.expect_more(at.now);
        }
        if path.on_packet_received(at.now, at.number, eliciting, at.ecn, at.bytes) {
            self.paths.ping(at.path);
        }
    }

    /// Takes in what the newest packet of a path says: the spin bit, our address, and whether the peer sends from other
    /// addresses by now.
    fn is_from_elsewhere(&mut self, at: &Arrival) -> bool {
        let asks_system = self.side().is_client() && self.handshake.is_confirmed();
        let Some(path) = self.paths.table.path_mut(at.path) else { return false };
        path.spin.on_received(at.spin);
        // Where the system chooses our address, the peer's newest packet shows which one that is.
        let moved = if asks_system { path.addresses.follow_system(&at.route) } else { Moved::No };
        let is_here = path.addresses.tuple().admits(&at.route);
        path.on_heard_at(&at.route, at.dcid);
        self.paths.on_moved(at.now, at.path, moved);
        self.on_path_news(at.now);
        !is_here
    }

    /// A Handshake packet proves the client's address; its keys end the Initial ones (RFC 9001 4.9.1).
    fn prove_address(&mut self, at: &Arrival) {
        if at.kind != PacketKind::Handshake {
            return;
        }
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO)
            && !path.addresses.is_validated()
        {
            path.addresses.on_address_proven();
        }
        if self.side().is_server() {
            self.discard_space(at.now, Space::Initial);
        }
    }

    /// The first packet on a path may bring the ids that it needs to be answered (RFC 10069 3.1).
    fn learn_cids(&mut self, at: &Arrival, payload: &Bytes) -> Result<(), TransportError> {
        for frame in Frames::in_packet(payload, at.kind) {
            let frame = frame?;
            let frame_type = frame.frame_type();
            if matches!(&frame, Frame::NewCid(new) if new.path == at.path) {
                self.dispatch(at, frame, payload).map_err(|e| e.in_frame(frame_type))?;
            }
        }
        Ok(())
    }

    /// Lets a 1-RTT packet in on its path; opens the path when the packet is the peer's first on it.
    fn admit(&mut self, at: &Arrival, payload: &Bytes) -> Result<bool, TransportError> {
        let mut admission = match at.kind {
            PacketKind::OneRtt => at.admission,
            _ => self.paths.table.admission(at.path),
        };
        if admission == Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH) {
            self.learn_cids(at, payload)?;
            admission = self.paths.table.admission(at.path);
        }
        Ok(match admission {
            Admission::Open | Admission::Closing => true,
            Admission::New => {
                let accepted = self.paths.accept(at.now, at.path, at.route, at.bytes, &mut self.random);
                self.on_path_news(at.now);
                accepted
            }
            Admission::Refuse(code) => {
                let pto = self.paths.table.max_pto();
                let waits = code == CloseCode::NO_CID_AVAILABLE_FOR_PATH
                    && self.paths.table.awaits_cids(at.now, at.path, pto * 3);
                if !waits {
                    let _ = self.paths.table.abandon(at.now, at.path, code, pto);
                }
                false
            }
            Admission::Gone => false,
        })
    }
}
