//! The probe timer: when a flow that hears nothing sends something to provoke an ack (RFC 9002 6.2).

use std::time::Duration;

use plait_base::limits::{MAX_PTO, MAX_PTO_BACKOFF};
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::time::earliest;
use plait_base::{Instant, Space};

use super::SendFlow;
use crate::feedback::Feedback;

/// Probes that one time-out allows while ack-eliciting packets are outstanding (RFC 9002 6.2.4: one or two).
const PROBES: u8 = 2;

/// What a space owes after a time-out, its own or another space's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probes {
    /// Still to be sent.
    due: u8,
    /// Sent since they were asked for.
    pub(super) sent: u8,
}

impl Probes {
    fn asked(count: u8) -> Self {
        Self { due: count, sent: 0 }
    }

    /// An ack-eliciting packet left.
    pub(super) fn on_sent(&mut self) {
        if self.due > 0 {
            *self = Self { due: self.due - 1, sent: self.sent + 1 };
        }
    }
}

/// How far the handshake is, as far as timers care. Servers begin at [`Unconfirmed`](Self::Unconfirmed), for
/// clients always validate a server's address (RFC 9002 A.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandshakeState {
    /// Client without Handshake keys: with nothing in flight it probes with Initial packets, so that the
    /// server gets leave to send (RFC 9002 6.2.2.1).
    AwaitingServer,
    /// Client with Handshake keys whose address the server may not have validated: probes with Handshake.
    AwaitingValidation,
    /// The peer has validated our address; the handshake is not confirmed: no probe time-out in `Data`.
    Unconfirmed,
    /// Confirmed (RFC 9001 4.1.2).
    Confirmed,
}

/// Whether probes may leave at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProbeGate {
    /// Probes may leave.
    #[default]
    Open,
    /// The amplification limit holds everything back: the probe timer rests (RFC 9002 6.2.2.1).
    Amplification,
}

/// What the timer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerFired {
    /// Nothing was due.
    None,
    /// Packets were declared lost; they are in the feedback.
    Lost,
    /// A probe time-out: send so many ack-eliciting packets in this space, whatever the window says.
    Pto {
        /// The space that waited longest.
        space: Space,
        /// One or two.
        count: u8,
    },
}

/// State of the probe timer.
#[derive(Clone, Debug)]
pub(crate) struct ProbeTimer {
    /// Time-outs in a row without an ack.
    backoff: u32,
    handshake: HandshakeState,
    gate: ProbeGate,
    /// When something last happened that restarts the timer of a client with nothing in flight.
    progress_at: Instant,
    /// When the timer last fired.
    fired_at: Option<Instant>,
    /// When packets were last acked.
    acked_at: Option<Instant>,
    /// Longest time between probes; none leaves it to the backoff.
    interval_max: Option<Duration>,
}

impl ProbeTimer {
    pub(crate) fn new(now: Instant, handshake: HandshakeState) -> Self {
        Self {
            backoff: 0,
            handshake,
            gate: ProbeGate::Open,
            progress_at: now,
            fired_at: None,
            acked_at: None,
            interval_max: None,
        }
    }

    pub(crate) fn handshake(&self) -> HandshakeState {
        self.handshake
    }

    pub(crate) fn acked_at(&self) -> Option<Instant> {
        self.acked_at
    }

    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
        self.fired_at = None;
    }

    pub(crate) fn on_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }

    /// Something was newly acked.
    pub(crate) fn on_acked(&mut self, now: Instant) {
        self.acked_at = Some(now);
        self.on_progress(now);
        // RFC 9002 6.2.1: a client does not reset before it knows that the server validated its address
        if self.handshake >= HandshakeState::Unconfirmed {
            self.reset_backoff();
        }
    }
}

impl SendFlow {
    /// The handshake went on.
    pub(crate) fn set_handshake(&mut self, now: Instant, state: HandshakeState) {
        if self.timer.handshake != state {
            self.timer.handshake = state;
            self.timer.on_progress(now);
        }
    }

    /// The amplification limit closed or opened.
    #[inline]
    pub(crate) fn set_probe_gate(&mut self, gate: ProbeGate) {
        self.timer.gate = gate;
    }

    /// Probe time-outs in a row.
    #[inline]
    pub(crate) fn pto_count(&self) -> u32 {
        self.timer.backoff
    }

    /// True from the first of some probe time-outs in a row until the second is due: a lost packet is as likely as a dead path.
    pub(crate) fn is_first_timeout(&self, now: Instant) -> bool {
        let ends = |at| at + self.backed_off(self.pto(Space::Data));
        self.timer.backoff == 1 && self.timer.fired_at.is_some_and(|at| now < ends(at))
    }

    /// The probe time-out of `space` without backoff (RFC 9002 6.2.1).
    #[inline]
    pub(crate) fn pto(&self, space: Space) -> Duration {
        match space {
            Space::Data => self.rtt.pto_base() + self.config.max_ack_delay,
            Space::Initial | Space::Handshake => self.rtt.pto_base(),
        }
    }

    #[inline]
    fn backed_off(&self, pto: Duration) -> Duration {
        if self.timer.backoff == 0 {
            return pto;
        }
        // RFC 9002 6.2.1: doubles with each time-out; ours ends at a limit
        let longest = self.timer.interval_max.unwrap_or(MAX_PTO);
        pto.saturating_mul(1 << self.timer.backoff.min(MAX_PTO_BACKOFF)).min(longest.max(pto))
    }

    /// Probes at least so often: for a path that failed while others carry the data, so that its return is noticed
    /// soon. None gives way to the backoff again.
    pub(crate) fn set_probe_interval(&mut self, longest: Option<Duration>) {
        self.timer.interval_max = longest;
    }

    /// The network may have changed: time-outs that passed before say nothing of it.
    pub(crate) fn on_network_change(&mut self, now: Instant) {
        self.timer.reset_backoff();
        self.timer.on_progress(now);
    }

    /// Probes still to send in `space`. Every ack-eliciting packet sent there counts as one.
    #[inline]
    pub(crate) fn probes_due(&self, space: Space) -> u8 {
        self.space(space).map_or(0, |s| s.probes.due)
    }

    /// A probe time-out of another space passed: what this one has in flight is asked for with it (RFC 9002 6.2.4).
    pub(crate) fn request_probe(&mut self, space: Space) {
        let is_awaiting = self.is_awaiting_ack(space);
        if let Some(state) = self.space_mut(space).filter(|state| is_awaiting && state.probes.due == 0) {
            state.probes = Probes::asked(1);
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is to be called.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let loss = match &self.spaces {
            [None, None, data] => data.as_ref().and_then(|data| data.loss_at),
            spaces => spaces.iter().flatten().fold(None, |at, s| earliest(at, s.loss_at)),
        };
        // RFC 9002 6.2.1: no probe time-out while the time threshold timer is set
        loss.or_else(|| self.probe_deadline().map(|(at, _)| at))
    }

    /// True while the loss timer stands in place of the probe timer.
    pub(crate) fn has_loss_timer(&self) -> bool {
        self.spaces.iter().flatten().any(|space| space.loss_at.is_some())
    }

    /// RFC 9002 A.8: the space whose probe is due first, and when.
    fn probe_deadline(&self) -> Option<(Instant, Space)> {
        if self.timer.gate == ProbeGate::Amplification {
            return None;
        }
        // RFC 9002 6.2.1: not for application data before the handshake is confirmed
        let data = (self.timer.handshake == HandshakeState::Confirmed).then(|| self.probe_due(Space::Data)).flatten();
        let first = match &self.spaces {
            // As after the handshake, and on each path but the first.
            [None, None, _] => data,
            _ => [self.probe_due(Space::Initial), self.probe_due(Space::Handshake), data].into_iter().flatten().min(),
        };
        first.or_else(|| self.anti_deadlock())
    }

    /// When the probe of a space is due, while ack-eliciting packets are outstanding there.
    #[inline]
    fn probe_due(&self, space: Space) -> Option<(Instant, Space)> {
        let sent = &self.space(space).filter(|state| state.sent.eliciting > 0)?.sent;
        let sent_at = sent.eliciting_sent_at?;
        let from = self.timer.fired_at.map_or(sent_at, |fired_at| sent_at.max(fired_at));
        Some((from + self.backed_off(self.pto(space)), space))
    }

    /// RFC 9002 6.2.2.1: a client probes even with nothing in flight, until its address is validated.
    fn anti_deadlock(&self) -> Option<(Instant, Space)> {
        let space = match self.timer.handshake {
            HandshakeState::AwaitingServer => Space::Initial,
            HandshakeState::AwaitingValidation => Space::Handshake,
            HandshakeState::Unconfirmed | HandshakeState::Confirmed => return None,
        };
        self.space(space)?;
        Some((self.timer.progress_at + self.backed_off(self.rtt.pto_base()), space))
    }

    /// The deadline may have passed: declares losses or asks for probes (RFC 9002 A.9).
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        shared: &mut SharedPathMetrics,
        feedback: &mut Feedback,
    ) -> TimerFired {
        let due = |space| Some((self.space(space)?.loss_at?, space));
        let loss = Space::ALL.into_iter().filter_map(due).min();
        if let Some((at, space)) = loss {
            if at > now {
                return TimerFired::None;
            }
            let lost = self.detect_lost(now, space, shared, feedback).packets;
            self.update_shared(shared);
            self.check();
            return if lost > 0 { TimerFired::Lost } else { TimerFired::None };
        }
        let Some((_, space)) = self.probe_deadline().filter(|(at, _)| *at <= now) else { return TimerFired::None };
        let count = if self.is_awaiting_ack(space) { PROBES } else { 1 };
        self.timer.backoff = self.timer.backoff.saturating_add(1);
        self.timer.fired_at = Some(now);
        self.timer.on_progress(now);
        self.counters.timeouts += 1;
        if let Some(state) = self.space_mut(space) {
            state.probes = Probes::asked(count);
        }
        TimerFired::Pto { space, count }
    }
}
