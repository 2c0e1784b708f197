//! Each policy over views made by hand.

use super::opportunistic::Opportunistic;
use super::*;
use crate::candidates::tests::view;
use crate::view::Room;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(at: u64) -> Instant {
    Instant::ZERO + ms(at)
}

fn packet(sent: u64, ahead_bytes: u64) -> Outstanding {
    Outstanding { sent_at: at(sent), bytes: 1200, ahead_bytes }
}

#[test]
fn every_name_builds_what_it_says() {
    assert!(NAMES.contains(&DEFAULT));
    for name in NAMES {
        let factory = by_name(name).unwrap();
        assert_eq!((factory.name(), factory.build().name()), (name, name));
    }
    assert!(by_name("always").is_none());
}

/// The policy with its budget spent.
fn tail() -> Tail {
    let mut tail = Tail::default();
    tail.on_sent(16_000, 17_000, at(0));
    tail
}

#[test]
fn what_arrives_later_than_its_copy_is_copied() {
    let (idle, slow) = (view(0, 20), view(1, 100));
    assert_eq!(tail().judge(&idle, &slow, &packet(0, 1200), Occasion::Drained, at(10)), Verdict::Copy);
    // At 80 ms its ack is 20 ms away, that of a copy a little more.
    let verdict = tail().judge(&idle, &slow, &packet(0, 1200), Occasion::Drained, at(80));
    assert!(matches!(verdict, Verdict::Later(until) if until > at(100)), "{verdict:?}");
    // The same from a slower path to a faster one is never worth it.
    let verdict = tail().judge(&slow, &idle, &packet(0, 1200), Occasion::Drained, at(1));
    assert!(matches!(verdict, Verdict::Later(_)));
}

#[test]
fn a_queue_counts_as_well_as_a_round_trip() {
    let (idle, mut slow) = (view(0, 20), view(1, 30));
    slow.recent_rtt.max = ms(500);
    slow.delivery_rate_bps = Some(1_000_000);
    // 25 kB at 1 Mbit/s are 200 ms away.
    assert_eq!(packet(0, 25_000).expected_ack(&slow, at(0)), Some(at(200)));
    assert_eq!(tail().judge(&idle, &slow, &packet(0, 25_000), Occasion::Drained, at(0)), Verdict::Copy);
    assert!(matches!(tail().judge(&idle, &slow, &packet(0, 1250), Occasion::Drained, at(10)), Verdict::Later(_)));
    assert_eq!(packet(0, 25_000_000).expected_ack(&slow, at(0)), Some(at(1000)), "bounded by what was seen");
}

#[test]
fn overdue_and_lossy_packets_are_copied() {
    let (idle, mut busy) = (view(0, 30), view(1, 20));
    let packet = packet(0, 1200);
    let overdue = packet.overdue_at(&busy).unwrap();
    assert_eq!(tail().judge(&idle, &busy, &packet, Occasion::Drained, overdue), Verdict::Copy);
    assert_eq!(tail().judge(&idle, &busy, &packet, Occasion::Drained, at(1)), Verdict::Later(overdue));
    busy.loss_per_mille = 50;
    assert_eq!(tail().judge(&idle, &busy, &packet, Occasion::Drained, at(1)), Verdict::Copy);
    // A copy that arrives after the path's own repair is of no use.
    assert_eq!(tail().judge(&view(0, 300), &busy, &packet, Occasion::Drained, at(1)), Verdict::Later(overdue));
}

#[test]
fn what_a_lossy_path_sends_again_may_be_lost_as_well() {
    // Overdue at 40 ms; what repairs it would be so at 80, and what repairs that is home at 100.
    let (idle, mut busy) = (view(0, 60), view(1, 20));
    busy.rtt_var = ms(5);
    let judge = |busy: &PathView, now| tail().judge(&idle, busy, &packet(0, 1200), Occasion::Drained, at(now));
    assert_eq!(judge(&busy, 0), Verdict::Later(at(40)));
    busy.loss_per_mille = 50;
    assert_eq!(judge(&busy, 39), Verdict::Copy);
    let far = view(0, 100);
    assert_eq!(tail().judge(&far, &busy, &packet(0, 1200), Occasion::Drained, at(0)), Verdict::Later(at(40)));
}

#[test]
fn what_leaves_on_a_path_that_broke_its_word_is_copied_at_once() {
    let (idle, mut busy) = (view(0, 50), view(1, 30));
    (busy.rtt_var, busy.in_flight_bytes) = (ms(5), 9_000);
    let judge = |busy: &PathView, occasion| tail().judge(&idle, busy, &packet(0, 1200), occasion, at(1));
    let at_once = [Occasion::Drained, Occasion::Paused, Occasion::Held];
    for occasion in at_once {
        assert_ne!(judge(&busy, occasion), Verdict::Copy);
    }
    // 90 ms late: the copy comes sooner by 70.
    busy.recent_rtt.late = ms(90);
    for occasion in at_once {
        assert_eq!(judge(&busy, occasion), Verdict::Copy, "{occasion:?}");
    }
    assert_ne!(judge(&busy, Occasion::Blocked), Verdict::Copy, "no place is taken from new data");
    // The copy would come 2 ms sooner at best, or none of 20 ms is at stake.
    busy.recent_rtt.late = ms(22);
    assert_ne!(judge(&busy, Occasion::Drained), Verdict::Copy);
    (busy.rtt, busy.recent_rtt.late) = (Some(ms(49)), ms(19));
    assert_eq!(judge(&busy, Occasion::Held), Verdict::No);
    // The idle path admits 10,000 bytes: this is no small answer.
    (busy.recent_rtt.late, busy.in_flight_bytes) = (ms(90), 40_001);
    assert_eq!(judge(&busy, Occasion::Held), Verdict::No);
}

#[test]
fn copies_of_what_a_path_holds_that_broke_its_word_are_bounded() {
    let (idle, mut busy) = (view(0, 50), view(1, 30));
    busy.recent_rtt.late = ms(90);
    let mut policy = Tail::default();
    let judge = |policy: &mut Tail| policy.judge(&idle, &busy, &packet(0, 1200), Occasion::Held, at(1));
    for _ in 0..100 {
        policy.on_sent(1200, 0, at(0));
        assert_eq!(judge(&mut policy), Verdict::Copy);
        policy.on_sent(1200, 1200, at(0));
    }
    policy.on_sent(130_000, 130_000, at(0));
    assert_eq!(judge(&mut policy), Verdict::No);
    policy.on_sent(130_000, 0, at(0));
    assert_eq!(judge(&mut policy), Verdict::Copy);
}

#[test]
fn the_last_packets_are_doubled_within_a_budget() {
    let (idle, busy) = (view(0, 20), view(1, 20));
    let mut tail = Tail::default();
    assert_eq!(tail.judge(&idle, &busy, &packet(0, 1200), Occasion::Drained, at(1)), Verdict::Copy);
    assert!(matches!(tail.judge(&idle, &busy, &packet(0, 1200), Occasion::Blocked, at(1)), Verdict::Later(_)));
    tail.on_sent(15_000, 15_000, at(0));
    assert_eq!(tail.judge(&idle, &busy, &packet(0, 1200), Occasion::Drained, at(1)), Verdict::Copy);
    tail.on_sent(2_000, 2_000, at(0));
    assert!(matches!(tail.judge(&idle, &busy, &packet(0, 1200), Occasion::Drained, at(1)), Verdict::Later(_)));
    tail.on_sent(100_000, 0, at(0));
    assert_eq!(tail.judge(&idle, &busy, &packet(0, 1200), Occasion::Drained, at(1)), Verdict::Copy);
}

#[test]
fn what_is_taken_over_in_a_pause_keeps_to_the_budget() {
    let (idle, slow) = (view(0, 20), view(1, 100));
    assert_eq!(Tail::default().judge(&idle, &slow, &packet(0, 1200), Occasion::Paused, at(10)), Verdict::Copy);
    let mut spent = Tail::default();
    spent.on_sent(64_000, 70_000, at(0));
    for occasion in [Occasion::Paused, Occasion::Blocked] {
        let verdict = spent.judge(&idle, &slow, &packet(0, 1200), occasion, at(10));
        assert!(matches!(verdict, Verdict::Later(_)), "{verdict:?}");
    }
    assert_eq!(spent.judge(&idle, &slow, &packet(0, 1200), Occasion::Drained, at(10)), Verdict::Copy);
}

#[test]
fn while_more_follows_moments_do_not_count() {
    let (idle, busy) = (view(0, 1), view(1, 1));
    let packet = packet(0, 1200);
    let judge = |occasion, now| Tail::default().judge(&idle, &busy, &packet, occasion, now);
    assert_eq!(judge(Occasion::Paused, at(0)), Verdict::Later(at(1)), "a rest between two writes");
    assert_eq!(judge(Occasion::Paused, at(1)), Verdict::Copy);
    let mut busy_writer = Tail::default();
    busy_writer.on_sent(1200, 0, at(1));
    assert_eq!(busy_writer.judge(&idle, &busy, &packet, Occasion::Paused, at(1)), Verdict::Later(at(2)));
    let overdue = packet.overdue_at(&busy).unwrap();
    assert_eq!(judge(Occasion::Drained, overdue), Verdict::Copy);
    let late = overdue + ms(20);
    assert_eq!(judge(Occasion::Blocked, overdue), Verdict::Later(late));
    assert_eq!(judge(Occasion::Blocked, late), Verdict::Copy);
}

#[test]
fn what_holds_a_window_shut_is_taken_over_once_it_is_late() {
    // The round trip grew while a queue filled: 200 ms, give or take 100, and 600 by the time that it is overdue.
    let (idle, mut slow) = (view(0, 70), view(1, 200));
    slow.rtt_var = ms(100);
    let packet = packet(0, 1200);
    assert_eq!(packet.overdue_at(&slow), Some(at(600)));
    for occasion in [Occasion::Blocked, Occasion::Paused] {
        let judge = |now| tail().judge(&idle, &slow, &packet, occasion, now);
        // Until 110 ms it arrives later than its copy would, then a little sooner, and from 225 ms on it is late.
        assert_eq!(judge(at(109)), Verdict::Copy);
        assert_eq!(judge(at(110)), Verdict::Later(at(245)));
        assert_eq!(judge(at(245)), Verdict::Copy);
        // A copy that comes home after the packet was overdue is worth no haste.
        let far = view(0, 400);
        assert_eq!(tail().judge(&far, &slow, &packet, occasion, at(245)), Verdict::Later(at(620)));
    }
    let drained = tail().judge(&idle, &slow, &packet, Occasion::Drained, at(245));
    assert_eq!(drained, Verdict::Later(at(600)), "at the end only what is overdue");
}

#[test]
fn what_will_hold_a_window_shut_is_taken_over_just_in_time() {
    let (fast, slow) = (view(0, 40), view(1, 200));
    let judge =
        |tail: &mut Tail, after, now| tail.judge(&fast, &slow, &packet(0, 1200), Occasion::Closing(after), at(now));
    // A copy is home after 40 ms, and credit for new data follows.
    assert_eq!(judge(&mut tail(), ms(45), 10), Verdict::Copy);
    assert_eq!(judge(&mut tail(), ms(46), 10), Verdict::No, "not yet");
    assert_eq!(judge(&mut tail(), ms(0), 139), Verdict::Copy);
    assert_eq!(judge(&mut tail(), ms(0), 140), Verdict::Later(at(221)), "home by itself as soon, but for 20 ms");
    assert_eq!(judge(&mut tail(), ms(0), 221), Verdict::Copy, "it was to be home by now");
    let mut spent = Tail::default();
    spent.on_sent(64_000, 70_000, at(0));
    assert_ne!(judge(&mut spent, ms(0), 10), Verdict::Copy, "more than the budget");
    // Other policies wait until nothing else may leave.
    let ahead = Occasion::Closing(ms(0));
    assert_eq!(Opportunistic.judge(&fast, &slow, &packet(0, 1), ahead, at(200)), Verdict::No);
    assert_eq!(DeadlineFactory::default().build().judge(&fast, &slow, &packet(0, 1), ahead, at(200)), Verdict::No);
}

#[test]
fn an_idle_path_that_is_not_measured_takes_nothing() {
    let (mut idle, slow) = (view(0, 50), view(1, 20));
    idle.rtt = None;
    assert_eq!(tail().judge(&idle, &slow, &packet(0, 1200), Occasion::Drained, at(900)), Verdict::No);
}

#[test]
fn a_path_that_is_being_opened_takes_the_first_flight_within_the_budget() {
    let mut opening = view(0, 50);
    (opening.rtt, opening.room) = (None, Room::CopiesOnly);
    let mut fresh = Tail::default();
    let flight = |packets: u64| PathView { in_flight_bytes: packets * 1200, max_datagram_bytes: 1200, ..view(1, 20) };
    let mut judge = |occasion| fresh.judge(&opening, &flight(9), &packet(0, 1200), occasion, at(1));
    assert_eq!(judge(Occasion::Drained), Verdict::Copy);
    assert_eq!(judge(Occasion::Paused), Verdict::Copy);
    assert_eq!(judge(Occasion::Blocked), Verdict::No);
    assert_eq!(tail().judge(&opening, &flight(9), &packet(0, 1200), Occasion::Drained, at(1)), Verdict::No);
    assert_eq!(fresh.judge(&opening, &flight(2), &packet(0, 1200), Occasion::Drained, at(1)), Verdict::No);
}

#[test]
fn opportunistic_serves_a_full_window_only() {
    let (fast, slow) = (view(0, 20), view(1, 100));
    assert_eq!(Opportunistic.judge(&fast, &slow, &packet(0, 1), Occasion::Blocked, at(1)), Verdict::Copy);
    assert_eq!(Opportunistic.judge(&fast, &slow, &packet(0, 1), Occasion::Drained, at(1)), Verdict::No);
    assert_eq!(Opportunistic.judge(&slow, &fast, &packet(0, 1), Occasion::Blocked, at(1)), Verdict::No);
}

#[test]
fn deadline_keeps_to_its_ages_and_its_budget() {
    let mut policy = DeadlineFactory::default().build();
    let (idle, busy) = (view(0, 100), view(1, 100));
    assert_eq!(policy.judge(&idle, &busy, &packet(0, 1), Occasion::Drained, at(109)), Verdict::Later(at(110)));
    assert_eq!(policy.judge(&idle, &busy, &packet(0, 1), Occasion::Drained, at(110)), Verdict::Copy);
    let quick = view(0, 1);
    assert_eq!(policy.judge(&quick, &busy, &packet(0, 1), Occasion::Drained, at(19)), Verdict::Later(at(20)));
    assert_eq!(policy.judge(&idle, &busy, &packet(0, 1), Occasion::Held, at(110)), Verdict::No);
    // A fifth of the 64 kB assumed at first, and of what is sent later.
    policy.on_sent(12_000, 12_000, at(0));
    assert_eq!(policy.judge(&idle, &busy, &packet(0, 1), Occasion::Drained, at(110)), Verdict::No);
    policy.on_sent(12_000, 0, at(0));
    assert_eq!(policy.judge(&idle, &busy, &packet(0, 1), Occasion::Drained, at(110)), Verdict::Copy);
}

#[test]
fn a_path_that_stood_idle_has_no_queue_left() {
    let mut idle = view(0, 900);
    idle.rtt_min = ms(100);
    assert_eq!(next_round_trip(&idle), Some(ms(900)), "nothing is known of its rate");
    idle.delivery_rate_bps = Some(10_000_000);
    assert_eq!(next_round_trip(&idle), Some(ms(100)));
    // 500 kB and one packet at 10 Mbit/s.
    idle.in_flight_bytes = 500_000;
    let loaded = next_round_trip(&idle).unwrap();
    assert!(loaded > ms(400) && loaded < ms(402), "{loaded:?}");
    idle.in_flight_bytes = u64::MAX / 4;
    assert_eq!(next_round_trip(&idle), Some(ms(900)));
    idle.in_flight_bytes = 0;
    assert_eq!(tail().judge(&idle, &view(1, 300), &packet(0, 1200), Occasion::Blocked, at(10)), Verdict::Copy);
}
