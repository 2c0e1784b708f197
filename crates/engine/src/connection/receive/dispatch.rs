//! Each frame to its one home: frames that arrived, and frames of ours that were acked or lost.

use bytes::Bytes;
use plait_base::{Instant, PathId, TransportError, Violation};
use plait_path::table::AbandonNews;
use plait_path::{AddressEvent, FourTupleRole};
use plait_wire::frame::{Frame, NewCid, PathAbandon, PathStatus, PathStatusUpdate, RetireCid};

use crate::connection::Connection;
use crate::connection::events::{Event, PathEvent};
use crate::connection::receive::Arrival;

impl Connection {
    /// One frame of a packet that was opened.
    pub(crate) fn dispatch(&mut self, at: &Arrival, frame: Frame<'_>, payload: &Bytes) -> Result<(), TransportError> {
        match frame {
            Frame::Padding(_) | Frame::Ping => {}
            // RFC 10069 2.3: ACK stays what it is, an ack of path 0
            Frame::Ack(ack) => self.on_ack(at, &ack)?,
            Frame::Crypto(f) => self.handshake.on_crypto(at.space, f.offset, payload.slice_ref(f.data))?,
            Frame::Stream(f) => self.streams.on_stream(f.id, f.offset, f.fin, payload.slice_ref(f.data))?,
            Frame::ResetStream(f) => self.streams.on_reset_stream(f.id, f.code, f.final_size)?,
            Frame::StopSending(f) => self.streams.on_stop_sending(f.id, f.code)?,
            Frame::MaxData(f) => self.streams.on_max_data(f.limit),
            Frame::MaxStreamData(f) => self.streams.on_max_stream_data(f.id, f.limit)?,
            Frame::MaxStreams(f) => self.streams.on_max_streams(f.dir, f.limit)?,
            Frame::DataBlocked(f) => self.streams.on_data_blocked(f.limit),
            Frame::StreamDataBlocked(f) => self.streams.on_stream_data_blocked(f.id, f.limit)?,
            Frame::StreamsBlocked(f) => self.streams.on_streams_blocked(f.dir, f.limit)?,
            Frame::Datagram(f) => {
                if self.datagrams.on_datagram(payload.slice_ref(f.data), f.frame_bytes)? {
                    self.events.push(Event::DatagramReceived);
                }
            }
            Frame::NewToken(f) => {
                let rtt = self.paths.table.path(PathId::ZERO).and_then(|path| path.send.rtt().measured());
                self.settings.on_new_token(self.handshake.versions.current, f.token, rtt)?;
            }
            Frame::HandshakeDone => self.on_handshake_done(at.now)?,
            Frame::NewCid(f) => self.on_new_cid(&f)?,
            Frame::RetireCid(f) => self.on_retire_cid(at, &f)?,
            Frame::PathChallenge(f) => self.on_path_challenge(at, f.data),
            Frame::PathResponse(f) => {
                let event = self.paths.table.on_path_response(at.now, at.path, f.data)?;
                self.on_address_event(at.now, at.path, event);
            }
            Frame::PathAbandon(f) => self.on_path_abandon(at.now, &f)?,
            Frame::PathStatus(f) => self.on_path_status(&f)?,
            Frame::MaxPathId(f) => {
                if self.paths.table.on_max_path_id(&f)? {
                    self.issue_cids();
                    self.paths.plan.touch();
                }
            }
            Frame::PathsBlocked(f) => self.paths.table.on_paths_blocked(&f)?,
            Frame::PathCidsBlocked(f) => {
                self.paths.table.on_path_cids_blocked(&f)?;
                self.issue_cids();
            }
            Frame::Close(f) => self.on_peer_closed(at.now, f.into()),
            // We announce no min_ack_delay, so the peer must not ask for another frequency.
            Frame::AckFrequency(_) | Frame::ImmediateAck => return Err(Violation::AckFrequencyNotNegotiated.into()),
        }
        Ok(())
    }

    fn on_new_cid(&mut self, f: &NewCid) -> Result<(), Violation> {
        self.paths.table.on_new_cid(f)?;
        self.drain_table_events();
        self.paths.plan.touch();
        Ok(())
    }

    fn on_retire_cid(&mut self, at: &Arrival, f: &RetireCid) -> Result<(), Violation> {
        self.paths.table.on_retire_cid(f, &at.dcid)?;
        self.issue_cids();
        Ok(())
    }

    fn on_path_challenge(&mut self, at: &Arrival, data: [u8; 8]) {
        let Some(path) = self.paths.table.path_mut(at.path) else { return };
        // RFC 9000 8.2.2: the response goes where the challenge came from
        if !path.addresses.on_challenge(&at.route, data) {
            let changed_cid = path.changed_cid(&at.dcid);
            path.addresses.admit(at.route, at.bytes);
            path.addresses.on_challenge(&at.route, data);
            if changed_cid {
                self.paths.table.freshen_candidate(at.path);
                self.drain_table_events();
            }
        }
    }

    fn on_path_abandon(&mut self, now: Instant, f: &PathAbandon) -> Result<(), Violation> {
        let pto = self.paths.table.max_pto();
        if self.paths.table.on_path_abandon(now, f, pto)? == AbandonNews::PeerEnds {
            self.on_path_closing(now, f.path, f.code);
        }
        Ok(())
    }

    fn on_path_status(&mut self, f: &PathStatusUpdate) -> Result<(), Violation> {
        if self.paths.table.on_path_status(f)?.is_some() {
            let available = f.status == PathStatus::Available;
            self.events.path(PathEvent::RemoteStatus { id: f.path, available });
            if !available {
                // The peer may have found the path dead: who only receives learns so by asking.
                self.ping(f.path);
            }
        }
        Ok(())
    }

    /// What a response or a timer changed about a path's addresses.
    pub(crate) fn on_address_event(&mut self, now: Instant, id: PathId, event: Option<AddressEvent>) {
        match event {
            Some(AddressEvent::Validated(FourTupleRole::Current)) => self.on_path_validated(now, id),
            Some(AddressEvent::FellBack(moved)) => self.on_path_moved(now, id, moved),
            Some(AddressEvent::Unreachable) => self.on_path_unreachable(now, id),
            Some(AddressEvent::SizeUnproven) => self.on_size_unproven(now, id),
            Some(AddressEvent::Validated(FourTupleRole::Candidate)) => self.on_candidate_validated(now, id),
            Some(AddressEvent::CandidateFailed) => self.on_candidate_failed(now, id),
            Some(AddressEvent::Validated(FourTupleRole::Previous)) | None => {}
        }
    }
}
