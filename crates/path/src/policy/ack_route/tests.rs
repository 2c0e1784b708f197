//! Where acks travel.

use super::*;

fn carrier(id: u32, state: PathState, ms: u64) -> AckCarrier {
    let rtt = (ms > 0).then(|| Duration::from_millis(ms));
    let (rtt_least, rtt_latest, rtt_at) = (rtt, rtt, rtt.map(|rtt| (rtt, Instant::ZERO)));
    AckCarrier {
        id: PathId(id),
        state,
        is_paired: true,
        rtt,
        rtt_least,
        rtt_latest,
        rtt_at,
        rtt_via: rtt.map(|_| PathId::ZERO),
        heard_at: None,
        asked_at: None,
        sent_bytes: 0,
        received_bytes: 0,
    }
}

fn choose(name: &str, of: u32, carriers: &[AckCarrier]) -> Vec<u32> {
    let mut route = by_name(name).unwrap().build();
    assert_eq!(route.name(), name);
    route.choose(Instant::ZERO, PathId(of), carriers).iter().map(|id| id.0).collect()
}

#[test]
fn every_name_builds_what_it_says() {
    assert!(NAMES.contains(&DEFAULT));
    assert!(NAMES.iter().all(|name| by_name(name).is_some_and(|f| f.name() == *name && f.build().name() == *name)));
    assert!(by_name("slowest").is_none());
}

#[test]
fn own_stays_unless_it_cannot() {
    let paths = [carrier(0, PathState::Active, 10), carrier(1, PathState::Active, 90)];
    assert_eq!(choose("own", 1, &paths), [1]);
    let failed = [paths[0], carrier(1, PathState::Failed, 90)];
    assert_eq!(choose("own", 1, &failed), [0]);
    // A closing path is acknowledged elsewhere (RFC 10069 3.4.3).
    assert_eq!(choose("own", 1, &[paths[0], carrier(1, PathState::Closing, 90)]), [0]);
    assert_eq!(choose("own", 1, &[]), Vec::<u32>::new());
}

#[test]
fn fastest_prefers_active_then_rtt() {
    let paths =
        [carrier(0, PathState::Active, 50), carrier(1, PathState::Backup, 5), carrier(2, PathState::Active, 20)];
    assert_eq!(choose("fastest", 0, &paths), [2]);
    assert_eq!(choose("fastest", 1, &[carrier(0, PathState::Active, 0), carrier(1, PathState::Active, 0)]), [1]);
}

#[test]
fn fastest_is_stable() {
    let mut route = by_name("fastest").unwrap().build();
    let paths = |b| [carrier(0, PathState::Active, 20), carrier(1, PathState::Active, b)];
    assert_eq!(route.choose(Instant::ZERO, PathId(0), &paths(30))[0], PathId(0));
    assert_eq!(route.choose(Instant::ZERO, PathId(0), &paths(19))[0], PathId(0), "not much faster");
    assert_eq!(route.choose(Instant::ZERO, PathId(0), &paths(10))[0], PathId(1));
    route.on_path_closing(PathId(1));
    assert_eq!(route.choose(Instant::ZERO, PathId(0), &paths(21))[0], PathId(0));
}

#[test]
fn all_means_all_that_work() {
    let paths =
        [carrier(0, PathState::Active, 50), carrier(1, PathState::Failed, 5), carrier(2, PathState::Backup, 20)];
    assert_eq!(choose("all", 1, &paths), [0, 2]);
    assert_eq!(choose("all", 1, &paths[1..2]), [1]);
}

/// A path by its smoothed, its least and its newest RTT, ms, the last measured at once.
fn measured(id: u32, rtt: u64, least: u64, latest: u64) -> AckCarrier {
    let ms = |n| Some(Duration::from_millis(n));
    let rtt_at = ms(latest).map(|latest| (latest, Instant::ZERO));
    AckCarrier {
        rtt: ms(rtt),
        rtt_least: ms(least),
        rtt_latest: ms(latest),
        rtt_at,
        ..carrier(id, PathState::Active, 1)
    }
}

/// The same, measured at `at_ms`.
fn measured_at(at_ms: u64, id: u32, rtt: u64, least: u64, latest: u64) -> AckCarrier {
    let rtt_at = Some((Duration::from_millis(latest), at(at_ms)));
    AckCarrier { rtt_at, ..measured(id, rtt, least, latest) }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_queue_the_other_way_does_not_move_acks_to_a_longer_path() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |rtt| {
        let paths = [measured(0, rtt, 198, rtt), measured(1, 880, 307, 880)];
        fastest.choose(Instant::ZERO, PathId(0), &paths)[0].0
    };
    assert_eq!([choose(200), choose(1150), choose(1800)], [0, 0, 0]);
    assert_eq!(choose(9000), 1, "another path by now");
}

#[test]
fn acks_that_crowd_a_thin_path_go_home() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, of, latest, sent_bytes| {
        let thin = AckCarrier { sent_bytes, received_bytes: 10_000, ..measured(0, 110, 105, latest) };
        fastest.choose(at(now), PathId(of), &[thin, measured(1, 400, 390, 400)])[0].0
    };
    assert_eq!(choose(0, 1, 110, 1000), 0);
    assert_eq!(choose(1, 1, 300, 9000), 0, "slower than it was, still faster than the other");
    assert_eq!(choose(2, 1, 500, 9000), 1);
    assert_eq!(choose(3, 0, 500, 9000), 0);
    // For 32 round trips of 500 ms.
    assert_eq!(choose(16_001, 1, 110, 9000), 1);
    assert_eq!(choose(16_002, 1, 110, 9000), 0);
}

#[test]
fn an_ack_or_two_crowd_no_path() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |latest, sent_bytes| {
        let near = AckCarrier { sent_bytes, received_bytes: 10_000, ..measured_at(1, 0, 25, 20, latest) };
        fastest.choose(at(1), PathId(1), &[near, measured(1, 36, 21, 36)])[0].0
    };
    assert_eq!([choose(25, 0), choose(39, 1000)], [0, 0]);
    // The queue of what comes grew from one sample to the next, before any of it arrived.
    assert_eq!([choose(48, 1050), choose(48, 2200)], [0, 0]);
    assert_eq!(choose(48, 2201), 1);
}

#[test]
fn an_ack_or_two_crowd_a_path_that_was_slow_for_a_round_trip() {
    // One that loses packets is slow, and carries few acks.
    for (received_bytes, goes_home) in [(0, true), (250, false)] {
        let mut fastest = by_name("fastest").unwrap().build();
        let mut choose = |now, latest, sent_bytes, received_bytes| {
            let near = AckCarrier { sent_bytes, received_bytes, ..measured_at(now, 0, 25, 20, latest) };
            fastest.choose(at(now), PathId(1), &[near, measured(1, 36, 21, 36)])[0].0
        };
        assert_eq!([choose(0, 25, 0, 0), choose(0, 25, 0, 0), choose(47, 48, 100, received_bytes)], [0; 3]);
        assert_eq!(choose(48, 48, 100, received_bytes) == 1, goes_home, "{received_bytes} bytes came");
    }
}

#[test]
fn a_queue_of_what_comes_is_no_crowd_of_acks() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |latest, received_bytes| {
        let deep = AckCarrier { sent_bytes: received_bytes / 20, received_bytes, ..measured(0, 200, 40, latest) };
        fastest.choose(Instant::ZERO, PathId(1), &[deep, measured(1, 290, 286, 290)])[0].0
    };
    assert_eq!([choose(50, 1000), choose(300, 900_000)], [0, 0]);
}

#[test]
fn acks_leave_a_way_that_is_longer_than_their_own() {
    let mut fastest = by_name("fastest").unwrap().build();
    // The path that carries the acks, measured at `thin.0`, and their own.
    let mut choose = |now, of, thin: (u64, u64), own: (u64, u64)| {
        let thin = measured_at(thin.0, 0, 45, 10, thin.1);
        fastest.choose(at(now), PathId(of), &[thin, measured_at(own.0, 1, 50, 30, own.1)])[0].0
    };
    assert_eq!(choose(0, 1, (0, 10), (0, 50)), 0);
    assert_eq!(choose(200, 1, (200, 80), (190, 50)), 0, "the queue may have grown since");
    assert_eq!(choose(215, 1, (200, 80), (210, 60)), 0, "10 ms ago it may have been 70 ms: not clearly shorter");
    assert_eq!(choose(215, 0, (200, 80), (210, 50)), 0, "they have no other way home");
    assert_eq!(choose(215, 1, (200, 80), (210, 59)), 1);
    // For 32 round trips of 80 ms.
    assert_eq!(choose(215 + 2559, 1, (200, 10), (210, 50)), 1);
    assert_eq!(choose(215 + 2560, 1, (200, 10), (210, 50)), 0);
}

#[test]
fn a_queue_of_both_round_trips_is_not_on_the_way_of_acks() {
    let mut fastest = by_name("fastest").unwrap().build();
    // What comes waits for up to 2 s, and so do the peer's acks of either path, which come here the same way.
    for queue in (0..2000).step_by(50) {
        let paths = [measured(0, 20, 20, 20 + queue), measured(1, 60, 60, 60 + queue)];
        assert_eq!(fastest.choose(Instant::ZERO, PathId(1), &paths)[0].0, 0, "{queue} ms");
    }
}

#[test]
fn acks_go_home_once_a_round_trip_while_the_shorter_way_has_a_queue() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, latest, received_bytes| {
        let own = AckCarrier { received_bytes, ..measured(1, 60, 60, 60) };
        let paths = fastest.choose(at(now), PathId(1), &[measured_at(1, 0, 30, 20, latest), own]);
        paths.iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(choose(0, 20, 0), [0]);
    assert_eq!(choose(501, 40, 100_000), [0], "20 ms without one, and 60 by their own");
    assert_eq!(choose(502, 41, 100_000), [0, 1]);
    assert_eq!(choose(561, 41, 200_000), [0], "not a round trip of their own ago");
    assert_eq!(choose(562, 80, 200_000), [0], "nor one of the other");
    assert_eq!(choose(582, 80, 111_999), [0], "too little has come since");
    assert_eq!(choose(582, 80, 112_000), [0, 1]);
}

#[test]
fn acks_that_take_another_way_go_home_too_at_first() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, received_bytes, is_paired| {
        let own = AckCarrier { received_bytes, is_paired, ..measured(1, 80, 80, 80) };
        let paths = fastest.choose(at(now), PathId(1), &[measured(0, 20, 20, 20), own]);
        paths.iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(choose(100, 0, true), [0]);
    assert_eq!(choose(101, 1_000, false), [0], "they have no way of their own");
    assert_eq!(choose(101, 1_000, true), [0, 1]);
    assert_eq!(choose(110, 13_000, true), [0], "an eighth of a round trip of their own");
    assert_eq!(choose(111, 12_999, true), [0], "too little has come since");
    assert_eq!(choose(111, 13_000, true), [0, 1]);
    assert_eq!(choose(739, 30_000, true), [0, 1]);
    assert_eq!(choose(740, 50_000, true), [0], "eight round trips of their own");
}

#[test]
fn an_answer_that_is_overdue_shows_a_queue_too() {
    // The carrier answered in 12 ms, and then was asked at 1100 ms.
    let thin = AckCarrier { asked_at: Some(at(1100)), ..measured_at(1090, 0, 12, 10, 12) };
    let own = |at_ms, latest| measured_at(at_ms, 1, 50, 40, latest);
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, own| {
        let paths = fastest.choose(at(now), PathId(1), &[thin, own]);
        paths.iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(choose(100, own(60, 50)), [0]);
    assert_eq!(choose(1120, own(1060, 50)), [0], "10 ms are the least");
    assert_eq!(choose(1121, own(1060, 50)), [0, 1], "a question by their own way");
    // What left at 1105 ms was here at 1155.
    assert_eq!(choose(1155, own(1155, 50)), [0], "nor one in 55 ms than one in 50");
    assert_eq!(choose(1160, own(1160, 50)), [1]);
}

#[test]
fn a_shorter_path_is_neither_asked_nor_home() {
    let mut fastest = by_name("fastest").unwrap().build();
    // Acks of path 1 once went by path 0, which was faster, and now would be sooner by their own.
    let carrier = |latest| measured_at(100, 0, 20, 20, latest);
    let own = |rtt, latest| measured_at(110, 1, rtt, 10, latest);
    let mut choose = |carrier, own| fastest.choose(at(110), PathId(1), &[carrier, own]).to_vec();
    assert_eq!(choose(carrier(20), own(30, 30)), [PathId(0)]);
    assert_eq!(choose(carrier(200), own(30, 30)), [PathId(0)], "it takes over as the fastest, or not at all");
    assert_eq!(choose(carrier(20), own(12, 12)), [PathId(1)]);
}

#[test]
fn a_silent_path_may_have_a_queue_on_the_way_here() {
    let own = |latest| AckCarrier { rtt_via: Some(PathId(1)), ..measured_at(210, 1, 60, 58, latest) };
    let choose = |carrier: AckCarrier, own: AckCarrier| {
        let mut fastest = by_name("fastest").unwrap().build();
        fastest.choose(at(0), PathId(1), &[measured(0, 10, 6, 10), own]);
        fastest.choose(at(210), PathId(1), &[carrier, own])[0].0
    };
    let queued = |latest| measured_at(200, 0, 57, 6, latest);
    let one_way = AckCarrier { rtt_via: Some(PathId::ZERO), ..own(58) };
    assert_eq!([choose(queued(77), one_way), choose(queued(78), one_way)], [0, 1]);
    // Asked at 100 ms, it has not answered: what it brought since was not held up.
    let asked = AckCarrier { asked_at: Some(at(100)), heard_at: Some(at(100)), ..queued(20) };
    assert_eq!(choose(asked, own(58)), 0);
    assert_eq!(choose(AckCarrier { heard_at: Some(at(101)), ..asked }, own(58)), 1);
    assert_eq!(choose(asked, one_way), 1);
}

#[test]
fn acks_go_home_while_their_path_brings_more_and_more() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut received_bytes = 0;
    // A round trip of their own in which so many bytes come, of 20 ms by the carrier, which has no queue.
    let mut asks = |round: u64, bytes| {
        received_bytes += bytes;
        let own = AckCarrier { received_bytes, ..measured(1, 60, 60, 60) };
        let now = if round == 0 { Instant::ZERO } else { at(1_000 + round * 60) };
        let paths = fastest.choose(now, PathId(1), &[measured(0, 20, 20, 20), own]);
        paths.contains(&PathId(1))
    };
    assert!(!asks(0, 0) && asks(0, 0), "they have just moved");
    assert!(asks(1, 12_000) && asks(2, 24_000) && asks(3, 48_000));
    // Its sender may hold the window to see whether there is a queue.
    assert!((4..11).all(|round| asks(round, 48_000)));
    assert!(!asks(11, 48_000) && !asks(12, 60_000), "a quarter more are no more");
    assert!(!asks(13, 11_999), "too little for an answer");
    assert!(asks(14, 138_002), "more than a quarter more in two round trips");
}

#[test]
fn a_sample_between_two_shorter_ones_shows_the_longer_way() {
    // The carrier was measured at `carrier.0`, their own path at `own.0`.
    let choose = |fastest: &mut Box<dyn AckRoute>, now, carrier: (u64, u64), own: (u64, u64)| {
        let paths = [measured_at(carrier.0, 0, 45, 20, carrier.1), measured_at(own.0, 1, 60, 50, own.1)];
        fastest.choose(at(now), PathId(1), &paths)[0].0
    };
    // Their own path is measured before the carrier has a queue, and the carrier at 100 ms.
    let measured_before = || {
        let mut fastest = by_name("fastest").unwrap().build();
        (0..2).for_each(|now| assert_eq!(choose(&mut fastest, now, (0, 20), (0, 60)), 0));
        assert_eq!(choose(&mut fastest, 100, (100, 80), (50, 60)), 0);
        fastest
    };
    let mut fastest = measured_before();
    // 50 ms later a queue on the way here may have gone: that alone does not tell.
    assert_eq!(choose(&mut fastest, 150, (100, 80), (150, 70)), 0, "not clearly shorter");
    assert_eq!(choose(&mut fastest, 180, (100, 80), (180, 60)), 1);
    assert_eq!(choose(&mut measured_before(), 370, (100, 80), (370, 60)), 0, "too long after the one before");
}

#[test]
fn acks_of_a_full_path_come_back_where_they_wait_longer_elsewhere() {
    let mut fastest = by_name("fastest").unwrap().build();
    // A path whose acks left the other one for a queue of what comes, and that other one, which has room for few acks.
    let mut choose = |now, of, (near_at, near), other, asked: Option<u64>| {
        let other = AckCarrier { asked_at: asked.map(at), ..measured_at(near_at + 5, 1, 50, 30, other) };
        fastest.choose(at(now), PathId(of), &[measured_at(near_at, 0, 45, 10, near), other])[0].0
    };
    assert_eq!([choose(0, 0, (0, 10), 50, None), choose(1, 1, (0, 10), 50, None)], [0, 0]);
    assert_eq!(choose(200, 1, (190, 80), 50, None), 1, "home");
    assert_eq!(choose(400, 0, (344, 64), 50, None), 1, "full, it seems");
    assert_eq!(choose(450, 0, (344, 64), 50, Some(400)), 1, "the answer is not due: 45 ms and an eighth");
    assert_eq!(choose(452, 0, (344, 64), 50, Some(400)), 0, "it would have been here by the own path");
    assert_eq!(choose(453, 0, (344, 64), 50, None), 0, "and stays there while acks keep to their paths");
    assert_eq!(choose(453, 1, (344, 64), 50, None), 1);
}

#[test]
fn acks_of_a_full_path_come_back_where_nothing_shows_how_long_they_wait_elsewhere() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, of, (near_at, near), other_at| {
        let paths = [measured_at(near_at, 0, 45, 10, near), measured_at(other_at, 1, 50, 30, 50)];
        fastest.choose(at(now), PathId(of), &paths)[0].0
    };
    assert_eq!([choose(0, 0, (0, 10), 5), choose(1, 1, (0, 10), 5)], [0, 0]);
    assert_eq!([choose(200, 1, (190, 80), 195), choose(400, 0, (344, 64), 349)], [1, 1], "home, and full");
    assert_eq!(choose(580, 0, (344, 64), 349), 1, "four round trips of 45 ms");
    assert_eq!([choose(600, 0, (344, 64), 590), choose(770, 0, (344, 64), 590)], [1, 1]);
    assert_eq!([choose(771, 0, (344, 64), 590), choose(780, 0, (344, 64), 775)], [0, 0]);
}

#[test]
fn acks_of_a_full_path_go_home_too() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |now, of, (near_at, near), other_at| {
        let paths = [measured_at(near_at, 0, 40, 10, near), measured_at(other_at, 1, 50, 30, 50)];
        fastest.choose(at(now), PathId(of), &paths).iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(choose(0, 0, (0, 10), 5), [0]);
    assert_eq!(choose(1, 1, (0, 10), 5), [0, 1]);
    assert_eq!([choose(200, 1, (190, 80), 195), choose(400, 0, (344, 64), 349)], [[1], [1]], "home, and full");
    assert_eq!(choose(401, 0, (344, 64), 395), [1, 0]);
    assert_eq!(choose(405, 0, (344, 64), 395), [1], "an eighth of its 40 ms");
    assert_eq!(choose(406, 0, (344, 64), 395), [1, 0]);
    assert_eq!(choose(406, 1, (344, 64), 395), [1], "those of the other path are at home");
    assert_eq!(choose(719, 0, (344, 64), 700), [1, 0]);
    assert_eq!(choose(758, 0, (344, 64), 740), [1], "after eight round trips");
    assert_eq!(choose(759, 0, (344, 64), 740), [1, 0]);
}

#[test]
fn a_path_that_its_own_acks_fill_sends_them_elsewhere() {
    let mut fastest = by_name("fastest").unwrap().build();
    // The thin path was measured at `thin.0`, the other one 5 ms later.
    let mut choose = |now, of, thin: (u64, u64), other| {
        let paths = [measured_at(thin.0, 0, 45, 10, thin.1), measured_at(thin.0 + 5, 1, 50, 30, other)];
        fastest.choose(at(now), PathId(of), &paths)[0].0
    };
    assert_eq!([choose(0, 0, (0, 10), 50), choose(1, 1, (0, 10), 50)], [0, 0]);
    assert_eq!(choose(200, 1, (190, 80), 50), 1, "home, for 32 round trips of 80 ms");
    assert_eq!(choose(300, 0, (290, 62), 50), 0, "the other one is not clearly shorter");
    assert_eq!(choose(350, 0, (343, 64), 50), 0, "that left before the others' acks were gone, at 280 ms");
    assert_eq!(choose(400, 0, (344, 64), 50), 1);
    assert_eq!([choose(500, 0, (490, 10), 50), choose(500, 1, (490, 10), 50)], [1, 1], "nor is it full without them");
    assert_eq!([choose(2760, 0, (2750, 10), 50), choose(2760, 1, (2750, 10), 50)], [0, 0]);
    // A path that is closed is full no more.
    assert_eq!([choose(2800, 1, (2790, 80), 50), choose(3000, 0, (2990, 80), 50)], [1, 1]);
    fastest.on_path_closing(PathId(0));
    let paths = [measured_at(3010, 0, 45, 10, 20), measured_at(3015, 1, 50, 30, 50)];
    assert_eq!(fastest.choose(at(3020), PathId(0), &paths)[0], PathId(0));
}

#[test]
fn acks_leave_a_path_that_they_fill_for_one_that_is_hardly_shorter() {
    // Without queues the other way is as long, or shorter by less than an eighth, or clearly shorter.
    for (least, leaves) in [(21, true), (19, true), (18, false)] {
        let mut fastest = by_name("fastest").unwrap().build();
        let mut choose = |now, near, sent_bytes, own| {
            let near = AckCarrier { sent_bytes, ..measured_at(now, 0, 43, least, near) };
            fastest.choose(at(now), PathId(1), &[near, measured_at(now - 5, 1, 50, 21, own)])[0].0
        };
        assert_eq!(choose(5, 30, 0, 40), 0);
        assert_eq!(choose(10, 60, 9000, 50), 1, "the other one is crowded for a moment");
        assert_eq!(choose(300, 43, 9000, 130) == 0, leaves, "{least} ms");
    }
}
