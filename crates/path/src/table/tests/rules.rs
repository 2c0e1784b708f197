//! Every rule whose breach closes the connection, and everything that must not (RFC 10069 4).

use plait_wire::frame::{AckForm, PathCidsBlocked, PathStatus, PathsBlocked};

use super::*;

fn server() -> End {
    End::new(Side::Server, 2, 2)
}

fn status(path: u32, status: PathStatus, sequence: u64) -> PathStatusUpdate {
    PathStatusUpdate { path: PathId(path), sequence, status }
}

#[test]
fn multipath_frames_need_the_extension() {
    // RFC 9000 19.21-1; RFC 10069 2
    for (local, remote) in [(None, Some(2)), (Some(2), None)] {
        let mut end = End::plain(Side::Server, local);
        end.table.set_peer_limits(PeerLimits {
            cid_limit: 4,
            initial_max_path_id: remote,
            max_sending_uniflow_id: None,
            announcements: AnnouncementParameters::default(),
        });
        assert!(!end.table.on_handshake_complete());
        let t = &mut end.table;
        let no = Violation::MultipathNotNegotiated;
        assert_eq!(t.on_new_cid(&new_cid(0, 1, 0, 1)), Err(no));
        assert_eq!(t.on_retire_cid(&retire(0, 0), &cid(9)), Err(no));
        assert_eq!(t.on_path_abandon(at(0), &abandon(0, CloseCode::NO_ERROR), PTO), Err(no));
        assert_eq!(t.on_path_status(&status(0, PathStatus::Backup, 0)), Err(no));
        assert_eq!(t.on_max_path_id(&MaxPathId { limit: PathId(9) }), Err(no));
        assert_eq!(t.on_paths_blocked(&PathsBlocked { limit: PathId(0) }), Err(no));
        assert_eq!(t.on_path_cids_blocked(&PathCidsBlocked { path: PathId(0), next_sequence: 0 }), Err(no));
        assert_eq!(t.on_ack(PathId(0), AckForm::Path), Err(no));
        assert!(matches!(t.on_ack(PathId(0), AckForm::Plain), Ok(AckTarget::Path(_))));
        assert_eq!(no.code(), CloseCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn multiflow_is_not_spoken() {
    let t = &mut server().table;
    let no = Violation::MultiflowNotNegotiated;
    assert_eq!(t.on_ack(PathId(0), AckForm::Uniflow), Err(no));
    assert_eq!(t.on_new_cid(&NewCid { form: CidForm::Uniflow, ..new_cid(0, 1, 0, 5) }), Err(no));
    assert_eq!(t.on_retire_cid(&RetireCid { form: CidForm::Uniflow, ..retire(0, 0) }, &cid(9)), Err(no));
    // RFC 9000 12.4: frames of unknown type
    assert_eq!(no.code(), CloseCode::FRAME_ENCODING_ERROR);
}

#[test]
fn extension_takes_effect_with_the_handshake_even_at_zero() {
    let mut end = End::plain(Side::Client, Some(0));
    end.table.set_peer_limits(PeerLimits {
        cid_limit: 4,
        initial_max_path_id: Some(0),
        max_sending_uniflow_id: None,
        announcements: AnnouncementParameters::default(),
    });
    assert!(!end.table.is_multipath());
    assert!(end.table.on_handshake_complete());
    assert_eq!(end.table.extension.cid_form(), CidForm::Path);
    assert_eq!(end.table.next_id(), Err(OpenError::PeerLimit));
}

/// Pitfall 2: the limit is what we announced, not the smaller of both.
#[test]
fn path_ids_above_our_announced_limit() {
    // RFC 10069 4-3
    let mut end = End::new(Side::Server, 5, 1);
    let t = &mut end.table;
    assert_eq!(t.on_new_cid(&new_cid(5, 0, 0, 1)), Ok(()));
    let no = Violation::PathIdAboveLimit;
    assert_eq!(t.on_new_cid(&new_cid(6, 0, 0, 2)), Err(no));
    assert_eq!(t.on_retire_cid(&retire(6, 0), &cid(9)), Err(no));
    assert_eq!(t.on_path_abandon(at(0), &abandon(6, CloseCode::NO_ERROR), PTO), Err(no));
    assert_eq!(t.on_path_status(&status(6, PathStatus::Available, 0)), Err(no));
    assert_eq!(t.on_path_cids_blocked(&PathCidsBlocked { path: PathId(6), next_sequence: 0 }), Err(no));
    assert_eq!(t.on_ack(PathId(6), AckForm::Path), Err(no));
    assert_eq!(no.code(), CloseCode::PROTOCOL_VIOLATION);
}

#[test]
fn raised_limit_counts_once_it_is_sent() {
    let (mut client, mut server) = pair(1, 1);
    open(at(0), &mut client, &mut server);
    server.table.on_path_abandon(at(1), &abandon(1, CloseCode::NO_ERROR), PTO).unwrap();
    assert_eq!(server.table.on_new_cid(&new_cid(2, 0, 0, 1)), Err(Violation::PathIdAboveLimit));
    server.control();
    assert_eq!(server.table.on_new_cid(&new_cid(2, 0, 0, 1)), Ok(()));
}

#[test]
fn max_path_id_never_below_the_initial_one() {
    // RFC 10069 4.6-3
    let mut end = server();
    assert_eq!(end.table.on_max_path_id(&MaxPathId { limit: PathId(1) }), Err(Violation::MaxPathIdBelowInitial));
    assert_eq!(Violation::MaxPathIdBelowInitial.code(), CloseCode::PROTOCOL_VIOLATION);
    assert_eq!(Violation::MaxPathIdTooLarge.code(), CloseCode::PROTOCOL_VIOLATION);
    // 2^32 - 1 is allowed, one more is not: the decoder says so.
    assert_eq!(end.read(at(0), 0, &[0x7e, 0x7a, 0xc0, 0, 0, 1, 0, 0, 0, 0]), Err(Violation::MaxPathIdTooLarge));
    assert_eq!(end.read(at(0), 0, &[0x7e, 0x7a, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), Ok(()));
    // A large limit of the peer makes us hold no more than our own limit allows.
    end.issue();
    assert_eq!(end.table.slots().count(), 3);
}

/// Not an error: a MAX_PATH_ID that does not raise the limit.
#[test]
fn max_path_id_that_does_not_raise_is_ignored() {
    // RFC 10069 4.6-4
    let mut end = server();
    for (limit, raised) in [(2, false), (5, true), (4, false), (5, false)] {
        assert_eq!(end.table.on_max_path_id(&MaxPathId { limit: PathId(limit) }), Ok(raised));
    }
    assert_eq!(end.table.extension.credit().unwrap().remote_max(), PathId(5));
}

#[test]
fn blocked_frames_above_our_limits() {
    // RFC 10069 4.7-1, 4.7-2
    let mut end = server();
    let t = &mut end.table;
    assert_eq!(t.on_paths_blocked(&PathsBlocked { limit: PathId(3) }), Err(Violation::PathsBlockedAboveLimit));
    assert_eq!(t.on_paths_blocked(&PathsBlocked { limit: PathId(2) }), Ok(()));
    // Pitfall 24: one id was issued ahead, so 1 is the next sequence number.
    let blocked = |next_sequence| PathCidsBlocked { path: PathId(1), next_sequence };
    assert_eq!(t.on_path_cids_blocked(&blocked(1)), Ok(()));
    assert_eq!(t.on_path_cids_blocked(&blocked(2)), Err(Violation::PathCidsBlockedSequence));
    assert_eq!(Violation::PathCidsBlockedSequence.code(), CloseCode::PROTOCOL_VIOLATION);
}

/// Pitfall 3: an ack for a path that never sent is wrong, for one that is gone it is late.
#[test]
fn path_ack_never_used_or_forgotten() {
    let (mut client, mut server) = pair(2, 2);
    assert_eq!(client.table.on_ack(PathId(1), AckForm::Path), Err(Violation::AckOfUnsentPacket));
    open(at(0), &mut client, &mut server);
    assert!(matches!(client.table.on_ack(PathId(1), AckForm::Path), Ok(AckTarget::Path(_))));
    client.table.on_path_abandon(at(1), &abandon(1, CloseCode::NO_ERROR), PTO).unwrap();
    assert!(matches!(client.table.on_ack(PathId(1), AckForm::Path), Ok(AckTarget::Path(_))));
    assert!(matches!(client.table.poll_timeout(at(301)), Some(Expired::Forgotten(PathId(1), Some(_)))));
    assert_eq!(client.table.on_ack(PathId(1), AckForm::Path), Ok(AckTarget::Forgotten));
}

/// Not errors: any frame for a path that we dropped.
#[test]
fn frames_for_a_forgotten_path_are_ignored() {
    // RFC 10069 4-4
    let mut end = server();
    end.table.on_path_abandon(at(0), &abandon(1, CloseCode::NO_ERROR), PTO).unwrap();
    assert!(matches!(end.table.poll_timeout(at(300)), Some(Expired::Forgotten(PathId(1), None))));
    end.control();
    let t = &mut end.table;
    assert!(t.is_retired(PathId(1)) && t.slot(PathId(1)).is_none());
    assert_eq!(t.on_new_cid(&new_cid(1, 0, 0, 1)), Ok(()));
    assert_eq!(t.on_retire_cid(&retire(1, 77), &cid(9)), Ok(()));
    assert_eq!(t.on_path_abandon(at(400), &abandon(1, CloseCode::NO_ERROR), PTO), Ok(AbandonNews::Old));
    assert_eq!(t.on_path_status(&status(1, PathStatus::Backup, 9)), Ok(None));
    assert_eq!(t.on_path_cids_blocked(&PathCidsBlocked { path: PathId(1), next_sequence: 99 }), Ok(()));
    assert_eq!(t.on_ack(PathId(1), AckForm::Path), Ok(AckTarget::Forgotten));
    assert_eq!(t.admission(PathId(1)), Admission::Unknown);
    assert!(!t.is_retired(PathId(0)) && t.slot(PathId(1)).is_none());
    assert!(end.issue().iter().all(|c| c.path != PathId(1)));
}

/// Not an error: PATH_ABANDON for a path never used; it is answered.
#[test]
fn abandon_of_an_unused_path_is_answered() {
    // RFC 10069 3.4-3
    let mut end = server();
    let news = end.table.on_path_abandon(at(0), &abandon(2, CloseCode(0x3e)), PTO);
    assert_eq!(news, Ok(AbandonNews::PeerEnds));
    let bytes = end.control();
    assert!(bytes.starts_with(&[0x7e, 0x75, 2, 0]), "PATH_ABANDON(2, NO_ERROR) first");
    // RFC 9000 12.3: without a receive space nothing would tell duplicates apart.
    assert_eq!(end.table.admission(PathId(2)), Admission::Unknown);
}

/// Not errors: stale status, and status for a path that is not used yet. Pitfall 23: one sequence for both types.
#[test]
fn status_is_stored_early_and_stale_status_ignored() {
    // RFC 10069 4.3-2
    let mut end = server();
    let t = &mut end.table;
    assert_eq!(t.on_path_status(&status(1, PathStatus::Backup, 5)), Ok(Some(PathStatus::Backup)));
    assert_eq!(t.on_path_status(&status(1, PathStatus::Available, 5)), Ok(None));
    assert_eq!(t.on_path_status(&status(1, PathStatus::Available, 4)), Ok(None));
    assert_eq!(t.slot(PathId(1)).unwrap().status.remote(), Some(PathStatus::Backup));
    // Another path has a sequence of its own.
    assert_eq!(t.on_path_status(&status(2, PathStatus::Backup, 0)), Ok(Some(PathStatus::Backup)));
    assert_eq!(t.on_path_status(&status(1, PathStatus::Available, 6)), Ok(Some(PathStatus::Available)));
}

/// Not an error: ids used with gaps and out of order.
#[test]
fn path_ids_out_of_order() {
    let mut end = server();
    end.table.on_new_cid(&new_cid(2, 0, 0, 22)).unwrap();
    assert_eq!(end.table.admission(PathId(2)), Admission::New);
    assert_eq!(end.table.admission(PathId(1)), Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH));
    end.table.on_new_cid(&new_cid(1, 0, 0, 11)).unwrap();
    assert_eq!(end.table.admission(PathId(1)), Admission::New);
}

#[test]
fn same_cid_on_two_paths() {
    // RFC 9000 19.15-4
    let mut end = server();
    end.table.on_new_cid(&new_cid(1, 0, 0, 7)).unwrap();
    assert_eq!(end.table.on_new_cid(&new_cid(2, 0, 0, 7)), Err(Violation::CidReissued));
    assert_eq!(Violation::CidReissued.code(), CloseCode::PROTOCOL_VIOLATION);
}

#[test]
fn same_reset_token_for_two_cids() {
    // RFC 9000 10.3.2-5
    let mut end = server();
    let first = new_cid(1, 0, 0, 7);
    end.table.on_new_cid(&first).unwrap();
    end.table.on_new_cid(&first).unwrap();
    for path in [1, 2] {
        let second = NewCid { token: first.token, ..new_cid(path, 1, 0, 8) };
        assert_eq!(end.table.on_new_cid(&second), Err(Violation::ResetTokenReused));
    }
}

#[test]
fn limit_is_per_path_id() {
    let mut end = server();
    for path in [1, 2] {
        for n in 0..4 {
            end.table.on_new_cid(&new_cid(path, n, 0, u64::from(path) * 10 + n)).unwrap();
        }
    }
    assert_eq!(end.table.on_new_cid(&new_cid(1, 4, 0, 50)), Err(Violation::CidLimit));
    assert_eq!(Violation::CidLimit.code(), CloseCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn retirement_of_what_was_never_issued_or_is_in_use() {
    let mut end = server();
    let first = end.table.slot(PathId(1)).unwrap().local.iter().next().unwrap().cid;
    end.control();
    let t = &mut end.table;
    assert_eq!(t.on_retire_cid(&retire(1, 1), &cid(9)), Err(Violation::RetireUnissuedCid));
    assert_eq!(t.on_retire_cid(&retire(1, 0), &first), Err(Violation::RetireCidInUse));
    assert_eq!(t.on_retire_cid(&retire(1, 0), &cid(9)), Ok(()));
    assert_eq!(t.poll_event(), Some(TableEvent::CidRetired { path: PathId(1), cid: first }));
    // Again is late, not wrong.
    assert_eq!(t.on_retire_cid(&retire(1, 0), &cid(9)), Ok(()));
    // Pitfall 7: a new one takes its place.
    assert_eq!(end.issue(), end.table.slot(PathId(1)).unwrap().local.iter().collect::<Vec<_>>());
    assert_eq!(end.table.slot(PathId(1)).unwrap().local.next_sequence(), 2);
}

#[test]
fn plain_frames_stay_legal_for_path_0() {
    // RFC 10069 2.3
    let (mut client, _) = pair(1, 1);
    let plain = NewCid { form: CidForm::Plain, ..new_cid(0, 9, 0, 99) };
    assert_eq!(client.table.on_new_cid(&plain), Err(Violation::CidLimit));
    let plain = NewCid { retire_prior_to: 2, ..plain };
    let mut other = End::new(Side::Client, 1, 1);
    assert_eq!(other.table.on_new_cid(&NewCid { sequence: 2, ..plain }), Ok(()));
    assert_eq!(other.table.slot(PathId(0)).unwrap().dcid(crate::addresses::FourTupleRole::Current), Some(cid(99)));
    let plain = RetireCid { form: CidForm::Plain, ..retire(0, 0) };
    assert_eq!(other.table.on_retire_cid(&plain, &cid(5)), Ok(()));
}
