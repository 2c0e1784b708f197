//! Packet numbers left out on purpose, so that a peer that acks what it did not receive is found out.

use plait_base::Random;

/// The first number is left out within so many packets; the distance doubles from time to time.
const FIRST_DISTANCE: u64 = 64;
/// Distances stop growing here.
const MAX_DISTANCE: u64 = 1 << 16;
/// No packet has this number.
const NONE: u64 = u64::MAX;

/// Chooses the numbers to leave out and remembers the newest ones (RFC 9000 21.4).
#[derive(Debug)]
pub(crate) struct PacketNumberFilter {
    random: Option<Random>,
    next: u64,
    distance: u64,
    /// The newest ones, [`NONE`] where there are fewer.
    recent: [u64; 4],
}

impl PacketNumberFilter {
    pub(crate) fn new(random: Option<Random>) -> Self {
        let mut number_filter = Self { random, next: 0, distance: FIRST_DISTANCE, recent: [NONE; 4] };
        number_filter.choose(0);
        number_filter
    }

    fn choose(&mut self, from: u64) {
        self.next = match &mut self.random {
            Some(random) => {
                let number = from + self.distance / 2 + random.below(self.distance);
                // The next draw is thousands of packets away.
                random.rest();
                number
            }
            None => NONE,
        };
        self.distance = (self.distance * 2).min(MAX_DISTANCE);
    }

    /// Whether to leave `number` out; each number is asked once, ascending.
    pub(crate) fn skips(&mut self, number: u64) -> bool {
        if number < self.next {
            return false;
        }
        self.recent.rotate_right(1);
        self.recent[0] = number;
        self.choose(number);
        true
    }

    /// True when a number left out not long ago lies in `lo..=hi`.
    pub(crate) fn skipped_within(&self, lo: u64, hi: u64) -> bool {
        self.recent.iter().any(|n| *n != NONE && (lo..=hi).contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_rarely_and_remembers() {
        let mut number_filter = PacketNumberFilter::new(Some(Random::from_u64(1)));
        let skipped: Vec<u64> = (1..100_000).filter(|n| number_filter.skips(*n)).collect();
        assert!((5..20).contains(&skipped.len()), "{skipped:?}");
        let last = *skipped.last().unwrap();
        assert!(number_filter.skipped_within(last - 1, last + 1) && !number_filter.skipped_within(last + 1, u64::MAX));
        let mut never = PacketNumberFilter::new(None);
        assert!((1..100_000).all(|n| !never.skips(n)) && !never.skipped_within(0, u64::MAX));
    }
}
