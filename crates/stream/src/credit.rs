//! Flow control as values: how much may be sent, how much may be received, and when to say more (RFC 9000 4).

use std::time::Duration;

use plait_base::{Instant, Violation};

/// What the peer lets us send.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendCredit {
    /// The peer's limit, bytes.
    pub(crate) limit: u64,
    /// Bytes spent of it.
    pub(crate) used: u64,
    /// The limit at which we last said that we are blocked.
    pub(crate) blocked_at: Option<u64>,
}

impl SendCredit {
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Raises the limit; false when it is no raise (RFC 9000 4.1: smaller values are ignored).
    pub(crate) fn raise(&mut self, limit: u64) -> bool {
        let raised = limit > self.limit;
        self.limit = self.limit.max(limit);
        raised
    }
}

/// What we let the peer send, on one stream or on the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveCredit {
    /// Bytes that may be outstanding beyond what was consumed.
    window: u64,
    /// The limit that was announced.
    limit: u64,
    /// Bytes received: a stream's highest offset, the connection's sum of them.
    received: u64,
    /// Bytes that the application took or will never get.
    consumed: u64,
    /// When the present window began to be measured, and `consumed` then.
    epoch: Option<(Instant, u64)>,
}

/// An update is due once this fraction of the window was consumed since the last one.
const UPDATE_FRACTION: u64 = 4;

impl ReceiveCredit {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, limit: window, received: 0, consumed: 0, epoch: None }
    }

    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Checks that `bytes` more may be received.
    pub(crate) fn check(&self, bytes: u64, or: Violation) -> Result<(), Violation> {
        // RFC 9000 4.1: data beyond the advertised limit is FLOW_CONTROL_ERROR.
        if bytes > self.limit.saturating_sub(self.received) { Err(or) } else { Ok(()) }
    }

    pub(crate) fn on_received(&mut self, bytes: u64) {
        self.received += bytes;
    }

    pub(crate) fn on_consumed(&mut self, bytes: u64) {
        self.consumed += bytes;
    }

    /// The highest limit that the window allows now.
    fn target(&self) -> u64 {
        self.consumed.saturating_add(self.window).min(plait_base::units::VARINT_MAX)
    }

    /// True when the peer should be told of more room, whether it said that it is blocked or not (RFC 9000 4.2).
    pub(crate) fn wants_update(&self) -> bool {
        self.target().saturating_sub(self.limit) > self.window / UPDATE_FRACTION
    }

    /// Moves the limit on, and doubles the window up to `max` when a whole one was consumed within two RTTs.
    pub(crate) fn update(&mut self, now: Instant, rtt: Duration, max: u64) -> u64 {
        let (began, consumed_then) = *self.epoch.get_or_insert((now, self.consumed));
        let elapsed = now.since(began);
        let in_time = elapsed <= 2 * rtt;
        if self.consumed - consumed_then >= self.window {
            if in_time {
                self.window = self.window.saturating_mul(2).min(max.max(self.window));
            }
            self.epoch = Some((now, self.consumed));
        } else if !in_time {
            self.epoch = Some((now, self.consumed));
        }
        self.limit = self.limit.max(self.target());
        self.limit
    }

    /// Doubles the window, up to `max`; the new one, if it grew.
    pub(crate) fn widen_up_to(&mut self, max: u64) -> Option<u64> {
        let wider = self.window.saturating_mul(2).min(max);
        let grew = wider > self.window;
        self.window = self.window.max(wider);
        grew.then_some(self.window)
    }

    /// Widens the window to at least `window`.
    pub(crate) fn widen(&mut self, window: u64) {
        self.window = self.window.max(window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(rtt_ms: u64, step_ms: u64) -> ReceiveCredit {
        let mut credit = ReceiveCredit::new(1000);
        let mut now = Instant::ZERO;
        for _ in 0..64 {
            credit.on_received(250);
            credit.on_consumed(250);
            credit.on_received(50);
            credit.on_consumed(50);
            now += Duration::from_millis(step_ms);
            if credit.wants_update() {
                credit.update(now, Duration::from_millis(rtt_ms), 16_000);
            }
        }
        credit
    }

    #[test]
    fn a_fast_reader_gets_a_larger_window_up_to_the_maximum() {
        // RFC 9000 4.2
        assert_eq!(drive(100, 1).window(), 16_000);
        assert_eq!(drive(1, 100).window(), 1000);
    }

    #[test]
    fn the_limit_never_leads_by_more_than_the_window() {
        let mut credit = ReceiveCredit::new(100);
        assert!(!credit.wants_update());
        assert_eq!(credit.check(101, Violation::StreamFlowControl), Err(Violation::StreamFlowControl));
        credit.on_received(100);
        assert!(credit.check(0, Violation::StreamFlowControl).is_ok());
        assert!(credit.check(1, Violation::StreamFlowControl).is_err());
        credit.on_consumed(26);
        assert!(credit.wants_update());
        assert_eq!(credit.update(Instant::ZERO, Duration::ZERO, 100), 126);
        assert!(!credit.wants_update());
    }

    #[test]
    fn send_credit_only_grows() {
        // RFC 9000 4.1-3, 13.3-3
        let mut credit = SendCredit { limit: 5, used: 3, blocked_at: None };
        assert!(!credit.raise(4) && !credit.raise(5) && credit.raise(9));
        assert_eq!(credit.left(), 6);
    }
}
