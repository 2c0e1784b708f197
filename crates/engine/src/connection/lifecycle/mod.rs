//! From open to drained: idle timeout, keep-alive, immediate close and the states after it (RFC 9000 10).

mod close;
mod error;
mod setup;
mod successor;
mod timers;

pub(crate) use error::CloseFrame;
pub use error::{ApplicationClose, ConnectionError, Unreachable};
pub(crate) use successor::successor_in;

use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{Instant, PathId};

use crate::config::TimingTuning;

/// The idle timeout is at least as many probe time-outs of the slowest path (RFC 9000 10.1).
const IDLE_PTOS: u32 = 3;
/// How long a connection that ends stays around, in probe time-outs (RFC 9000 10.2).
const CLOSING_PTOS: u32 = 3;
/// Of a server that was told that an attempt is given up, so many datagrams are under way already: three that answer one
/// (RFC 9000 8.1). The next one draws our close again.
const UNDER_WAY_DATAGRAMS: u32 = 3;

#[derive(Debug)]
enum Phase {
    Open,
    Closing { frame: Box<CloseFrame>, until: Instant, heard: u32, repetition: Repetition },
    Draining { until: Instant },
    Drained,
}

/// What draws our close again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repetition {
    /// The datagram of this number, counted from the close on.
    At(u32),
    /// It was not sent yet: it waits for the keys of Handshake packets.
    AwaitsKeys,
}

/// The connection's phase and the timers that end it.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: Phase,
    idle_timeout: Option<Duration>,
    idle_deadline: Option<Instant>,
    keep_alive_interval: Option<Duration>,
    keep_alive_deadline: Option<Instant>,
    /// When an unfinished handshake is given up.
    handshake_deadline: Option<Instant>,
    sent_since_heard: bool,
    /// Our close frame is to be sent, on `close_paths_left` in this round.
    owes_close: bool,
    /// Paths on which the present round of our close is still to be sent, the first one last.
    close_paths_left: Vec<PathId>,
}

/// The connection is closed: nothing more can be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// Which of the lifecycle's timers fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LifecycleTimer {
    None,
    /// Nothing was heard for too long, or no end of the handshake.
    Idle,
    KeepAlive,
    Drained,
}

impl Lifecycle {
    pub(crate) fn new(now: Instant, timing: &TimingTuning) -> Self {
        Self {
            phase: Phase::Open,
            idle_timeout: timing.max_idle_timeout,
            idle_deadline: timing.max_idle_timeout.map(|d| now + d),
            keep_alive_interval: timing.keep_alive_interval,
            keep_alive_deadline: None,
            handshake_deadline: timing.handshake_timeout.map(|d| now + d),
            sent_since_heard: false,
            owes_close: false,
            close_paths_left: Vec::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// An error once the connection is closed.
    pub(crate) fn check_open(&self) -> Result<(), Closed> {
        if self.is_open() { Ok(()) } else { Err(Closed) }
    }

    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    pub(crate) fn is_drained(&self) -> bool {
        matches!(self.phase, Phase::Drained)
    }

    /// Agrees on the idle timeout: the smaller of both ends' values (RFC 9000 10.1).
    pub(crate) fn negotiate_idle(&mut self, peer: Option<Duration>) {
        self.idle_timeout = match (self.idle_timeout, peer) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// The handshake is complete: it cannot time out any more.
    pub(crate) fn on_handshake_complete(&mut self) {
        self.handshake_deadline = None;
    }

    /// A packet was opened: the idle timer starts again.
    pub(crate) fn on_heard(&mut self, now: Instant, pto: Duration) {
        self.sent_since_heard = false;
        self.restart_idle(now, pto);
    }

    /// An ack-eliciting packet left: the idle timer starts again if it is the first since we heard something.
    pub(crate) fn on_sent_eliciting(&mut self, now: Instant, pto: impl FnOnce() -> Duration) {
        if !self.sent_since_heard {
            self.sent_since_heard = true;
            self.restart_idle(now, pto());
        }
    }

    fn restart_idle(&mut self, now: Instant, pto: Duration) {
        if !self.is_open() {
            return;
        }
        // RFC 9000 10.1: at least three times the current PTO
        self.idle_deadline = self.idle_timeout.map(|d| now + d.max(pto * IDLE_PTOS));
        // Begun once; when it fires, `set_keep_alive` goes by each path's own silence.
        self.keep_alive_deadline = self.keep_alive_deadline.or(self.keep_alive_interval.map(|d| now + d));
    }

    /// When a path will have been silent for long enough to want a PING.
    pub(crate) fn set_keep_alive(&mut self, at: Instant) {
        self.keep_alive_deadline = self.keep_alive_interval.map(|_| at);
    }

    /// We close: the frame is sent now and again, rarely, while packets keep coming.
    pub(crate) fn close(&mut self, now: Instant, frame: CloseFrame, pto: Duration) {
        if self.is_open() {
            let until = now + pto * CLOSING_PTOS;
            let repetition = Repetition::At(1);
            self.phase = Phase::Closing { frame: Box::new(frame), until, heard: 0, repetition };
            self.owes_close = true;
        }
    }

    /// The close that just began is one of an attempt that was given up: it waits for `patience` for the keys of Handshake
    /// packets, and the peer may never hear of it.
    pub(crate) fn await_keys(&mut self, now: Instant, patience: Duration) {
        if let Phase::Closing { until, repetition, .. } = &mut self.phase {
            (*until, *repetition) = (now + patience, Repetition::AwaitsKeys);
            self.owes_close = false;
        }
    }

    /// True while a close waits for the keys of Handshake packets.
    pub(crate) fn awaits_keys(&self) -> bool {
        matches!(self.phase, Phase::Closing { repetition: Repetition::AwaitsKeys, .. })
    }

    /// They are here: the close is sent now, and heeded for as long as any other.
    pub(crate) fn on_keys(&mut self, now: Instant, patience: Duration) {
        if let Phase::Closing { until, heard, repetition, .. } = &mut self.phase {
            (*until, *heard, *repetition) = (now + patience, 0, Repetition::At(UNDER_WAY_DATAGRAMS + 1));
            self.owes_close = true;
        }
    }

    /// The peer closed, or reset us: silence until the end (RFC 9000 10.2.2), which is told the first time.
    pub(crate) fn drain(&mut self, now: Instant, pto: Duration) -> Option<Instant> {
        // Whatever comes again while draining prolongs nothing.
        if !self.is_open() && !self.is_closing() {
            return None;
        }
        let until = now + pto * CLOSING_PTOS;
        self.phase = Phase::Draining { until };
        self.owes_close = false;
        Some(until)
    }

    /// The end without waiting.
    pub(crate) fn finish(&mut self) {
        self.phase = Phase::Drained;
        self.owes_close = false;
    }

    /// A packet arrived while closing: our close is repeated for the 1st, 2nd, 4th, 8th... (RFC 9000 10.2.1).
    pub(crate) fn on_heard_while_closing(&mut self) {
        if let Phase::Closing { heard, repetition: Repetition::At(next), .. } = &mut self.phase {
            *heard += 1;
            if heard >= next {
                *next = next.saturating_mul(2);
                self.owes_close = true;
                // A new round: what waits for a full socket must not keep the close from the other paths.
                self.close_paths_left.clear();
            }
        }
    }

    /// The close frame, while it waits to be sent.
    pub(crate) fn close_to_send(&self) -> Option<&CloseFrame> {
        match &self.phase {
            Phase::Closing { frame, .. } if self.owes_close => Some(frame),
            _ => None,
        }
    }

    /// Our close goes once to each of `targets`, where no round of it is under way.
    pub(crate) fn begin_close_round(&mut self, targets: impl FnOnce() -> Vec<PathId>) {
        if self.close_paths_left.is_empty() {
            self.close_paths_left = targets();
            self.close_paths_left.reverse();
        }
    }

    /// The next path for our close, among those on which something can leave now.
    pub(crate) fn take_close_target(&mut self, can_leave: impl Fn(PathId) -> bool) -> Option<PathId> {
        let place = self.close_paths_left.iter().rposition(|id| can_leave(*id))?;
        Some(self.close_paths_left.remove(place))
    }

    /// Nothing more is to be said in this round, unless a full socket holds it back.
    pub(crate) fn end_close_round(&mut self) {
        if self.close_paths_left.is_empty() {
            self.on_close_sent();
        }
    }

    pub(crate) fn on_close_sent(&mut self) {
        self.owes_close = false;
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Open => earliest(earliest(self.idle_deadline, self.keep_alive_deadline), self.handshake_deadline),
            Phase::Closing { until, .. } | Phase::Draining { until } => Some(until),
            Phase::Drained => None,
        }
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) -> LifecycleTimer {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        match self.phase {
            Phase::Open if due(self.idle_deadline) || due(self.handshake_deadline) => LifecycleTimer::Idle,
            Phase::Open if due(self.keep_alive_deadline) => {
                self.keep_alive_deadline = self.keep_alive_interval.map(|d| now + d);
                LifecycleTimer::KeepAlive
            }
            Phase::Closing { until, .. } | Phase::Draining { until } if until <= now => {
                self.finish();
                LifecycleTimer::Drained
            }
            _ => LifecycleTimer::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use plait_base::{CloseCode, TransportError};

    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn idle_after(idle: Duration) -> Lifecycle {
        let timing = TimingTuning { max_idle_timeout: Some(idle), handshake_timeout: None, ..TimingTuning::default() };
        Lifecycle::new(Instant::ZERO, &timing)
    }

    #[test]
    fn idle_is_the_smaller_but_three_ptos() {
        // RFC 9000 10.1
        let mut life = idle_after(ms(100));
        life.negotiate_idle(Some(ms(50)));
        life.on_heard(Instant::ZERO, ms(40));
        assert_eq!(life.deadline(), Some(Instant::ZERO + ms(120)));
        assert_eq!(life.on_timeout(Instant::ZERO + ms(119)), LifecycleTimer::None);
        assert_eq!(life.on_timeout(Instant::ZERO + ms(120)), LifecycleTimer::Idle);
    }

    #[test]
    fn only_the_first_packet_sent_restarts_idle() {
        let mut life = idle_after(ms(100));
        life.on_sent_eliciting(Instant::ZERO + ms(10), || ms(1));
        life.on_sent_eliciting(Instant::ZERO + ms(90), || ms(1));
        assert_eq!(life.deadline(), Some(Instant::ZERO + ms(110)));
    }

    #[test]
    fn a_close_that_awaits_keys_says_nothing_before_and_little_after() {
        let mut life = idle_after(ms(9_000));
        life.close(Instant::ZERO, CloseFrame::withdrawn(None), ms(3));
        life.await_keys(Instant::ZERO, ms(3_000));
        life.on_heard_while_closing();
        assert!(life.awaits_keys() && life.close_to_send().is_none());
        assert_eq!(life.deadline(), Some(Instant::ZERO + ms(3_000)));
        life.on_keys(Instant::ZERO + ms(2_000), ms(3_000));
        assert_eq!(life.deadline(), Some(Instant::ZERO + ms(5_000)));
        let mut sent = Vec::new();
        for heard in 0..20 {
            if life.close_to_send().is_some() {
                life.on_close_sent();
                sent.push(heard);
            }
            life.on_heard_while_closing();
        }
        assert_eq!(sent, [0, 4, 8, 16]);
    }

    #[test]
    fn close_is_repeated_ever_more_rarely() {
        // RFC 9000 10.2.1
        let mut life = idle_after(ms(9_000));
        life.close(Instant::ZERO, CloseFrame::Transport(TransportError::new(CloseCode::NO_ERROR, "")), ms(3));
        let mut sent = 0;
        for _ in 0..64 {
            if life.close_to_send().is_some() {
                life.on_close_sent();
                sent += 1;
            }
            life.on_heard_while_closing();
        }
        assert_eq!(sent, 7);
        assert_eq!(life.on_timeout(Instant::ZERO + ms(9)), LifecycleTimer::Drained);
        assert!(life.is_drained());
    }
}
