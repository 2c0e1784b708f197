//! Paths from their first connection id until they are forgotten (RFC 10069 3.1, 3.4 and their examples).

use plait_base::limits::MAX_VALIDATIONS;
use plait_base::observe::PathState;
use plait_wire::frame::{AckForm, PathStatus, types};

use super::*;
use crate::addresses::{AddressEvent, FourTupleRole, Moved};

fn state(end: &End, id: u32) -> PathState {
    end.table.slot(PathId(id)).unwrap().state()
}

/// Pitfall 6: ids of paths that no one opened yet are issued, by both sides.
#[test]
fn cids_come_ahead_of_paths() {
    let (client, server) = pair(3, 2);
    for end in [&client, &server] {
        assert_eq!(end.table.slots().count(), 3, "ids 0 to the smaller limit");
        for slot in end.table.slots().skip(1) {
            assert_eq!((slot.local.active(), slot.remote.held(), slot.remote.spares()), (1, 1, 1));
            assert_eq!(slot.dcid(FourTupleRole::Current), None);
        }
        // Path 0 is in use: one active and spares up to the limit.
        assert_eq!(end.table.slot(PathId(0)).unwrap().remote.held(), 4);
    }
}

#[test]
fn open_sequence() {
    // RFC 10069 3.1-1, 3.1-2
    let (mut client, mut server) = pair(2, 2);
    let id = open(at(0), &mut client, &mut server);
    assert_eq!(id, PathId(1));
    assert_eq!((state(&client, 1), state(&server, 1)), (PathState::Active, PathState::Active));
    let to = client.table.slot(id).unwrap().dcid(FourTupleRole::Current).unwrap();
    assert!(server.table.slot(id).unwrap().local.iter().any(|issued| issued.cid == to));
    // Path 0 was not disturbed, and the next id follows.
    assert_eq!(server.table.path(PathId(0)).unwrap().addresses.tuple(), tuple(0, 0));
    assert_eq!(open(at(1), &mut client, &mut server), PathId(2));
    exchange(at(2), &mut client, &mut server);
    // Now every used path has spares up to the limit.
    assert_eq!(client.table.slot(id).unwrap().remote.held(), 4);
    assert_eq!(client.table.next_id(), Err(OpenError::PeerLimit));
}

/// Pitfall 14: two ids may share a 4-tuple.
#[test]
fn two_ids_on_one_tuple() {
    let (mut client, _) = pair(2, 2);
    for id in [1, 2] {
        let addresses = PathAddresses::opened(tuple(0, 0));
        assert_eq!(client.table.open(Box::new(path(id, addresses))), Ok(()));
    }
    assert_eq!(
        client.table.open(Box::new(path(2, PathAddresses::opened(tuple(0, 0))))),
        Err(OpenError::NotUnused(PathId(2)))
    );
}

#[test]
fn only_clients_open() {
    let (client, mut server) = pair(1, 1);
    assert_eq!(server.table.next_id(), Err(OpenError::ServerSide));
    assert_eq!(client.table.admission(PathId(1)), Admission::Unknown);
}

#[test]
fn a_place_leads_to_its_path_as_long_as_that_is_there() {
    let mut end = End::new(Side::Client, 3, 3);
    let ids = |place: Option<SlotPlace>, table: &mut Paths| {
        let place = place.unwrap();
        (place.id(), table.slot_at(place).map(|slot| slot.id), table.slot_at_mut(place).map(|slot| slot.id))
    };
    let place = end.table.place(PathId(2));
    assert_eq!(ids(place, &mut end.table), (PathId(2), Some(PathId(2)), Some(PathId(2))));
    assert_eq!(end.table.next_slot(0, |slot| slot.id == PathId(2)), place);
    assert_eq!(end.table.next_slot(3, |slot| slot.id == PathId(2)), None);
    end.table.slots.remove(1);
    assert_eq!(ids(place, &mut end.table), (PathId(2), Some(PathId(2)), Some(PathId(2))), "another one went");
    end.table.slots.remove(1);
    assert_eq!(ids(place, &mut end.table), (PathId(2), None, None), "another one stands there now");
    assert_eq!(end.table.place(PathId(2)), None);
}

#[test]
fn validations_under_way_are_bounded() {
    let (mut client, mut server) = pair(20, 20);
    for id in 1..=MAX_VALIDATIONS as u32 {
        for end in [&mut client, &mut server] {
            let mut addresses = PathAddresses::opened(tuple(id as u8, 0));
            addresses.challenge(at(0), times());
            end.table.open(Box::new(path(id, addresses))).unwrap();
        }
    }
    assert_eq!(client.table.next_id(), Err(OpenError::TooManyValidations));
    assert_eq!(server.table.admission(PathId(9)), Admission::Refuse(CloseCode::PATH_RESOURCE_LIMIT_REACHED));
}

#[test]
fn blocked_by_the_peers_limit_and_freed_by_it() {
    let (mut client, mut server) = pair(3, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    assert_eq!(client.table.next_id(), Err(OpenError::PeerLimit));
    assert_eq!(client.table.next_id(), Err(OpenError::PeerLimit));
    assert_eq!(client.control(), [0x7e, 0x7b, 1], "PATHS_BLOCKED 1, once");
    client.lose();
    assert_eq!(client.control_types(), [types::PATHS_BLOCKED], "still blocked: again");
    client.table.on_max_path_id(&MaxPathId { limit: PathId(2) }).unwrap();
    client.lose();
    assert_eq!(client.control_types(), Vec::<u64>::new(), "no longer blocked there");
}

#[test]
fn blocked_by_missing_cids() {
    let mut client = End::new(Side::Client, 1, 1);
    client.control();
    client.acked();
    assert_eq!(client.table.next_id(), Err(OpenError::NoRemoteCid(PathId(1))));
    assert_eq!(client.control(), [0x7e, 0x7c, 1, 0], "PATH_CIDS_BLOCKED path 1 next 0");
    client.lose();
    assert_eq!(client.control_types(), [types::PATH_CIDS_BLOCKED]);
    client.table.on_new_cid(&new_cid(1, 0, 0, 1)).unwrap();
    client.lose();
    assert_eq!(client.control_types(), Vec::<u64>::new());
    assert_eq!(client.table.next_id(), Ok(PathId(1)));
}

/// RFC 10069 3: a path that is faster than path 0 is not opened before ids of ours are issued for it, and brings them
/// along.
#[test]
fn the_first_packet_of_a_path_brings_our_cids_for_it() {
    let (mut client, mut server) = (End::new(Side::Client, 1, 1), End::new(Side::Server, 1, 1));
    let bytes = server.control();
    client.read(at(0), 0, &bytes).unwrap();
    assert_eq!(client.table.next_id(), Ok(PathId(1)), "issued, if not delivered");
    let lost = client.control();
    assert!(!lost.is_empty());
    let opening =
        client.written(|table, w| table.slot_mut(PathId(1)).unwrap().local.fill_unconfirmed(CidForm::Path, w));
    assert_eq!(server.table.admission(PathId(1)), Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH));
    server.read(at(0), 0, &opening).unwrap();
    assert_eq!(server.table.admission(PathId(1)), Admission::New);
    client.acked();
    let opening =
        client.written(|table, w| table.slot_mut(PathId(1)).unwrap().local.fill_unconfirmed(CidForm::Path, w));
    assert!(opening.is_empty(), "the peer has them");
}

fn before_completion(peers_max: u32) -> End {
    let mut server = End::plain(Side::Server, Some(5));
    server.table.set_peer_limits(PeerLimits {
        cid_limit: 4,
        initial_max_path_id: Some(peers_max),
        max_sending_uniflow_id: None,
        announcements: AnnouncementParameters::default(),
    });
    server
}

/// A server names ids for the first paths before the handshake is complete: one each, and only where both want paths.
#[test]
fn a_server_issues_ids_in_the_handshake_for_the_first_paths_only() {
    let mut server = before_completion(3);
    assert!(!server.table.wants_control_in_handshake());
    server.issue_by(Paths::issue_cids_in_handshake);
    assert!(server.table.wants_control_in_handshake());
    let ids = server.written(|table, w| table.fill_control_in_handshake(w));
    let paths: Vec<_> =
        Frames::new(&ids).map(|f| if let Ok(Frame::NewCid(new)) = f { new.path.0 } else { 0 }).collect();
    assert_eq!(paths, [1, 2]);
    server.issue_by(Paths::issue_cids_in_handshake);
    assert!(!server.table.wants_control_in_handshake(), "once");
    let mut single = before_completion(0);
    single.issue_by(Paths::issue_cids_in_handshake);
    assert!(!single.table.wants_control_in_handshake());
}

/// Peers that do not wait so: their ids get some time to arrive, and PATH_CIDS_BLOCKED asks for them.
#[test]
fn cids_that_come_after_the_first_packet_of_a_path_are_waited_for() {
    let mut server = End::new(Side::Server, 1, 1);
    server.control();
    assert!(server.table.awaits_cids(at(0), PathId(1), PTO * 3));
    assert!(server.control_types().contains(&types::PATH_CIDS_BLOCKED));
    assert!(server.table.awaits_cids(at(299), PathId(1), PTO * 3));
    assert!(!server.table.awaits_cids(at(300), PathId(1), PTO * 3));
    server.table.on_new_cid(&new_cid(1, 0, 0, 1)).unwrap();
    assert_eq!(server.table.admission(PathId(1)), Admission::New);
}

#[test]
fn peer_without_our_cid_is_refused() {
    let (mut client, mut server) = (End::new(Side::Client, 1, 1), End::new(Side::Server, 1, 1));
    let bytes = server.control();
    client.read(at(0), 0, &bytes).unwrap();
    // Our own ids are lost: the server has none for path 1.
    assert_eq!(server.table.admission(PathId(1)), Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH));
    server.table.abandon(at(0), PathId(1), CloseCode::NO_CID_AVAILABLE_FOR_PATH, PTO).unwrap();
    assert!(server.control().starts_with(&[0x7e, 0x75, 1, 0x7e, 0x77]));
}

#[test]
fn close_sequence_and_credit() {
    // RFC 10069 3.4-1, 4.6-1, 4.6-2
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    let tokens = client.table.slot(PathId(0)).unwrap().remote.tokens_in_use().count();
    client.table.abandon(at(1000), PathId(0), CloseCode::APPLICATION_ABANDON_PATH, PTO).unwrap();
    let again = client.table.abandon(at(1000), PathId(0), CloseCode::NO_ERROR, PTO);
    assert_eq!((again, state(&client, 0)), (Err(AbandonError::Closing), PathState::Closing));
    assert_eq!(client.table.slot(PathId(0)).unwrap().dcid(FourTupleRole::Current), None, "nothing is sent there");
    assert_eq!(tokens, 0, "path 0 of this client has no token; see the next test");
    let bytes = client.control();
    assert_eq!(bytes, [0x7e, 0x75, 0, 0x3e]);
    // The server answers with NO_ERROR, allows a new id and keeps its own ids for three PTO.
    server.read(at(1010), 1, &bytes).unwrap();
    assert_eq!(server.control(), [0x7e, 0x75, 0, 0, 0x7e, 0x7a, 2]);
    assert!(server.table.slot(PathId(0)).unwrap().local.active() > 0);
    client.read(at(1020), 1, &[0x7e, 0x75, 0, 0, 0x7e, 0x7a, 2]).unwrap();
    assert_eq!(client.control_types(), [types::MAX_PATH_ID], "answered already: no further PATH_ABANDON");
    for (end, gone) in [(&mut client, 1320), (&mut server, 1310)] {
        assert_eq!(end.table.deadline(), Some(at(gone)));
        assert!(end.table.poll_timeout(at(gone - 1)).is_none());
        assert!(matches!(end.table.poll_timeout(at(gone)), Some(Expired::Forgotten(PathId(0), Some(_)))));
        let retired = std::iter::from_fn(|| end.table.poll_event());
        let retired = retired.filter(|e| matches!(e, TableEvent::CidRetired { path: PathId(0), .. })).count();
        assert_eq!(retired, 4, "the endpoint forgets all of them");
        assert!(end.table.is_retired(PathId(0)));
    }
    // Pitfall 8: the path budget does not run dry.
    server.read(at(1400), 1, &[0x7e, 0x7a, 2]).unwrap();
    for end in [&mut client, &mut server] {
        end.issue();
    }
    exchange(at(1400), &mut client, &mut server);
    assert_eq!(open(at(1500), &mut client, &mut server), PathId(2));
}

/// Pitfall 16: reset tokens belong to (path, id) and go with the path.
#[test]
fn reset_tokens_follow_use_and_abandon() {
    // RFC 9000 10.3.1-2; RFC 10069 3.4-2
    let mut client = End::new(Side::Client, 1, 1);
    client.table.on_new_cid(&new_cid(1, 0, 0, 1)).unwrap();
    assert_eq!(client.table.poll_event(), None, "a spare's token does not count");
    client.table.open(Box::new(path(1, PathAddresses::opened(tuple(1, 0))))).unwrap();
    assert_eq!(client.table.poll_event(), Some(TableEvent::TokenInUse { path: PathId(1), token: token(1) }));
    client.table.on_new_cid(&new_cid(1, 1, 1, 2)).unwrap();
    assert_eq!(client.table.poll_event(), Some(TableEvent::TokenForgotten { path: PathId(1), token: token(1) }));
    assert_eq!(client.table.poll_event(), Some(TableEvent::TokenInUse { path: PathId(1), token: token(2) }));
    client.table.abandon(at(0), PathId(1), CloseCode::NO_ERROR, PTO).unwrap();
    assert_eq!(client.table.poll_event(), Some(TableEvent::TokenForgotten { path: PathId(1), token: token(2) }));
}

/// Pitfall 9: answer, retire silently, give no new ids, repeat PATH_ABANDON until it arrived.
#[test]
fn abandoned_path_is_silent_but_its_abandon_is_repeated() {
    // RFC 10069 3.4-2
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    client.table.on_new_cid(&new_cid(1, 2, 2, 77)).unwrap();
    client.table.slot_mut(PathId(1)).unwrap().status.set_local(PathStatus::Backup);
    client.table.abandon(at(0), PathId(1), CloseCode::NO_ERROR, PTO).unwrap();
    assert_eq!(client.control_types().iter().filter(|&&t| t != types::PATH_NEW_CONNECTION_ID).count(), 1);
    client.lose();
    let types = client.control_types();
    assert!(types.contains(&types::PATH_ABANDON) && !types.contains(&types::PATH_RETIRE_CONNECTION_ID));
    // The peer's retirements bring no new ids.
    client.table.on_retire_cid(&retire(1, 0), &cid(5)).unwrap();
    assert!(client.issue().iter().all(|c| c.path != PathId(1)));
    // A peer that never heard of it uses the path still: its packets must not meet a stateless reset.
    client.lose();
    assert!(client.table.poll_timeout(at(600)).is_none());
    assert!(client.control_types().contains(&types::PATH_ABANDON));
    client.acked();
    // It heard but gives no answer: gone after twice the drain time.
    assert!(client.table.poll_timeout(at(1199)).is_none());
    assert!(matches!(client.table.poll_timeout(at(1200)), Some(Expired::Forgotten(PathId(1), Some(_)))));
    client.control();
    client.acked();
    assert!(!client.table.wants_control());
}

/// RFC 10069 4.5: a new id is not repeated once its path is abandoned.
#[test]
fn lost_cids_of_an_abandoned_path_stay_lost() {
    let mut end = End::new(Side::Server, 1, 1);
    assert!(end.control_types().contains(&types::PATH_NEW_CONNECTION_ID));
    end.table.on_path_abandon(at(0), &abandon(1, CloseCode::NO_ERROR), PTO).unwrap();
    let before: Vec<SentFrame> = end.carried.clone();
    end.lose();
    end.control();
    let again = |c: &&SentFrame| matches!(c, SentFrame::NewCid { path: PathId(1), .. });
    assert_eq!((before.iter().filter(again).count(), end.carried.iter().filter(again).count()), (1, 0));
    assert!(end.carried.iter().any(|c| matches!(c, SentFrame::NewCid { path: PathId(0), .. })));
}

#[test]
fn only_the_latest_status_and_limit_are_repeated() {
    let (mut client, _) = pair(2, 2);
    let slot = |end: &mut End, status| end.table.slot_mut(PathId(1)).unwrap().status.set_local(status);
    slot(&mut client, PathStatus::Backup);
    assert_eq!(client.control(), [0x7e, 0x76, 1, 0]);
    let first = std::mem::take(&mut client.carried);
    slot(&mut client, PathStatus::Available);
    assert_eq!(client.control(), [0x7e, 0x77, 1, 1]);
    first.iter().for_each(|c| client.table.on_lost(c));
    assert!(!client.table.wants_control(), "superseded");
    client.lose();
    assert_eq!(client.control(), [0x7e, 0x77, 1, 1], "the latest is repeated");
    slot(&mut client, PathStatus::Available);
    assert!(!client.table.wants_control(), "said already");
    // MAX_PATH_ID: ids 1 and 2 die; only the second value is repeated.
    client.table.on_path_abandon(at(0), &abandon(1, CloseCode::NO_ERROR), PTO).unwrap();
    client.control();
    let first = std::mem::take(&mut client.carried);
    client.table.on_path_abandon(at(0), &abandon(2, CloseCode::NO_ERROR), PTO).unwrap();
    client.control();
    first.iter().filter(|c| matches!(c, SentFrame::MaxPathId(_))).for_each(|c| client.table.on_lost(c));
    assert!(!client.table.wants_control());
    client.lose();
    assert!(client.control_types().contains(&types::MAX_PATH_ID));
}

#[test]
fn churn_keeps_the_table_small() {
    // RFC 10069 3.4-4
    let (mut client, mut server) = pair(3, 3);
    for round in 0..200u64 {
        let now = at(round * 1000);
        let id = open(now, &mut client, &mut server);
        assert_eq!(u64::from(id.0), round + 1);
        client.table.abandon(now, id, CloseCode::NO_ERROR, PTO).unwrap();
        exchange(now, &mut client, &mut server);
        for end in [&mut client, &mut server] {
            while end.table.poll_timeout(now + PTO * 3).is_some() {}
            end.issue();
        }
        exchange(now, &mut client, &mut server);
        assert!(client.table.slots.len() <= 5 && server.table.slots.len() <= 5);
        assert!(client.table.retired.len() <= 2 && client.table.pending_abandons.is_empty());
    }
}

#[test]
fn failed_validation_ends_the_path_only() {
    // RFC 10069 3.1-7, 3.1-8
    let (mut client, _) = pair(1, 1);
    let mut addresses = PathAddresses::opened(tuple(1, 0));
    addresses.challenge(at(0), times());
    client.table.open(Box::new(path(1, addresses))).unwrap();
    let mut events = vec![];
    while let Some(now) = client.table.deadline() {
        client.probe_packet(1);
        while let Some(Expired::Address(id, event)) = client.table.poll_timeout(now) {
            events.push((id, event));
        }
    }
    assert_eq!(events, [(PathId(1), AddressEvent::Unreachable)]);
    client.table.abandon(at(900), PathId(1), CloseCode::PATH_UNSTABLE_OR_POOR, PTO).unwrap();
    assert_eq!(client.control(), [0x7e, 0x75, 1, 0x7e, 0x76]);
    assert_eq!(state(&client, 0), PathState::Active);
}

/// Pitfall 13: the rebinding of one path touches no other.
#[test]
fn nat_rebinding_of_one_path() {
    // RFC 10069 3.1.2-1
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    let before = server.table.slot(PathId(1)).unwrap().remote.active();
    let to = FourTuple { remote: ([10, 9, 0, 1], 999).into(), ..tuple(0, 1) };
    let other = server.table.path(PathId(0)).unwrap().addresses.clone();
    let moved = server.table.follow(at(1), PathId(1), to, cid(2001), 1200, times());
    assert_eq!(moved, Moved::Ports);
    assert_eq!(server.table.slot(PathId(1)).unwrap().dcid(FourTupleRole::Current), before);
    assert_eq!(server.table.path(PathId(0)).unwrap().addresses.tuple(), other.tuple());
    assert_eq!((state(&server, 0), state(&server, 1)), (PathState::Active, PathState::Validating));
    // It proves to be true: the answer comes, the path is as before.
    let asked = server.probe_packet(1);
    let data = asked[1..9].try_into().unwrap();
    let event = server.table.on_path_response(at(2), PathId(1), data);
    assert_eq!(event, Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    assert_eq!(server.table.slot(PathId(1)).unwrap().dcid(FourTupleRole::Current), before);
    assert_eq!(server.table.slot(PathId(1)).unwrap().remote.held(), 4);
}

/// RFC 9000 9.5-1: other addresses, another id; the old one is retired when the move is proven.
#[test]
fn migration_takes_a_fresh_cid_of_the_same_path() {
    // RFC 10069 3.1.2-2, 3.2.2
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    let before = client.table.slot(PathId(1)).unwrap().remote.active_sequence();
    assert!(client.table.challenge_candidate(at(1), PathId(1), tuple(7, 0), times()));
    let slot = client.table.slot(PathId(1)).unwrap();
    assert_ne!(slot.dcid(FourTupleRole::Candidate), slot.dcid(FourTupleRole::Current));
    let probed = slot.dcid(FourTupleRole::Candidate);
    assert_eq!(client.table.move_to(at(2), PathId(1), tuple(7, 0), times()), Moved::Hosts);
    let slot = client.table.slot(PathId(1)).unwrap();
    assert_eq!((slot.dcid(FourTupleRole::Current), slot.remote.held()), (probed, 4));
    assert_eq!(slot.dcid(FourTupleRole::Previous), before.and_then(|s| slot.remote.cid(s)));
    let asked = client.probe_packet(1);
    client.table.on_path_response(at(3), PathId(1), asked[1..9].try_into().unwrap()).unwrap();
    assert_eq!(client.table.slot(PathId(1)).unwrap().remote.held(), 3);
    assert_eq!(client.control(), [0x7e, 0x79, 1, 0], "PATH_RETIRE_CONNECTION_ID path 1, 0");
}

#[test]
fn failed_move_goes_back_with_its_cid() {
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    let before = client.table.slot(PathId(1)).unwrap().remote.active();
    client.table.move_to(at(0), PathId(1), tuple(7, 0), times());
    assert_ne!(client.table.slot(PathId(1)).unwrap().remote.active(), before);
    let mut events = vec![];
    for ms in (0..=300).step_by(10) {
        if let Some(Expired::Address(_, event)) = client.table.poll_timeout(at(ms)) {
            events.push(event);
        }
    }
    assert_eq!(events, [AddressEvent::FellBack(Moved::Hosts)]);
    let slot = client.table.slot(PathId(1)).unwrap();
    assert_eq!((slot.remote.active(), slot.remote.held()), (before, 3));
}

/// A client whose path 1 is in use, with three spare ids of the server.
fn with_spares() -> End {
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    exchange(at(0), &mut client, &mut server);
    assert_eq!(client.table.slot(PathId(1)).unwrap().remote.spares(), 3);
    client
}

fn dcid(end: &End, role: FourTupleRole) -> Option<ConnectionId> {
    end.table.slot(PathId(1)).unwrap().dcid(role)
}

#[test]
fn a_path_leaves_by_another_address_with_an_id_for_it_only() {
    // RFC 9000 9.5-1
    let mut client = with_spares();
    let go = |client: &mut End, local| client.table.relocate(at(1), PathId(1), tuple(local, 0).local, times());
    let mut ids = vec![dcid(&client, FourTupleRole::Current)];
    for local in 7..10 {
        assert_eq!(go(&mut client, local), Some(Moved::Hosts));
        ids.push(dcid(&client, FourTupleRole::Current));
        assert!(!ids[..ids.len() - 1].contains(ids.last().unwrap()));
    }
    client.control();
    assert_eq!(go(&mut client, 10), None);
    assert_eq!(client.table.path(PathId(1)).unwrap().tuple(), tuple(9, 0));
    assert_eq!(dcid(&client, FourTupleRole::Current), ids[3]);
    // RFC 10069 4.7: the server is told, and again where that was lost.
    assert_eq!(client.control(), [0x7e, 0x7c, 1, 4], "PATH_CIDS_BLOCKED path 1 next 4");
    client.table.on_lost(&SentFrame::PathCidsBlocked(PathId(1)));
    assert_eq!(client.control_types(), [types::PATH_CIDS_BLOCKED]);
    client.table.on_new_cid(&new_cid(1, 4, 0, 99)).unwrap();
    client.table.on_lost(&SentFrame::PathCidsBlocked(PathId(1)));
    assert_eq!(client.control(), []);
    assert_eq!(go(&mut client, 10), Some(Moved::Hosts));
    assert_eq!(dcid(&client, FourTupleRole::Current), Some(cid(99)));
}

#[test]
fn the_system_chooses_no_other_address_without_an_id_for_it() {
    // RFC 9000 9.5-1
    let mut client = with_spares();
    let any = FourTuple { local: ([0, 0, 0, 0], 1000).into(), ..tuple(0, 0) };
    let path = client.table.path_mut(PathId(1)).unwrap();
    path.addresses = PathAddresses::opened(any);
    path.on_datagram(&tuple(3, 0), 1200);
    let leaves_by = |client: &End| {
        let path = client.table.path(PathId(1)).unwrap();
        path.addresses.get(FourTupleRole::Current).unwrap().send_tuple()
    };
    for _ in 0..3 {
        assert!(client.table.renew_cid(PathId(1)));
        assert_eq!(leaves_by(&client), any);
    }
    assert!(!client.table.renew_cid(PathId(1)));
    assert_eq!(leaves_by(&client), tuple(3, 0));
    let path = client.table.path_mut(PathId(1)).unwrap();
    assert!(path.is_source_held() && path.is_local_chosen_by_system());
    client.table.on_new_cid(&new_cid(1, 4, 0, 99)).unwrap();
    assert!(client.table.renew_cid(PathId(1)));
    assert_eq!((leaves_by(&client), dcid(&client, FourTupleRole::Current)), (any, Some(cid(99))));
}

#[test]
fn an_address_whose_id_the_peer_wants_back_waits_for_another() {
    // RFC 9000 9.5-1, 5.1.2-1
    let mut client = with_spares();
    assert!(client.table.challenge_candidate(at(1), PathId(1), tuple(7, 0), times()));
    assert!(dcid(&client, FourTupleRole::Candidate).is_some());
    client.table.on_new_cid(&new_cid(1, 4, 4, 98)).unwrap();
    assert_eq!(dcid(&client, FourTupleRole::Current), Some(cid(98)));
    assert_eq!(dcid(&client, FourTupleRole::Candidate), None);
    let due = |client: &End| client.table.slot(PathId(1)).unwrap().other_addresses_due(64, |_| false);
    assert_eq!(due(&client), None);
    assert_eq!(client.table.move_to(at(2), PathId(1), tuple(7, 0), times()), Moved::No);
    client.table.on_new_cid(&new_cid(1, 5, 4, 99)).unwrap();
    assert_eq!(dcid(&client, FourTupleRole::Candidate), Some(cid(99)));
    assert_eq!(due(&client), Some(FourTupleRole::Candidate));
    assert_eq!(client.table.move_to(at(2), PathId(1), tuple(7, 0), times()), Moved::Hosts);
    assert_eq!(dcid(&client, FourTupleRole::Current), Some(cid(99)));
}

#[test]
fn backup_and_failed_states() {
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    server
        .table
        .on_path_status(&PathStatusUpdate { path: PathId(1), sequence: 0, status: PathStatus::Backup })
        .unwrap();
    assert_eq!(state(&server, 1), PathState::Backup);
    let path = server.table.path_mut(PathId(1)).unwrap();
    assert!(path.fail() && !path.fail());
    assert_eq!(state(&server, 1), PathState::Failed);
    assert!(server.table.path_mut(PathId(1)).unwrap().recover());
    assert_eq!(state(&server, 1), PathState::Backup);
}

#[test]
fn single_path_connection_uses_plain_frames() {
    let mut end = End::plain(Side::Server, None);
    end.table.set_peer_limits(PeerLimits {
        cid_limit: 3,
        initial_max_path_id: None,
        max_sending_uniflow_id: None,
        announcements: AnnouncementParameters::default(),
    });
    end.table.on_handshake_complete();
    assert_eq!(end.issue().len(), 2);
    assert_eq!(end.control_types(), [types::NEW_CONNECTION_ID; 2]);
    let plain = NewCid { form: CidForm::Plain, ..new_cid(0, 1, 1, 5) };
    end.table.on_new_cid(&plain).unwrap();
    assert_eq!(end.control(), [0x19, 0], "RETIRE_CONNECTION_ID 0");
    assert_eq!(end.table.abandon(at(0), PathId(0), CloseCode::NO_ERROR, PTO), Err(AbandonError::NotNegotiated));
    assert_eq!(end.table.next_id(), Err(OpenError::NotNegotiated));
    assert!(matches!(end.table.on_ack(PathId(0), AckForm::Plain), Ok(AckTarget::Path(_))));
}
