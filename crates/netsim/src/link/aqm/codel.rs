//! CoDel (RFC 8289): signals when datagrams have waited too long for too long.

use std::time::Duration;

use plait_base::Instant;

use super::Care;

/// Settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable standing delay; 5 ms (RFC 8289 4.3).
    pub target: Duration,
    /// A worst-case round trip; 100 ms (RFC 8289 4.3).
    pub interval: Duration,
    /// Bytes that may always wait: one full datagram.
    pub quiet_bytes: u64,
}

impl Default for CoDelConfig {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), quiet_bytes: 1514 }
    }
}

/// State of the control loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoDel {
    first_above: Option<Instant>,
    /// Set while in the dropping state: when the next signal is due.
    next: Option<Instant>,
    last_next: Instant,
    count: u32,
    last_count: u32,
}

impl CoDel {
    /// A datagram that waited `sojourn` is taken at `now` and leaves `queued_bytes` behind. To be called again with
    /// the next datagram whenever this one is dropped.
    pub(crate) fn on_dequeue(&mut self, c: &CoDelConfig, now: Instant, sojourn: Duration, queued_bytes: u64) -> Care {
        let above = self.is_above(c, now, sojourn, queued_bytes);
        let Some(next) = self.next else {
            return if above { self.enter(c, now) } else { Care::Pass };
        };
        if !above {
            self.last_next = next;
            self.next = None;
            return Care::Pass;
        }
        if now < next {
            return Care::Pass;
        }
        self.count = self.count.saturating_add(1);
        self.next = Some(control_law(next, c.interval, self.count));
        Care::Signal
    }

    /// The queue ran empty.
    pub(crate) fn on_empty(&mut self) {
        self.first_above = None;
        if let Some(next) = self.next.take() {
            self.last_next = next;
        }
    }

    // RFC 8289 5.6: dodequeue
    fn is_above(&mut self, c: &CoDelConfig, now: Instant, sojourn: Duration, queued_bytes: u64) -> bool {
        if sojourn < c.target || queued_bytes <= c.quiet_bytes {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + c.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    // RFC 8289 5.5: start near the rate that controlled the queue when we left the dropping state recently
    fn enter(&mut self, c: &CoDelConfig, now: Instant) -> Care {
        let delta = self.count.saturating_sub(self.last_count);
        let recently = now.since(self.last_next) < c.interval * 16 && self.last_next > Instant::ZERO;
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.last_count = self.count;
        self.next = Some(control_law(now, c.interval, self.count));
        Care::Signal
    }
}

fn control_law(at: Instant, interval: Duration, count: u32) -> Instant {
    at + interval.div_f64(f64::from(count.max(1)).sqrt())
}
