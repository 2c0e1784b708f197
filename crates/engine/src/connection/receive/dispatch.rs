//! Each frame to its one home: frames that arrived, and frames of ours that were acked or lost.

use std::time::Duration;

use bytes::Bytes;
use plait_base::probe::TraceEvent;
use plait_base::{Instant, PathId, Space, TransportError, Violation};
use plait_path::table::{AbandonNews, AckTarget};
use plait_path::{AckReport, AddressEvent, FourTupleRole, HandshakeState};
use plait_schedule::Delivery;
use plait_wire::SentFrame;
use plait_wire::frame::{
    Ack, AckFrequency, Close, Frame, NewCid, PathAbandon, PathStatus, PathStatusUpdate, RetireCid,
};

use crate::connection::Connection;
use crate::connection::events::{Event, PathEvent};
use crate::connection::lifecycle::{ApplicationClose, ConnectionError};
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
            Frame::Datagram(f) => self.on_datagram_frame(payload.slice_ref(f.data), f.frame_bytes)?,
            Frame::NewToken(f) => self.on_new_token(f.token)?,
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
            Frame::Close(f) => self.on_close_frame(at.now, f),
            Frame::AckFrequency(f) => self.on_ack_frequency(&f)?,
            Frame::ImmediateAck => self.on_immediate_ack(at.path)?,
        }
        Ok(())
    }

    fn on_ack(&mut self, at: &Arrival, ack: &Ack<'_>) -> Result<(), TransportError> {
        let target = if at.space == Space::Data { ack.path } else { PathId::ZERO };
        if at.space == Space::Data && self.paths.table.on_ack(target, ack.form)? == AckTarget::Forgotten {
            return Ok(());
        }
        let exponent = match (&self.handshake.peer_params, at.space) {
            (Some(params), Space::Data) => params.acks.delay_exponent,
            _ => 3,
        };
        let report = AckReport {
            largest: ack.largest,
            delay: Duration::from_micros(ack.delay.saturating_mul(1 << exponent).min(1 << 40)),
            ecn: ack.ecn,
            via: at.path,
        };
        let guard = self.paths.table.max_pto() * 3;
        for (index, range) in (0..).zip(ack.ranges()) {
            let (space, first, last) = (at.space, *range.start(), *range.end());
            self.events.observe(at.now, || TraceEvent::AckReceived { path: target, space, first, last, index });
        }
        let validated = at.space == Space::Handshake && self.side().is_client() && !self.handshake.is_confirmed();
        let Some(path) = self.paths.table.path_mut(target) else { return Ok(()) };
        if validated {
            // RFC 9002 6.2.2.1, A.8: whoever read a Handshake packet of ours knows that our address is ours
            path.send.set_handshake(at.now, HandshakeState::Unconfirmed);
        }
        let (shared, feedback) = (&mut self.paths.shared_metrics, &mut self.paths.feedback);
        let outcome = path.on_ack(at.now, at.space, &report, ack.ranges(), shared, feedback)?;
        if let Some(sent_at) = outcome.newest_sent_at {
            let delivery = Delivery { bytes: outcome.newly_acked_bytes, sent_at, now: at.now };
            self.scheduling.scheduler.on_acked(target, &delivery);
        }
        if at.space == Space::Data
            && let Some(keys) = &mut self.keys
        {
            keys.on_acked(path.send.seal_mark(), ack.largest, at.now, guard);
        }
        let recovers = outcome.newly_acked_eliciting > 0 && path.recover();
        if outcome.rtt_updated {
            self.paths.table.on_pto_changed();
        }
        if recovers {
            self.on_path_recovered(at.now, target);
        }
        if outcome.newly_acked_eliciting > 0 {
            self.end_outage(target);
        }
        if outcome.rtt_updated {
            self.on_rtt_updated(at.now, target);
        }
        self.process_acked_and_lost(at.now, target);
        Ok(())
    }

    /// Hands every acked and lost frame of the last report to its home.
    pub(crate) fn process_acked_and_lost(&mut self, now: Instant, path: PathId) {
        let mut feedback = std::mem::take(&mut self.paths.feedback);
        for frame in &feedback.acked {
            self.on_frame_acked(now, path, frame);
        }
        for frame in &feedback.lost {
            self.on_frame_lost(now, path, frame);
        }
        for lost in &feedback.lost_packets {
            self.on_packet_lost(now, path, lost);
        }
        feedback.clear();
        self.paths.feedback = feedback;
    }

    fn on_frame_acked(&mut self, now: Instant, path: PathId, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream(_)
            | SentFrame::StopSending(_)
            | SentFrame::MaxData(_)
            | SentFrame::MaxStreamData(..)
            | SentFrame::MaxStreams(..)
            | SentFrame::DataBlocked(_)
            | SentFrame::StreamDataBlocked(..)
            | SentFrame::StreamsBlocked(..) => self.streams.on_acked(frame),
            SentFrame::Crypto { .. } | SentFrame::HandshakeDone => self.handshake.on_acked(frame),
            SentFrame::Ack { space, path, smallest, largest } => self.on_ack_acked(space, path, (smallest, largest)),
            SentFrame::NewToken(number) => self.handshake.tokens.on_acked(number),
            SentFrame::MtuProbe(bytes) => self.on_mtu_probe_acked(now, path, bytes),
            SentFrame::NewCid { path, .. } => {
                self.paths.table.on_acked(frame);
                if self.paths.table.slot(path).is_some_and(|slot| slot.is_unused()) {
                    // Now it may be opened.
                    self.paths.plan.touch();
                }
            }
            SentFrame::RetireCid { .. }
            | SentFrame::PathAbandon(_)
            | SentFrame::PathStatus { .. }
            | SentFrame::MaxPathId(_)
            | SentFrame::PathsBlocked(_)
            | SentFrame::PathCidsBlocked(_) => self.paths.table.on_acked(frame),
            SentFrame::Datagram { .. } | SentFrame::Ping | SentFrame::PathChallenge | SentFrame::PathResponse => {}
        }
    }

    pub(crate) fn on_frame_lost(&mut self, now: Instant, path: PathId, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { .. }
            | SentFrame::ResetStream(_)
            | SentFrame::StopSending(_)
            | SentFrame::MaxData(_)
            | SentFrame::MaxStreamData(..)
            | SentFrame::MaxStreams(..)
            | SentFrame::DataBlocked(_)
            | SentFrame::StreamDataBlocked(..)
            | SentFrame::StreamsBlocked(..) => self.streams.on_lost(frame),
            SentFrame::Crypto { .. } | SentFrame::HandshakeDone => self.handshake.on_lost(frame),
            SentFrame::NewToken(number) => self.handshake.tokens.on_lost(number),
            SentFrame::MtuProbe(bytes) => {
                if let Some(path) = self.paths.table.path_mut(path) {
                    path.on_mtu_probe_lost(now, bytes);
                }
            }
            SentFrame::NewCid { .. }
            | SentFrame::RetireCid { .. }
            | SentFrame::PathAbandon(_)
            | SentFrame::PathStatus { .. }
            | SentFrame::MaxPathId(_)
            | SentFrame::PathsBlocked(_)
            | SentFrame::PathCidsBlocked(_) => self.paths.table.on_lost(frame),
            // What was received is reported anew by every later ack; the others are never sent again as they were.
            SentFrame::Ack { .. }
            | SentFrame::Datagram { .. }
            | SentFrame::Ping
            | SentFrame::PathChallenge
            | SentFrame::PathResponse => {}
        }
    }

    fn on_ack_acked(&mut self, space: Space, path: PathId, (smallest, largest): (u64, u64)) {
        match space {
            Space::Initial | Space::Handshake => {
                if let Some(level) = self.handshake.level(space) {
                    level.receive.on_ack_acked(smallest, largest);
                }
            }
            Space::Data => {
                if let Some(path) = self.paths.table.path_mut(path) {
                    path.receive.on_ack_acked(smallest, largest);
                }
            }
        }
    }

    fn on_datagram_frame(&mut self, data: Bytes, frame_bytes: usize) -> Result<(), Violation> {
        let Some(limit) = self.settings.transport.datagrams.receive_buffer_bytes else {
            return Err(Violation::DatagramNotNegotiated);
        };
        // RFC 9221 3: our max_datagram_frame_size counts the whole frame
        if frame_bytes > limit.min(65_535) {
            return Err(Violation::DatagramTooLarge);
        }
        if self.datagrams.on_datagram(data)? {
            self.events.push(Event::DatagramReceived);
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

    fn on_close_frame(&mut self, now: Instant, close: Close<'_>) {
        let error = match close {
            Close::Transport { code, frame_type, reason } => {
                let mut error = TransportError::new(code, String::from_utf8_lossy(reason));
                error.frame = Some(frame_type).filter(|t| *t != 0);
                ConnectionError::ConnectionClosed(error)
            }
            Close::Application { code, reason } => {
                ConnectionError::ApplicationClosed(ApplicationClose { code, reason: Bytes::copy_from_slice(reason) })
            }
        };
        self.on_peer_closed(now, error);
    }

    fn on_ack_frequency(&mut self, _frame: &AckFrequency) -> Result<(), Violation> {
        // We announce no min_ack_delay, so the peer must not ask for another frequency.
        Err(Violation::AckFrequencyNotNegotiated)
    }

    fn on_immediate_ack(&mut self, _path: PathId) -> Result<(), Violation> {
        Err(Violation::AckFrequencyNotNegotiated)
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
