//! Round-trip time of one path: smoothed, varying, smallest (RFC 9002 5).

use std::time::Duration;

use plait_base::limits::TIMER_GRANULARITY;
use plait_base::{Instant, PathId};

use super::own_way::OwnWay;
use super::punctuality::{FlightSample, Punctuality};
use super::recent::RecentMax;

/// RTT estimate of a send flow. Each sample names the path on which its ack came back, because a sample is
/// the one-way delay of this path plus that of the returning one.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    latest: Duration,
    latest_at: Option<Instant>,
    adjusted: Duration,
    smoothed: Duration,
    var: Duration,
    min: Duration,
    least: Duration,
    max: RecentMax,
    first_sample_at: Option<Instant>,
    via: Option<PathId>,
    /// The way back before that, and its smallest sample: acks may go back and forth between two.
    before: Option<(PathId, Duration)>,
    /// How much longer it is by the path's own way back.
    own_way: OwnWay,
    /// How much later than it said acks came lately.
    punctuality: Punctuality,
    /// Smoothed RTT and four times its variation: asked for at every packet, changed by every sample.
    pto_base: Duration,
}

impl RttEstimator {
    /// An estimate without samples (RFC 9002 5.3: smoothed = initial, var = initial / 2) of `own`, or of a uniflow.
    pub(crate) fn new(initial: Duration, own: Option<PathId>) -> Self {
        Self {
            latest: Duration::ZERO,
            latest_at: None,
            adjusted: Duration::ZERO,
            smoothed: initial,
            var: initial / 2,
            min: Duration::ZERO,
            least: Duration::MAX,
            max: RecentMax::default(),
            first_sample_at: None,
            via: None,
            before: None,
            own_way: OwnWay::new(own),
            punctuality: Punctuality::default(),
            pto_base: pto_base(initial, initial / 2),
        }
    }

    /// Takes in one sample whose ack arrived on path `via`; `ack_delay` is already clamped.
    pub(crate) fn on_sample(&mut self, now: Instant, latest: Duration, ack_delay: Duration, via: PathId) {
        let last = self.adjusted;
        (self.latest, self.latest_at, self.adjusted) = (latest, Some(now), latest);
        self.least = self.least.min(latest);
        self.max.note(now, latest);
        let Some(_) = self.first_sample_at else {
            // RFC 9002 5.3: the first sample sets everything
            (self.min, self.smoothed, self.var) = (latest, latest, latest / 2);
            (self.first_sample_at, self.via) = (Some(now), Some(via));
            self.pto_base = pto_base(self.smoothed, self.var);
            return;
        };
        if self.via != Some(via) {
            let min = self.min_by(via, latest.checked_sub(ack_delay).unwrap_or(latest), last);
            self.before = self.via.map(|path| (path, self.min)).or(self.before);
            (self.via, self.min) = (Some(via), min);
        }
        // RFC 9002 5.2: min_rtt ignores ack delay
        self.min = self.min.min(latest);
        // RFC 9002 5.3: subtracting the ack delay must not take the sample below the smallest
        let adjusted = latest.saturating_sub(ack_delay).max(self.min);
        self.adjusted = adjusted;
        let deviation = self.smoothed.abs_diff(adjusted);
        self.var = (self.var * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
        self.pto_base = pto_base(self.smoothed, self.var);
    }

    /// The smallest RTT by another way back than until now (RFC 10069 5.4), whose `first` sample, less the time that its ack was
    /// held, follows one of `last` by the present way. Most of what stands between that and the smallest by the present way is a
    /// queue on the way there, which the new sample has met as well: taken for a part of the way, it would never be seen again.
    fn min_by(&self, via: PathId, first: Duration, last: Duration) -> Duration {
        if let Some((_, known)) = self.before.filter(|(before, _)| *before == via) {
            return known;
        }
        let without_queue = self.via.and_then(|_| (self.min + first).checked_sub(last));
        // A way back takes half of a round trip: where more is saved than that, the queue was on the way back.
        without_queue.filter(|rtt| *rtt >= self.min / 2).map_or(first, |rtt| rtt.min(first))
    }

    /// A packet of `Data` left while none was under way.
    pub(crate) fn on_flight_sent(&mut self, number: u64, now: Instant, rate_bps: Option<u64>) {
        if self.first_sample_at.is_some() {
            self.punctuality.on_flight_sent(number, now, self.pto_base, rate_bps);
        }
    }

    /// A packet arrived: it may show whether the estimate of the time when its flight began kept its word.
    #[inline]
    pub(crate) fn judge(&mut self, now: Instant, arrival: &FlightSample) {
        self.punctuality.on_sample(now, arrival);
    }

    /// How much later than estimated acks came at most in the last 10 to 20 seconds, of flights that left an idle path.
    #[inline]
    pub(crate) fn late(&self) -> Duration {
        self.punctuality.worst()
    }

    /// The same estimate anew, of another address.
    pub(crate) fn restarted(&self, initial: Duration) -> Self {
        Self::new(initial, self.own_way.own())
    }

    #[inline]
    pub(crate) fn own_way(&self) -> &OwnWay {
        &self.own_way
    }

    #[inline]
    pub(crate) fn own_way_mut(&mut self) -> &mut OwnWay {
        &mut self.own_way
    }

    /// The path that carried the acks died: the smallest RTT starts anew with the next sample.
    pub(crate) fn forget_via(&mut self, path: PathId) {
        self.own_way.forget_via(path);
        self.before = self.before.filter(|(before, _)| *before != path);
        if self.via == Some(path) {
            self.via = None;
        }
    }

    /// Lets the smallest RTT be learned anew (RFC 9002 5.2: after persistent congestion).
    pub(crate) fn restart_min(&mut self) {
        (self.via, self.before) = (None, None);
    }

    /// The newest sample; zero before the first.
    #[inline]
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// When the newest sample was taken; none before the first.
    pub(crate) fn latest_at(&self) -> Option<Instant> {
        self.latest_at
    }

    /// The newest sample less the peer's ack delay, where that is plausible; zero before the first.
    pub(crate) fn adjusted(&self) -> Duration {
        self.adjusted
    }

    /// Smoothed RTT; the initial RTT before the first sample.
    #[inline]
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Smoothed RTT; none before the first sample.
    #[inline]
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.first_sample_at.map(|_| self.smoothed)
    }

    /// The smallest sample of all, whichever way its ack came; none before the first.
    #[inline]
    pub(crate) fn least(&self) -> Option<Duration> {
        self.first_sample_at.map(|_| self.least)
    }

    /// Mean deviation of the samples (RFC 9002 5.3).
    #[inline]
    pub(crate) fn var(&self) -> Duration {
        self.var
    }

    /// Smallest sample over the present way back; zero before the first.
    #[inline]
    pub(crate) fn min(&self) -> Duration {
        self.min
    }

    /// Largest sample of the last 10 to 20 seconds; zero before the first.
    #[inline]
    pub(crate) fn max(&self) -> Duration {
        self.max.get()
    }

    /// When the first sample was taken.
    pub(crate) fn first_sample_at(&self) -> Option<Instant> {
        self.first_sample_at
    }

    /// The path over which the newest sample's ack returned.
    #[inline]
    pub(crate) fn via(&self) -> Option<PathId> {
        self.via
    }

    /// Probe time-out without ack delay and backoff: smoothed + max(4 var, granularity) (RFC 9002 6.2.1).
    #[inline]
    pub(crate) fn pto_base(&self) -> Duration {
        self.pto_base
    }

    /// After so long without an ack a packet counts as lost once a later one is acked (RFC 9002 6.1.2).
    pub(crate) fn loss_delay(&self, threshold: (u32, u32)) -> Duration {
        let base = if self.first_sample_at.is_some() { self.smoothed.max(self.latest) } else { self.smoothed };
        (base * threshold.0 / threshold.1.max(1)).max(TIMER_GRANULARITY)
    }
}

fn pto_base(smoothed: Duration, var: Duration) -> Duration {
    smoothed + (var * 4).max(TIMER_GRANULARITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const P0: PathId = PathId(0);
    const P1: PathId = PathId(1);
    const P2: PathId = PathId(2);

    #[test]
    fn first_and_later_samples() {
        // RFC 9002 5.2-1, 5.2-2
        // RFC 9002 5.3-2
        let mut rtt = RttEstimator::new(MS * 333, None);
        assert_eq!((rtt.measured(), rtt.pto_base()), (None, MS * 999 - Duration::ZERO));
        rtt.on_sample(Instant::ZERO, MS * 100, MS * 20, P0);
        assert_eq!((rtt.smoothed(), rtt.var(), rtt.min()), (MS * 100, MS * 50, MS * 100));
        rtt.on_sample(Instant::ZERO, MS * 140, MS * 40, P0);
        assert_eq!((rtt.smoothed(), rtt.var()), (MS * 100, Duration::from_micros(37_500)));
        // an ack delay takes a sample down to the minimum and no further
        rtt.on_sample(Instant::ZERO, MS * 108, MS * 20, P0);
        assert_eq!((rtt.adjusted(), rtt.smoothed(), rtt.min()), (MS * 100, MS * 100, MS * 100));
        rtt.on_sample(Instant::ZERO, MS * 108, MS * 200, P0);
        assert_eq!((rtt.adjusted(), rtt.min()), (MS * 100, MS * 100));
    }

    #[test]
    fn pitfall_18_another_way_back_restarts_the_minimum() {
        let mut rtt = RttEstimator::new(MS * 333, None);
        rtt.on_sample(Instant::ZERO, MS * 10, MS, P0);
        rtt.on_sample(Instant::ZERO, MS * 30, MS, P1);
        assert_eq!((rtt.min(), rtt.via()), (MS * 29, Some(P1)));
        rtt.forget_via(P0);
        rtt.on_sample(Instant::ZERO, MS * 40, MS, P1);
        assert_eq!(rtt.min(), MS * 29);
        rtt.forget_via(P1);
        rtt.on_sample(Instant::ZERO, MS * 50, MS, P1);
        assert_eq!((rtt.min(), rtt.max()), (MS * 49, MS * 50));
        // a delay longer than the round trip is no delay
        rtt.on_sample(Instant::ZERO, MS * 30, MS * 40, P0);
        assert_eq!((rtt.min(), rtt.adjusted()), (MS * 30, MS * 30));
    }

    #[test]
    fn a_queue_is_not_taken_for_another_way_back() {
        // 40 ms, then 30 ms of queue; the new way is 10 ms shorter, and its acks are held for 5 ms
        let mut rtt = RttEstimator::new(MS * 333, None);
        rtt.on_sample(Instant::ZERO, MS * 40, Duration::ZERO, P0);
        rtt.on_sample(Instant::ZERO, MS * 70, Duration::ZERO, P0);
        rtt.on_sample(Instant::ZERO, MS * 65, MS * 5, P1);
        assert_eq!(rtt.min(), MS * 30);
        // a queue on the way back stays behind
        rtt.on_sample(Instant::ZERO, MS * 300, Duration::ZERO, P1);
        rtt.on_sample(Instant::ZERO, MS * 25, Duration::ZERO, P2);
        assert_eq!(rtt.min(), MS * 25);
    }

    #[test]
    fn acks_that_come_back_to_a_way_find_its_minimum() {
        let mut rtt = RttEstimator::new(MS * 333, None);
        rtt.on_sample(Instant::ZERO, MS * 10, Duration::ZERO, P0);
        rtt.on_sample(Instant::ZERO, MS * 30, Duration::ZERO, P1);
        rtt.on_sample(Instant::ZERO, MS * 90, Duration::ZERO, P0);
        assert_eq!(rtt.min(), MS * 10);
        rtt.on_sample(Instant::ZERO, MS * 90, Duration::ZERO, P1);
        assert_eq!(rtt.min(), MS * 30);
        // but not after that was forgotten: the difference to the other way is all that is known then
        rtt.forget_via(P0);
        rtt.on_sample(Instant::ZERO, MS * 85, Duration::ZERO, P0);
        assert_eq!(rtt.min(), MS * 25);
        rtt.restart_min();
        rtt.on_sample(Instant::ZERO, MS * 90, Duration::ZERO, P1);
        assert_eq!(rtt.min(), MS * 90);
    }

    #[test]
    fn held_acks_over_another_way_do_not_lengthen_the_round_trip() {
        // 25 ms of way and 25 ms of ack delay each time; the first ack came back elsewhere
        let mut rtt = RttEstimator::new(MS * 333, None);
        rtt.on_sample(Instant::ZERO, MS * 25, Duration::ZERO, P1);
        (0..9).for_each(|_| rtt.on_sample(Instant::ZERO, MS * 50, MS * 25, P0));
        assert_eq!((rtt.smoothed(), rtt.min()), (MS * 25, MS * 25));
        // and after a restart (RFC 9002 5.2)
        rtt.restart_min();
        (0..9).for_each(|_| rtt.on_sample(Instant::ZERO, MS * 50, MS * 25, P0));
        assert_eq!((rtt.smoothed(), rtt.min()), (MS * 25, MS * 25));
    }

    #[test]
    fn loss_delay_takes_the_larger() {
        // RFC 9002 6.1.2
        let mut rtt = RttEstimator::new(MS * 333, None);
        rtt.on_sample(Instant::ZERO, MS * 80, Duration::ZERO, P0);
        rtt.on_sample(Instant::ZERO, MS * 160, Duration::ZERO, P0);
        assert_eq!(rtt.loss_delay((9, 8)), MS * 180);
    }
}
