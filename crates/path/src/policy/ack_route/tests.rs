//! Where acks travel.

use super::*;

fn carrier(id: u32, state: PathState, ms: u64) -> AckCarrier {
    let rtt = (ms > 0).then(|| Duration::from_millis(ms));
    let (rtt_least, rtt_latest) = (rtt, rtt);
    AckCarrier { id: PathId(id), state, rtt, rtt_least, rtt_latest, sent_bytes: 0, received_bytes: 0 }
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

/// A path by its smoothed, its least and its newest RTT, ms.
fn measured(id: u32, rtt: u64, least: u64, latest: u64) -> AckCarrier {
    let ms = |n| Some(Duration::from_millis(n));
    AckCarrier { rtt: ms(rtt), rtt_least: ms(least), rtt_latest: ms(latest), ..carrier(id, PathState::Active, 1) }
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
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
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
fn a_queue_of_what_comes_is_no_crowd_of_acks() {
    let mut fastest = by_name("fastest").unwrap().build();
    let mut choose = |latest, received_bytes| {
        let deep = AckCarrier { sent_bytes: received_bytes / 20, received_bytes, ..measured(0, 200, 40, latest) };
        fastest.choose(Instant::ZERO, PathId(1), &[deep, measured(1, 290, 286, 290)])[0].0
    };
    assert_eq!([choose(50, 1000), choose(300, 900_000)], [0, 0]);
}

#[test]
fn acks_leave_a_queue_that_costs_more_than_their_own_way() {
    let mut fastest = by_name("fastest").unwrap().build();
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    // What comes hides how much of the queue is acks: 500 bytes of them to 10 kB.
    let mut choose = |now, of, latest, least| {
        let thin = AckCarrier { sent_bytes: now * 500, received_bytes: now * 10_000, ..measured(0, 45, least, latest) };
        fastest.choose(at(now), PathId(of), &[thin, measured(1, 50, 50, 50)])[0].0
    };
    assert_eq!(choose(0, 1, 10, 10), 0);
    assert_eq!(choose(1, 1, 60, 10), 0, "a queue of the own way, no more");
    assert_eq!(choose(2, 0, 61, 10), 0, "they have no other way home");
    assert_eq!(choose(3, 1, 101, 60), 0, "a path that is so long without a queue");
    assert_eq!(choose(4, 1, 61, 10), 1);
    // For 32 round trips of 61 ms.
    assert_eq!(choose(1955, 1, 10, 10), 1);
    assert_eq!(choose(1957, 1, 10, 10), 0);
}

#[test]
fn a_queue_hides_nothing_of_their_own_way() {
    let mut fastest = by_name("fastest").unwrap().build();
    // Acks of path 1 came home by the thin path as well, so that its round trip holds the same queue.
    let mut choose = |latest, own_rtt| {
        let thin = AckCarrier { sent_bytes: 500, received_bytes: 10_000, ..measured(0, 45, 10, latest) };
        fastest.choose(Instant::ZERO, PathId(1), &[thin, measured(1, own_rtt, 50, own_rtt)])[0].0
    };
    assert_eq!([choose(10, 50), choose(60, 100), choose(61, 101)], [0, 0, 1]);
}
