//! All controllers by the names that configuration and the command line use: one line registers one.
//!
//! `newreno`, `cubic` and `bbr` are uncoupled: over a shared bottleneck each path takes a flow's share. `lia`, `olia`,
//! `balia` and `coupled-cubic` couple all paths, `coupled-bbr` and `auto` those that are not found to be apart.

use crate::controller::ControllerFactory;

plait_base::policies! {
    dyn ControllerFactory, default "cubic";
    "newreno" => crate::newreno::NewRenoFactory::default(),
    "cubic" => crate::cubic::CubicFactory::default(),
    "bbr" => crate::bbr::BbrFactory,
    "lia" => crate::lia::LiaFactory::default(),
    "olia" => crate::olia::OliaFactory::default(),
    "balia" => crate::balia::BaliaFactory::default(),
    "coupled-cubic" => crate::coupled_cubic::CoupledCubicFactory::default(),
    "coupled-bbr" => crate::bbr::CoupledBbrFactory,
    "auto" => crate::auto::AutoFactory::default(),
}

/// The name of the one that acts over several paths where nobody chose; [`DEFAULT`] is that of one path.
pub const MULTIPATH_DEFAULT: &str = "auto";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Acked, CongestionKind, Limit, RttSample};
    use crate::facts::{acked, congestion, metrics, shared};
    use plait_base::{Instant, PathId};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn every_name_builds_what_it_says() {
        assert!(NAMES.contains(&DEFAULT) && NAMES.contains(&MULTIPATH_DEFAULT));
        for name in NAMES {
            let factory = by_name(name).unwrap();
            let controller = factory.build(PathId::ZERO, Instant::ZERO, 1200);
            assert_eq!((factory.name(), controller.name()), (name, name));
            assert_eq!(controller.window(), 12_000);
        }
        assert!(by_name("reno").is_none());
    }

    #[test]
    fn only_coupled_controllers_read_the_board() {
        let coupled: Vec<_> = NAMES
            .into_iter()
            .filter(|n| by_name(n).unwrap().build(PathId::ZERO, Instant::ZERO, 1200).is_coupled())
            .collect();
        assert_eq!(coupled, ["lia", "olia", "balia", "coupled-cubic", "coupled-bbr", "auto"]);
    }

    #[test]
    fn acks_that_are_home_sooner_make_nobody_greedy() {
        // The sender counts what was acked as in flight until its ack would have come the own way, after 200 ms. So a window is
        // acked in that time, however soon, and has to grow as if acks took that way.
        let own_rtt = Duration::from_millis(200);
        for name in
            NAMES.iter().filter(|name| by_name(name).unwrap().build(PathId::ZERO, Instant::ZERO, 1000).is_ack_clocked())
        {
            let grown = |acks_after: Duration| {
                let mut path = by_name(name).unwrap().build(PathId::ZERO, Instant::ZERO, 1000);
                let shortcut = own_rtt - acks_after;
                let rtt = RttSample {
                    latest: acks_after,
                    smoothed: acks_after,
                    min: acks_after,
                    shortcut,
                    ..RttSample::default()
                };
                path.on_acked(&acked(400_000), &shared(&[]));
                path.on_congestion(&congestion(CongestionKind::Loss), &shared(&[]));
                let before = path.window();
                for round in 0..50 {
                    let (now, bytes) = (Instant::from_nanos(1_000_000_000) + own_rtt * round, path.window());
                    path.on_acked(&Acked { now, rtt, ..acked(bytes) }, &shared(&[]));
                }
                path.window() as f64 / before as f64
            };
            let (own, shorter) = (grown(own_rtt), grown(own_rtt / 2));
            assert!((shorter / own - 1.0).abs() < 0.02, "{name}: grows by {shorter}, not {own}");
        }
    }

    #[test]
    fn a_longer_way_back_leaves_the_rate_as_it_was() {
        for name in NAMES {
            for lossy in [false, true] {
                let mut path = by_name(name).unwrap().build(PathId::ZERO, Instant::ZERO, 1000);
                path.on_acked(&acked(100_000), &shared(&[]));
                if lossy {
                    path.on_congestion(&congestion(CongestionKind::Loss), &shared(&[]));
                }
                let (window, threshold) = (path.window(), path.ssthresh());
                path.on_longer_way_back(1.5);
                let expected = if path.is_ack_clocked() { window + window / 2 } else { window };
                assert_eq!(path.window(), expected, "{name}");
                let is_same = threshold == crate::NO_THRESHOLD || !path.is_ack_clocked();
                assert_eq!(path.ssthresh(), if is_same { threshold } else { threshold + threshold / 2 }, "{name}");
                // What a false event would give back is of the shorter round trip.
                path.on_spurious();
                assert!(path.window() >= expected, "{name}");
            }
        }
    }

    /// Facts in any order: acks (bytes, RTT in microseconds, limit) and events.
    fn facts() -> impl Strategy<Value = Vec<(u8, u64, u64, u64)>> {
        proptest::collection::vec((0u8..10, 0u64..200_000, 0u64..3_000_000, 0u64..1_000_000_000), 1..200)
    }

    proptest! {
        #[test]
        fn any_facts_leave_a_sane_window(facts in facts()) {
            // RFC 9002 7-1
            for name in NAMES {
                let mut controller = by_name(name).unwrap().build(PathId::ZERO, Instant::ZERO, 1200);
                let mut twin = by_name(name).unwrap().build(PathId::ZERO, Instant::ZERO, 1200);
                let shared = shared(&[metrics(1, 30_000, 40), metrics(2, 3_000, 300)]);
                let (mut now, mut mss) = (Instant::ZERO, 1200);
                for (kind, bytes, rtt_us, step) in &facts {
                    now += Duration::from_nanos(*step);
                    let before = controller.window();
                    for c in [&mut controller, &mut twin] {
                        match kind {
                            0 => c.on_congestion(&congestion(CongestionKind::Loss), &shared),
                            1 if bytes % 4 == 0 => c.on_congestion(&congestion(CongestionKind::Persistent), &shared),
                            2 => c.on_spurious(),
                            4 if bytes % 16 == 0 => c.on_longer_way_back(1.0),
                            3 => {
                                mss = 1200 + bytes % 8000;
                                c.on_max_datagram_bytes(mss);
                            }
                            _ => {
                                let latest = Duration::from_micros(*rtt_us);
                                let rtt = RttSample { latest, smoothed: latest, min: latest, ..RttSample::default() };
                                let limit = if kind % 2 == 0 { Limit::Window } else { Limit::Application };
                                c.on_acked(&Acked { now, rtt, limit, ..acked(*bytes) }, &shared);
                            }
                        }
                    }
                    prop_assert!(controller.window() >= 2 * mss, "{} {}", name, controller.window());
                    prop_assert_eq!(controller.window(), twin.window());
                    // BBR's window follows its model of the path, not the acks.
                    if *kind > 3 && !name.ends_with("bbr") {
                        // At most slow start's doubling, or OLIA's two segments per two-segment window.
                        prop_assert!(controller.window() <= before + 2 * bytes + mss, "{} {}", name, before);
                        prop_assert!(kind % 2 == 0 || controller.window() == before, "{}", name);
                    }
                }
            }
        }
    }
}
