//! Key phases: updates from both ends, late packets, slow paths, limits.

use plait_base::CloseCode;

use super::*;
use crate::keys::TAG_BYTES;
use crate::tls::CipherSuite;
use crate::tls::tests::one_rtt_pair;

const GUARD: Duration = Duration::from_millis(300);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// One end with what its flows keep for paths 0 to 3.
struct End {
    keys: OneRttKeys,
    seals: [SealMark; 4],
    opens: [PhaseMark; 4],
    next: [u64; 4],
}

impl End {
    fn new(keys: OneRttKeys) -> Self {
        Self { keys, seals: Default::default(), opens: Default::default(), next: [0; 4] }
    }

    /// Seals the next packet of `path`; its packet number is in its payload.
    fn send(&mut self, path: usize) -> Vec<u8> {
        self.try_send(path).unwrap()
    }

    fn try_send(&mut self, path: usize) -> Result<Vec<u8>, SealError> {
        let pn = self.next[path];
        self.next[path] += 1;
        let mut packet = vec![0x41, 0, 0];
        packet[1..].copy_from_slice(&(pn as u16).to_be_bytes());
        packet.extend_from_slice(&pn.to_be_bytes());
        let layout = Layout { start: 0, pn_at: 1, pn_len: 2 };
        self.keys.seal_packet(&mut packet, layout, PathId(path as u32), pn, &mut self.seals[path])?;
        Ok(packet)
    }

    fn receive(&mut self, path: usize, packet: &[u8], now: Instant) -> Result<KeyPhase, OpenError> {
        let mut packet = packet.to_vec();
        let unmasked = self.keys.unmask(&mut packet, 1)?;
        let mark = &mut self.opens[path];
        let opened = self.keys.open(&mut packet, 3, PathId(path as u32), unmasked.truncated, mark, now, GUARD)?;
        assert_eq!(packet[3..3 + opened.payload_bytes], unmasked.truncated.to_be_bytes());
        Ok(opened.phase)
    }

    fn acked(&mut self, path: usize, now: Instant) {
        let largest = self.next[path] - 1;
        self.keys.on_acked(&self.seals[path], largest, now, GUARD);
    }
}

/// Both ends, handshake confirmed, for each kind of keys.
fn pairs() -> Vec<(End, End)> {
    let ready = |mut keys: OneRttKeys| {
        keys.on_handshake_confirmed(at(0));
        End::new(keys)
    };
    let mut all = vec![(OneRttKeys::null(Side::Client), OneRttKeys::null(Side::Server))];
    all.extend(CipherSuite::ALL.map(one_rtt_pair));
    all.into_iter().map(|(a, b)| (ready(a), ready(b))).collect()
}

#[test]
fn update_by_either_end() {
    // RFC 9001 6-1, 6.2-1, 6.3-2
    for (mut a, mut b) in pairs() {
        for round in 1..=4 {
            let now = at(10_000 * round);
            let (starter, other) = if round % 2 == 1 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let first = starter.send(0);
            assert_eq!(other.receive(0, &first, now), Ok(KeyPhase::Current));
            starter.acked(0, now);
            // RFC 9001 6.5: after the first update there is a wait.
            let start = if round == 1 { now } else { now + GUARD };
            starter.keys.update(start).unwrap();
            let (update, second) = (starter.send(0), starter.send(1));
            // The other end still sends with old keys.
            let late = other.send(2);
            assert_eq!(other.receive(0, &update, start), Ok(KeyPhase::Next));
            assert_eq!(other.keys.phase(), round);
            assert_eq!(other.receive(1, &second, start), Ok(KeyPhase::Current), "one phase for all paths");
            let answer = other.send(0);
            assert_eq!(starter.receive(2, &late, start), Ok(KeyPhase::Previous));
            assert_eq!(starter.receive(0, &answer, start), Ok(KeyPhase::Current));
            assert_eq!(starter.keys.phase(), round);
            for end in [&mut *starter, other] {
                assert_eq!(end.keys.deadline(), Some(start + GUARD));
                end.keys.on_timeout(start + GUARD);
                assert_eq!(end.keys.deadline(), None);
            }
        }
    }
}

#[test]
fn slow_path_delivers_packets_of_the_previous_phase() {
    // RFC 9001 6.1-3, 6.3-2
    for (mut a, mut b) in pairs() {
        let now = at(0);
        // Paths 0 and 1 are heard; what is sent on 1 and 2 next stays long on the way.
        for path in [0, 1] {
            let packet = a.send(path);
            b.receive(path, &packet, now).unwrap();
        }
        let slow: Vec<_> = [1, 1, 2, 2].map(|path| (path, a.send(path))).into();
        a.acked(0, now);
        a.keys.update(now).unwrap();
        let flip = a.send(0);
        assert_eq!(b.receive(0, &flip, now), Ok(KeyPhase::Next));
        // No packet of the new phase was heard on these paths: still old while old keys are kept.
        assert_eq!(b.receive(1, &slow[0].1, at(100)), Ok(KeyPhase::Previous));
        assert_eq!(b.receive(2, &slow[2].1, at(100)), Ok(KeyPhase::Previous));
        // Once one was heard, lower numbers are old.
        let (new1, new2) = (a.send(1), a.send(2));
        assert_eq!(b.receive(1, &new1, at(200)), Ok(KeyPhase::Current));
        assert_eq!(b.receive(1, &slow[1].1, at(200)), Ok(KeyPhase::Previous));
        // Past the guard time old packets are dropped, and no harm done.
        b.keys.on_timeout(at(299));
        assert!(b.keys.deadline().is_some());
        b.keys.on_timeout(at(300));
        assert_eq!(b.receive(1, &slow[1].1, at(301)), Err(OpenError::NoKeys));
        assert_eq!(b.receive(2, &slow[3].1, at(301)), Err(OpenError::Forged), "taken for the next phase");
        assert_eq!(b.keys.phase(), 1);
        assert_eq!(b.receive(2, &new2, at(302)), Ok(KeyPhase::Current));
        assert_eq!(b.receive(2, &slow[3].1, at(303)), Err(OpenError::NoKeys));
        let back = b.send(3);
        assert_eq!(a.receive(3, &back, at(303)), Ok(KeyPhase::Current));
    }
}

#[test]
fn next_keys_are_there_when_they_can_be_needed() {
    // RFC 9001 6.1, 6.3
    for (mut a, mut b) in pairs() {
        let packet = a.send(0);
        b.receive(0, &packet, at(0)).unwrap();
        let packet = b.send(0);
        a.receive(0, &packet, at(0)).unwrap();
        assert!(a.keys.next.is_none() && b.keys.next.is_none(), "nobody may update yet");
        a.acked(0, at(1));
        b.acked(0, at(1));
        let packet = a.send(0);
        b.receive(0, &packet, at(1)).unwrap();
        assert!(a.keys.next.is_some() && b.keys.next.is_some());
    }
}

#[test]
fn keys_are_the_same_after_a_rest() {
    // RFC 9001 9.5
    for (mut a, mut b) in pairs() {
        for round in 1..=4 {
            let now = at(round * 1000);
            let packet = a.send(0);
            b.receive(0, &packet, now).unwrap();
            a.acked(0, now);
            let packet = b.send(0);
            a.receive(0, &packet, now).unwrap();
            b.acked(0, now);
            for end in [&mut a, &mut b] {
                end.keys.rest();
                assert!(end.keys.next.is_none());
            }
            // A packet of any phase wakes it, one that is forged too. Its header is given, since what unmasking makes of
            // random bytes is random: a low number of another phase would count as late.
            for first in [0x41, 0x41 | PHASE_BIT] {
                let (mut forged, number) = ([first; 40], a.next[0] + 9);
                let opened = b.keys.open(&mut forged, 3, PathId(0), number, &mut b.opens[0], now, GUARD);
                assert_eq!(opened, Err(OpenError::Forged));
                assert!(b.keys.next.is_some());
                b.keys.rest();
            }
            a.keys.update(now + GUARD).unwrap();
            let packet = a.send(0);
            assert_eq!(b.receive(0, &packet, now + GUARD), Ok(KeyPhase::Next));
            let packet = b.send(0);
            assert_eq!(a.receive(0, &packet, now + GUARD), Ok(KeyPhase::Current));
            assert_eq!((a.keys.phase(), b.keys.phase()), (round, round));
            b.keys.on_timeout(now + 2 * GUARD);
            a.keys.on_timeout(now + 2 * GUARD);
        }
    }
}

#[test]
fn both_ends_update_at_once() {
    for (mut a, mut b) in pairs() {
        let (x, y) = (a.send(0), b.send(0));
        a.receive(0, &y, at(0)).unwrap();
        b.receive(0, &x, at(0)).unwrap();
        for end in [&mut a, &mut b] {
            end.acked(0, at(0));
            end.keys.update(at(0)).unwrap();
        }
        let (x, y) = (a.send(0), b.send(0));
        assert_eq!((a.receive(0, &y, at(1)), b.receive(0, &x, at(1))), (Ok(KeyPhase::Current), Ok(KeyPhase::Current)));
        assert_eq!((a.keys.phase(), b.keys.phase()), (1, 1));
    }
}

#[test]
fn own_update_waits_for_its_conditions() {
    // RFC 9001 6.1-1, 6.1-2, 6.5
    let (a, _) = one_rtt_pair(CipherSuite::Aes128Gcm);
    let mut a = End::new(a);
    a.send(0);
    a.acked(0, at(0));
    assert_eq!(a.keys.update(at(0)), Err(UpdateRefused::HandshakeNotConfirmed));
    a.keys.on_handshake_confirmed(at(0));
    a.keys.update(at(0)).unwrap();
    assert_eq!(a.keys.update(at(1)), Err(UpdateRefused::Unacknowledged));
    // An ack of the former phase, or of a path without packets in this one, confirms nothing.
    a.keys.on_acked(&a.seals[0], 0, at(1), GUARD);
    a.send(1);
    a.keys.on_acked(&a.seals[0], 0, at(1), GUARD);
    a.keys.on_acked(&a.seals[2], 7, at(1), GUARD);
    assert_eq!(a.keys.may_update(at(1)), Err(UpdateRefused::Unacknowledged));
    a.acked(1, at(50));
    // A later ack does not push the time back.
    a.acked(1, at(60));
    assert_eq!(a.keys.update(at(100)), Err(UpdateRefused::TooSoon(at(350))));
    assert_eq!(a.keys.update(at(350)), Ok(()));
    assert_eq!(a.keys.phase(), 2);
}

#[test]
fn peer_that_updates_twice_without_an_answer_is_closed() {
    // RFC 9001 5.5-1
    let (mut a, mut b) = pairs().remove(1);
    let first = a.send(0);
    b.receive(0, &first, at(0)).unwrap();
    for expected in [Ok(KeyPhase::Next), Err(OpenError::Violation(Violation::KeyUpdateTooSoon))] {
        // This peer believes that it may.
        a.keys.update_from = Some(at(0));
        a.keys.update(at(0)).unwrap();
        let flip = a.send(0);
        assert_eq!(b.receive(0, &flip, at(1)), expected);
    }
    assert_eq!(Violation::KeyUpdateTooSoon.code(), CloseCode::KEY_UPDATE_ERROR);
}

#[test]
fn two_answered_updates_within_the_guard_time() {
    for (mut a, mut b) in pairs() {
        let mut late = Vec::new();
        for round in 0..4 {
            let packet = a.send(0);
            b.receive(0, &packet, at(round)).unwrap();
            let answer = b.send(0);
            a.receive(0, &answer, at(round)).unwrap();
            late.push(a.send(0));
            a.keys.update_from = Some(at(0));
            a.keys.update(at(round)).unwrap();
        }
        assert_eq!(b.keys.phase(), 3);
        // Of the late packets only those of this phase and the one before still open.
        assert_eq!(b.receive(0, &late[3], at(9)), Ok(KeyPhase::Current));
        assert_eq!(b.receive(0, &late[2], at(9)), Ok(KeyPhase::Previous));
        assert_eq!(b.receive(0, &late[1], at(9)), Err(OpenError::Forged));
    }
}

#[test]
fn numbers_must_not_run_against_phases() {
    // RFC 9001 6.4-1, 6.4-2: old keys for a number above one with new keys.
    let (mut a, mut b) = pairs().remove(2);
    for path in [0, 1] {
        let packet = a.send(path);
        b.receive(path, &packet, at(0)).unwrap();
    }
    // On path 1 number 5 goes out with old keys, number 3 with new ones.
    a.next[1] = 5;
    let high_old = a.send(1);
    a.acked(0, at(0));
    a.keys.update(at(0)).unwrap();
    a.next[1] = 3;
    let low_new = a.send(1);
    assert_eq!(b.receive(1, &high_old, at(1)), Ok(KeyPhase::Current));
    let flip = a.send(0);
    b.receive(0, &flip, at(1)).unwrap();
    assert_eq!(b.receive(1, &low_new, at(1)), Err(OpenError::Violation(Violation::KeyPhaseRegressed)));
}

#[test]
fn choice_without_marks() {
    let mut keys = OneRttKeys::null(Side::Client);
    let fresh = PhaseMark::default();
    assert_eq!(keys.phase_of(false, 0, &fresh), KeyPhase::Current);
    assert_eq!(keys.phase_of(true, 0, &fresh), KeyPhase::Next);
    keys.on_handshake_confirmed(at(0));
    keys.update_from = Some(at(0));
    keys.update(at(0)).unwrap();
    assert_eq!(keys.phase_of(true, 0, &fresh), KeyPhase::Current);
    assert_eq!(keys.phase_of(false, u64::MAX, &fresh), KeyPhase::Previous, "the peer cannot be ahead");
    assert_eq!(keys.deadline(), None, "old keys wait for the peer's answer");
}

#[test]
fn confidentiality_limit() {
    // RFC 9001 5.3-3
    // RFC 9001 6.6-1, 6.6-2, 6.6-3, 6.6-4, counted over all paths
    let (mut a, mut b) = pairs().remove(1);
    assert_eq!(a.keys.usage.sealed(), 0);
    a.keys.lower_limits(8, 4);
    for n in 0..8 {
        let expected = if n < 4 { KeyUsage::Fine } else { KeyUsage::NearLimit };
        assert_eq!(a.keys.key_usage(), expected);
        let packet = a.send(n % 4);
        b.receive(n % 4, &packet, at(0)).unwrap();
    }
    assert_eq!(a.keys.key_usage(), KeyUsage::Exhausted);
    assert_eq!(a.try_send(0), Err(SealError::Exhausted));
    let error = plait_base::TransportError::from(SealError::Exhausted);
    assert_eq!(error.code, CloseCode::AEAD_LIMIT_REACHED);
    // An update makes room again.
    a.keys.on_acked(&a.seals[3], 1, at(0), GUARD);
    a.keys.update(at(0)).unwrap();
    assert_eq!(a.keys.key_usage(), KeyUsage::Fine);
    let packet = a.send(0);
    assert_eq!(b.receive(0, &packet, at(0)), Ok(KeyPhase::Next));
}

#[test]
fn integrity_limit_outlives_updates() {
    // RFC 9001 6.6-5, 6.6-6: across all keys
    let (mut a, mut b) = pairs().remove(3);
    b.keys.lower_limits(100, 2);
    let forge = |end: &mut End, now| end.receive(0, &[0x55; 40], now).unwrap_err();
    // Which keys a forgery meets depends on its phase bit; both count.
    assert_eq!(forge(&mut b, at(0)), OpenError::Forged);
    let packet = a.send(0);
    b.receive(0, &packet, at(0)).unwrap();
    a.acked(0, at(0));
    a.keys.update(at(0)).unwrap();
    let flip = a.send(0);
    b.receive(0, &flip, at(0)).unwrap();
    assert_eq!(forge(&mut b, at(0)), OpenError::Forged);
    assert_eq!(b.keys.usage.forged(), 2);
    assert_eq!(forge(&mut b, at(0)), OpenError::Violation(Violation::AeadIntegrityLimit));
}

#[test]
fn limits_are_those_of_the_ciphers() {
    let limits = |suite| {
        let key = one_rtt_pair(suite).0.current.seal;
        (key.confidentiality_limit(), key.integrity_limit())
    };
    assert_eq!(limits(CipherSuite::Aes128Gcm), (1 << 23, 1 << 52));
    assert_eq!(limits(CipherSuite::Aes256Gcm), (1 << 23, 1 << 52));
    assert_eq!(limits(CipherSuite::ChaCha20Poly1305), (u64::MAX, 1 << 36));
}

#[test]
fn noise_never_panics() {
    // RFC 9001 5.5-1, 5.5-2
    let mut random = plait_base::Random::from_u64(4);
    for (_, mut b) in pairs() {
        for _ in 0..2_000 {
            let mut packet = vec![0; random.below(60) as usize];
            random.fill(&mut packet);
            let (path, now) = (random.below(4) as usize, at(random.below(1000)));
            assert!(b.receive(path, &packet, now).is_err());
        }
        assert_eq!(b.keys.phase(), 0);
    }
    assert_eq!(TAG_BYTES, 16);
}
