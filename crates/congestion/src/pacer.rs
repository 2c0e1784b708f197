//! The pacer: a token bucket that spreads a window over its round trip (RFC 9002 7.7).

use std::time::Duration;

use plait_base::Instant;

/// RFC 9002 7.7: N, by which the rate exceeds one window per RTT, as numerator and denominator.
const GAIN: (u128, u128) = (5, 4);
/// The same in company: paths that each send at 5/4 for four fifths of a round trip overflow a short queue together once they
/// use four fifths of the link.
const GAIN_IN_COMPANY: (u128, u128) = (17, 16);
/// RFC 9002 7.7: bursts are limited to the initial window, ten datagrams.
const BURST_DATAGRAMS: i128 = 10;
/// In company no more leave at once, as an ack of two lets them out, but for the first after a rest.
const BURST_DATAGRAMS_IN_COMPANY: i128 = 2;
/// Fast paths may send this much time's worth at once, so that segmentation offload pays.
const BURST_TIME: Duration = Duration::from_millis(2);
/// The same in company: short queues hold no more, and timers of hosts are hardly finer. Linux paces TCP in bursts of as much.
const BURST_TIME_IN_COMPANY: Duration = Duration::from_millis(1);
/// A held sender waits for at least this much time's worth (or one datagram), so that timers stay few; in company for a whole
/// bucket.
const QUANTUM_TIME: Duration = Duration::from_micros(500);
/// Where losses showed a queue that holds a burst, packets leave evenly again once losses were found so many times without one. The
/// queue that a slow path sees is short now and then: its own rate fills little of it.
const LOSSES_TO_EVEN: u32 = 16;
/// Rates beyond a petabyte per second count as one, so that products with any time fit 128 bits.
const RATE_MAX: u128 = 1_000_000_000_000_000;
const NANOS: u128 = 1_000_000_000;

/// What sets a path's pace now.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The RTT that a window is spread over, smoothed.
    pub srtt: Duration,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Largest datagram, bytes.
    pub max_datagram_bytes: u64,
    /// The controller's rate, bytes per second; without one it is 5/4 windows per smoothed RTT, and 17/16 in company.
    pub rate: Option<u64>,
    /// Nothing is in flight: what leaves next meets no packet of this path.
    pub idle: bool,
}

/// Whether packets of other paths of the connection may meet those of this one in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// No other path is in use.
    Alone,
    /// Others are, and who shares a queue with whom is not known.
    Siblings,
}

/// Rate in bytes per second, and sizes in bytes times 10^9.
#[derive(Clone, Copy, Debug)]
struct Terms {
    rate: i128,
    /// The largest datagram.
    datagram: i128,
    /// What a held sender waits for.
    quantum: i128,
    /// What has to come once the bucket is empty, whatever wakes the sender up meanwhile.
    resume: i128,
    /// The bucket's size.
    burst: i128,
    /// The most that it may hold, where the host woke up late, and the most that it may owe.
    burst_max: i128,
}

/// One path's pacer. Over any span `t` at a steady rate it lets out at most `rate * t` plus one burst.
///
/// Bursts of several paths meet where these share a queue, and a queue of a few packets drops the end of what comes together. A
/// short queue is thus no reason to let less out than the rate, but to let it out evenly: in company packets leave in pairs, until
/// losses show a queue that holds more.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Credit in bytes times 10^9, so that rate times nanoseconds is exact; negative when packets left unasked.
    credit: i128,
    refilled_at: Instant,
    /// False until the first refill fills the bucket.
    primed: bool,
    /// The bucket was full when it was looked at, and nothing left since.
    rested: bool,
    /// The bucket was empty when it was looked at, and what a held sender waits for has not come since.
    held: bool,
    /// By how much the host woke up late.
    late: Duration,
    /// When that was made up for: it holds for the packets of one instant.
    made_up_at: Option<Instant>,
    /// The bucket's size is at most this, bytes, but always one datagram.
    burst_max: Option<u64>,
    company: Company,
    /// Losses came while the queue held more than a burst. Bursts go on until they were found so many times while it did not.
    losses_to_even: u32,
}

impl Pacer {
    /// A pacer with a full bucket of ten datagrams, or of what leaves in 2 ms if that is more; `burst_max` bounds it, in
    /// bytes, though one datagram may always leave.
    pub fn new(now: Instant, burst_max: Option<u64>) -> Self {
        Self {
            credit: 0,
            refilled_at: now,
            primed: false,
            rested: false,
            held: false,
            late: Duration::ZERO,
            made_up_at: None,
            burst_max,
            company: Company::Alone,
            losses_to_even: 0,
        }
    }

    /// Credits the time since the last call at the pace of now. To be called only when a packet is to be chosen: the pace
    /// changes in between, so that other moments give another credit.
    pub fn refill(&mut self, now: Instant, pace: &Pace) {
        let Some(terms) = self.terms(pace) else { return };
        let credit = self.credit_at(now, &terms);
        self.held = self.holds(credit, &terms);
        (self.credit, self.primed) = (credit, true);
        self.refilled_at = self.refilled_at.max(now);
        self.rested = self.credit >= terms.burst;
        self.made_up_at.get_or_insert(now);
    }

    /// True where a datagram of `bytes` may leave by what was credited last, at whatever pace: nearly all of a train do, and
    /// [`Self::ready_at`] need not be asked, for which the controller would have to reckon its rate.
    #[inline]
    pub fn has_credit(&self, now: Instant, bytes: u64) -> bool {
        let needed = i128::from(bytes) * NANOS as i128;
        self.primed && !self.held && self.refilled_at >= now && self.credit >= needed
    }

    /// Whether a datagram of the pace's size may leave now (none), or when to ask again. It changes nothing.
    #[inline]
    pub fn ready_at(&self, now: Instant, pace: &Pace) -> Option<Instant> {
        if self.has_credit(now, pace.max_datagram_bytes) {
            return None;
        }
        let terms = self.terms(pace)?;
        let credit = self.credit_at(now, &terms);
        self.holds(credit, &terms).then(|| now + terms.wait(credit))
    }

    /// True where `credit` is too little now: in company all that a held sender waits for has to come once the bucket is empty, so that
    /// trains are long. A window that the pace exceeds by a quarter is full before.
    fn holds(&self, credit: i128, terms: &Terms) -> bool {
        let was_empty = self.held || (self.primed && self.credit < terms.datagram);
        credit < if was_empty { terms.resume } else { terms.datagram }
    }

    /// Rate and burst; none where nothing is known of the path that could set a pace.
    fn terms(&self, pace: &Pace) -> Option<Terms> {
        let in_company = self.company == Company::Siblings && self.losses_to_even == 0;
        let gain = if in_company { GAIN_IN_COMPANY } else { GAIN };
        let rate = match pace.rate {
            Some(rate) => u128::from(rate),
            None if pace.srtt.is_zero() => return None,
            None => u128::from(pace.window_bytes) * gain.0 * NANOS / (gain.1 * pace.srtt.as_nanos()),
        };
        let rate = rate.clamp(1, RATE_MAX) as i128;
        let datagram = i128::from(pace.max_datagram_bytes) * NANOS as i128;
        let within = |time: Duration| rate * time.as_nanos() as i128;
        let bound = self.burst_max.map_or(i128::MAX, |max| (i128::from(max) * NANOS as i128).max(datagram));
        let burst_max = (datagram * BURST_DATAGRAMS).max(within(BURST_TIME)).min(bound);
        let even = (datagram * BURST_DATAGRAMS_IN_COMPANY).max(within(BURST_TIME_IN_COMPANY)).min(burst_max);
        let burst = if in_company && !pace.idle { even } else { burst_max };
        let quantum_time = if in_company { BURST_TIME_IN_COMPANY } else { QUANTUM_TIME };
        let quantum = datagram.max(within(quantum_time)).min(burst);
        let resume = if in_company { quantum } else { datagram };
        Some(Terms { rate, datagram, quantum, resume, burst, burst_max })
    }

    fn credit_at(&self, now: Instant, terms: &Terms) -> i128 {
        let primed = if self.primed { self.credit } else { self.credit + terms.burst };
        let elapsed = now.since(self.refilled_at);
        let earned = |time: Duration| terms.rate * time.as_nanos() as i128;
        // What a late host might have sent meanwhile is not lost: nothing would make up for it at a rate that hardly exceeds a
        // window per RTT.
        let late = if self.made_up_at.is_none_or(|at| at == now) { self.late } else { Duration::ZERO };
        let most = (terms.burst + earned(late)).min(terms.burst_max);
        // Debt is bounded too: probes that leave unasked cannot silence the path for long.
        (primed + earned(elapsed)).clamp(-terms.burst_max, most)
    }

    /// Bytes that may leave at once, as of the last [`Pacer::refill`].
    #[cfg(test)]
    fn burst_left(&self) -> u64 {
        u64::try_from(self.credit.max(0) / NANOS as i128).unwrap_or(u64::MAX)
    }

    /// True when the bucket was full at the last [`Pacer::refill`] and nothing left since: the pacer held nothing back.
    pub fn is_rested(&self) -> bool {
        self.rested
    }

    /// An in-flight packet of `bytes` left.
    pub fn on_sent(&mut self, bytes: u64) {
        self.rested = false;
        self.credit -= i128::from(bytes) * NANOS as i128;
    }

    /// The host woke up later by so much than a held sender had asked for.
    pub fn on_late(&mut self, by: Duration) {
        (self.late, self.made_up_at) = (by, None);
    }

    /// Packets were found lost while the RTT was above the smallest by `queued`. Where the queue holds a burst, bursts cost nothing, and
    /// who sends more evenly than the flows beside it takes more than they do: LIA took 1.17 of NewReno's share behind 60 ms.
    pub fn on_lost(&mut self, queued: Duration, pace: &Pace) {
        if let Some(terms) = self.terms(pace) {
            let is_deep = terms.rate * queued.as_nanos() as i128 >= terms.burst_max;
            self.losses_to_even = if is_deep { LOSSES_TO_EVEN } else { self.losses_to_even.saturating_sub(1) };
        }
    }

    /// Tells who is in use now.
    pub fn set_company(&mut self, company: Company) {
        self.company = company;
    }
}

impl Terms {
    /// How long a sender with this credit waits for what it needs.
    fn wait(&self, credit: i128) -> Duration {
        let nanos = (self.quantum - credit + self.rate - 1) / self.rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
#[path = "pacer/tests.rs"]
mod tests;
