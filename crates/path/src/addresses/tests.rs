//! Validation, amplification and migration of one path's addresses.

use std::time::Duration;

use plait_base::limits::{MAX_OUTSTANDING_CHALLENGES, MAX_QUEUED_PATH_RESPONSES, PATH_RESPONSE_BURST_BYTES};
use plait_wire::{Frame, Frames, SentFrame};
use proptest::prelude::*;

use super::*;

const TIMES: ValidationTimes =
    ValidationTimes { retry: Duration::from_millis(100), give_up: Duration::from_millis(3000) };

fn tuple(local: &str, remote: &str) -> FourTuple {
    FourTuple { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
}

fn home() -> FourTuple {
    tuple("10.0.0.1:1", "10.9.0.1:443")
}

fn away() -> FourTuple {
    tuple("10.0.0.1:1", "10.8.0.1:443")
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Fills a packet from one 4-tuple: what it asked, what it answered, and how it is to be padded.
fn write(addresses: &mut PathAddresses, role: FourTupleRole) -> (Vec<ChallengeData>, Vec<ChallengeData>, Pad) {
    let (mut buf, mut carried, mut rng) = (Vec::new(), Vec::<SentFrame>::new(), Random::from_u64(7));
    rng.next_u64();
    let mut w = FrameWriter::new(&mut buf, 1200, &mut carried);
    // A different stream for each call, so that challenges differ.
    let mut rng = Random::from_u64(addresses.get(role).map_or(0, |l| l.deadline().map_or(1, Instant::as_nanos)));
    let pad = addresses.fill(at(7), role, &mut rng, &mut w);
    let (mut asked, mut answered) = (vec![], vec![]);
    for frame in Frames::new(&buf).filter(|_| !buf.is_empty()) {
        match frame.unwrap() {
            Frame::PathChallenge(f) => asked.push(f.data),
            Frame::PathResponse(f) => answered.push(f.data),
            other => panic!("{other:?}"),
        }
    }
    (asked, answered, pad)
}

#[test]
fn response_validates_and_lifts_the_limit() {
    let mut addresses = PathAddresses::new(home(), Validation::Unvalidated);
    assert_eq!(addresses.on_received(&home(), 1200), Some(FourTupleRole::Current));
    addresses.challenge(at(0), TIMES);
    assert_eq!(addresses.due(), Some(FourTupleRole::Current));
    let (asked, _, pad) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!((asked.len(), pad), (1, Pad::Full));
    assert_eq!(addresses.due(), None);
    assert_eq!(addresses.on_response(at(50), asked[0]), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    assert_eq!((addresses.amplification_room(), addresses.deadline(), addresses.validations()), (u64::MAX, None, 0));
    // A second copy of the answer is late, not wrong.
    assert_eq!(addresses.on_response(at(60), asked[0]), Ok(None));
}

#[test]
fn response_without_any_challenge_is_a_violation() {
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    assert_eq!(addresses.on_response(at(0), [1; 8]), Err(Violation::UnsolicitedPathResponse));
}

#[test]
fn challenges_back_off_and_validation_gives_up() {
    // RFC 9000 8.2.1-1, 9.4-3
    let mut addresses = PathAddresses::opened(home());
    addresses.challenge(at(0), TIMES);
    let mut sent = vec![];
    let end = loop {
        if addresses.due().is_some() {
            sent.push(write(&mut addresses, FourTupleRole::Current).0[0]);
        }
        let now = addresses.deadline().unwrap();
        if let Some(event) = addresses.on_timeout(now) {
            break (now, event);
        }
    };
    assert_eq!(end, (at(3000), AddressEvent::Unreachable));
    // At 0, 100, 300, 700, 1500 ms.
    assert_eq!(sent.len(), 5);
    assert!(sent.len() <= MAX_OUTSTANDING_CHALLENGES);
    assert_eq!(addresses.get(FourTupleRole::Current).unwrap().validation(), Validation::Failed);
}

#[test]
fn any_outstanding_challenge_may_be_answered() {
    // RFC 9000 8.2.2-4
    let mut addresses = PathAddresses::opened(home());
    addresses.challenge(at(0), TIMES);
    let first = write(&mut addresses, FourTupleRole::Current).0[0];
    addresses.on_timeout(at(100));
    write(&mut addresses, FourTupleRole::Current);
    assert_eq!(addresses.on_response(at(150), first), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
}

#[test]
fn small_challenge_proves_the_address_but_not_the_size() {
    // RFC 9000 8.2.3; RFC 10069 3.1-6
    // RFC 9000 8.2.1-2, 8.2.1-3: the amplification limit forbids 1200 bytes, so the size is validated afterwards.
    let mut addresses = PathAddresses::new(home(), Validation::Unvalidated);
    addresses.on_received(&home(), 100);
    addresses.challenge(at(0), TIMES);
    let (asked, _, pad) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!(pad, Pad::No);
    assert_eq!(addresses.on_response(at(10), asked[0]), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    assert!(!addresses.get(FourTupleRole::Current).unwrap().is_full_size_proven());
    let (asked, _, pad) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!(pad, Pad::Full);
    assert_eq!(addresses.on_response(at(20), asked[0]), Ok(None));
    assert!(addresses.get(FourTupleRole::Current).unwrap().is_full_size_proven());
    assert_eq!(addresses.deadline(), None);
}

#[test]
fn validation_of_the_size_has_a_time_of_its_own() {
    // RFC 9000 14-1, 14.2
    // RFC 9000 8.2.1: a second validation; the answer to the first may come just before that one's end.
    let mut addresses = PathAddresses::new(home(), Validation::Unvalidated);
    addresses.on_received(&home(), 100);
    addresses.challenge(at(0), TIMES);
    let (asked, _, _) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!(addresses.on_response(at(2990), asked[0]), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    write(&mut addresses, FourTupleRole::Current);
    assert_eq!(addresses.deadline(), Some(at(3090)), "asked again soon");
    assert_eq!(addresses.on_timeout(at(3090)), None);
    assert_eq!(addresses.due(), Some(FourTupleRole::Current));
    assert_eq!(addresses.on_timeout(at(5989)), None);
    assert_eq!(addresses.on_timeout(at(5990)), Some(AddressEvent::SizeUnproven));
}

#[test]
fn responses_go_where_the_challenge_came_from() {
    // RFC 9000 8.2.2-3
    // Pitfall 5: PATH_RESPONSE only on the same path id and 4-tuple.
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    assert!(!addresses.on_challenge(&away(), [1; 8]));
    addresses.note_candidate(away(), 1200);
    assert_eq!(addresses.find(&away()), Some(FourTupleRole::Candidate));
    assert!(addresses.on_challenge(&away(), [1; 8]));
    assert_eq!(addresses.due(), Some(FourTupleRole::Candidate));
    assert_eq!(write(&mut addresses, FourTupleRole::Current).1, Vec::<ChallengeData>::new());
    assert_eq!(write(&mut addresses, FourTupleRole::Candidate).1, vec![[1; 8]]);
    assert_eq!(addresses.tuple(), home());
}

#[test]
fn response_queue_is_bounded_and_forgets_the_oldest() {
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    for i in 0..20 {
        addresses.on_challenge(&home(), [i; 8]);
    }
    let (_, answered, _) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!(answered.len(), MAX_QUEUED_PATH_RESPONSES);
    assert_eq!(answered.last(), Some(&[19; 8]));
}

#[test]
fn nat_rebinding_moves_ports_only_and_falls_back() {
    // RFC 9000 9.4-2
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    let rebound = tuple("10.0.0.1:1", "10.9.0.1:999");
    addresses.note_candidate(rebound, 1200);
    assert_eq!(addresses.move_to(at(0), rebound, TIMES), Moved::Ports);
    assert_eq!(addresses.tuple(), rebound);
    // The new address has its own credit, the old one stays proven.
    assert_eq!(addresses.amplification_room(), 3600);
    assert_eq!(addresses.validations(), 2);
    write(&mut addresses, FourTupleRole::Current);
    write(&mut addresses, FourTupleRole::Previous);
    let mut events = vec![];
    for ms in (0..=3000).step_by(100) {
        events.extend(addresses.on_timeout(at(ms)));
    }
    assert_eq!(events, [AddressEvent::FellBack(Moved::Ports)]);
    assert_eq!((addresses.tuple(), addresses.is_validated()), (home(), true));
}

#[test]
fn moving_to_another_host_resets_and_validation_drops_the_previous_address() {
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    addresses.note_candidate(away(), 1200);
    assert_eq!(addresses.move_to(at(0), away(), TIMES), Moved::Hosts);
    let asked = write(&mut addresses, FourTupleRole::Current).0[0];
    assert_eq!(addresses.on_response(at(1), asked), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    assert!(addresses.get(FourTupleRole::Previous).is_none());
    assert_eq!(addresses.move_to(at(2), away(), TIMES), Moved::No);
}

#[test]
fn second_move_keeps_the_last_proven_address() {
    let third = tuple("10.0.0.1:1", "10.7.0.1:443");
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    for to in [away(), third] {
        addresses.note_candidate(to, 1200);
        addresses.move_to(at(0), to, TIMES);
    }
    assert_eq!(addresses.get(FourTupleRole::Previous).unwrap().tuple(), home());
    // The peer comes back: its address is still proven.
    assert_eq!(addresses.move_to(at(5), home(), TIMES), Moved::Hosts);
    assert!(addresses.is_validated() && addresses.get(FourTupleRole::Previous).is_none());
}

#[test]
fn a_proven_address_is_challenged_once_in_a_probe_timeout() {
    // RFC 9000 8.2.1
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    let mut asked = 0;
    for ms in 0..1000 {
        addresses.note_candidate(away(), 40);
        addresses.move_to(at(ms), away(), TIMES);
        let _ = addresses.on_timeout(at(ms));
        asked += write(&mut addresses, FourTupleRole::Previous).0.len();
        addresses.move_to(at(ms), home(), TIMES);
    }
    let most = 1 + 1000 / TIMES.retry.as_millis() as usize;
    assert!((1..=most).contains(&asked), "{asked} challenges, and {most} probe time-outs");
}

#[test]
fn failed_candidate_leaves_the_current_address_alone() {
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    addresses.challenge_candidate(at(0), away(), TIMES);
    assert_eq!(write(&mut addresses, FourTupleRole::Candidate).2, Pad::Full);
    let mut events = vec![];
    for ms in (0..=3000).step_by(100) {
        events.extend(addresses.on_timeout(at(ms)));
    }
    assert_eq!(events, [AddressEvent::CandidateFailed]);
    assert_eq!((addresses.tuple(), addresses.deadline()), (home(), None));
}

#[test]
fn later_candidate_replaces_an_earlier_one() {
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    for port in 1..50 {
        let from = FourTuple { remote: format!("10.8.0.1:{port}").parse().unwrap(), ..home() };
        addresses.note_candidate(from, 50);
    }
    assert_eq!(addresses.get(FourTupleRole::Candidate).unwrap().tuple().remote.port(), 49);
    assert_eq!(addresses.get(FourTupleRole::Candidate).unwrap().amplification_room(), 150);
}

#[test]
fn local_address_is_learned() {
    let mut addresses = PathAddresses::opened(tuple("0.0.0.0:1", "10.9.0.1:443"));
    addresses.on_received(&home(), 1);
    assert_eq!(addresses.tuple(), home());
}

proptest! {
    /// RFC 9000 8.1-2: never more than three times what came, whatever the order, and each 4-tuple for itself
    /// (pitfall 20: credit is not shared).
    #[test]
    fn never_more_than_three_times(ops in prop::collection::vec((any::<bool>(), any::<bool>(), 1u64..3000), 0..200)) {
        // RFC 9000 8
        let mut addresses = PathAddresses::new(home(), Validation::Unvalidated);
        addresses.note_candidate(away(), 0);
        let (mut came, mut went) = ([0u64; 2], [0u64; 2]);
        for (receives, elsewhere, bytes) in ops {
            let i = usize::from(elsewhere);
            let (role, tuple) = [(FourTupleRole::Current, home()), (FourTupleRole::Candidate, away())][i];
            if receives {
                addresses.on_received(&tuple, bytes);
                came[i] += bytes;
            } else {
                let sent = bytes.min(addresses.get(role).unwrap().amplification_room());
                addresses.on_sent(role, sent);
                went[i] += sent;
            }
            for i in 0..2 {
                prop_assert!(went[i] <= 3 * came[i]);
                let role = [FourTupleRole::Current, FourTupleRole::Candidate][i];
                prop_assert_eq!(addresses.get(role).unwrap().amplification_room(), 3 * came[i] - went[i]);
            }
        }
    }
}

fn ours(local: &str) -> FourTuple {
    FourTuple { local: local.parse().unwrap(), remote: "10.9.0.1:443".parse().unwrap() }
}

#[test]
fn the_system_may_choose_another_address_of_ours() {
    let mut addresses = PathAddresses::opened(ours("0.0.0.0:1"));
    assert_eq!((addresses.is_system_known(), addresses.follow_system(&ours("0.0.0.0:1"))), (false, Moved::No));
    addresses.on_received(&ours("10.0.0.1:1"), 1_200);
    assert_eq!(
        (addresses.tuple(), addresses.current.send_tuple(), addresses.is_system_known()),
        (ours("10.0.0.1:1"), ours("0.0.0.0:1"), true)
    );
    // A datagram that comes to another address of ours belongs to the path, and shows where we are now.
    assert_eq!(addresses.find(&ours("10.0.0.2:1")), Some(FourTupleRole::Current));
    assert_eq!(addresses.follow_system(&ours("10.0.0.2:1")), Moved::Hosts);
    assert_eq!((addresses.tuple(), addresses.follow_system(&ours("10.0.0.2:1"))), (ours("10.0.0.2:1"), Moved::No));
    assert_eq!(addresses.find(&ours("10.0.0.2:2")), None, "another port is another socket");
    // An address that was chosen stays.
    let mut chosen = PathAddresses::opened(ours("10.0.0.1:1"));
    assert_eq!((chosen.find(&ours("10.0.0.2:1")), chosen.follow_system(&ours("10.0.0.2:1"))), (None, Moved::No));
    assert_eq!(chosen.current.send_tuple(), ours("10.0.0.1:1"));
}

#[test]
fn a_route_leaves_by_another_address_of_ours() {
    // RFC 9000 9.2: the peer's address is the same, and stays proven.
    let mut addresses = PathAddresses::opened(ours("10.0.0.1:1"));
    addresses.on_address_proven();
    assert_eq!(addresses.relocate("10.0.0.1:2".parse().unwrap()), Moved::Ports);
    assert_eq!(addresses.relocate("10.0.0.3:2".parse().unwrap()), Moved::Hosts);
    assert_eq!(addresses.relocate("10.0.0.3:2".parse().unwrap()), Moved::No);
    assert!(
        addresses.is_validated() && addresses.deadline().is_none() && addresses.find(&ours("10.0.0.1:1")).is_none()
    );
    assert_eq!(addresses.amplification_room(), u64::MAX);
}

#[test]
fn small_challenges_draw_no_more_than_they_pay_for() {
    // RFC 9000 8.2.2: each answer fills a datagram
    let mut addresses = PathAddresses::new(home(), Validation::Validated);
    let (mut came, mut left, mut answered) = (0, 0, 0);
    for round in 0..2_000u64 {
        came += 60;
        addresses.on_received(&home(), 60);
        assert!(addresses.on_challenge(&home(), round.to_be_bytes()));
        while addresses.due().is_some() {
            let (_, answers, pad) = write(&mut addresses, FourTupleRole::Current);
            assert!(!answers.is_empty() && pad == Pad::Full);
            answered += answers.len();
            left += 1200;
        }
        assert!(left <= 3 * came + PATH_RESPONSE_BURST_BYTES, "{left} bytes for {came}");
    }
    assert!(answered > 300, "those that were paid for are answered: {answered}");
    // Challenges in full datagrams are all answered, however many came before.
    for round in 0..100u64 {
        addresses.on_received(&home(), 1200);
        assert!(addresses.on_challenge(&home(), (1 << 32 | round).to_be_bytes()));
        let (_, answers, _) = write(&mut addresses, FourTupleRole::Current);
        assert!(answers.contains(&(1 << 32 | round).to_be_bytes()), "challenge {round}");
    }
}

#[test]
fn a_lost_challenge_is_repeated_ahead_of_its_clock() {
    let mut addresses = PathAddresses::opened(home());
    addresses.challenge(at(0), TIMES);
    let (asked, ..) = write(&mut addresses, FourTupleRole::Current);
    addresses.ask_again(at(30), [0; 8]);
    assert_eq!(addresses.deadline(), Some(at(100)), "of another challenge");
    addresses.ask_again(at(30), asked[0]);
    assert_eq!(addresses.deadline(), Some(at(30)));
    assert_eq!(addresses.on_timeout(at(30)), None);
    let (again, ..) = write(&mut addresses, FourTupleRole::Current);
    assert_eq!(addresses.deadline(), Some(at(130)), "a probe time-out later, and no further apart for it");
    assert_eq!(addresses.on_response(at(60), again[0]), Ok(Some(AddressEvent::Validated(FourTupleRole::Current))));
    addresses.ask_again(at(70), again[0]);
    assert_eq!(addresses.deadline(), None);
}

#[test]
fn the_first_packet_after_a_silence_draws_a_challenge_and_time_for_its_answer() {
    let mut addresses = PathAddresses::opened(home());
    addresses.challenge(at(0), TIMES);
    // Challenges leave at 7 ms here, whatever the clock says.
    let ask = |addresses: &mut PathAddresses| write(addresses, FourTupleRole::Current).0.len();
    assert_eq!(ask(&mut addresses), 1);
    for ms in [20, 500, 1_000] {
        addresses.on_heard(at(ms));
        assert_eq!(addresses.due(), None, "heard soon after the challenge, which shows no silence");
    }
    assert_eq!(addresses.on_timeout(at(100)), None);
    assert_eq!(ask(&mut addresses), 1);
    addresses.on_heard(at(2_990));
    assert_eq!((addresses.due(), ask(&mut addresses)), (Some(FourTupleRole::Current), 1));
    assert_eq!(addresses.on_timeout(at(3_050)), None, "its answer may be under way");
    assert_eq!(addresses.on_timeout(at(3_090)), Some(AddressEvent::Unreachable));
    addresses.on_heard(at(3_100));
    assert_eq!(addresses.due(), None, "that is over");
}
