//! A path that fell silent a moment ago may be dead, or have lost one packet: what goes elsewhere goes there too.

use plait_base::observe::PathState;
use plait_base::{Dir, PathId, Space};
use plait_engine::path::PathStatus as Advice;
use plait_engine::schedule;
use plait_engine::{Event, PathEvent};
use plait_wire::Frame;
use plait_wire::frame::{AckForm, PathCondition, PathStatus};

use crate::puppet::{Packet, Rig, Seen, Setup, ms, tuple};
use crate::reports::report;
use crate::violations::raw;

const SECOND: &str = "192.0.2.2:5000";

/// A server with two paths that prefers path 0, whose RTT is 10 ms, and tells how they do where `tells`.
fn two_paths(tells: bool) -> Rig {
    let mut setup = Setup::default();
    setup.transport.tell_paths(tells).scheduler(schedule::by_name("minrtt").unwrap());
    setup.habits.params.announcements.own.paths = tells;
    let mut rig = Rig::established_server(setup);
    rig.open_path(1, SECOND, true);
    for _ in 0..20 {
        rig.pass(ms(10));
        rig.ack_all();
    }
    rig
}

/// A little data of the application, and so much time after it. What left since, from this index on.
fn write_and_pass(rig: &mut Rig, milliseconds: u64) -> usize {
    let from = rig.seen.len();
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 400]).unwrap();
    rig.pump();
    rig.pass(ms(milliseconds));
    from
}

/// So many times what came on path 1 is acknowledged there, 10 ms apart.
fn answer_second(rig: &mut Rig, times: u32) {
    for _ in 0..times {
        let ack = rig.peer.ack(Space::Data, 1, AckForm::Path).unwrap();
        rig.send_all(tuple(SECOND), &[Packet::one_rtt(ack).on(1)]);
        rig.pass(ms(10));
    }
}

fn has_data(seen: &Seen) -> bool {
    seen.has(|f| matches!(f, Frame::Stream(_)))
}

/// The paths on which stream data left, from this index on.
fn carriers(rig: &Rig, from: usize) -> Vec<u32> {
    let mut paths: Vec<u32> = rig.seen[from..].iter().filter(|s| has_data(s)).map(|s| s.path.0).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Lets time pass until path 0 counts as failed: what was written on it is not acknowledged.
fn fail_first(rig: &mut Rig) {
    let from = write_and_pass(rig, 0);
    assert_eq!(carriers(rig, from), [0]);
    let failed = |e: &Event| matches!(e, Event::Path(PathEvent::Failed { id: PathId(0) }));
    for _ in 0..200 {
        if rig.events.iter().any(failed) {
            return;
        }
        rig.pass(ms(1));
    }
    panic!("path 0 never fails: {:?}", rig.events);
}

fn says_backup(seen: &Seen) -> bool {
    seen.has(|f| matches!(f, Frame::PathStatus(f) if f.path == PathId(0) && f.status == PathStatus::Backup))
}

#[test]
fn what_the_other_path_carries_goes_on_a_suspect_too_until_it_is_silent_twice() {
    let mut rig = two_paths(true);
    let from = rig.seen.len();
    fail_first(&mut rig);
    rig.pass(ms(2));
    assert_eq!(carriers(&rig, from), [0, 1], "what was under way");
    let new = write_and_pass(&mut rig, 2);
    assert_eq!(carriers(&rig, new), [0, 1], "what is new");
    let told = |s: &&Seen| s.has(|f| matches!(f, Frame::PathsInfo(_)));
    assert!(rig.seen[from..].iter().any(|s| told(&s)), "the peer hears of the failure at once");
    assert!(!rig.seen[from..].iter().any(says_backup), "and may answer on both");

    answer_second(&mut rig, 40);
    assert!(rig.seen[from..].iter().any(says_backup), "silent again, it is to be left alone");
    let late = write_and_pass(&mut rig, 2);
    assert_eq!(carriers(&rig, late), [1]);
}

#[test]
fn where_mpx_paths_is_not_spoken_the_peer_is_told_by_path_status_at_once() {
    // RFC 10069 3.3
    let mut rig = two_paths(false);
    let from = rig.seen.len();
    fail_first(&mut rig);
    rig.pass(ms(2));
    assert!(rig.seen[from..].iter().any(says_backup));
    let new = write_and_pass(&mut rig, 2);
    assert_eq!(carriers(&rig, new), [0, 1], "our own data goes both ways all the same");
}

#[test]
fn a_suspect_that_answers_is_as_before() {
    let mut rig = two_paths(true);
    fail_first(&mut rig);
    rig.pass(ms(1));
    rig.ack_all();
    let from = write_and_pass(&mut rig, 0);
    assert_eq!(carriers(&rig, from), [0]);
    rig.ack_all();
    assert!(!rig.seen.iter().any(says_backup));
}

#[test]
fn a_backup_that_fell_silent_carries_no_copies() {
    let mut rig = two_paths(true);
    fail_first(&mut rig);
    // RFC 10069 3.3: the peer wants it as a backup.
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(raw(&[0x3e76, 0, 1], &[])).on(1)]);
    let from = write_and_pass(&mut rig, 5);
    assert_eq!(carriers(&rig, from), [1]);
}

#[test]
fn what_a_suspect_brings_is_acknowledged_there_too() {
    let mut rig = two_paths(true);
    fail_first(&mut rig);
    rig.pass(ms(1));
    answer_second(&mut rig, 1);
    let from = rig.seen.len();
    rig.frames([0x01]);
    rig.pass(ms(30));
    let acks = |path| {
        let acked =
            move |s: &&Seen| s.path == PathId(path) && s.has(|f| matches!(f, Frame::Ack(a) if a.path == PathId(0)));
        rig.seen[from..].iter().any(|s| acked(&s))
    };
    assert!(acks(0) && acks(1), "{} {}", acks(0), acks(1));
}

#[test]
fn a_path_that_failed_for_the_peer_carries_copies_and_nothing_else() {
    use PathCondition::{Active, PotentiallyFailed};
    let mut rig = two_paths(true);
    rig.frames(report(0, &[(0, PotentiallyFailed), (1, Active)]));
    let from = write_and_pass(&mut rig, 2);
    assert_eq!(carriers(&rig, from), [0, 1]);
    let first = rig.seen[from..].iter().find(|s| has_data(s)).unwrap();
    assert_eq!(first.path, PathId(1), "the scheduler leaves it alone");
}

#[test]
fn a_path_that_nobody_has_proven_yet_does_not_fail() {
    let mut rig = Rig::established_client(Setup::default());
    let (from, now) = (rig.seen.len(), rig.now);
    rig.conn().open_path(now, tuple(SECOND), Advice::Available).unwrap();
    for _ in 0..250 {
        rig.pass(ms(10));
        let ack = rig.peer.ack(Space::Data, 0, AckForm::Path).unwrap();
        rig.frames(ack);
    }
    let challenges = rig.seen[from..].iter().filter(|s| s.has(|f| matches!(f, Frame::PathChallenge(_))));
    assert!(challenges.count() > 1, "it is asked again");
    rig.answer_challenges(from, tuple(SECOND), 1);
    let failed = |e: &Event| matches!(e, Event::Path(PathEvent::Failed { .. }));
    assert!(!rig.events.iter().any(failed), "{:?}", rig.events);
    assert!(!rig.seen.iter().any(|s| s.has(|f| matches!(f, Frame::PathStatus(_)))));
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(1)).unwrap().state, PathState::Active);
}
