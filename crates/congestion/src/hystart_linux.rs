//! HyStart as Linux has it (`net/ipv4/tcp_cubic.c`; Ha and Rhee, 2008): leaves slow start at once when the acks of a
//! round keep coming for as long as a round trip takes, or when the RTT rises. Here to compare with.

use std::time::Duration;

use plait_base::Instant;

use crate::controller::Acked;

/// Linux's hystart_low_window: smaller windows, in datagrams, stay in slow start.
const WINDOW_MIN: u64 = 16;
/// Linux's hystart_ack_delta_us: acks further apart belong to no train.
const GAP_MAX: Duration = Duration::from_millis(2);
/// A train may be longer by this than the smallest RTT: the most that Linux allows for segmentation offload.
const CUSHION: Duration = Duration::from_millis(1);
/// HYSTART_MIN_SAMPLES: samples a round needs before its smallest RTT counts.
const SAMPLES: u32 = 8;
/// HYSTART_DELAY_MIN and HYSTART_DELAY_MAX: the smallest and the largest rise that is asked for.
const RISE_MIN: Duration = Duration::from_millis(4);
const RISE_MAX: Duration = Duration::from_millis(16);
/// The part of the smallest RTT that counts as a rise.
const RISE_DIVISOR: u32 = 8;

/// One round's acks.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Packets from this number on belong to the next round.
    end: u64,
    began: Instant,
    /// When the last ack of its train came.
    train: Instant,
    rtt_min: Duration,
    samples: u32,
}

/// One path's first slow start.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinuxHyStart {
    round: Option<Round>,
}

impl LinuxHyStart {
    /// Takes in one ACK frame at a window of so many `datagrams`; true when slow start is done.
    pub(crate) fn on_acked(&mut self, ack: &Acked, datagrams: u64) -> bool {
        let fresh = Round { end: ack.next_number, began: ack.now, train: ack.now, rtt_min: Duration::MAX, samples: 0 };
        let round = self.round.get_or_insert(fresh);
        if ack.largest >= round.end {
            *round = fresh;
        }
        round.samples += 1;
        round.rtt_min = round.rtt_min.min(ack.rtt.latest);
        if ack.now.since(round.train) <= GAP_MAX {
            round.train = ack.now;
        }
        // Senders pace, so the acks of a window that the path holds come over less than a whole round trip.
        let train = round.train.since(round.began) > ack.rtt.min + CUSHION;
        let rise = (ack.rtt.min / RISE_DIVISOR).clamp(RISE_MIN, RISE_MAX);
        let delay = round.samples > SAMPLES && round.rtt_min > ack.rtt.min + rise;
        datagrams >= WINDOW_MIN && (train || delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::acked;

    /// Whether one round of ten acks `gap_ms` apart with this RTT, the smallest 40 ms, ends slow start.
    fn ends(datagrams: u64, gap_ms: u64, rtt_ms: u64) -> bool {
        let mut hystart = LinuxHyStart::default();
        (0..60 / gap_ms).any(|i| {
            let mut ack = acked(1000);
            ack.now += Duration::from_millis(i * gap_ms);
            (ack.largest, ack.next_number) = (i, 100);
            (ack.rtt.min, ack.rtt.latest) = (Duration::from_millis(40), Duration::from_millis(rtt_ms));
            hystart.on_acked(&ack, datagrams)
        })
    }

    #[test]
    fn acks_that_keep_coming_for_a_round_trip_end_it() {
        assert!(ends(16, 2, 40) && !ends(16, 3, 40), "further apart they are no train");
        assert!(!ends(15, 2, 40), "small windows go on");
    }

    #[test]
    fn a_rise_of_an_eighth_ends_it() {
        assert!(ends(16, 3, 46) && !ends(16, 3, 45) && !ends(15, 3, 46));
    }

    #[test]
    fn a_round_begins_anew_when_its_packets_are_acked() {
        let mut hystart = LinuxHyStart::default();
        let over = (0..200).any(|i| {
            let mut ack = acked(1000);
            ack.now += Duration::from_millis(i);
            (ack.largest, ack.next_number) = (i, i / 20 * 20 + 20);
            ack.rtt.min = Duration::from_millis(40);
            ack.rtt.latest = Duration::from_millis(if i % 20 == 0 { 44 } else { 60 });
            hystart.on_acked(&ack, 16)
        });
        assert!(!over, "one sample of each round did not wait, and 20 ms are no round trip");
    }
}
