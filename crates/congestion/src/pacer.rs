//! The pacer: a token bucket that spreads a window over its round trip (RFC 9002 7.7).

use std::time::Duration;

use plait_base::Instant;

/// RFC 9002 7.7: N, by which the rate exceeds one window per RTT, as numerator and denominator.
const GAIN: (u128, u128) = (5, 4);
/// RFC 9002 7.7: bursts are limited to the initial window, ten datagrams.
const BURST_DATAGRAMS: u64 = 10;
/// Fast paths may send this much time's worth at once, so that segmentation offload pays.
const BURST_TIME: Duration = Duration::from_millis(2);
/// A held sender waits for at least this much time's worth (or one datagram), so that timers stay few.
const QUANTUM_TIME: Duration = Duration::from_micros(500);
/// Behind a queue where bursts of several paths meet no more than so many datagrams leave at once, as an ack of two lets them
/// out, or what a held sender waits for.
const TIGHT_DATAGRAMS: i128 = 2;
/// There N is so much: paths that each send at 5/4 for four fifths of a round trip overflow such a queue together once they use
/// four fifths of the link.
const TIGHT_GAIN: (u128, u128) = (17, 16);
/// Bursts are tried again when losses were found so many times after the end of one was lost.
const TIGHT_LOSSES: u32 = 128;
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
    /// The controller's rate, bytes per second; without one it is 5/4 windows per smoothed RTT, and 17/16 in company behind a short queue.
    pub rate: Option<u64>,
    /// Nothing is in flight: what leaves next meets no packet of this path.
    pub idle: bool,
}

/// How the packets that were found lost at one time had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPattern {
    /// At least three in a row had left at one instant, or two that were the end of what had.
    Burst,
    /// Losses here and there, as a link has that loses at random.
    Scattered,
    /// The same, while another path of the connection loses bursts: pairs that leave in between may save the end of this one's.
    BesideBursts,
}

/// Whether packets of other paths of the connection may meet those of this one in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// No other path is in use.
    Alone,
    /// Others are, and who shares a queue with whom is not known.
    Siblings,
}

/// Rate in bytes per second and the bucket's size in bytes times 10^9.
#[derive(Clone, Copy, Debug)]
struct Terms {
    rate: i128,
    burst: i128,
    /// The same behind a queue that holds no burst.
    tight: i128,
}

/// One path's pacer. Over any span `t` at a steady rate it lets out at most `rate * t` plus one burst.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Credit in bytes times 10^9, so that rate times nanoseconds is exact; negative when packets left unasked.
    credit: i128,
    refilled_at: Instant,
    /// False until the first refill fills the bucket.
    primed: bool,
    /// The bucket was full when it was looked at, and nothing left since.
    rested: bool,
    /// The bucket's size is at most this, bytes, but always one datagram.
    burst_max: Option<u64>,
    /// Present while the queue is found too short for a burst.
    tight: Option<Tight>,
}

/// A second bucket, of one datagram or of what leaves in 2 ms.
#[derive(Clone, Copy, Debug)]
struct Tight {
    credit: i128,
    /// It ends when losses were found so many times more.
    losses_left: u32,
    /// Where bursts of several paths meet the queue holds less of each.
    company: Company,
    /// This path lost the end of a burst itself, and does not only follow another one.
    found_here: bool,
}

impl Pacer {
    /// A pacer with a full bucket of ten datagrams, or of what leaves in 2 ms if that is more; `burst_max` bounds it, in
    /// bytes, though one datagram may always leave.
    pub fn new(now: Instant, burst_max: Option<u64>) -> Self {
        Self { credit: 0, refilled_at: now, primed: false, rested: false, burst_max, tight: None }
    }

    /// Credits the time since the last call at the pace of now. To be called only when a packet is to be chosen: the pace
    /// changes in between, so that other moments give another credit.
    pub fn refill(&mut self, now: Instant, pace: &Pace) {
        let Some(terms) = self.terms(pace) else { return };
        let tight = self.tight_at(now, pace, &terms);
        (self.credit, self.primed) = (self.credit_at(now, &terms), true);
        if let (Some(bucket), Some(credit)) = (&mut self.tight, tight) {
            bucket.credit = credit;
        }
        self.refilled_at = self.refilled_at.max(now);
        self.rested = self.credit == terms.burst;
    }

    /// True where a datagram of `bytes` may leave by what was credited last, at whatever pace: nearly all of a train do, and
    /// [`Self::ready_at`] need not be asked, for which the controller would have to reckon its rate.
    #[inline]
    pub fn has_credit(&self, now: Instant, bytes: u64) -> bool {
        let needed = i128::from(bytes) * NANOS as i128;
        let credit = self.tight.map_or(self.credit, |tight| tight.credit.min(self.credit));
        self.primed && self.refilled_at >= now && credit >= needed
    }

    /// Whether a datagram of the pace's size may leave now (none), or when to ask again. It changes nothing.
    #[inline]
    pub fn ready_at(&self, now: Instant, pace: &Pace) -> Option<Instant> {
        if self.has_credit(now, pace.max_datagram_bytes) {
            return None;
        }
        let needed = i128::from(pace.max_datagram_bytes) * NANOS as i128;
        let terms = self.terms(pace)?;
        let credit = self.credit_at(now, &terms);
        let credit = self.tight_at(now, pace, &terms).map_or(credit, |tight| tight.min(credit));
        if credit >= needed {
            return None;
        }
        let quantum = needed.max(terms.rate * QUANTUM_TIME.as_nanos() as i128).min(terms.burst);
        let nanos = (quantum - credit + terms.rate - 1) / terms.rate;
        Some(now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Rate and burst; none where nothing is known of the path that could set a pace.
    fn terms(&self, pace: &Pace) -> Option<Terms> {
        let meets = self.tight.is_some_and(|tight| tight.company == Company::Siblings);
        let gain = if meets { TIGHT_GAIN } else { GAIN };
        let rate = match pace.rate {
            Some(rate) => u128::from(rate),
            None if pace.srtt.is_zero() => return None,
            None => u128::from(pace.window_bytes) * gain.0 * NANOS / (gain.1 * pace.srtt.as_nanos()),
        };
        let rate = rate.clamp(1, RATE_MAX) as i128;
        let needed = i128::from(pace.max_datagram_bytes) * NANOS as i128;
        let in_burst_time = rate * BURST_TIME.as_nanos() as i128;
        let burst = (needed * i128::from(BURST_DATAGRAMS)).max(in_burst_time);
        let burst = self.burst_max.map_or(burst, |max| burst.min(i128::from(max) * NANOS as i128).max(needed));
        // Hosts wake up late: a smaller bucket overflows, which costs more than it saves where no other path is in the way.
        let in_quantum = rate * QUANTUM_TIME.as_nanos() as i128;
        let most = if meets { (needed * TIGHT_DATAGRAMS).max(in_quantum) } else { in_burst_time };
        let tight = in_burst_time.min(most).max(needed).min(burst);
        Some(Terms { rate, burst, tight })
    }

    /// Credit of the second bucket, where there is one. A path that rested may begin with a whole burst.
    fn tight_at(&self, now: Instant, pace: &Pace, terms: &Terms) -> Option<i128> {
        let tight = self.tight?.credit;
        if pace.idle {
            return Some(self.credit_at(now, terms));
        }
        let elapsed = now.since(self.refilled_at).as_nanos() as i128;
        Some((tight + terms.rate * elapsed).min(terms.tight.max(tight)).max(-terms.burst))
    }

    fn credit_at(&self, now: Instant, terms: &Terms) -> i128 {
        let primed = if self.primed { self.credit } else { self.credit + terms.burst };
        let elapsed = now.since(self.refilled_at).as_nanos() as i128;
        // Debt is bounded too: probes that leave unasked cannot silence the path for long.
        (primed + terms.rate * elapsed).clamp(-terms.burst, terms.burst)
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
        let spent = i128::from(bytes) * NANOS as i128;
        self.credit -= spent;
        if let Some(tight) = &mut self.tight {
            tight.credit -= spent;
        }
    }

    /// True while the queue is found too short for a burst.
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.tight.is_some()
    }

    /// The same, where a burst of this path itself showed it.
    pub fn loses_bursts(&self) -> bool {
        self.tight.is_some_and(|tight| tight.found_here)
    }

    /// Tells who is in use now; it matters only while [`Self::is_tight`].
    pub fn set_company(&mut self, company: Company) {
        if let Some(tight) = &mut self.tight {
            tight.company = company;
        }
    }

    /// Packets were found lost, and the RTT was above the smallest by `queued`. A queue that cannot hold a burst drops its end, all
    /// the more where bursts of several paths meet. Packets leave one by one then, on a fast path what 2 ms hold and in company
    /// pairs, until one is lost to a queue that holds a burst. Only bursts show whether the queue still drops them, so they are
    /// tried again after `TIGHT_LOSSES` losses: a link that loses at random would be paced for nothing.
    pub fn on_lost(&mut self, pattern: LossPattern, company: Company, queued: Duration, pace: &Pace) {
        let Some(terms) = self.terms(pace) else { return };
        let holds_a_burst = queued.as_nanos() as i128 * terms.rate >= terms.burst;
        let credit = self.tight.map_or(self.credit.min(terms.tight), |tight| tight.credit);
        let losses_left = match (pattern, self.tight) {
            _ if holds_a_burst => 0,
            (LossPattern::Burst, _) | (LossPattern::BesideBursts, None) => TIGHT_LOSSES,
            (LossPattern::Scattered | LossPattern::BesideBursts, tight) => {
                tight.map_or(0, |tight| tight.losses_left - 1)
            }
        };
        let found_here = pattern == LossPattern::Burst || self.loses_bursts();
        self.tight = (losses_left > 0).then_some(Tight { credit, losses_left, company, found_here });
    }
}

#[cfg(test)]
#[path = "pacer/tests.rs"]
mod tests;
