//! Forks seal and open as the keys that they come from, within their quota, and what they learned comes back with them.

use std::time::Duration;

use plait_base::{Instant, PathId, Random, Side};

use crate::keys::Layout;
use crate::one_rtt::{KeyFork, OneRttKeys, PhaseMark, SealMark};
use crate::usage::KeyUsage;

const GUARD: Duration = Duration::from_millis(300);

fn seal(keys: &mut OneRttKeys, pn: u64, mark: &mut SealMark) -> Option<Vec<u8>> {
    let mut packet = vec![0x41, 0, pn as u8, 7, 7, 7, 7, 7, 7, 7, 7];
    let layout = Layout { start: 0, pn_at: 1, pn_len: 2 };
    keys.seal_packet(&mut packet, layout, PathId(1), pn, mark).ok()?;
    Some(packet)
}

fn open(keys: &mut OneRttKeys, mut packet: Vec<u8>, mark: &mut PhaseMark) -> bool {
    let unmasked = keys.unmask(&mut packet, 1).unwrap();
    keys.open(&mut packet, 3, PathId(1), unmasked.truncated, mark, Instant::ZERO, GUARD).is_ok()
}

/// Both ends, each of which has sent a packet that the other has acknowledged.
fn settled() -> (OneRttKeys, OneRttKeys) {
    let (mut a, mut b) = (OneRttKeys::null(Side::Client), OneRttKeys::null(Side::Server));
    for keys in [&mut a, &mut b] {
        let mut mark = SealMark::default();
        keys.on_handshake_confirmed(Instant::ZERO);
        seal(keys, 0, &mut mark).unwrap();
        keys.on_acked(&mark, 0, Instant::ZERO, GUARD);
    }
    (a, b)
}

#[test]
fn all_forks_together_never_pass_the_limit() {
    // RFC 9001 6.6-2
    for seed in 0..200 {
        let mut random = Random::from_u64(seed);
        let (mut keys, _) = settled();
        let limit = 100 + random.below(300);
        keys.lower_limits(limit, 1000);
        let (mut mark, mut sealed) = (SealMark::default(), 0);
        assert!(keys.fork(10).is_none(), "nothing was sent in this phase as far as the count says");
        sealed += u64::from(seal(&mut keys, 1, &mut mark).is_some());
        let mut forks: Vec<KeyFork> = Vec::new();
        for _ in 0..600 {
            match random.below(6) {
                0 => forks.extend(keys.fork(1 + random.below(60))),
                1 if !forks.is_empty() => {
                    let fork = forks.swap_remove(random.below(forks.len() as u64) as usize);
                    keys.take_back(&fork, Instant::ZERO, GUARD).unwrap();
                }
                2 => sealed += u64::from(seal(&mut keys, 2, &mut mark).is_some()),
                3 if !forks.is_empty() => {
                    if let Some(quota) = keys.more_quota(1 + random.below(60)) {
                        let at = random.below(forks.len() as u64 + 1) as usize;
                        match forks.get_mut(at) {
                            Some(fork) => fork.extend(quota),
                            None => keys.return_quota(quota),
                        }
                    }
                }
                _ => {
                    for fork in &mut forks {
                        sealed += u64::from(seal(&mut fork.keys, 3, &mut mark).is_some());
                    }
                }
            }
            assert!(sealed <= limit, "seed {seed}: {sealed} of {limit}");
        }
        for fork in forks.drain(..) {
            keys.take_back(&fork, Instant::ZERO, GUARD).unwrap();
        }
        assert_eq!(keys.usage.sealed(), sealed, "seed {seed}: the count is exact once all are back");
    }
}

#[test]
fn a_fork_opens_and_seals_as_the_original_and_follows_the_peer_to_its_next_keys() {
    // RFC 9001 6.1-2, 6.2
    let (mut a, mut b) = settled();
    let mut fork = a.fork(100).unwrap();
    let mut other = a.fork(100).unwrap();
    let (mut seals, mut opens) = (SealMark::default(), PhaseMark::default());
    let (mut far_seals, mut far_opens) = (SealMark::default(), PhaseMark::default());
    let packet = seal(&mut fork.keys, 5, &mut seals).unwrap();
    assert!(open(&mut b, packet, &mut far_opens));
    let packet = seal(&mut b, 5, &mut far_seals).unwrap();
    assert!(open(&mut fork.keys, packet, &mut opens) && !fork.has_moved_on());
    b.update(Instant::ZERO).unwrap();
    let packet = seal(&mut b, 6, &mut far_seals).unwrap();
    assert!(open(&mut fork.keys, packet, &mut opens) && fork.has_moved_on());
    a.take_back(&fork, Instant::ZERO, GUARD).unwrap();
    assert_eq!((a.phase(), a.usage.sealed()), (1, 0));
    assert!(a.fork(1).is_none(), "the peer has no packet of the new phase yet");
    // A fork of the old phase knows nothing of the new one, and gives nothing back to it.
    seal(&mut other.keys, 6, &mut seals).unwrap();
    a.take_back(&other, Instant::ZERO, GUARD).unwrap();
    assert_eq!((a.phase(), a.usage.sealed()), (1, 0));
    let packet = seal(&mut a, 7, &mut seals).unwrap();
    assert!(open(&mut b, packet, &mut far_opens), "both are in the new phase");
    assert!(a.fork(1).is_some());
}

#[test]
fn what_fails_in_forks_counts_together() {
    // RFC 9001 6.6-3
    let (mut a, _) = settled();
    a.lower_limits(1000, 2);
    seal(&mut a, 1, &mut SealMark::default()).unwrap();
    let mut forks = [a.fork(10).unwrap(), a.fork(10).unwrap(), a.fork(10).unwrap()];
    for fork in &mut forks {
        assert!(!open(&mut fork.keys, vec![0x41; 40], &mut PhaseMark::default()));
    }
    let results: Vec<bool> = forks.iter().map(|fork| a.take_back(fork, Instant::ZERO, GUARD).is_ok()).collect();
    assert_eq!(results, [true, true, false]);
    assert_ne!(a.usage.key_usage(), KeyUsage::Exhausted);
}

#[test]
fn a_fork_says_when_its_quota_comes_to_an_end() {
    let (mut a, _) = settled();
    let mut fork = a.fork(3).unwrap();
    assert!(!fork.is_used_up(3) && fork.is_used_up(4));
    let mut mark = SealMark::default();
    let sealed = (0..5).filter(|pn| seal(&mut fork.keys, *pn, &mut mark).is_some()).count();
    assert_eq!(sealed, 3);
    assert!(fork.is_used_up(1));
}

#[test]
fn forks_made_in_the_middle_of_an_update_open_late_packets_of_the_old_keys() {
    // RFC 9001 6.5
    let (mut a, mut b) = settled();
    let late = seal(&mut b, 5, &mut SealMark::default()).unwrap();
    let later = late.clone();
    a.update(Instant::ZERO).unwrap();
    let packet = seal(&mut a, 1, &mut SealMark::default()).unwrap();
    let mut fork = a.fork(100).unwrap();
    let mut opens = PhaseMark::default();
    assert!(open(&mut fork.keys, late, &mut opens), "the peer has not answered");
    assert!(open(&mut b, packet, &mut PhaseMark::default()) && b.phase() == 1);
    let packet = seal(&mut b, 6, &mut SealMark::default()).unwrap();
    assert!(open(&mut fork.keys, packet, &mut opens) && !fork.has_moved_on(), "this is no update of the peer");
    // The fork knows that the update was answered; so does the original once it is back, and keeps the old keys as long.
    let ends = fork.keys.deadline();
    assert_eq!((ends, a.deadline()), (Some(Instant::ZERO + GUARD), None));
    a.take_back(&fork, Instant::ZERO, GUARD).unwrap();
    assert_eq!(a.deadline(), ends);
    let mut fork = a.fork(100).unwrap();
    let mut before = PhaseMark::default();
    assert!(open(&mut fork.keys, later.clone(), &mut before));
    fork.keys.on_timeout(Instant::ZERO + GUARD);
    assert!(!open(&mut fork.keys, later, &mut PhaseMark::default()), "not for ever");
}

#[test]
fn once_a_quota_is_refused_new_keys_are_wanted_whatever_comes_back() {
    // RFC 9001 6.6-2
    let (mut keys, _) = settled();
    keys.lower_limits(100, 100);
    seal(&mut keys, 1, &mut SealMark::default()).unwrap();
    let (fork, quota) = (keys.fork(30).unwrap(), keys.more_quota(10).unwrap());
    assert!(!keys.wants_update(Instant::ZERO, None));
    assert!(keys.more_quota(10).is_none() && keys.wants_update(Instant::ZERO, None));
    keys.take_back(&fork, Instant::ZERO, GUARD).unwrap();
    keys.return_quota(quota);
    assert_eq!((keys.usage.sealed(), keys.wants_update(Instant::ZERO, None)), (1, true));
    keys.advance_to(1, Instant::ZERO, GUARD);
    assert!(!keys.wants_update(Instant::ZERO, None));
    // Nor does a quota of one phase help in another.
    seal(&mut keys, 2, &mut SealMark::default()).unwrap();
    let mut fork = keys.fork(3).unwrap();
    fork.extend(quota);
    keys.return_quota(quota);
    assert!(fork.is_used_up(4) && keys.usage.sealed() == 4);
}
