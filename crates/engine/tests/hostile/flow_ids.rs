//! Connection ids of uniflows from a peer that plays with them, and what may end in a stateless reset.

use plait_base::limits::{MAX_PENDING_RETIREMENTS, MAX_REMOTE_CIDS_PER_PATH};
use plait_base::{CloseCode, PathId, ResetToken};
use plait_engine::{ConnectionError, EndpointEvent, Event};
use plait_wire::Frame;
use plait_wire::frame::{CidForm, NewCid};

use crate::multiflow::{add_address, answer_by_the_first_flow, busy_at, remove_address, two_flows};
use crate::puppet::{PUPPET, Rig, addr, ms, tuple};
use crate::violations::encoded;

const SECOND: &str = "192.0.2.2:5000";
const THIRD: &str = "192.0.2.3:5000";
/// A flow that is bound, and one that is not.
const FLOWS: [u32; 2] = [1, 5];

fn give(rig: &mut Rig, flow: u32, sequence: u64, change: impl FnOnce(NewCid) -> NewCid) -> NewCid {
    let frame = change(rig.peer.new_cid(CidForm::Uniflow, flow, sequence));
    rig.frames(encoded(&frame));
    frame
}

#[test]
fn ids_beyond_the_limit_of_a_flow_close() {
    // RFC 9000 5.1.1
    for flow in FLOWS {
        let mut rig = two_flows();
        for sequence in 1..MAX_REMOTE_CIDS_PER_PATH {
            give(&mut rig, flow, sequence, |frame| frame);
            assert!(rig.is_open(), "{sequence} of flow {flow}");
        }
        give(&mut rig, flow, MAX_REMOTE_CIDS_PER_PATH, |frame| frame);
        assert_eq!(rig.close_seen(), Some(CloseCode::CONNECTION_ID_LIMIT_ERROR));
    }
}

#[test]
fn one_id_is_of_one_flow() {
    for flow in FLOWS {
        // The same once more is a repetition,
        let mut rig = two_flows();
        let first = give(&mut rig, flow, 1, |frame| frame);
        (0..100).for_each(|_| rig.frames(encoded(&first)));
        rig.pass(ms(50));
        assert!(rig.is_open());
        // for another flow, with another number or another token it is none.
        let lies: [fn(NewCid) -> NewCid; 4] = [
            |frame| NewCid { path: PathId(3), ..frame },
            |frame| NewCid { path: PathId::ZERO, sequence: 2, ..frame },
            |frame| NewCid { sequence: 2, ..frame },
            |frame| NewCid { token: ResetToken([9; 16]), ..frame },
        ];
        for lie in lies {
            let mut rig = two_flows();
            let lie = lie(give(&mut rig, flow, 1, |frame| frame));
            rig.frames(encoded(&lie));
            assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION), "{lie:?}");
        }
        let mut rig = two_flows();
        let first = give(&mut rig, flow, 1, |frame| frame);
        give(&mut rig, 6, 1, |frame| NewCid { token: first.token, ..frame });
        assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION), "one token for two ids");
    }
}

#[test]
fn retire_prior_to_games_stay_within_bounds() {
    // RFC 9000 5.1.2: what is to be retired waits in a bounded queue.
    for flow in FLOWS {
        let mut rig = two_flows();
        let mut rounds = 0;
        for sequence in 1..400 {
            give(&mut rig, flow, sequence, |frame| NewCid { retire_prior_to: sequence, ..frame });
            if !rig.is_open() {
                break;
            }
            rounds = sequence;
        }
        // Nothing is acked: so many retirements are under way.
        assert!(rounds <= 2 * MAX_PENDING_RETIREMENTS as u64, "{rounds} retirements of flow {flow}");
        assert_eq!(rig.close_seen(), Some(CloseCode::CONNECTION_ID_LIMIT_ERROR));
        // Where each is acked it may go on for ever, and each costs the peer more than us.
        let mut rig = two_flows();
        let before = rig.wire.len();
        for sequence in 1..400 {
            give(&mut rig, flow, sequence, |frame| NewCid { retire_prior_to: sequence, ..frame });
            rig.pass(ms(5));
            rig.ack_all();
        }
        let sent: usize = rig.wire[before..].iter().map(|(_, _, datagram)| datagram.len()).sum();
        assert!(rig.is_open() && sent < 400 * 200, "{sent} bytes");
        let retired = rig.count(|f| matches!(f, Frame::RetireCid(f) if f.path == PathId(flow)));
        assert!(retired >= 399, "{retired}");
        assert!(busy_at(&mut rig, SECOND) > 0);
    }
}

#[test]
fn a_leap_in_numbers_retires_what_was_there_and_no_more() {
    let last = (1 << 62) - 1;
    for flow in FLOWS {
        let mut rig = two_flows();
        let before = rig.count(|f| matches!(f, Frame::RetireCid(_)));
        give(&mut rig, flow, last, |frame| NewCid { retire_prior_to: last, ..frame });
        rig.pass(ms(50));
        assert!(rig.is_open());
        assert_eq!(rig.count(|f| matches!(f, Frame::RetireCid(_))) - before, 1);
        assert!(busy_at(&mut rig, SECOND) > 0);
        // An older id that comes now is retired at once (RFC 9000 19.15), however many of them come.
        for sequence in 100..150 {
            give(&mut rig, flow, sequence, |frame| frame);
            rig.pass(ms(5));
            rig.ack_all();
        }
        assert!(rig.is_open() && rig.count(|f| matches!(f, Frame::RetireCid(_))) - before >= 51);
    }
}

/// The token that the endpoint watches for at an address, the newest.
fn watched(rig: &Rig, remote: &str) -> ResetToken {
    let told = rig.endpoint_events.iter().rev().find_map(|event| match event {
        EndpointEvent::ResetToken { remote: at, token } if *at == addr(remote) => Some(*token),
        _ => None,
    });
    told.expect("a token at this address")
}

fn reset(token: ResetToken) -> Vec<u8> {
    [&[0x5a; 40][..], &token.0].concat()
}

fn was_reset(rig: &Rig) -> bool {
    rig.events.iter().any(|event| matches!(event, Event::ConnectionLost(ConnectionError::Reset)))
}

#[test]
fn the_token_of_the_id_in_use_resets_and_no_other() {
    // RFC 9000 10.3.1
    let mut rig = two_flows();
    let spare = give(&mut rig, 1, 1, |frame| frame).token;
    let unbound = give(&mut rig, 5, 1, |frame| frame).token;
    let first = give(&mut rig, 0, 2, |frame| frame).token;
    rig.pass(ms(50));
    let (second, strange) = (watched(&rig, SECOND), ResetToken([9; 16]));
    for remote in [PUPPET, SECOND, "192.0.2.9:5000"] {
        for token in [spare, unbound, first, strange] {
            rig.deliver_from(tuple(remote), &reset(token));
            assert!(rig.is_open(), "{remote}");
        }
    }
    rig.deliver_from(tuple(PUPPET), &reset(second));
    rig.deliver_from(tuple("192.0.2.9:5000"), &reset(second));
    assert!(rig.is_open(), "the token of flow 1, from where flow 1 does not lead");
    rig.deliver_from(tuple(SECOND), &reset(second));
    assert!(!rig.is_open() && was_reset(&rig));
}

#[test]
fn the_token_of_an_id_that_a_flow_left_counts_until_the_id_is_retired() {
    // RFC 9000 10.3.1: what we sent before may still be answered by a host that knows nothing of it any more,
    let mut rig = two_flows();
    let token = watched(&rig, SECOND);
    rig.frames(remove_address(1, 1));
    rig.pass(ms(50));
    rig.deliver_from(tuple(PUPPET), &reset(token));
    assert!(rig.is_open(), "another address");
    rig.deliver_from(tuple(SECOND), &reset(token));
    assert!(was_reset(&rig));
    // but not once the flow took another id elsewhere.
    let mut rig = two_flows();
    let token = watched(&rig, SECOND);
    give(&mut rig, 1, 1, |frame| frame);
    rig.frames(remove_address(1, 1));
    rig.frames(add_address(1, 2, THIRD));
    answer_by_the_first_flow(&mut rig, THIRD);
    rig.pass(ms(50));
    let fresh = watched(&rig, THIRD);
    assert_ne!(token, fresh);
    for remote in [PUPPET, SECOND, THIRD] {
        rig.deliver_from(tuple(remote), &reset(token));
    }
    rig.deliver_from(tuple(SECOND), &reset(fresh));
    assert!(rig.is_open());
    rig.deliver_from(tuple(THIRD), &reset(fresh));
    assert!(was_reset(&rig));
}

#[test]
fn datagrams_of_another_connection_do_nothing() {
    let mut other = two_flows();
    let mut datagram = Vec::new();
    other.peer.seal(&crate::puppet::Packet::one_rtt([0x1c, 0, 0, 0]).on(1), &mut datagram);
    let mut rig = two_flows();
    let before = rig.wire.len();
    // Under an id of that connection, and under one of this.
    let mut claimed = datagram.clone();
    let own = rig.peer.engine_cid(PathId(1)).unwrap();
    claimed[1..=own.len()].copy_from_slice(&own);
    for remote in [PUPPET, SECOND, "192.0.2.9:5000"] {
        rig.deliver_from(tuple(remote), &datagram);
        rig.deliver_from(tuple(remote), &claimed);
    }
    assert!(rig.is_open() && rig.wire.len() == before);
    rig.assert_answers("datagrams of another connection");
}
