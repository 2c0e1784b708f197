//! What the policies wish for.

use std::time::Duration;

use plait_base::limits::MAX_VALIDATIONS;

use super::*;

fn local(n: u8) -> SocketAddr {
    ([10, 0, 0, n], 1000).into()
}

fn remote(n: u8) -> SocketAddr {
    ([10, 9, 0, n], 443).into()
}

fn path(id: u32, l: u8, r: u8) -> PathFact {
    PathFact { id: PathId(id), tuple: FourTuple { local: local(l), remote: remote(r) }, state: PathState::Active }
}

fn facts<'a>(local: &'a [SocketAddr], peer: &'a [SocketAddr], paths: &'a [PathFact]) -> Facts<'a> {
    Facts { now: Instant::ZERO, opener: Opener::Us, local, peer, paths, room: 8, validations: MAX_VALIDATIONS }
}

fn decide(policy: &mut dyn PathPolicy, facts: &Facts<'_>) -> Vec<Wish> {
    let mut wishes = vec![];
    policy.decide(facts, &mut wishes);
    wishes
}

fn opens(wishes: &[Wish]) -> Vec<FourTuple> {
    let tuple = |w: &Wish| match w {
        Wish::Open { tuple, .. } => Some(*tuple),
        Wish::Abandon { .. } => None,
    };
    wishes.iter().filter_map(tuple).collect()
}

#[test]
fn every_name_builds_what_it_says() {
    assert!(NAMES.contains(&DEFAULT));
    assert!(NAMES.iter().all(|name| by_name(name).is_some_and(|f| f.name() == *name && f.build().name() == *name)));
    assert!(by_name("none").is_none());
}

#[test]
fn manual_wishes_nothing() {
    let mut policy = by_name("manual").unwrap().build();
    assert_eq!(decide(&mut *policy, &facts(&[local(0), local(1)], &[remote(0)], &[path(0, 0, 0)])), []);
    assert_eq!(policy.deadline(), None);
}

#[test]
fn full_mesh_opens_what_is_missing() {
    let mut policy = FullMesh::default();
    let (locals, peers, paths) = ([local(0), local(1)], [remote(0), remote(1)], [path(0, 0, 0)]);
    let all = facts(&locals, &peers, &paths);
    let tuple = |l, r| FourTuple { local: local(l), remote: remote(r) };
    assert_eq!(opens(&decide(&mut policy, &all)), [tuple(1, 0), tuple(0, 1), tuple(1, 1)]);
    assert_eq!(opens(&decide(&mut policy, &Facts { room: 1, ..all })), [tuple(1, 0)]);
    assert_eq!(opens(&decide(&mut policy, &Facts { validations: 2, ..all })), [tuple(1, 0), tuple(0, 1)]);
    assert_eq!(opens(&decide(&mut policy, &Facts { opener: Opener::Peer, ..all })), []);
}

#[test]
fn families_do_not_mix() {
    let v6: SocketAddr = "[2001:db8::1]:1000".parse().unwrap();
    let mut policy = FullMesh::default();
    assert_eq!(decide(&mut policy, &facts(&[local(0), v6], &[remote(0)], &[path(0, 0, 0)])), []);
}

#[test]
fn unspecified_local_address_counts_as_any() {
    let any: SocketAddr = "0.0.0.0:1000".parse().unwrap();
    let mut policy = FullMesh::default();
    assert_eq!(decide(&mut policy, &facts(&[any], &[remote(0)], &[path(0, 0, 0)])), []);
}

#[test]
fn lost_address_ends_its_path_once_another_works() {
    let mut policy = FullMesh::default();
    let (locals, peers) = ([local(1)], [remote(0)]);
    let old = path(0, 0, 0);
    let opening = PathFact { state: PathState::Validating, ..path(1, 1, 0) };
    assert_eq!(decide(&mut policy, &facts(&locals, &peers, &[old, opening])), []);
    let wishes = decide(&mut policy, &facts(&locals, &peers, &[old, path(1, 1, 0)]));
    assert_eq!(wishes, [Wish::Abandon { id: PathId(0), code: CloseCode::PATH_UNSTABLE_OR_POOR }]);
}

#[test]
fn failures_are_retried_with_growing_pauses() {
    let mut policy = FullMesh::default();
    let (locals, peers, paths) = ([local(0), local(1)], [remote(0)], [path(0, 0, 0)]);
    let tuple = FourTuple { local: local(1), remote: remote(0) };
    let mut now = Instant::ZERO;
    let mut pauses = vec![];
    for _ in 0..11 {
        let at = Facts { now, ..facts(&locals, &peers, &paths) };
        assert_eq!(opens(&decide(&mut policy, &at)), [tuple]);
        policy.on_ended(now, tuple, CloseCode::PATH_UNSTABLE_OR_POOR);
        assert_eq!(decide(&mut policy, &at), []);
        let next = policy.deadline().unwrap();
        pauses.push(next.since(now).as_millis());
        now = next;
    }
    assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    // After a long good time it starts afresh, and nothing waits meanwhile.
    now += Duration::from_secs(1000);
    decide(&mut policy, &Facts { now, ..facts(&locals, &peers, &paths) });
    assert_eq!(policy.deadline(), None);
    policy.on_ended(now, tuple, CloseCode::NO_ERROR);
    assert_eq!(policy.deadline(), Some(now + Duration::from_secs(1)));
}
