//! What hosts tell each other of their paths: a report steers the scheduler and nothing else.

use plait_base::observe::PathState;
use plait_base::{CloseCode, Dir, PathId, Space};
use plait_engine::schedule::{self, reinject};
use plait_wire::Frame;
use plait_wire::frame::{AckForm, List, PathCondition, PathInfo, PathsInfo};

use crate::puppet::{Rig, Setup, ms};
use crate::violations::{encoded, raw};

const SECOND: &str = "192.0.2.2:5000";

/// MPX_PATHS with this number about these paths.
pub fn report(sequence: u64, paths: &[(u32, PathCondition)]) -> Vec<u8> {
    let info = |&(path, condition): &(u32, PathCondition)| PathInfo {
        path: PathId(path),
        condition,
        srtt_us: 20_000,
        rttvar_us: 1_000,
        delivered_bytes_per_s: 1_000_000,
        loss_ppm: 0,
    };
    let mut entries = Vec::new();
    encoded(&PathsInfo { sequence, paths: List::of(paths.iter().map(info), &mut entries) })
}

/// A server with two paths that takes turns between them, and tells and is told how they do.
fn telling() -> Rig {
    let mut setup = Setup::default();
    setup.transport.tell_paths(true).scheduler(schedule::by_name("round-robin").unwrap());
    setup.transport.reinjection(reinject::by_name("none").unwrap());
    setup.habits.params.announcements.own.paths = true;
    let mut rig = Rig::established_server(setup);
    rig.open_path(1, SECOND, true);
    answer(&mut rig, 20);
    rig
}

/// So many times all that came is acked, each time after less than a probe time-out.
fn answer(rig: &mut Rig, times: u32) {
    for _ in 0..times {
        rig.pass(ms(10));
        rig.ack_all();
    }
}

/// How many packets with stream data leave on each of the two paths for a few kilobytes.
fn shares(rig: &mut Rig) -> [usize; 2] {
    let from = rig.seen.len();
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 8_000]).unwrap();
    rig.pump();
    rig.pass(ms(5));
    let has_data =
        |path| move |s: &&crate::puppet::Seen| s.path == PathId(path) && s.has(|f| matches!(f, Frame::Stream(_)));
    [0, 1].map(|path| rig.seen[from..].iter().filter(has_data(path)).count())
}

fn told(rig: &Rig, from: usize) -> Vec<(u64, Vec<PathInfo>)> {
    let frames = rig.seen[from..].iter().flat_map(|s| s.frames());
    let reports = frames
        .filter_map(|f| if let Frame::PathsInfo(f) = f { Some((f.sequence, f.paths.iter().collect())) } else { None });
    reports.collect()
}

#[test]
fn a_path_that_failed_for_the_peer_is_left_alone_until_it_says_otherwise() {
    use PathCondition::{Active, PotentiallyFailed};
    let mut rig = telling();
    let [first, second] = shares(&mut rig);
    assert!(first > 0 && second > 0, "{first} {second}");
    rig.ack_all();
    let from = rig.seen.len();
    rig.frames(report(5, &[(0, Active), (1, PotentiallyFailed), (9, PotentiallyFailed)]));
    let pinged = rig.seen[from..].iter().any(|s| s.path == PathId(1) && s.has(|f| matches!(f, Frame::Ping)));
    assert!(pinged, "the path is asked");
    assert_eq!(shares(&mut rig)[1], 0);
    let now = rig.now;
    let seen = rig.conn().path_statistics(now, PathId(1)).unwrap();
    assert_eq!(
        (seen.state, rig.conn().paths().peer_report(PathId(1)).unwrap().state),
        (PathState::Active, PathState::Failed),
        "it stays open"
    );
    rig.frames(report(4, &[(1, Active)]));
    assert_eq!(shares(&mut rig)[1], 0, "an older word");
    // Nothing of path 1 is acked, lest that count.
    let ack = rig.peer.ack(Space::Data, 0, AckForm::Path).unwrap();
    rig.frames(ack);
    rig.frames(report(6, &[(1, Active)]));
    assert!(shares(&mut rig)[1] > 0);
}

#[test]
fn an_ack_counts_more_than_the_report() {
    let mut rig = telling();
    rig.frames(report(0, &[(1, PathCondition::PotentiallyFailed)]));
    assert_eq!(shares(&mut rig)[1], 0);
    // The ping that asked got through.
    let ack = rig.peer.ack(Space::Data, 1, AckForm::Path).unwrap();
    rig.frames(ack);
    assert!(shares(&mut rig)[1] > 0);
    rig.frames(report(1, &[(1, PathCondition::PotentiallyFailed)]));
    assert!(shares(&mut rig)[1] > 0, "the same word again");
}

#[test]
fn where_every_path_failed_for_the_peer_none_is_left_alone() {
    let mut rig = telling();
    rig.frames(report(0, &[(0, PathCondition::PotentiallyFailed), (1, PathCondition::PotentiallyFailed)]));
    let [first, second] = shares(&mut rig);
    assert!(first > 0 && second > 0, "{first} {second}");
    assert_eq!(rig.conn().paths().ids().len(), 2);
}

#[test]
fn what_failed_is_told_at_once_and_a_lost_report_is_replaced() {
    let mut rig = telling();
    let from = rig.seen.len();
    let _ = shares(&mut rig);
    for _ in 0..50 {
        rig.pass(ms(10));
        let ack = rig.peer.ack(Space::Data, 0, AckForm::Path);
        rig.frames(ack.unwrap());
    }
    let told = told(&rig, from);
    let failed = |paths: &[PathInfo]| {
        paths.iter().any(|p| p.path == PathId(1) && p.condition == PathCondition::PotentiallyFailed)
    };
    assert!(told.iter().any(|(_, paths)| failed(paths)), "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "each has a number of its own: {told:?}");
}

#[test]
fn an_idle_connection_falls_silent() {
    let mut rig = telling();
    answer(&mut rig, 50);
    let from = rig.seen.len();
    answer(&mut rig, 300);
    assert_eq!(told(&rig, from), []);
}

/// MPX_PATHS with these numbers in each of its fields.
fn figures(sequence: u64, path: u64, count: u64, figure: u64) -> Vec<u8> {
    let mut frame = raw(&[0x2d50_5812, sequence, count], &[]);
    for _ in 0..count.min(40) {
        frame.extend(raw(&[path], &[2]));
        frame.extend(raw(&[figure; 4], &[]));
    }
    frame
}

const LAST: u64 = (1 << 62) - 1;

#[test]
fn absurd_figures_are_figures() {
    // All that can be said of a path, of one that is there and of others, once and 40 times in one report.
    for figure in [0, 1, LAST] {
        for path in [0, 1, 7, 9, u64::from(u32::MAX)] {
            let mut rig = telling();
            rig.frames(figures(0, path, 1, figure));
            rig.frames(figures(LAST - 1, path, 40, figure));
            rig.frames(figures(LAST, path, 0, figure));
            rig.frames(figures(3, 1, 1, figure));
            answer(&mut rig, 20);
            let [first, second] = shares(&mut rig);
            assert!(rig.is_open() && first + second > 0, "{path} {figure}");
            let reported = [0, 1, 7, 9].map(|id| rig.conn().paths().peer_report(PathId(id)).is_some());
            assert_eq!(reported, [0, 1, 7, 9].map(|id| path == id && id < 2), "of paths that are there");
            assert_eq!(rig.conn().paths().ids().len(), 2);
        }
    }
}

#[test]
fn absurd_counts_and_ids_are_errors() {
    let beyond = u64::from(u32::MAX) + 1;
    for frame in [figures(0, 1, 41, 0), figures(0, 1, LAST, 0), figures(0, beyond, 1, 0), figures(0, LAST, 1, 0)] {
        let mut rig = telling();
        rig.frames(frame);
        let code = rig.close_seen();
        assert!(
            [Some(CloseCode::FRAME_ENCODING_ERROR), Some(CloseCode::PROTOCOL_VIOLATION)].contains(&code),
            "{code:?}"
        );
    }
}

#[test]
fn a_flood_of_reports_draws_less_than_it_costs() {
    // Each takes back what the one before said, so that each asks the path anew.
    use PathCondition::{Active, PotentiallyFailed};
    let mut rig = telling();
    let (sent, events) = (rig.wire.len(), rig.events.len());
    let mut cost = 0;
    for sequence in 0..4_000 {
        let condition = if sequence % 2 == 0 { PotentiallyFailed } else { Active };
        let frame = report(sequence, &[(0, condition), (1, condition)]);
        cost += frame.len() + 30;
        rig.frames(frame);
        if sequence % 100 == 0 {
            rig.pump();
            rig.pass(ms(5));
            rig.ack_all();
        }
    }
    let drawn: usize = rig.wire[sent..].iter().map(|(_, _, datagram)| datagram.len()).sum();
    assert!(rig.is_open() && drawn < 2 * cost, "{drawn} bytes for {cost}");
    assert!(rig.events.len() - events < 10);
    answer(&mut rig, 20);
    let [first, second] = shares(&mut rig);
    assert!(first + second > 0);
}
