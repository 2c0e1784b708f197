//! The rules of RFC 9000 5.1, 19.15 and 19.16 for one path id.

use plait_base::limits::MAX_REMOTE_CIDS_PER_PATH;
use plait_base::limits::{MAX_LOCAL_CIDS_PER_PATH, MAX_PENDING_RETIREMENTS};
use plait_base::{CloseCode, Violation};
use plait_wire::frame::{CidForm, NewCid};
use plait_wire::{Frame, FrameWriter, Frames, SentFrame};
use proptest::prelude::*;

use super::*;

fn cid(n: u64) -> ConnectionId {
    ConnectionId::new(&n.to_be_bytes()).unwrap()
}

fn new(sequence: u64, retire_prior_to: u64, n: u64) -> NewCid {
    let token = ResetToken([n as u8; 16]);
    NewCid { form: CidForm::Path, path: PathId(1), sequence, retire_prior_to, cid: cid(n), token }
}

fn remote(held: u64) -> RemoteCids {
    let mut ids = RemoteCids::new(PathId(1), MAX_REMOTE_CIDS_PER_PATH);
    (0..held).for_each(|n| ids.on_new(&new(n, 0, n)).unwrap());
    ids
}

/// Sequence numbers of the retirements that are written now.
fn retirements(ids: &mut RemoteCids) -> Vec<u64> {
    let (mut buf, mut carried) = (vec![], vec![]);
    ids.fill(CidForm::Path, &mut FrameWriter::new(&mut buf, 1200, &mut carried));
    let sequence = |c: &SentFrame| match c {
        SentFrame::RetireCid { sequence, .. } => *sequence,
        other => panic!("{other:?}"),
    };
    carried.iter().map(sequence).collect()
}

fn source() -> impl FnMut(PathId) -> (ConnectionId, ResetToken) {
    let mut n = 100;
    move |_| {
        n += 1;
        (cid(n), ResetToken([n as u8; 16]))
    }
}

#[test]
fn encoding_rules() {
    let mut ids = remote(0);
    let empty = NewCid { cid: ConnectionId::EMPTY, ..new(0, 0, 1) };
    assert_eq!(ids.on_new(&empty), Err(Violation::CidLength));
    assert_eq!(ids.on_new(&new(0, 1, 1)), Err(Violation::RetirePriorToTooLarge));
    assert_eq!(Violation::CidLength.code(), CloseCode::FRAME_ENCODING_ERROR);
    assert_eq!(Violation::RetirePriorToTooLarge.code(), CloseCode::FRAME_ENCODING_ERROR);
}

#[test]
fn reissued_with_other_values() {
    let mut ids = remote(2);
    assert_eq!(ids.on_new(&new(1, 0, 1)), Ok(()), "a retransmission");
    assert_eq!(ids.on_new(&new(2, 0, 1)), Err(Violation::CidReissued), "other sequence");
    assert_eq!(ids.on_new(&new(1, 0, 9)), Err(Violation::CidReissued), "other id");
    let token = ResetToken([99; 16]);
    assert_eq!(ids.on_new(&NewCid { token, ..new(1, 0, 1) }), Err(Violation::CidReissued), "other token");
}

#[test]
fn limit_counts_after_retiring() {
    // RFC 9000 5.1.1-4
    let mut ids = remote(4);
    assert_eq!(ids.clone().on_new(&new(4, 0, 4)), Err(Violation::CidLimit));
    assert_eq!(ids.on_new(&new(4, 1, 4)), Ok(()));
    assert_eq!(retirements(&mut ids), [0]);
    assert_eq!(ids.held(), 4);
}

#[test]
fn retire_prior_to_changes_the_active_id() {
    // RFC 9000 5.1.2-1, 19.15-7, 19.15-8
    let mut ids = remote(3);
    assert_eq!(ids.begin(), Some(cid(0)));
    ids.on_new(&new(3, 2, 3)).unwrap();
    assert_eq!(ids.active(), Some(cid(2)));
    assert_eq!(retirements(&mut ids), [0, 1]);
    // Late arrivals below it are retired at once, once.
    let mut gap = remote(0);
    gap.on_new(&new(5, 5, 5)).unwrap();
    for _ in 0..2 {
        gap.on_new(&new(3, 0, 3)).unwrap();
    }
    assert_eq!((retirements(&mut gap), gap.held(), gap.next_expected()), (vec![3], 1, 6));
}

#[test]
fn rotation_needs_a_spare() {
    // RFC 10069 3.2.2
    let mut ids = remote(2);
    ids.begin();
    assert!(ids.has_spare() && ids.rotate());
    assert_eq!(ids.active(), Some(cid(1)));
    assert!(!ids.has_spare() && !ids.rotate());
    assert_eq!(ids.active(), Some(cid(1)), "no spare is left");
    assert_eq!((ids.active(), retirements(&mut ids)), (Some(cid(1)), vec![0]));
    ids.on_lost(0);
    assert_eq!(retirements(&mut ids), [0]);
    ids.on_acked(0);
    ids.on_lost(0);
    assert!(!ids.wants_frame());
}

#[test]
fn forced_retirements_are_bounded() {
    // RFC 9000 5.1.2-2
    let mut ids = remote(0);
    let mut refused = None;
    for n in 0..1000 {
        if let Err(violation) = ids.on_new(&new(n, n, n)) {
            refused = Some((n, violation));
            break;
        }
    }
    assert_eq!(refused, Some((MAX_PENDING_RETIREMENTS as u64 + 1, Violation::TooManyRetirements)));
    assert_eq!(Violation::TooManyRetirements.code(), CloseCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn zero_length_ids_have_no_frames() {
    // RFC 9000 19.15-2, 19.16-3
    let mut ids = RemoteCids::new(PathId::ZERO, MAX_REMOTE_CIDS_PER_PATH);
    ids.set_initial(ConnectionId::EMPTY, None);
    assert_eq!(ids.on_new(&new(1, 0, 1)), Err(Violation::CidForZeroLength));
    let mut local = LocalCids::new(PathId::ZERO, 8);
    local.add_known(ConnectionId::EMPTY, ResetToken([0; 16]));
    assert_eq!(local.need(8), 0);
    assert_eq!(local.on_retire(0, &cid(1)), Err(Violation::CidForZeroLength));
}

#[test]
fn initial_id_may_change_during_the_handshake() {
    // RFC 9000 7.2-4
    let mut ids = RemoteCids::new(PathId::ZERO, MAX_REMOTE_CIDS_PER_PATH);
    ids.set_initial(cid(1), None);
    ids.set_initial(cid(2), Some(ResetToken([2; 16])));
    assert_eq!((ids.held(), ids.active(), ids.tokens_in_use().count()), (1, Some(cid(2)), 1));
    assert_eq!(retirements(&mut ids), Vec::<u64>::new());
}

#[test]
fn we_issue_no_more_than_allowed() {
    // RFC 9000 5.1.1-1, 5.1.1-3
    for (peer_limit, most) in [(2, 2), (5, 5), (u64::MAX, MAX_LOCAL_CIDS_PER_PATH)] {
        let mut ids = LocalCids::new(PathId(1), peer_limit);
        let mut source = source();
        while ids.issue(&mut source).is_some() {}
        assert_eq!((ids.active(), ids.need(usize::MAX)), (most, 0));
        let first = ids.iter().next().unwrap();
        // RFC 9000 19.16: before it was told of an id the peer cannot retire it.
        assert_eq!(ids.on_retire(0, &cid(0)), Err(Violation::RetireUnissuedCid));
        let (mut buf, mut carried) = (vec![], vec![]);
        ids.fill(CidForm::Path, &mut FrameWriter::new(&mut buf, 1200, &mut carried));
        assert_eq!(ids.on_retire(0, &cid(0)), Ok(Some(first.cid)));
        assert_eq!((ids.need(usize::MAX), ids.issue(&mut source).unwrap().sequence), (1, most as u64));
    }
}

#[test]
fn issued_frames_carry_what_the_source_made() {
    let mut ids = LocalCids::new(PathId(1), 2);
    let issued = ids.issue(&mut source()).unwrap();
    let (mut buf, mut carried) = (vec![], vec![]);
    ids.fill(CidForm::Path, &mut FrameWriter::new(&mut buf, 1200, &mut carried));
    let Some(Ok(Frame::NewCid(frame))) = Frames::new(&buf).next() else { panic!("{buf:?}") };
    assert_eq!((frame.path, frame.sequence, frame.cid), (issued.path, issued.sequence, issued.cid));
    assert_eq!(carried, [SentFrame::NewCid { path: PathId(1), sequence: 0 }]);
    // Too little room: nothing is written, the frame stays due.
    ids.on_lost(0);
    let (mut buf, mut carried) = (vec![], vec![]);
    ids.fill(CidForm::Path, &mut FrameWriter::new(&mut buf, 20, &mut carried));
    assert!(buf.is_empty() && carried.is_empty() && ids.wants_frame());
    // A retired id is not repeated.
    ids.on_retire(0, &cid(0)).unwrap();
    assert!(!ids.wants_frame());
}

#[test]
fn no_id_is_asked_back() {
    // RFC 9000 19.15-5
    let mut ids = LocalCids::new(PathId(1), 8);
    let mut source = source();
    ids.issue(&mut source);
    ids.issue(&mut source);
    ids.issue(&mut source);
    let (mut buf, mut carried) = (vec![], vec![]);
    ids.fill(CidForm::Path, &mut FrameWriter::new(&mut buf, 1200, &mut carried));
    let prior = |f| match f {
        Ok(Frame::NewCid(f)) => f.retire_prior_to,
        other => panic!("{other:?}"),
    };
    assert_eq!(Frames::new(&buf).map(prior).collect::<Vec<_>>(), [0, 0, 0]);
}

proptest! {
    /// Whatever a peer sends, state stays bounded and the active id is one that is held.
    #[test]
    fn remote_ids_stay_bounded(frames in prop::collection::vec((0u64..40, 0u64..40, 0u64..60), 0..200)) {
        let mut ids = RemoteCids::new(PathId(1), MAX_REMOTE_CIDS_PER_PATH);
        ids.set_initial(cid(1000), None);
        for (sequence, prior, n) in frames {
            if ids.on_new(&new(sequence, prior, n)).is_err() {
                break;
            }
            prop_assert!(ids.held() <= 4);
            if let Some(active) = ids.active_sequence() {
                prop_assert!(ids.cid(active).is_some());
            } else {
                prop_assert_eq!(ids.spares(), 0);
            }
            retirements(&mut ids).into_iter().for_each(|s| ids.on_acked(s));
        }
    }
}
