//! Nothing gets through on the only path: other addresses of ours are asked.

use std::net::SocketAddr;

use plait_base::{FourTuple, PathId};
use plait_engine::{Event, PathEvent};
use plait_wire::Frame;
use plait_wire::frame::CidForm;

use crate::puppet::{ENGINE, Rig, Setup, addr, ms};
use crate::violations::encoded;

const OTHERS: [&str; 2] = ["10.0.0.2:1", "10.0.0.3:1"];

/// A client with three addresses and one path, none of whose packets arrive.
fn silenced() -> Rig {
    let mut rig = Rig::established_client(Setup::single_path());
    for sequence in 2..4 {
        let cid = rig.peer.new_cid(CidForm::Plain, 0, sequence);
        rig.frames(encoded(&cid));
    }
    rig.ack_all();
    let now = rig.now;
    let all: Vec<SocketAddr> = [ENGINE].into_iter().chain(OTHERS).map(addr).collect();
    rig.conn().set_local_addresses(now, &all);
    rig.pump();
    rig.ack_all();
    rig.conn().handle_network_change(now);
    rig
}

/// Addresses of ours from which challenges left, each turn once.
fn asked_from(rig: &Rig, from: usize) -> Vec<SocketAddr> {
    let asks = |f: &Frame<'_>| matches!(f, Frame::PathChallenge(_));
    let challenges = rig.seen[from..].iter().filter(|s| s.frames().iter().any(asks));
    let mut locals: Vec<SocketAddr> = challenges.map(|s| s.tuple.local).collect();
    locals.dedup();
    locals
}

#[test]
fn every_address_has_its_turn_until_one_answers() {
    let mut rig = silenced();
    let from = rig.seen.len();
    rig.pass(ms(8_000));
    let asked = asked_from(&rig, from);
    assert_eq!(asked[..2], OTHERS.map(addr), "{asked:?}");
    let silent = rig.events.iter().any(|e| matches!(e, Event::Path(PathEvent::AllFailed { last: PathId(0) })));
    assert!(silent && rig.is_open());
    assert!(asked.len() >= 3, "the first address is asked again: {asked:?}");

    let now_at = FourTuple { local: addr(OTHERS[1]), remote: rig.tuple.remote };
    rig.pass(ms(2_500));
    rig.answer_challenges(from, now_at, 0);
    rig.pass(ms(3_000));
    rig.answer_challenges(from, now_at, 0);
    let moves = |e: &Event| matches!(e, Event::Path(PathEvent::Migrated { id: PathId(0), tuple }) if *tuple == now_at);
    assert!(rig.events.iter().any(moves));
    assert!(rig.wire.iter().rev().take(3).any(|(tuple, ..)| *tuple == now_at));
    rig.tuple = now_at;
    rig.ack_all();
    assert!(rig.events.iter().any(|e| matches!(e, Event::Path(PathEvent::Restored { id: PathId(0) }))));
}

#[test]
fn a_path_that_works_again_stays_where_it_is() {
    let mut rig = silenced();
    let from = rig.seen.len();
    rig.pass(ms(2_000));
    assert_eq!(asked_from(&rig, from).first(), Some(&addr(OTHERS[0])));
    rig.ack_all();
    let (tuple, late) = (rig.tuple, FourTuple { local: addr(OTHERS[0]), remote: rig.tuple.remote });
    // What was asked elsewhere is answered too late to matter.
    rig.answer_challenges(from, late, 0);
    let from = rig.wire.len();
    let now = rig.now;
    rig.conn().handle_network_change(now);
    rig.pass(ms(50));
    assert!(rig.wire.len() > from && rig.wire[from..].iter().all(|(to, ..)| *to == tuple));
}

#[test]
fn addresses_are_asked_with_few_packets_for_as_long_as_it_takes() {
    let mut rig = silenced();
    let from = rig.wire.len();
    rig.pass(ms(25_000));
    assert!(rig.is_open());
    let elsewhere = rig.wire[from..].iter().filter(|(tuple, ..)| *tuple != rig.tuple).count();
    assert!((10..=40).contains(&elsewhere), "{elsewhere} datagrams from other addresses");
}
