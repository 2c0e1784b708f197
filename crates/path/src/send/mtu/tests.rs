//! The search for the largest datagram over simulated links.

use proptest::prelude::*;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Runs the search until it rests over a link that passes up to `link` bytes; the number of probes sent.
fn search(mtu: &mut Mtu, link: u16, start: u64) -> usize {
    for probes in 0..200 {
        let now = at(start + probes as u64);
        let Some(size) = mtu.mtu_probe_due(now) else { return probes };
        mtu.on_mtu_probe_sent(size);
        assert_eq!(mtu.mtu_probe_due(now), None, "one probe at a time");
        if size <= link {
            mtu.on_mtu_probe_acked(now, size);
        } else {
            mtu.on_mtu_probe_lost(now, size);
        }
    }
    panic!("the search does not end")
}

#[test]
fn whole_ceiling_costs_one_probe() {
    let mut mtu = Mtu::new(MtuConfig::default());
    assert_eq!(mtu.current(), 1200);
    assert_eq!((search(&mut mtu, 1500, 0), mtu.current()), (1, 1452));
}

#[test]
fn jumbo_ceiling_tries_ethernet_first() {
    let mut mtu = Mtu::new(MtuConfig { max: 65_527, ..MtuConfig::default() });
    assert_eq!(mtu.mtu_probe_due(at(0)), Some(1452));
    search(&mut mtu, 9000, 0);
    assert!(mtu.current() > 9000 - GRANULARITY && mtu.current() <= 9000, "{}", mtu.current());
}

#[test]
fn peer_limit_holds() {
    let mut mtu = Mtu::new(MtuConfig { max: 9000, ..MtuConfig::default() });
    mtu.set_peer_max(1400);
    search(&mut mtu, 9000, 0);
    assert_eq!(mtu.current(), 1400);
    mtu.reset();
    search(&mut mtu, 9000, 1000);
    assert_eq!(mtu.current(), 1400);
}

#[test]
fn one_lost_probe_is_no_verdict() {
    let mut mtu = Mtu::new(MtuConfig::default());
    for _ in 0..MAX_MTU_PROBES - 1 {
        let size = mtu.mtu_probe_due(at(0)).unwrap();
        assert_eq!(size, 1452);
        mtu.on_mtu_probe_sent(size);
        mtu.on_mtu_probe_lost(at(0), size);
    }
    mtu.on_mtu_probe_sent(1452);
    assert_eq!(mtu.on_mtu_probe_acked(at(0), 1452), Some(1452));
}

#[test]
fn raise_timer_searches_again() {
    let mut mtu = Mtu::new(MtuConfig::default());
    search(&mut mtu, 1300, 0);
    let small = mtu.current();
    assert!(small > 1280 && small <= 1300);
    let again = mtu.paused_until.unwrap();
    assert_eq!(mtu.mtu_probe_due(again - Duration::from_millis(1)), None);
    search(&mut mtu, 1500, again.as_nanos() / 1_000_000 + 1);
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn black_hole_is_found_and_left() {
    let mut mtu = Mtu::new(MtuConfig::default());
    search(&mut mtu, 1500, 0);
    mtu.on_acked(0, 1452);
    // From packet 1 on large packets vanish; small ones (acks, probes) pass.
    let mut number = 1;
    let mut reduced = None;
    while reduced.is_none() && number < 40 {
        reduced = mtu.on_lost(at(number), number, 1452);
        mtu.on_acked(number + 1, 60);
        number += 2;
    }
    assert_eq!((reduced, mtu.current()), (Some(1200), 1200));
    assert!(number < 10, "found within a few episodes");
    // Not probed before the pause is over; then found again.
    assert_eq!(mtu.mtu_probe_due(at(1000)), None);
    search(&mut mtu, 1500, 61_000);
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn congestion_is_no_black_hole() {
    let mut mtu = Mtu::new(MtuConfig::default());
    search(&mut mtu, 1500, 0);
    // Losses of large packets with large packets acked in between.
    for number in (0..1000).step_by(2) {
        assert_eq!(mtu.on_lost(at(0), number, 1452), None);
        mtu.on_acked(number + 1, 1452);
    }
    // Episodes that take small packets as well.
    for number in (2000..3000).step_by(3) {
        assert_eq!(mtu.on_lost(at(0), number, 1452), None);
        assert_eq!(mtu.on_lost(at(0), number + 1, 80), None);
    }
    assert_eq!(mtu.current(), 1452);
    assert!(mtu.episodes.len() <= BLACK_HOLE_EPISODES + 1);
}

#[test]
fn silence_suspects_size() {
    let mut mtu = Mtu::new(MtuConfig::default());
    search(&mut mtu, 1500, 0);
    assert_eq!((mtu.on_pto(at(0), 1), mtu.on_pto(at(0), 2), mtu.on_pto(at(0), 3)), (None, None, Some(1200)));
    assert_eq!(mtu.on_pto(at(0), 4), None);
}

#[test]
fn system_refusal_lowers_the_ceiling() {
    // RFC 9000 14.2.1-1, 14.2.1-3
    let mut mtu = Mtu::new(MtuConfig { max: 9000, ..MtuConfig::default() });
    assert_eq!(mtu.on_too_large(at(0), 1401), None, "no datagram in use is as large");
    search(&mut mtu, 9000, 0);
    assert!(mtu.current() <= 1400 && mtu.current() > 1380);
}

#[test]
fn system_refusal_of_the_size_in_use_begins_a_search_below_it() {
    let mut mtu = Mtu::new(MtuConfig { initial: 1400, max: 1452, ..MtuConfig::default() });
    assert_eq!(mtu.current(), 1400);
    assert_eq!(mtu.on_too_large(at(0), 1400), Some(1200));
    search(&mut mtu, 1312, 0);
    assert!(mtu.current() <= 1312 && mtu.current() > 1312 - GRANULARITY, "{}", mtu.current());
    // A search that rests begins anew when what it found is refused.
    let found = mtu.current();
    assert_eq!(mtu.on_too_large(at(1), found), Some(1200));
    assert_eq!(mtu.on_too_large(at(1), 1200), None, "nothing smaller than the base is ever tried");
    search(&mut mtu, 1250, 2);
    assert!(mtu.current() <= 1250 && mtu.current() > 1250 - GRANULARITY, "{}", mtu.current());
}

#[test]
fn an_initial_size_that_never_passed_is_given_up_at_the_first_silence() {
    // RFC 8899 4.3, RFC 9000 14.2
    let config = MtuConfig { initial: 1400, max: 1400, ..MtuConfig::default() };
    let mut mtu = Mtu::new(config);
    assert_eq!(mtu.on_pto(at(0), 1), Some(1200));
    assert_eq!(mtu.paused_until, None, "nothing that passed before vanished");
    search(&mut mtu, 1312, 1);
    assert!(mtu.current() <= 1312 && mtu.current() > 1312 - GRANULARITY, "{}", mtu.current());

    // Also where a search was asked for before, found nothing larger to try and rests.
    let mut mtu = Mtu::new(config);
    assert_eq!(mtu.mtu_probe_due(at(0)), None);
    assert_eq!(mtu.on_pto(at(1), 1), Some(1200));
    assert!(mtu.mtu_probe_due(at(1)).is_some(), "the search for what passes begins at once");

    // One that was seen to pass, be it in the handshake, has the patience of any other.
    let mut mtu = Mtu::new(config);
    mtu.on_size_proven(1400);
    assert_eq!((mtu.on_pto(at(0), 1), mtu.on_pto(at(0), 2), mtu.on_pto(at(0), 3)), (None, None, Some(1200)));
    assert!(mtu.paused_until.is_some());
}

#[test]
fn losses_of_the_initial_size_alone_reveal_that_it_does_not_pass() {
    let mut mtu = Mtu::new(MtuConfig { initial: 1400, max: 1452, ..MtuConfig::default() });
    let mut number = 0;
    while mtu.current() == 1400 && number < 40 {
        mtu.on_lost(at(number), number, 1400);
        mtu.on_acked(number + 1, 60);
        number += 2;
    }
    assert_eq!(mtu.current(), 1200);
    assert!(number < 10, "found within a few episodes");
    assert_eq!(mtu.mtu_probe_due(at(50)), Some(1452), "the search begins at once");
}

#[test]
fn no_fall_exceeds_what_the_peer_takes() {
    let mut mtu = Mtu::new(MtuConfig { base: 1400, max: 1452, ..MtuConfig::default() });
    mtu.set_peer_max(1300);
    assert_eq!((mtu.current(), mtu.on_pto(at(0), 3)), (1300, None));
}

#[test]
fn off_means_off() {
    let mut mtu = Mtu::new(MtuConfig { search: MtuSearch::Off, ..MtuConfig::default() });
    assert_eq!((mtu.mtu_probe_due(at(0)), mtu.current()), (None, 1200));
    // Also when it is said in the middle of a search; what arrived by then counts.
    let mut mtu = Mtu::new(MtuConfig::default());
    let size = mtu.mtu_probe_due(at(0)).unwrap();
    mtu.on_mtu_probe_sent(size);
    mtu.stop_search();
    assert_eq!((mtu.on_mtu_probe_acked(at(1), 1452), mtu.mtu_probe_due(at(2))), (Some(1452), None));
    mtu.reset();
    assert_eq!((mtu.mtu_probe_due(at(3)), mtu.current()), (None, 1200));
}

proptest! {
    #[test]
    fn search_ends_close_below_the_link(link in 1200u16.., max in 1200u16..=65_527) {
        let mut mtu = Mtu::new(MtuConfig { max, ..MtuConfig::default() });
        let probes = search(&mut mtu, link, 0);
        let best = link.min(max);
        prop_assert!(mtu.current() <= best);
        prop_assert!(best - mtu.current() < GRANULARITY, "{} of {best}", mtu.current());
        prop_assert!(probes <= 70, "{probes}");
    }
}
