//! Where acks travel.

use super::*;

fn carrier(id: u32, state: PathState, ms: u64) -> AckCarrier {
    let rtt = (ms > 0).then(|| Duration::from_millis(ms));
    AckCarrier { id: PathId(id), state, rtt, rtt_least: rtt }
}

fn choose(name: &str, of: u32, carriers: &[AckCarrier]) -> Vec<u32> {
    let mut route = by_name(name).unwrap().build();
    assert_eq!(route.name(), name);
    route.choose(PathId(of), carriers).iter().map(|id| id.0).collect()
}

#[test]
fn every_name_is_known() {
    assert!(NAMES.iter().all(|name| by_name(name).is_some_and(|f| f.name() == *name)));
    assert!(by_name("slowest").is_none());
}

#[test]
fn own_stays_unless_it_cannot() {
    let paths = [carrier(0, PathState::Active, 10), carrier(1, PathState::Active, 90)];
    assert_eq!(choose("own", 1, &paths), [1]);
    let failed = [paths[0], carrier(1, PathState::Failed, 90)];
    assert_eq!(choose("own", 1, &failed), [0]);
    // A closing path is acknowledged elsewhere (MP 3.4).
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
    assert_eq!(route.choose(PathId(0), &paths(30))[0], PathId(0));
    assert_eq!(route.choose(PathId(0), &paths(19))[0], PathId(0), "not much faster");
    assert_eq!(route.choose(PathId(0), &paths(10))[0], PathId(1));
    route.on_path_gone(PathId(1));
    assert_eq!(route.choose(PathId(0), &paths(21))[0], PathId(0));
}

#[test]
fn all_means_all_that_work() {
    let paths =
        [carrier(0, PathState::Active, 50), carrier(1, PathState::Failed, 5), carrier(2, PathState::Backup, 20)];
    assert_eq!(choose("all", 1, &paths), [0, 2]);
    assert_eq!(choose("all", 1, &paths[1..2]), [1]);
}

#[test]
fn a_queue_the_other_way_does_not_move_acks_to_a_longer_path() {
    let ms = Duration::from_millis;
    let path = |id, rtt, least| AckCarrier {
        rtt: Some(ms(rtt)),
        rtt_least: Some(ms(least)),
        ..carrier(id, PathState::Active, 1)
    };
    let mut fastest = by_name("fastest").unwrap().build();
    assert_eq!(fastest.choose(PathId(0), &[path(0, 200, 198), path(1, 350, 307)])[0], PathId(0));
    assert_eq!(fastest.choose(PathId(0), &[path(0, 1150, 198), path(1, 880, 307)])[0], PathId(0));
    // Twice as slow: the queue may be on the way of the acks.
    assert_eq!(fastest.choose(PathId(0), &[path(0, 1800, 198), path(1, 880, 307)])[0], PathId(1));
}
