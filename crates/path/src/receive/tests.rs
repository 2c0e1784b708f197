//! When acks are due, what they report, what counts as a duplicate.

use proptest::prelude::*;
use std::collections::BTreeSet;

use plait_base::limits::MAX_DEDUP_RANGES;
use plait_wire::{Frame, Frames, SentFrame};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u32) -> Instant {
    Instant::ZERO + MS * ms
}

fn flow(policy: AckPolicy) -> ReceiveFlow {
    ReceiveFlow::new(PathId(2), Space::Data, policy)
}

fn delayed() -> ReceiveFlow {
    flow(AckPolicy::delayed(MS * 25))
}

#[test]
fn every_second_packet_or_after_the_delay() {
    // RFC 9000 13.2.1-1, 13.2.2
    let mut f = delayed();
    assert_eq!((f.ack_need(at(0)), f.deadline(), f.expected()), (AckNeed::None, None, 0));
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    assert_eq!((f.ack_need(at(12)), f.deadline()), (AckNeed::Piggyback, Some(at(25))));
    assert_eq!([13, 24, 25].map(|ms| f.ack_need(at(ms))), [AckNeed::Soon, AckNeed::Soon, AckNeed::Now]);
    f.on_packet(at(1), 1, Eliciting::Yes, None);
    assert_eq!((f.ack_need(at(1)), f.expected()), (AckNeed::Now, 2));
    f.on_ack_sent();
    assert_eq!((f.ack_need(at(99)), f.deadline(), f.ack_frames_sent()), (AckNeed::None, None, 1));
}

#[test]
fn the_first_acks_of_a_new_way_leave_at_once() {
    // RFC 9000 13.2.1 allows it: an ack may always be sooner than max_ack_delay
    let mut f = delayed();
    f.on_new_way();
    for n in 0..4 {
        f.on_packet(at(10), 2 * n, Eliciting::No, None);
        assert_eq!(f.ack_need(at(10)), AckNeed::None, "nothing asks for an ack: {n}");
        f.on_ack_sent();
        f.on_packet(at(10), 2 * n + 1, Eliciting::Yes, None);
        assert_eq!(f.ack_need(at(10)), AckNeed::Now);
        f.on_ack_sent();
    }
    f.on_packet(at(11), 8, Eliciting::Yes, None);
    assert_eq!((f.ack_need(at(11)), f.deadline()), (AckNeed::Piggyback, Some(at(36))));
}

#[test]
fn an_ack_that_cannot_leave_asks_for_no_further_timeout() {
    // RFC 9000 13.2.1-3
    // A host whose only path lacks credit (RFC 9000 8.1) would otherwise be woken without end.
    let mut f = delayed();
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    f.on_timeout(at(24));
    assert_eq!(f.deadline(), Some(at(25)));
    f.on_timeout(at(25));
    assert_eq!((f.ack_need(at(25)), f.deadline()), (AckNeed::Now, None));
    f.on_packet(at(30), 1, Eliciting::Yes, None);
    assert_eq!((f.ack_need(at(30)), f.deadline()), (AckNeed::Now, None));
    f.on_ack_sent();
    assert_eq!(f.ack_need(at(30)), AckNeed::None);
}

#[test]
fn packets_that_ask_for_nothing_get_nothing() {
    // RFC 9000 13.2.1-4: no acks of acks, but one beside other frames now and then, so that ranges can be forgotten
    let mut f = delayed();
    (0..15).for_each(|n| f.on_packet(at(0), n, Eliciting::No, None));
    assert_eq!((f.ack_need(at(999)), f.deadline()), (AckNeed::None, None));
    f.on_packet(at(1_000), 15, Eliciting::No, None);
    assert_eq!((f.ack_need(at(9_999)), f.deadline()), (AckNeed::Piggyback, None));
    f.on_ack_sent();
    f.on_packet(at(10_000), 16, Eliciting::No, None);
    assert_eq!(f.ack_need(at(99_999)), AckNeed::None);
}

#[test]
fn disorder_and_ce_hasten() {
    // RFC 9000 13.2.1
    let mut f = delayed();
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    f.on_ack_sent();
    f.on_packet(at(1), 2, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(1)), AckNeed::Now, "a gap");
    f.on_ack_sent();
    f.on_packet(at(2), 3, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(2)), AckNeed::Piggyback, "the gap is known already");
    f.on_ack_sent();
    f.on_packet(at(3), 1, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(3)), AckNeed::Now, "late");
    f.on_ack_sent();
    f.on_packet(at(4), 4, Eliciting::Yes, Some(Ecn::Ce));
    assert_eq!(f.ack_need(at(4)), AckNeed::Now, "congestion experienced");
    f.on_ack_sent();
    f.on_packet(at(5), 5, Eliciting::No, None);
    f.on_packet(at(5), 6, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(5)), AckNeed::Piggyback, "an ack-only packet between is no gap");
}

#[test]
fn initial_packets_are_acked_at_once() {
    // RFC 9000 13.2.1-2
    let mut f = flow(AckPolicy::immediate());
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(0)), AckNeed::Now);
}

#[test]
fn a_policy_may_bear_with_disorder() {
    let relaxed = AckPolicy::requested(9, MS * 100, 3);
    let mut f = flow(relaxed);
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    assert_eq!(f.deadline(), Some(at(100)));
    f.on_ack_sent();
    for n in [2, 3] {
        f.on_packet(at(1), n, Eliciting::Yes, None);
        assert_eq!(f.ack_need(at(1)), AckNeed::Piggyback, "1 may still come: {n}");
    }
    f.on_packet(at(1), 4, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(1)), AckNeed::Now, "1 is three below 4");
    let mut f = flow(AckPolicy { reordering_threshold: 0, ..relaxed });
    f.on_packet(at(2), 0, Eliciting::Yes, None);
    f.on_packet(at(2), 40, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(2)), AckNeed::Piggyback);
    f.on_ack_sent();
    (50..60).for_each(|n| f.on_packet(at(3), n, Eliciting::Yes, None));
    assert_eq!(f.ack_need(at(3)), AckNeed::Now, "the tenth");
}

#[test]
fn writes_path_ack_with_delay_and_counts() {
    // RFC 9000 13.2.5, 13.4.1
    let mut f = delayed();
    for n in [0, 1, 2, 5, 7] {
        f.on_packet(at(n as u32), n, Eliciting::Yes, Some(Ecn::Ect0));
    }
    let (mut buf, mut carried) = (Vec::new(), Vec::new());
    let mut w = FrameWriter::new(&mut buf, 100, &mut carried);
    assert_eq!(f.fill_ack(at(15), &mut w, AckForm::Path, 3), Some(7));
    assert!(!w.is_ack_eliciting());
    assert_eq!(carried, [SentFrame::Ack { space: Space::Data, path: PathId(2), smallest: 0, largest: 7 }]);
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&buf).next() else { panic!("{buf:?}") };
    assert_eq!((ack.path, ack.largest, ack.delay), (PathId(2), 7, 1000));
    assert_eq!(ack.ecn, Some(EcnCounts { ect0: 5, ect1: 0, ce: 0 }));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), [7..=7, 5..=5, 0..=2]);

    f.on_ack_sent();
    f.on_ack_acked(0, 5);
    assert_eq!((f.to_report().len(), f.to_report().first()), (1, Some(7..8)));
    f.on_ack_acked(0, 7);
    let mut w = FrameWriter::new(&mut buf, 1000, &mut carried);
    assert_eq!(f.fill_ack(at(15), &mut w, AckForm::Path, 3), None);
    assert!(f.is_duplicate(5) && f.is_duplicate(7) && !f.is_duplicate(6), "forgotten for reports, not for duplicates");
}

#[test]
fn ranges_that_did_not_fit_are_reported_later() {
    // RFC 9000 13.2.1: every ack-eliciting packet is acknowledged at least once
    let mut f = delayed();
    (0..20).for_each(|n| f.on_packet(at(0), n * 2, Eliciting::Yes, None));
    let (mut told, mut carried) = (BTreeSet::new(), Vec::new());
    while !f.to_report().is_empty() {
        let mut buf = Vec::new();
        assert_eq!(
            f.fill_ack(at(0), &mut FrameWriter::new(&mut buf, 20, &mut carried), AckForm::Path, 3),
            f.to_report().max()
        );
        f.on_ack_sent();
        let Some(Ok(Frame::Ack(ack))) = Frames::new(&buf).next() else { panic!("{buf:?}") };
        told.extend(ack.ranges().flatten());
        let Some(SentFrame::Ack { smallest, largest, .. }) = carried.pop() else { panic!("{carried:?}") };
        f.on_ack_acked(smallest, largest);
    }
    assert_eq!(told, (0..20).map(|n| n * 2).collect());
}

#[test]
fn no_room_writes_nothing() {
    let mut f = delayed();
    f.on_packet(at(0), 0, Eliciting::Yes, None);
    let (mut buf, mut carried) = (Vec::new(), Vec::new());
    let mut w = FrameWriter::new(&mut buf, 3, &mut carried);
    assert_eq!(f.fill_ack(at(0), &mut w, AckForm::Path, 3), None);
    assert!(buf.is_empty() && carried.is_empty());
}

#[test]
fn asks_for_an_echo_when_ranges_pile_up() {
    // RFC 9000 13.2.1-5
    // RFC 9000 13.2.4
    let mut f = delayed();
    for n in 0..40 {
        f.on_packet(at(0), n * 2, Eliciting::Yes, None);
        f.on_ack_sent();
    }
    assert!(f.wants_ping());
    f.on_ack_acked(0, 20);
    assert!(!f.wants_ping());
}

#[test]
fn memory_is_bounded() {
    let mut f = delayed();
    (0..5000).for_each(|n| f.on_packet(at(0), n * 2, Eliciting::Yes, None));
    assert_eq!(f.to_report().len(), MAX_ACK_RANGES);
    let floor = 2 * (5000 - MAX_DEDUP_RANGES as u64);
    assert!(f.is_duplicate(1) && f.is_duplicate(floor - 2), "too old to tell");
    assert!(!f.is_duplicate(floor + 1) && f.is_duplicate(floor));
    f.on_packet(at(0), 1, Eliciting::Yes, None);
    assert_eq!(f.largest(), Some(9998));
}

proptest! {
    #[test]
    fn duplicates_are_told_apart(numbers in prop::collection::vec(0u64..300, 0..400)) {
        // RFC 9000 12.3-4
        let (mut f, mut model) = (delayed(), BTreeSet::new());
        for n in numbers {
            prop_assert_eq!(f.is_duplicate(n), model.contains(&n));
            f.on_packet(at(0), n, Eliciting::Yes, None);
            model.insert(n);
            prop_assert_eq!(f.largest(), model.last().copied());
            prop_assert_ne!(f.ack_need(at(0)), AckNeed::None);
        }
        prop_assert_eq!(f.to_report().iter().flatten().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_came_late_is_reported_although_a_larger_ack_was_echoed() {
    // RFC 9000 13.2.1: every ack-eliciting packet is acknowledged at least once
    let mut f = delayed();
    [0, 2].into_iter().for_each(|n| f.on_packet(at(0), n, Eliciting::Yes, None));
    f.on_ack_sent();
    f.on_packet(at(1), 1, Eliciting::Yes, None);
    f.on_ack_acked(0, 2);
    assert_eq!((f.ack_need(at(1)), f.to_report().first()), (AckNeed::Now, Some(1..3)));
    f.on_ack_sent();
    f.on_ack_acked(0, 2);
    assert_eq!(f.ack_need(at(1)), AckNeed::None);
}

/// Which of these packets, received one by one, call for an ack at once: after each of those an ack leaves.
fn urgent(f: &mut ReceiveFlow, packets: &[(u64, Option<Ecn>)]) -> Vec<u64> {
    let mut out = Vec::new();
    for &(n, ecn) in packets {
        f.on_packet(at(1), n, Eliciting::Yes, ecn);
        if f.ack_need(at(1)) == AckNeed::Now {
            f.on_ack_sent();
            out.push(n);
        }
    }
    out
}

#[test]
fn reordering_is_borne_with_as_the_draft_tabulates() {
    let told = |threshold, numbers: &[u64]| {
        let packets: Vec<_> = numbers.iter().map(|n| (*n, None)).collect();
        urgent(&mut flow(AckPolicy::requested(100, MS * 100, threshold)), &packets)
    };
    // ACK_FREQUENCY draft, section 6.2.1
    assert_eq!(told(3, &[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    assert_eq!(told(5, &[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
    assert_eq!(told(0, &[0, 1, 3, 4, 5, 8, 9, 10, 2]), [0; 0]);
    assert_eq!(told(1, &[0, 1, 3, 4, 2]), [3, 2]);
    // What comes after it was given up is reported at once; what may still be awaited is not.
    assert_eq!(told(3, &[0, 1, 3, 4, 5, 2]), [5, 2]);
    assert_eq!(told(3, &[0, 1, 2, 4, 5, 3]), [0; 0]);
    assert_eq!(told(VARINT_MAX, &[0, 1, 3, 90, 2]), [0; 0]);
}

#[test]
fn the_first_mark_is_urgent_and_the_next_ones_are_not() {
    // ACK_FREQUENCY draft, section 6.3
    let (ce, plain) = (Some(Ecn::Ce), Some(Ecn::Ect0));
    let packets = [(0, plain), (1, ce), (2, ce), (3, ce), (4, plain), (5, plain), (6, ce), (7, plain)];
    assert_eq!(urgent(&mut flow(AckPolicy::requested(100, MS * 100, 3)), &packets), [1, 6]);
    // RFC 9000 13.2.1: each of them where every second packet is acknowledged anyway
    assert_eq!(urgent(&mut flow(AckPolicy::requested(1, MS * 100, 3)), &packets), [1, 2, 3, 5, 6]);
    assert_eq!(urgent(&mut flow(AckPolicy::requested(0, MS * 100, 0)), &packets), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn another_policy_holds_for_what_waits() {
    let mut f = flow(AckPolicy::requested(100, MS * 1000, 0));
    (0..5).for_each(|n| f.on_packet(at(0), n, Eliciting::Yes, None));
    assert_eq!((f.ack_need(at(0)), f.deadline()), (AckNeed::Piggyback, Some(at(1000))));
    f.set_ack_policy(AckPolicy::requested(50, MS * 40, 0));
    assert_eq!((f.ack_need(at(9)), f.deadline()), (AckNeed::Piggyback, Some(at(40))));
    assert_eq!(f.ack_need(at(40)), AckNeed::Now);
    f.set_ack_policy(AckPolicy::requested(50, MS * 400, 0));
    assert_eq!((f.ack_need(at(40)), f.deadline()), (AckNeed::Piggyback, Some(at(400))));
    f.set_ack_policy(AckPolicy::requested(4, MS * 400, 0));
    assert_eq!(f.ack_need(at(12)), AckNeed::Now, "five are more than four");
    f.on_ack_sent();
    f.hasten_ack();
    f.on_packet(at(13), 5, Eliciting::Yes, None);
    assert_eq!(f.ack_need(at(13)), AckNeed::Now);
}

#[test]
fn nothing_is_forgotten_before_it_was_reported() {
    // ACK_FREQUENCY draft, section 6: ranges are not cut off before they were sent once
    let mut f = flow(AckPolicy::requested(VARINT_MAX, MS * 16_000, 0));
    let (mut reported, mut acks) = (BTreeSet::new(), 0);
    for n in (0..4_000).step_by(2) {
        f.on_packet(at(0), n, Eliciting::Yes, None);
        if f.ack_need(at(0)) == AckNeed::Now {
            reported.extend(f.to_report().iter().flatten());
            f.on_ack_sent();
            acks += 1;
        }
        assert!(f.to_report().len() <= MAX_ACK_RANGES);
    }
    reported.extend(f.to_report().iter().flatten());
    assert_eq!(reported.len(), 2_000);
    assert!(acks <= 2_000 / 32, "{acks}");
}
