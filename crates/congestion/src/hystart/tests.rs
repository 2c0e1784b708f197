//! HyStart++ against RFC 9406: when slow start ends, and when that was a mistake.

use super::*;
use crate::facts::acked;

const PACKETS: u64 = 10;

/// Plays one round of ten ACK frames at `rtt_ms`, each for one packet.
fn round(hystart: &mut HyStart, index: u64, rtt_ms: u64) -> HyStartPhase {
    for i in 0..PACKETS {
        let mut ack = acked(1000);
        ack.largest = index * PACKETS + i;
        ack.next_number = (index + 1) * PACKETS;
        ack.rtt.latest = Duration::from_millis(rtt_ms);
        hystart.on_acked(&ack);
    }
    hystart.phase
}

#[test]
fn steady_rtt_never_leaves() {
    let mut hystart = HyStart::default();
    assert!((0..20).all(|i| round(&mut hystart, i, 40) == HyStartPhase::SlowStart));
    assert_eq!(hystart.growth(1000), 1000);
}

#[test]
fn a_rise_of_an_eighth_leaves_after_five_conservative_rounds() {
    let mut hystart = HyStart::default();
    round(&mut hystart, 0, 40);
    // 40 / 8 = 5 ms: 44 ms is no rise yet, 45 ms over 40 ms is.
    assert_eq!(round(&mut hystart, 1, 44), HyStartPhase::SlowStart);
    assert_eq!(round(&mut hystart, 2, 40), HyStartPhase::SlowStart);
    assert_eq!(round(&mut hystart, 3, 45), HyStartPhase::Conservative);
    assert_eq!(hystart.growth(1000), 250);
    for i in 4..8 {
        assert_eq!(round(&mut hystart, i, 46), HyStartPhase::Conservative, "round {i}");
    }
    // RFC 9406 4.3: round 3 counted as the first of five.
    assert_eq!(round(&mut hystart, 8, 46), HyStartPhase::Over);
    assert_eq!(round(&mut hystart, 9, 10), HyStartPhase::Over);
}

#[test]
fn rise_is_clamped_between_4_and_16_ms() {
    let mut short = HyStart::default();
    round(&mut short, 0, 8);
    assert_eq!(round(&mut short, 1, 11), HyStartPhase::SlowStart);
    let mut short = HyStart::default();
    round(&mut short, 0, 8);
    assert_eq!(round(&mut short, 1, 12), HyStartPhase::Conservative);
    let mut long = HyStart::default();
    round(&mut long, 0, 400);
    assert_eq!(round(&mut long, 1, 415), HyStartPhase::SlowStart);
    let mut long = HyStart::default();
    round(&mut long, 0, 400);
    assert_eq!(round(&mut long, 1, 416), HyStartPhase::Conservative);
}

#[test]
fn a_false_alarm_returns_to_slow_start() {
    let mut hystart = HyStart::default();
    round(&mut hystart, 0, 40);
    assert_eq!(round(&mut hystart, 1, 50), HyStartPhase::Conservative);
    assert_eq!(round(&mut hystart, 2, 49), HyStartPhase::SlowStart);
    // and may leave again
    assert_eq!(round(&mut hystart, 3, 60), HyStartPhase::Conservative);
}

#[test]
fn too_few_samples_judge_nothing() {
    let mut hystart = HyStart::default();
    round(&mut hystart, 0, 40);
    for i in 0..7 {
        let mut ack = acked(1000);
        (ack.largest, ack.next_number) = (10 + i, 20);
        ack.rtt.latest = Duration::from_millis(500);
        assert_eq!(hystart.on_acked(&ack), HyStartPhase::SlowStart);
    }
}

#[test]
fn acks_that_come_back_another_way_are_no_rise() {
    let mut hystart = HyStart::default();
    let mut round = |index: u64, rtt_ms: u64, least_ms: u64| {
        for i in 0..PACKETS {
            let mut ack = acked(1000);
            (ack.largest, ack.next_number) = (index * PACKETS + i, (index + 1) * PACKETS);
            ack.rtt.latest = Duration::from_millis(rtt_ms);
            ack.rtt.min = Duration::from_millis(least_ms);
            hystart.on_acked(&ack);
        }
        hystart.phase
    };
    round(0, 40, 40);
    assert_eq!(round(1, 90, 90), HyStartPhase::SlowStart, "the smallest RTT rose with it");
    assert_eq!(round(2, 90, 90), HyStartPhase::SlowStart);
    assert_eq!(round(3, 110, 90), HyStartPhase::Conservative);
    // The conservative phase was about another way, too.
    assert_eq!(round(4, 150, 150), HyStartPhase::SlowStart);
}
