//! Delivery rate: how fast acknowledged bytes arrive, after draft-cheng-iccrg-delivery-rate-estimation.

use std::time::Duration;

use plait_base::Instant;
use plait_congestion::{Limit, RateSample};

/// Intervals too short to tell a rate by.
const INTERVAL_MIN: Duration = Duration::from_micros(100);

/// What each packet remembers of deliveries when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RateMark {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes in flight with this packet; what does not fit counts as the largest.
    flight_bytes: u32,
    /// Low bits of all bytes lost by then; less is lost while a packet is under way.
    lost_bytes: u32,
}

impl RateMark {
    /// Bytes in flight when the packet had left.
    pub(crate) fn flight_bytes(self) -> u64 {
        u64::from(self.flight_bytes)
    }
}

/// What holds for a packet as it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    /// Whether anything was in flight before it.
    pub(crate) idle: Idle,
    /// Whether the sender had more to send than it was let.
    pub(crate) app_limited: AppLimited,
    /// Bytes in flight, the packet's included.
    pub(crate) flight_bytes: u64,
}

/// Estimates the delivery rate of one flow.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost_bytes: u64,
    /// Once more than this is delivered, the gap in which the sender had nothing to send has left the path.
    limited_until: u64,
    /// The window had no room when it was last asked before the newest packet left.
    window_was_full: bool,
    /// What was in flight as the packets left that the smoothed RTT tells of; zero before the first sample.
    rtt_flight_bytes: u32,
    estimate_bps: Option<u64>,
}

impl RateEstimator {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            delivered_bytes: 0,
            delivered_at: now,
            first_sent_at: now,
            lost_bytes: 0,
            limited_until: 0,
            window_was_full: false,
            rtt_flight_bytes: 0,
            estimate_bps: None,
        }
    }

    /// A packet leaves: what it is to remember, and whether the sender or the path set the pace of what is in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, leaving: &Leaving) -> (RateMark, AppLimited) {
        if leaving.idle == Idle::Yes {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        self.window_was_full = false;
        if leaving.app_limited == AppLimited::Yes {
            self.limited_until = self.delivered_bytes + leaving.flight_bytes;
        }
        let mark = RateMark {
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            flight_bytes: u32::try_from(leaving.flight_bytes).unwrap_or(u32::MAX),
            lost_bytes: self.lost_bytes as u32,
        };
        (mark, if self.limited_until > self.delivered_bytes { AppLimited::Yes } else { AppLimited::No })
    }

    /// The window had no room for one more.
    pub(crate) fn on_window_full(&mut self) {
        self.window_was_full = true;
    }

    /// Whether that was so since the newest packet left.
    pub(crate) fn was_window_full(&self) -> bool {
        self.window_was_full
    }

    /// Bytes were declared lost.
    pub(crate) fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes += bytes;
    }

    /// Some of them arrived after all.
    pub(crate) fn on_spurious(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_sub(bytes);
    }

    /// An ack covers `bytes`; `newest` is the mark of the newest packet in it, sent at `sent_at`.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        bytes: u64,
        newest: RateMark,
        sent_at: Instant,
        app_limited: AppLimited,
    ) -> RateSample {
        self.delivered_bytes += bytes;
        self.delivered_at = now;
        // Not back to a packet that others overtook.
        self.first_sent_at = self.first_sent_at.max(sent_at);
        let interval = sent_at.since(newest.first_sent_at).max(now.since(newest.delivered_at));
        let mut delivery = self.delivery(newest, app_limited);
        if interval < INTERVAL_MIN {
            return delivery;
        }
        delivery.interval = interval;
        let sample = delivery.bytes_per_s().unwrap_or(0).saturating_mul(8);
        self.estimate_bps = Some(match self.estimate_bps {
            None => sample,
            // A sender with little to say proves only that the path is at least so fast.
            Some(old) if app_limited == AppLimited::Yes && sample < old => old,
            Some(old) => old - old / 8 + sample / 8,
        });
        delivery
    }

    /// What was delivered and lost since the packet of that mark left; without an interval.
    pub(crate) fn delivery(&self, mark: RateMark, app_limited: AppLimited) -> RateSample {
        RateSample {
            total_bytes: self.delivered_bytes,
            prior_bytes: mark.delivered_bytes,
            interval: Duration::ZERO,
            flight_bytes: u64::from(mark.flight_bytes),
            lost_bytes: self.lost_since(mark),
            limit: if app_limited == AppLimited::Yes { Limit::Application } else { Limit::Window },
        }
    }

    /// All that was delivered, over no interval: it says nothing of a rate.
    pub(crate) fn so_far(&self) -> RateSample {
        RateSample {
            total_bytes: self.delivered_bytes,
            prior_bytes: 0,
            interval: Duration::ZERO,
            flight_bytes: 0,
            lost_bytes: 0,
            limit: Limit::Application,
        }
    }

    /// Losses that proved false since may be more than those declared: then it is none.
    fn lost_since(&self, mark: RateMark) -> u64 {
        let lost = (self.lost_bytes as u32).wrapping_sub(mark.lost_bytes);
        if lost > u32::MAX / 2 { 0 } else { u64::from(lost) }
    }

    /// The RTT was sampled by a packet of this mark, whose flight is weighed as the sample is (RFC 9002 5.3).
    #[inline]
    pub(crate) fn on_rtt_sample(&mut self, mark: RateMark) {
        self.rtt_flight_bytes = match self.rtt_flight_bytes {
            0 => mark.flight_bytes,
            old => ((u64::from(old) * 7 + mark.flight_bytes()) / 8) as u32,
        };
    }

    /// What was in flight as the packets left that the smoothed RTT tells of, bytes; zero before the first sample.
    #[inline]
    pub(crate) fn rtt_flight_bytes(&self) -> u64 {
        self.rtt_flight_bytes.into()
    }

    /// Smoothed estimate, bits per second; none before the first sample.
    #[inline]
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
pub(crate) enum AppLimited {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_are_weighed_as_their_samples_are() {
        let mut rate = RateEstimator::new(Instant::ZERO);
        let mut sample = |flight_bytes| {
            rate.on_rtt_sample(RateMark { flight_bytes, ..RateMark::default() });
            rate.rtt_flight_bytes()
        };
        assert_eq!((sample(8_000), sample(16_000), sample(0)), (8_000, 9_000, 7_875));
    }

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
                rate.on_acked(now, 1250, mark, at, AppLimited::No);
            }
            let idle = if sent.is_empty() { Idle::Yes } else { Idle::No };
            let flight_bytes = 1250 * (sent.len() as u64 + 1);
            sent.push_back((rate.on_sent(now, &Leaving { idle, app_limited: AppLimited::No, flight_bytes }).0, now));
        }
        let bps = rate.estimate_bps().unwrap();
        assert!((9_000_000..=10_500_000).contains(&bps), "{bps}");
    }

    #[test]
    fn an_overtaken_packet_neither_shortens_nor_lengthens_samples() {
        let ms = Duration::from_millis(1);
        let mut rate = RateEstimator::new(Instant::ZERO);
        let leaving = Leaving { idle: Idle::No, app_limited: AppLimited::No, flight_bytes: 2000 };
        let sent = [0, 1, 2].map(|i| rate.on_sent(Instant::ZERO + ms * i, &leaving).0);
        rate.on_lost(1000);
        let before = rate.delivery(sent[0], AppLimited::No);
        assert_eq!(before.lost_bytes, 1000);
        rate.on_acked(Instant::ZERO + ms * 20, 1000, sent[2], Instant::ZERO + ms * 2, AppLimited::No);
        let (later, _) = rate.on_sent(Instant::ZERO + ms * 21, &leaving);
        rate.on_spurious(1000);
        let late = rate.on_acked(Instant::ZERO + ms * 22, 1000, sent[0], Instant::ZERO, AppLimited::No);
        assert_eq!((late.total_bytes, late.lost_bytes, late.interval), (2000, 0, ms * 22));
        let next = rate.on_acked(Instant::ZERO + ms * 40, 1000, later, Instant::ZERO + ms * 21, AppLimited::No);
        assert_eq!((next.interval, next.lost_bytes), (ms * 20, 0), "the flight of the newest packet counts");
    }

    #[test]
    fn a_gap_in_what_there_was_to_send_marks_packets_until_it_has_left_the_path() {
        let ms = Duration::from_millis(1);
        let mut rate = RateEstimator::new(Instant::ZERO);
        let leaving = |app_limited, flight_bytes| Leaving { idle: Idle::No, app_limited, flight_bytes };
        let (first, app_limited) = rate.on_sent(Instant::ZERO, &leaving(AppLimited::Yes, 1000));
        assert_eq!(app_limited, AppLimited::Yes);
        let (second, app_limited) = rate.on_sent(Instant::ZERO, &leaving(AppLimited::No, 2000));
        assert_eq!(app_limited, AppLimited::Yes, "the gap is still under way");
        rate.on_acked(Instant::ZERO + ms, 1000, first, Instant::ZERO, AppLimited::Yes);
        rate.on_lost(300);
        let (_, app_limited) = rate.on_sent(Instant::ZERO + ms, &leaving(AppLimited::No, 2000));
        assert_eq!(app_limited, AppLimited::No);
        let delivery = rate.on_acked(Instant::ZERO + ms * 2, 1000, second, Instant::ZERO, AppLimited::Yes);
        assert_eq!((delivery.total_bytes, delivery.prior_bytes, delivery.interval), (2000, 0, ms * 2));
        assert_eq!((delivery.flight_bytes, delivery.lost_bytes, delivery.limit), (2000, 300, Limit::Application));
        assert_eq!(delivery.bytes_per_s(), Some(1_000_000));
    }
}
