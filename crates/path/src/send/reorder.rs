//! How far packets of one space overtake each other, and what loss detection waits for because of it.
//!
//! RFC 9002 6.1 lets the thresholds grow once a loss proves spurious. What an ack shows here is measured: by how many numbers
//! and by how much time it came later than the fixed thresholds allow. The most of one to two periods holds, so that an
//! orderly path comes back to the fixed thresholds, as RFC 8985 (6.2) lets its window shrink again. Time is bounded by a
//! round trip, so that no disorder keeps the loss of the last packets from showing.

use std::time::Duration;

use plait_base::limits::MAX_PACKET_THRESHOLD;

/// Round trips of a period, counted in packets: time in which nothing is sent does not pass.
const PERIOD_ROUNDS: u32 = 64;
/// Part of a measure that is added to it: the next packet may be a little later, and a sender that speeds up sends more
/// in the same time.
const HEADROOM_PART: u32 = 4;

/// The lateness of one packet, or the largest of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lateness {
    /// Packet threshold that would have spared it.
    packets: u64,
    /// Time beyond the fixed time threshold that would have.
    time: Duration,
}

impl Lateness {
    fn or_larger(self, other: Self) -> Self {
        Self { packets: self.packets.max(other.packets), time: self.time.max(other.time) }
    }
}

/// What is known of the order of one space's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reordering {
    /// The largest of this period and the one before.
    periods: [Lateness; 2],
    rounds: u32,
    /// Packets from this number on belong to the next round.
    round_end: u64,
}

impl Reordering {
    /// An ack of packet `number` came after one of `largest`, so much after the fixed time threshold.
    pub(crate) fn on_late(&mut self, number: u64, largest: u64, beyond: Duration) {
        let distance = largest.saturating_sub(number);
        let packets = distance.saturating_add(distance / u64::from(HEADROOM_PART) + 1).min(MAX_PACKET_THRESHOLD);
        let late = Lateness { packets, time: beyond + beyond / HEADROOM_PART };
        self.periods[0] = self.periods[0].or_larger(late);
    }

    /// Packets up to `largest` are acked; `next` is the next number to be sent.
    pub(crate) fn on_acked(&mut self, largest: u64, next: u64) {
        if largest < self.round_end {
            return;
        }
        self.round_end = next;
        self.rounds += 1;
        if self.rounds >= PERIOD_ROUNDS {
            self.rounds = 0;
            self.periods = [Lateness::default(), self.periods[0]];
        }
    }

    fn worst(&self) -> Lateness {
        self.periods[0].or_larger(self.periods[1])
    }

    /// The packet threshold, at least `fixed` (RFC 9002 6.1.1).
    pub(crate) fn packet_threshold(&self, fixed: u64) -> u64 {
        self.worst().packets.max(fixed)
    }

    /// What the time threshold grows by (RFC 9002 6.1.2), given the smoothed RTT.
    pub(crate) fn extra_delay(&self, smoothed: Duration) -> Duration {
        self.worst().time.min(smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_worst_of_two_periods_holds() {
        let mut order = Reordering::default();
        assert_eq!((order.packet_threshold(3), order.extra_delay(MS * 40)), (3, Duration::ZERO));
        order.on_late(100, 108, MS * 4);
        order.on_late(100, 140, Duration::ZERO);
        order.on_late(100, 101, Duration::ZERO);
        assert_eq!((order.packet_threshold(3), order.extra_delay(MS * 40)), (51, MS * 5));
        // A round takes in every packet that left before its end.
        for round in 1..=u64::from(PERIOD_ROUNDS) * 2 {
            assert_eq!(order.packet_threshold(3), 51, "round {round}");
            order.on_acked(round * 10, round * 10 + 10);
            order.on_acked(round * 10 + 5, round * 10 + 15);
        }
        assert_eq!((order.packet_threshold(3), order.extra_delay(MS * 40)), (3, Duration::ZERO));
    }

    #[test]
    fn no_lateness_passes_the_bounds() {
        let mut order = Reordering::default();
        order.on_late(0, u64::MAX, MS * 10_000);
        assert_eq!((order.packet_threshold(3), order.extra_delay(MS * 40)), (MAX_PACKET_THRESHOLD, MS * 40));
    }
}
