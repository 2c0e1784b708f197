//! Multiflow QUIC rule by rule: flows that lead one way, and addresses that a peer names.

use plait_base::limits::MAX_HOST_ADDRESSES;
use plait_base::{CloseCode, PathId, Space};
use plait_engine::path::AddressScope;
use plait_wire::Frame;
use plait_wire::frame::{
    AckForm, AddAddress, AddressForm, CidForm, InterfaceType, List, PathStatus, RemoveAddress, RetireCid, UniflowInfo,
    Uniflows,
};

use crate::puppet::{ENGINE, PUPPET, Packet, Rig, Seen, Setup, addr, ms, tuple};
use crate::violations::{encoded, raw, stream};

const SECOND: &str = "192.0.2.2:5000";

pub fn add_address(id: u64, sequence: u64, address: &str) -> Vec<u8> {
    let (ip, port) = (addr(address).ip(), Some(addr(address).port()));
    let (form, interface, status) = (AddressForm::Multiflow, InterfaceType::Fixed, PathStatus::Available);
    encoded(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false })
}

pub fn remove_address(id: u64, sequence: u64) -> Vec<u8> {
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
pub fn answer_by_the_first_flow(rig: &mut Rig, remote: &str) {
    let challenges: Vec<[u8; 8]> = seen_at(rig, remote)
        .flat_map(Seen::frames)
        .filter_map(|frame| if let Frame::PathChallenge(f) = frame { Some(f.data) } else { None })
        .collect();
    assert!(!challenges.is_empty(), "nothing was asked at {remote}");
    challenges.into_iter().for_each(|data| rig.frames(raw(&[0x1b], &data)));
}

/// A server that sends on flow 1 to the puppet's second address, which was never heard from.
pub fn two_flows() -> Rig {
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
    let fresh = encoded(&rig.peer.new_cid(CidForm::Uniflow, 1, 1));
    rig.frames(fresh);
    rig.frames(add_address(1, 2, third));
    rig.pass(ms(400));
    // and an id that the addresses before never saw
    let ids = |remote| seen_at(&rig, remote).filter(|seen| seen.path == PathId(1)).map(|seen| seen.dcid);
    assert!(ids(third).all(|id| ids(SECOND).all(|before| before != id)));
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

pub fn uniflows(sequence: u64, sending: &[(u32, u8)]) -> Vec<u8> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let info = |&(uniflow, address): &(u32, u8)| UniflowInfo { uniflow: PathId(uniflow), address };
    let receiving = List::of([], &mut first);
    let sending = List::of(sending.iter().map(info), &mut second);
    encoded(&Uniflows { sequence, receiving, sending })
}

/// Data to send, and time; what left meanwhile for an address.
pub fn busy_at(rig: &mut Rig, remote: &str) -> usize {
    let before = rig.seen.len();
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 30_000]).unwrap();
    for _ in 0..10 {
        rig.pass(ms(40));
        rig.ack_all();
    }
    rig.seen[before..].iter().filter(|seen| seen.tuple.remote == addr(remote)).count()
}

#[test]
fn address_0_is_that_of_the_handshake() {
    let mut rig = two_flows();
    assert!(busy_at(&mut rig, PUPPET) > 0);
    // Neither ADD_ADDRESS nor UNIFLOWS spoke of it before.
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(remove_address(0, 0)).on(2)]);
    rig.tuple = tuple(SECOND);
    assert_eq!(busy_at(&mut rig, PUPPET), 0);
    assert!(busy_at(&mut rig, SECOND) > 0);
}

#[test]
fn uniflows_tells_where_a_nat_has_the_addresses_of_a_client() {
    let mut rig = Rig::established_server(Setup::multiflow());
    // What the client calls its second address is none that may be asked; its packets come from another.
    rig.frames(add_address(1, 0, "10.0.0.2:5000"));
    rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(2)]);
    rig.frames(uniflows(0, &[(0, 0), (2, 1)]));
    answer_by_the_first_flow(&mut rig, SECOND);
    assert!(busy_at(&mut rig, SECOND) > 0);
    // An older report than the newest changes nothing.
    rig.frames(uniflows(2, &[(0, 0), (2, 1)]));
    rig.frames(uniflows(1, &[(2, 0)]));
    rig.frames(remove_address(1, 1));
    assert_eq!(busy_at(&mut rig, SECOND), 0, "left by the host, wherever the NAT had it");
    assert!(busy_at(&mut rig, PUPPET) > 0);
}

#[test]
fn what_a_nat_shows_is_asked_in_place_of_what_the_client_says() {
    let (inside, outside) = ("10.0.0.2:5000", SECOND);
    let mut setup = Setup::multiflow();
    setup.transport.address_scope(AddressScope::Any);
    let mut rig = Rig::established_server(setup);
    rig.send_all(tuple(outside), &[Packet::one_rtt(uniflows(0, &[(0, 0), (2, 1)])).on(2)]);
    rig.frames(add_address(1, 0, inside));
    rig.pass(ms(3_000));
    assert_eq!((seen_at(&rig, inside).count(), seen_at(&rig, outside).next().is_some()), (0, true));
}

#[test]
fn a_client_that_a_nat_moved_is_no_longer_at_its_first_address() {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.tuple = tuple("192.0.2.1:6000");
    rig.frames(stream(0, 0, false, b"a"));
    answer_by_the_first_flow(&mut rig, "192.0.2.1:6000");
    rig.ack_all();
    let now = rig.now;
    rig.conn().close_path(now, PathId::ZERO, CloseCode::NO_ERROR).unwrap();
    rig.pass(ms(5));
    // Flow 0 led to the address of the handshake. No flow does any more, however often the path policy is asked.
    let before = rig.seen.len();
    rig.pass(ms(5_000));
    assert!(rig.seen[before..].iter().all(|seen| seen.tuple.remote != addr(PUPPET)));
    assert!(busy_at(&mut rig, "192.0.2.1:6000") > 0);
}

#[test]
fn packets_from_addresses_of_others_amplify_nothing() {
    // RFC 9000 8: whoever holds a connection may write any source on its packets.
    let mut rig = Rig::established_server(Setup::multiflow());
    let sent = 200;
    for n in 0..20 {
        let victim = format!("198.51.100.{}:9", n + 1);
        rig.send_all(tuple(&victim), &[Packet::one_rtt([0x01]).on(2 + n % 4).padded(sent)]);
        rig.pass(ms(200));
    }
    rig.pass(ms(3_000));
    for n in 0..20 {
        let bytes: usize = seen_at(&rig, &format!("198.51.100.{}:9", n + 1)).map(|seen| seen.datagram).sum();
        assert!(bytes <= 3 * sent, "{bytes} bytes to address {n}");
    }
    assert!(busy_at(&mut rig, PUPPET) > 0);
}

#[test]
fn each_side_says_how_many_flows_it_sends() {
    for begin in [Rig::established_server, Rig::established_client] {
        let mut setup = Setup::multiflow();
        setup.habits.params.max_sending_uniflow_id = Some(PathId(2));
        let mut rig = begin(setup);
        // The puppet gave ids for flows 1 to 7, as many as the engine announced.
        for sequence in 0..4 {
            rig.frames(encoded(&RetireCid { form: CidForm::Uniflow, path: PathId(2), sequence }));
            rig.pass(ms(20));
            rig.ack_all();
        }
        let issued = |id: u32| rig.peer.engine_cid(PathId(id)).is_some();
        assert!((0..3).all(issued) && !(3..8).any(issued));
    }
    let usual = crate::settings::announced(|_| {});
    assert_eq!(usual.max_sending_uniflow_id, None, "not offered unless it is wished");
}

#[test]
fn plain_frames_speak_of_uniflow_0() {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.conn().streams().open(plait_base::Dir::Uni).map(|id| _ = rig.conn().send_stream(id).write(b"a")).unwrap();
    rig.pump();
    let plain = rig.peer.ack(Space::Data, 0, AckForm::Plain).unwrap();
    rig.frames(plain);
    let fresh = encoded(&rig.peer.new_cid(CidForm::Plain, 0, 2));
    rig.frames(fresh);
    rig.frames(encoded(&RetireCid { form: CidForm::Plain, path: PathId::ZERO, sequence: 1 }));
    rig.pass(ms(30));
    assert!(rig.is_open());
}

#[test]
fn an_address_of_ours_that_is_lost_is_told() {
    let mut rig = Rig::established_client(Setup::multiflow());
    let (first, second) = (addr(ENGINE), addr("198.51.100.9:4000"));
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[first, second]);
    rig.pass(ms(30));
    let added = |f: &Frame<'_>| matches!(f, Frame::AddAddress(f) if f.id == 1 && f.sequence == 0);
    assert_eq!(rig.count(added), 1);
    answer_by_the_first_flow(&mut rig, PUPPET);
    rig.ack_all();
    let before = rig.seen.len();
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[second]);
    rig.pass(ms(30));
    let told: Vec<Frame<'_>> = rig.seen[before..].iter().flat_map(Seen::frames).collect();
    assert!(told.iter().any(|f| matches!(f, Frame::RemoveAddress(f) if f.id == 0)), "{told:?}");
    let names = |f: &Uniflows<'_>, id: u8| f.sending.iter().any(|info| info.address == id);
    let last = told.iter().rev().find_map(|f| if let Frame::Uniflows(f) = f { Some(f) } else { None }).unwrap();
    assert!(names(last, 1) && !names(last, 0), "{last:?}");
    assert!(rig.seen[before..].iter().all(|seen| seen.tuple.local == second));
}
