//! How much later than promised acks came of what left a path that had stood idle.
//!
//! A path whose rate or round trip changes shows it by the answer that meets the change. The estimates follow soon, so that
//! nothing of it is left when the path changes back and forth: what remains is kept here for a while.

use std::time::Duration;

use plait_base::Instant;
use plait_base::limits::MIN_DATAGRAM_BYTES;

use super::recent::{RecentMax, RecentMin};

/// A flight of no more is as late as the path made it, and not by a queue of its own.
const SMALL_FLIGHT_BYTES: u64 = 3 * MIN_DATAGRAM_BYTES as u64;

/// What the estimates said when a flight began: a packet left, and none was under way.
#[derive(Clone, Copy, Debug)]
struct Promise {
    number: u64,
    sent_at: Instant,
    /// Within so long its ack was to come.
    within: Duration,
    /// The best that a flight was promised of late.
    best: Duration,
    /// Or when what is ahead of it has drained at this rate; nothing is promised before one was measured.
    rate_bps: u64,
}

/// The packet that a sample of the RTT is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlightSample {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    /// The sample, less the peer's ack delay.
    pub(crate) rtt: Duration,
    /// Bytes in flight when it had left.
    pub(crate) flight_bytes: u64,
}

/// The largest lateness of late, and the promise that is open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Punctuality {
    promise: Option<Promise>,
    best: RecentMin,
    small: SmallFlights,
    worst: RecentMax,
}

/// RTT samples of the newest small flights, the smallest of each: jitter makes one of them late, and hardly all.
#[derive(Clone, Copy, Debug, Default)]
struct SmallFlights {
    /// The first packet of the newest.
    number: u64,
    /// From the newest on; zero where there is none yet.
    rtts: [Duration; 3],
}

impl SmallFlights {
    /// Takes in a sample of the flight that began with `number`; returns the smallest of all.
    fn note(&mut self, number: u64, rtt: Duration) -> Duration {
        let [newest, second, third] = self.rtts;
        self.rtts = if number == self.number { [newest.min(rtt), second, third] } else { [rtt, newest, second] };
        self.number = number;
        self.rtts.into_iter().fold(rtt, Duration::min)
    }
}

impl Punctuality {
    /// A packet left while none was under way: `within` is the time that the estimates give its ack. It holds for what leaves
    /// so long after it, as far as no ack changes the estimates.
    pub(crate) fn on_flight_sent(&mut self, number: u64, sent_at: Instant, within: Duration, rate_bps: Option<u64>) {
        let best = self.best.note(sent_at, within);
        // The one before it is open while acks of what it promised may come.
        if self.promise.is_none_or(|promise| promise.sent_at + promise.within < sent_at) {
            self.promise = rate_bps.map(|rate_bps| Promise { number, sent_at, within, best, rate_bps });
        }
    }

    /// An ack brought a sample, by whichever way.
    pub(crate) fn on_sample(&mut self, now: Instant, arrival: &FlightSample) {
        let late = self.lateness(arrival);
        self.worst.note(now, late);
    }

    /// How much later than promised a packet arrived; zero where nothing was promised of it.
    fn lateness(&mut self, arrival: &FlightSample) -> Duration {
        let promise = self.promise.filter(|promise| arrival.number >= promise.number);
        let Some(promise) = promise else { return Duration::ZERO };
        if arrival.sent_at > promise.sent_at + promise.within {
            self.promise = None;
            return Duration::ZERO;
        }
        let drained = u128::from(arrival.flight_bytes) * 8_000_000_000 / u128::from(promise.rate_bps.max(1));
        let drained = Duration::from_nanos(u64::try_from(drained).unwrap_or(u64::MAX));
        let late = arrival.rtt.saturating_sub(promise.within.max(drained));
        if arrival.flight_bytes > SMALL_FLIGHT_BYTES {
            return late;
        }
        // The estimates after one change allow for the next. What waits for nothing of its own is held to the best of them.
        let least = self.small.note(promise.number, arrival.rtt);
        late.max(least.saturating_sub(promise.best.max(drained)))
    }

    /// The largest lateness of the last 10 to 20 seconds.
    #[inline]
    pub(crate) fn worst(&self) -> Duration {
        self.worst.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Instant {
        Instant::ZERO + MS * ms
    }

    fn arrival(number: u64, sent: u32, rtt: u32) -> FlightSample {
        FlightSample { number, sent_at: at(sent), rtt: MS * rtt, flight_bytes: 10_000 }
    }

    #[test]
    fn what_comes_later_than_promised_is_remembered_for_a_while() {
        let mut punctuality = Punctuality::default();
        punctuality.on_flight_sent(7, at(0), MS * 40, Some(8_000_000));
        punctuality.on_sample(at(35), &arrival(7, 0, 35));
        assert_eq!(punctuality.worst(), Duration::ZERO, "the word was kept");
        punctuality.on_sample(at(120), &arrival(8, 0, 120));
        assert_eq!(punctuality.worst(), MS * 80);
        punctuality.on_sample(at(10_500), &arrival(9, 10_480, 20));
        assert_eq!(punctuality.worst(), MS * 80);
        punctuality.on_sample(at(20_600), &arrival(10, 20_580, 20));
        assert_eq!(punctuality.worst(), Duration::ZERO);
    }

    #[test]
    fn a_flight_that_drains_at_the_measured_rate_is_in_time() {
        let mut punctuality = Punctuality::default();
        // 10,000 bytes at 1 Mbit/s are 80 ms.
        punctuality.on_flight_sent(7, at(0), MS * 40, Some(1_000_000));
        punctuality.on_sample(at(80), &arrival(7, 0, 80));
        assert_eq!(punctuality.worst(), Duration::ZERO);
        punctuality.on_sample(at(101), &arrival(7, 0, 101));
        assert_eq!(punctuality.worst(), MS * 21);
    }

    #[test]
    fn a_small_flight_is_held_to_the_best_promise_of_late() {
        let late = |best_at: u32, flight_bytes: u64| {
            let mut punctuality = Punctuality::default();
            for (number, ms, within) in
                [(1, best_at, 40), (2, 12_000, 90), (3, 23_000, 90), (4, 24_000, 90), (5, 25_000, 90)]
            {
                punctuality.on_flight_sent(number, at(ms), MS * within, Some(8_000_000));
                let rtt = if number < 3 { 35 } else { 75 + number as u32 };
                punctuality.on_sample(at(ms + rtt), &FlightSample { flight_bytes, ..arrival(number, ms, rtt) });
                assert!(number == 5 || punctuality.worst().is_zero(), "one or two are jitter");
            }
            punctuality.worst()
        };
        assert_eq!(late(12_000, 3_600), MS * 38, "the soonest of the last three");
        assert_eq!(late(12_000, 3_601), Duration::ZERO, "it may have waited for itself");
        assert_eq!(late(0, 3_600), Duration::ZERO, "long ago");
    }

    #[test]
    fn nothing_is_promised_without_a_rate_nor_for_what_left_before_or_long_after() {
        let mut punctuality = Punctuality::default();
        punctuality.on_flight_sent(7, at(0), MS * 40, None);
        punctuality.on_sample(at(200), &arrival(7, 0, 200));
        punctuality.on_flight_sent(9, at(200), MS * 40, Some(8_000_000));
        punctuality.on_sample(at(400), &arrival(8, 200, 200));
        punctuality.on_sample(at(500), &arrival(10, 241, 259));
        punctuality.on_sample(at(500), &arrival(9, 200, 300));
        assert_eq!(punctuality.worst(), Duration::ZERO);
    }
}
