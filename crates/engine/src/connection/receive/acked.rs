//! What an ack says: frames of ours that were acked or lost, each to its one home.

use std::ops::RangeInclusive;
use std::time::Duration;

use plait_base::observe::{LossTrigger, TraceEvent};
use plait_base::{Instant, PathId, Space, TransportError};
use plait_path::table::AckTarget;
use plait_path::{AckReport, Feedback, LostPacket};
use plait_schedule::Delivery;
use plait_wire::SentFrame;
use plait_wire::frame::{Ack, AckForm};

use super::Arrival;
use crate::connection::Connection;
use crate::connection::handshake::Stage;
use crate::connection::send::unfit_datagrams::drop_unfit_datagrams;

/// What an ack frame says that came by path `via`, with the ack delay exponent of the peer.
pub(crate) fn ack_report(ack: &Ack<'_>, exponent: u8, via: PathId) -> AckReport {
    let delay = Duration::from_micros(ack.delay.saturating_mul(1 << exponent).min(1 << 40));
    AckReport { largest: ack.largest, delay, ecn: ack.ecn, via }
}

/// An ack of packets of a path, on its way to whoever serves that path.
#[derive(Debug)]
pub(crate) struct AckNote {
    pub(crate) path: PathId,
    /// When it came.
    pub(crate) now: Instant,
    pub(crate) report: AckReport,
    pub(crate) ranges: Vec<RangeInclusive<u64>>,
}

impl Connection {
    pub(super) fn on_ack(&mut self, at: &Arrival, ack: &Ack<'_>) -> Result<(), TransportError> {
        let target = if at.space == Space::Data { ack.path } else { PathId::ZERO };
        // RFC 9000 13.2.6: acks of long-header packets are about path 0
        let form = if at.space == Space::Data { ack.form } else { AckForm::Plain };
        let found = self.paths.table.on_ack(target, form)?;
        if found == AckTarget::Forgotten {
            return Ok(());
        }
        let exponent = match (&self.handshake.params.peers, at.space) {
            (Some(params), Space::Data) => params.ack_delay_exponent,
            _ => 3,
        };
        let report = ack_report(ack, exponent, at.path);
        let AckTarget::Path(place) = found else {
            self.paths.pass_on_ack(AckNote { path: target, now: at.now, report, ranges: ack.ranges().collect() });
            return Ok(());
        };
        for (index, range) in (0..).zip(ack.ranges()) {
            let (space, first, last) = (at.space, *range.start(), *range.end());
            self.events.observe(at.now, || TraceEvent::AckReceived { path: target, space, first, last, index });
        }
        let keys = self.keys.as_deref_mut();
        let Some(outcome) = self.paths.on_ack(at, place, &report, ack.ranges(), keys)? else { return Ok(()) };
        // The report of this ack is kept apart from what the paths have to tell by it.
        let feedback = self.paths.take_feedback();
        // RFC 9001 4.1.2: the server read a 1-RTT packet, as all but those of path 0 are; HANDSHAKE_DONE may be lost with that path
        if target != PathId::ZERO && outcome.newly_acked_eliciting > 0 && self.handshake.stage == Stage::Complete {
            self.confirm(at.now);
        }
        if let Some(sent_at) = outcome.newest_sent_at {
            let delivery = Delivery { bytes: outcome.newly_acked_bytes, sent_at, now: at.now };
            self.scheduling.scheduler.on_acked(target, &delivery);
        }
        self.on_path_news(at.now);
        if outcome.rtt_updated {
            if let Some(rtt) = self.paths.table.max_rtt() {
                self.streams.on_rtt(rtt);
            }
            if let Some(path) = self.paths.table.path_at(place) {
                self.events.observe(at.now, || path.metrics());
            }
        }
        self.process_acked_and_lost(at.now, target, feedback);
        Ok(())
    }

    /// Hands every acked and lost frame of a report to its home.
    pub(crate) fn process_acked_and_lost(&mut self, now: Instant, path: PathId, mut feedback: Feedback) {
        for frame in &feedback.acked {
            self.on_frame_acked(now, path, frame);
        }
        for frame in &feedback.lost {
            // What is sent again after a probe time-out is not known to be lost, and a challenge has its own clock.
            if let SentFrame::PathChallenge(data) = *frame {
                self.paths.on_challenge_lost(now, path, data);
            }
            self.on_frame_lost(now, path, frame);
        }
        for lost in &feedback.lost_packets {
            self.on_packet_lost(now, path, lost);
        }
        feedback.clear();
        self.paths.give_back(feedback);
    }

    fn on_packet_lost(&mut self, now: Instant, id: PathId, lost: &LostPacket) {
        let LostPacket { space, number, trigger, bytes } = *lost;
        self.events.observe(now, || TraceEvent::PacketLost { path: id, space, number, trigger });
        if space != Space::Data || trigger == LossTrigger::Discarded {
            return;
        }
        self.scheduling.scheduler.on_lost(id, u64::from(bytes), now);
        if let Some(bytes) = self.paths.on_packet_lost(now, id, lost) {
            drop_unfit_datagrams(&mut self.datagrams, &self.paths.table);
            self.events.observe(now, || TraceEvent::Mtu { path: id, bytes });
        }
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
            SentFrame::Ack { space, path, smallest, largest } => match self.handshake.level(space) {
                Some(level) => level.receive.on_ack_acked(smallest, largest),
                None if space == Space::Data => self.paths.on_ack_acked(path, smallest, largest),
                // The level is gone with its keys.
                None => {}
            },
            SentFrame::NewToken(number) => self.handshake.tokens.on_acked(number),
            SentFrame::MtuProbe(size) => {
                if let Some(bytes) = self.paths.on_mtu_probe_acked(now, path, size) {
                    self.events.observe(now, || TraceEvent::Mtu { path, bytes });
                }
            }
            SentFrame::NewCid { .. }
            | SentFrame::RetireCid { .. }
            | SentFrame::PathAbandon(_)
            | SentFrame::PathStatus { .. }
            | SentFrame::MaxPathId(_)
            | SentFrame::PathsBlocked(_)
            | SentFrame::PathCidsBlocked(_)
            | SentFrame::HostAddress { .. }
            | SentFrame::Uniflows(_)
            | SentFrame::AdditionalAddresses(_)
            | SentFrame::PathsInfo(_)
            | SentFrame::AckFrequency(_) => self.paths.on_frame_acked(frame),
            SentFrame::PathChallenge(data) => self.paths.on_challenge_acked(now, path, data),
            SentFrame::Datagram { .. } | SentFrame::Ping | SentFrame::PathResponse => {}
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
            SentFrame::MtuProbe(size) => self.paths.on_mtu_probe_lost(now, path, size),
            SentFrame::NewCid { .. }
            | SentFrame::RetireCid { .. }
            | SentFrame::PathAbandon(_)
            | SentFrame::PathStatus { .. }
            | SentFrame::MaxPathId(_)
            | SentFrame::PathsBlocked(_)
            | SentFrame::PathCidsBlocked(_)
            | SentFrame::HostAddress { .. }
            | SentFrame::Uniflows(_)
            | SentFrame::AdditionalAddresses(_)
            | SentFrame::PathsInfo(_)
            | SentFrame::AckFrequency(_) => self.paths.on_frame_lost(frame),
            // What was received is reported anew by every later ack; the others are never sent again as they were.
            SentFrame::Ack { .. }
            | SentFrame::Datagram { .. }
            | SentFrame::Ping
            | SentFrame::PathChallenge(_)
            | SentFrame::PathResponse => {}
        }
    }
}
