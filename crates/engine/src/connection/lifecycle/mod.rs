//! From open to drained: idle timeout, keep-alive, immediate close and the states after it (RFC 9000 10).

mod close;
mod setup;
mod timers;

use std::time::Duration;

use bytes::Bytes;
use plait_base::time::earliest;
use plait_base::{CloseCode, Instant, PathId, TransportError};

use crate::config::TimingTuning;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The peer speaks no version that we speak.
    #[error("the peer supports none of our QUIC versions")]
    VersionMismatch,
    /// A rule was broken, by the peer or in the handshake; we closed the connection.
    #[error("we closed the connection: {0}")]
    TransportError(#[from] TransportError),
    /// The peer's transport closed the connection.
    #[error("the peer's transport closed the connection: {0}")]
    ConnectionClosed(TransportError),
    /// The peer's application closed the connection.
    #[error("the peer's application closed the connection: {0}")]
    ApplicationClosed(ApplicationClose),
    /// A stateless reset: the peer lost the connection's state.
    #[error("the peer lost the connection's state and reset it")]
    Reset,
    /// Nothing was heard for the idle timeout, or the handshake did not finish in time.
    #[error("timed out: nothing heard from the peer")]
    TimedOut,
    /// The network answered in the peer's place, before the peer did.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Our application closed the connection.
    #[error("closed by this application")]
    LocallyClosed,
}

/// What the network says of datagrams that it did not deliver (RFC 792, RFC 4443 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The host is there, and nobody listens at the port.
    #[error("connection refused: nobody listens at the peer's port")]
    Port,
    /// No way leads to the host, or somebody on it forbids.
    #[error("the network has no way to the peer's address")]
    Host,
}

/// An application's close: its code and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationClose {
    /// The application's code, at most 2^62 - 1.
    pub code: u64,
    /// For people; may be any bytes.
    pub reason: Bytes,
}

impl std::fmt::Display for ApplicationClose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, ": {}", String::from_utf8_lossy(&self.reason))?;
        }
        Ok(())
    }
}

/// What our CONNECTION_CLOSE says.
#[derive(Clone, Debug)]
pub(crate) enum CloseFrame {
    /// The transport's close, type 0x1c.
    Transport(TransportError),
    /// The application's close, type 0x1d; becomes 0x1c with APPLICATION_ERROR before 1-RTT (RFC 9000 10.2.3).
    Application(ApplicationClose),
}

#[derive(Debug)]
enum Phase {
    Open,
    Closing { frame: CloseFrame, until: Instant, heard: u32, answer_at: u32 },
    Draining { until: Instant },
    Drained,
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
    close_due: bool,
    /// Paths on which the present round of our close is still to be sent.
    pub(crate) closes_due: Vec<PathId>,
}

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
            close_due: false,
            closes_due: Vec::new(),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
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
    pub(crate) fn on_sent_eliciting(&mut self, now: Instant, pto: Duration) {
        if !self.sent_since_heard {
            self.sent_since_heard = true;
            self.restart_idle(now, pto);
        }
    }

    fn restart_idle(&mut self, now: Instant, pto: Duration) {
        if !self.is_open() {
            return;
        }
        // RFC 9000 10.1: at least three times the current PTO
        self.idle_deadline = self.idle_timeout.map(|d| now + d.max(pto * 3));
        // From then on each path's own silence counts.
        self.keep_alive_deadline = self.keep_alive_deadline.or(self.keep_alive_interval.map(|d| now + d));
    }

    /// When a path will have been silent for long enough to want a PING.
    pub(crate) fn set_keep_alive(&mut self, at: Instant) {
        self.keep_alive_deadline = self.keep_alive_interval.map(|_| at);
    }

    /// We close: the frame is sent now and again, rarely, while packets keep coming.
    pub(crate) fn close(&mut self, frame: CloseFrame, until: Instant) {
        if self.is_open() {
            self.phase = Phase::Closing { frame, until, heard: 0, answer_at: 1 };
            self.close_due = true;
        }
    }

    /// The peer closed, or reset us: silence until the end (RFC 9000 10.2.2).
    pub(crate) fn drain(&mut self, until: Instant) {
        // Whatever comes again while draining prolongs nothing.
        if self.is_open() || self.is_closing() {
            self.phase = Phase::Draining { until };
            self.close_due = false;
        }
    }

    /// The end without waiting.
    pub(crate) fn finish(&mut self) {
        self.phase = Phase::Drained;
        self.close_due = false;
    }

    /// A packet arrived while closing: our close is repeated for the 1st, 2nd, 4th, 8th... (RFC 9000 10.2.1).
    pub(crate) fn on_heard_while_closing(&mut self) {
        if let Phase::Closing { heard, answer_at, .. } = &mut self.phase {
            *heard += 1;
            if heard >= answer_at {
                *answer_at = answer_at.saturating_mul(2);
                self.close_due = true;
                // A new round: what waits for a full socket must not keep the close from the other paths.
                self.closes_due.clear();
            }
        }
    }

    /// The close frame, while it waits to be sent.
    pub(crate) fn due_close(&self) -> Option<&CloseFrame> {
        match &self.phase {
            Phase::Closing { frame, .. } if self.close_due => Some(frame),
            _ => None,
        }
    }

    pub(crate) fn on_close_sent(&mut self) {
        self.close_due = false;
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

impl CloseFrame {
    /// The frame that may travel before 1-RTT: an application's code and reason stay private (RFC 9000 10.2.3).
    pub(crate) fn for_handshake(&self) -> TransportError {
        match self {
            Self::Transport(error) => error.clone(),
            Self::Application(_) => TransportError::new(CloseCode::APPLICATION_ERROR, ""),
        }
    }
}

#[cfg(test)]
mod tests {
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
        life.on_sent_eliciting(Instant::ZERO + ms(10), ms(1));
        life.on_sent_eliciting(Instant::ZERO + ms(90), ms(1));
        assert_eq!(life.deadline(), Some(Instant::ZERO + ms(110)));
    }

    #[test]
    fn close_is_repeated_ever_more_rarely() {
        // RFC 9000 10.2.1
        let mut life = idle_after(ms(9_000));
        life.close(CloseFrame::Transport(TransportError::new(CloseCode::NO_ERROR, "")), Instant::ZERO + ms(9));
        let mut sent = 0;
        for _ in 0..64 {
            if life.due_close().is_some() {
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
