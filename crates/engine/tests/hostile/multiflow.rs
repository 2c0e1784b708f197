//! Multiflow QUIC rule by rule: flows that lead one way, and addresses that a peer names.

use plait_base::PathId;
use plait_base::limits::MAX_HOST_ADDRESSES;
use plait_wire::Frame;
use plait_wire::frame::{AckForm, AddAddress, AddressForm, InterfaceType, PathStatus, RemoveAddress};

use crate::puppet::{Packet, Rig, Seen, Setup, addr, ms, tuple};
use crate::violations::{encoded, raw, stream};

const SECOND: &str = "192.0.2.2:5000";

pub fn add_address(id: u64, sequence: u64, address: &str) -> Vec<u8> {
    let (ip, port) = (addr(address).ip(), Some(addr(address).port()));
    let (form, interface, status) = (AddressForm::Multiflow, InterfaceType::Fixed, PathStatus::Available);
    encoded(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false })
}

fn remove_address(id: u64, sequence: u64) -> Vec<u8> {
    encoded(&RemoveAddress { form: AddressForm::Multiflow, id, sequence })
}

/// What the engine sent to an address of the puppet.
pub fn seen_at<'a>(rig: &'a Rig, remote: &str) -> impl Iterator<Item = &'a Seen> {
    let remote = addr(remote);
    rig.seen.iter().filter(move |seen| seen.tuple.remote == remote)
}

fn has_data(seen: &Seen) -> bool {
    seen.has(|frame| matches!(frame, Frame::Stream(_)))
}

/// PATH_RESPONSE to every challenge at an address, by flow 0 from the first address.
fn answer_by_the_first_flow(rig: &mut Rig, remote: &str) {
    let challenges: Vec<[u8; 8]> = seen_at(rig, remote)
        .flat_map(Seen::frames)
        .filter_map(|frame| if let Frame::PathChallenge(f) = frame { Some(f.data) } else { None })
        .collect();
    assert!(!challenges.is_empty(), "nothing was asked at {remote}");
    challenges.into_iter().for_each(|data| rig.frames(raw(&[0x1b], &data)));
}

/// A server that sends on flow 1 to the puppet's second address, which was never heard from.
fn two_flows() -> Rig {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.frames(add_address(1, 0, SECOND));
    answer_by_the_first_flow(&mut rig, SECOND);
    rig.pass(ms(50));
    rig.ack_all();
    rig
}

#[test]
fn acks_and_ids_travel_in_the_frames_of_multiflow() {
    let rig = Rig::established_server(Setup::multiflow());
    let is_multiflow = |frame: &Frame<'_>| matches!(frame, Frame::Ack(ack) if ack.form == AckForm::Uniflow);
    assert!(rig.count(is_multiflow) > 0);
    let issued = |id: u32| rig.peer.engine_cid(PathId(id)).is_some();
    assert!((1..8).all(issued), "every flow that the peer may want has an id of ours");
}

#[test]
fn nothing_but_a_challenge_goes_to_an_address_before_it_answers() {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.frames(add_address(1, 0, SECOND));
    // a request, to which the server has much to say
    rig.frames(stream(0, 0, false, b"GET"));
    rig.conn().send_stream(plait_base::StreamId(0)).write(&[7; 20_000]).unwrap();
    rig.pass(ms(30));
    let first: Vec<&Seen> = seen_at(&rig, SECOND).collect();
    assert!(!first.is_empty());
    for seen in &first {
        let is_probing = |frame: &Frame<'_>| matches!(frame, Frame::PathChallenge(_) | Frame::Padding(_));
        assert!(seen.frames().iter().all(is_probing), "{:?}", seen.frames());
        assert_eq!((seen.path, seen.datagram), (PathId(1), 1200));
    }
    answer_by_the_first_flow(&mut rig, SECOND);
    rig.pass(ms(50));
    rig.ack_all();
    rig.conn().send_stream(plait_base::StreamId(0)).write(&[7; 200_000]).unwrap();
    rig.pump();
    assert!(seen_at(&rig, SECOND).any(has_data), "the flow carries data once the address answered");
}

#[test]
fn a_flow_that_the_peer_opens_needs_none_of_ours() {
    let mut rig = Rig::established_server(Setup::multiflow());
    let before = rig.seen.len();
    // data on flow 3 from an address of which nothing was said
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(stream(0, 0, false, b"GET")).on(3)]);
    rig.pass(ms(30));
    let acks = rig.seen[before..].iter().filter(|seen| {
        seen.has(|frame| matches!(frame, Frame::Ack(ack) if ack.path == PathId(3) && ack.form == AckForm::Uniflow))
    });
    let remotes: Vec<_> = acks.map(|seen| seen.tuple.remote).collect();
    assert!(!remotes.is_empty() && remotes.iter().all(|remote| *remote == rig.tuple.remote), "{remotes:?}");
    // where it came from is one more address to ask, on a flow of ours whatever its number
    assert!(seen_at(&rig, SECOND).all(|seen| seen.path == PathId(1)) && seen_at(&rig, SECOND).next().is_some());
}

#[test]
fn a_challenge_is_answered_by_any_flow() {
    let mut rig = two_flows();
    let before = rig.seen.len();
    rig.send_all(tuple("192.0.2.9:5000"), &[Packet::one_rtt(raw(&[0x1a], &[9; 8])).on(2).padded(1200)]);
    let answers = |frame: &Frame<'_>| matches!(frame, Frame::PathResponse(f) if f.data == [9; 8]);
    let by: Vec<_> = rig.seen[before..].iter().filter(|seen| seen.has(answers)).map(|s| s.tuple.remote).collect();
    assert_eq!(by.len(), 1);
    assert!([rig.tuple.remote, addr(SECOND)].contains(&by[0]), "by a flow that leads somewhere: {by:?}");
}

#[test]
fn a_removed_address_gets_nothing_more_and_its_flow_may_lead_elsewhere() {
    let mut rig = two_flows();
    rig.frames(remove_address(1, 1));
    let before = rig.seen.len();
    rig.frames(stream(0, 0, false, b"GET"));
    rig.conn().send_stream(plait_base::StreamId(0)).write(&[7; 50_000]).unwrap();
    rig.pass(ms(400));
    assert!(rig.seen[before..].iter().all(|seen| seen.tuple.remote != addr(SECOND)));
    assert!(rig.count(|frame| matches!(frame, Frame::Uniflows(_))) > 0, "the peer hears what its flows are now");
    // overtaken by its removal, the announcement says nothing
    rig.frames(add_address(1, 0, SECOND));
    rig.pass(ms(400));
    assert!(rig.seen[before..].iter().all(|seen| seen.tuple.remote != addr(SECOND)));
    // the same flow, with packet numbers that go on
    let last = seen_at(&rig, SECOND).map(|seen| seen.number).max().unwrap();
    let third = "192.0.2.3:5000";
    rig.frames(add_address(1, 2, third));
    rig.pass(ms(400));
    let numbers: Vec<u64> = seen_at(&rig, third).filter(|seen| seen.path == PathId(1)).map(|s| s.number).collect();
    assert!(!numbers.is_empty() && numbers.iter().all(|number| *number > last), "{numbers:?} after {last}");
}

#[test]
fn a_flood_of_addresses_costs_little_and_sends_little() {
    let mut rig = Rig::established_server(Setup::multiflow());
    let before = rig.wire.len();
    let mut named = 0;
    for round in 0..40u64 {
        for id in 1..=MAX_HOST_ADDRESSES as u64 * 4 {
            let mut payload = remove_address(id, 2 * round + 1);
            payload.extend(add_address(id, 2 * round + 2, &format!("198.51.{}.{}:5000", round, id)));
            rig.frames(payload);
            named += 1;
        }
    }
    let strangers = rig.wire[before..].iter().filter(|(tuple, ..)| tuple.remote != rig.tuple.remote).count();
    assert!(named > 5000 && strangers <= 8, "{strangers} datagrams to strangers for {named} named addresses");
    // time alone brings them challenges at a pace, and no more
    let from = rig.now;
    rig.pass(ms(10_000));
    let strangers = rig.wire[before..].iter().filter(|(tuple, ..)| tuple.remote != rig.tuple.remote).count();
    let seconds = rig.now.since(from).as_secs() as usize;
    assert!(strangers <= 8 * (4 + seconds), "{strangers} datagrams to strangers after {seconds} s");
    assert!(rig.is_open());
}
