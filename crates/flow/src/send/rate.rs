//! Delivery rate: how fast acknowledged bytes arrive, after draft-cheng-iccrg-delivery-rate-estimation.

use std::time::Duration;

use plait_base::Instant;

/// What each packet remembers of deliveries when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RateMark {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
}

/// Estimates the delivery rate of one flow.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    estimate_bps: Option<u64>,
}

impl RateEstimator {
    pub(crate) fn new(now: Instant) -> Self {
        Self { delivered_bytes: 0, delivered_at: now, first_sent_at: now, estimate_bps: None }
    }

    /// A packet leaves; `idle` when nothing was in flight before it.
    pub(crate) fn on_sent(&mut self, now: Instant, idle: Idle) -> RateMark {
        if idle == Idle::Yes {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        RateMark {
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        }
    }

    /// An ack covers `bytes`; `newest` is the mark of the newest packet in it, sent at `sent_at`.
    pub(crate) fn on_acked(&mut self, now: Instant, bytes: u64, newest: RateMark, sent_at: Instant, demand: Demand) {
        self.delivered_bytes += bytes;
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        let interval = sent_at.since(newest.first_sent_at).max(now.since(newest.delivered_at));
        if interval < Duration::from_micros(100) {
            return;
        }
        let delivered = u128::from(self.delivered_bytes.saturating_sub(newest.delivered_bytes));
        let sample = u64::try_from(delivered * 8 * 1_000_000_000 / interval.as_nanos()).unwrap_or(u64::MAX);
        self.estimate_bps = Some(match self.estimate_bps {
            None => sample,
            // A sender with little to say proves only that the path is at least so fast.
            Some(old) if demand == Demand::Idle && sample < old => old,
            Some(old) => old - old / 8 + sample / 8,
        });
    }

    /// Smoothed estimate, bits per second; none before the first sample.
    pub(crate) fn estimate_bps(&self) -> Option<u64> {
        self.estimate_bps
    }
}

/// Whether anything was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    Yes,
    No,
}

/// Whether the sender had more to send than it was let.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Idle,
    Busy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_flow_shows_its_rate() {
        // One packet of 1250 bytes each millisecond, acked 20 ms later: 10 Mbit/s.
        let ms = Duration::from_millis(1);
        let mut rate = RateEstimator::new(Instant::ZERO);
        let mut sent = std::collections::VecDeque::new();
        for i in 0..500u32 {
            let now = Instant::ZERO + ms * i;
            if i >= 20 {
                let (mark, at) = sent.pop_front().unwrap();
                rate.on_acked(now, 1250, mark, at, Demand::Busy);
            }
            let idle = if sent.is_empty() { Idle::Yes } else { Idle::No };
            sent.push_back((rate.on_sent(now, idle), now));
        }
        let bps = rate.estimate_bps().unwrap();
        assert!((9_000_000..=10_500_000).contains(&bps), "{bps}");
    }
}
