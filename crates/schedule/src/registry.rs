//! All schedulers by the names that configuration and the command line use: one line registers one.

use crate::scheduler::SchedulerFactory;

plait_base::policies! {
    dyn SchedulerFactory, default "minrtt";
    "minrtt" => crate::minrtt::MinRttFactory,
    "round-robin" => crate::round_robin::RoundRobinFactory,
    "weighted" => crate::weighted::WeightedFactory::default(),
    "blest" => crate::blest::BlestFactory,
    "ecf" => crate::ecf::EcfFactory,
    "peekaboo" => crate::peekaboo::PeekabooFactory,
    "redundant" => crate::redundant::RedundantFactory,
    "backup" => crate::backup::BackupFactory,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::{candidates, eligible};
    use crate::decision::{Decision, WaitReason};
    use crate::scheduler::Delivery;
    use crate::view::{Backlog, Demand, DemandKind, PathView, RecentRtt, Room};
    use plait_base::observe::PathState;
    use plait_base::{Instant, PathId, Random};
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn every_name_builds_what_it_says() {
        assert!(NAMES.contains(&DEFAULT));
        for name in NAMES {
            let factory = by_name(name).unwrap();
            assert_eq!((factory.name(), factory.build(Random::from_u64(1)).name()), (name, name));
        }
        assert!(by_name("fastest").is_none());
    }

    const STATES: [PathState; 6] = [
        PathState::Active,
        PathState::Backup,
        PathState::Failed,
        PathState::Validating,
        PathState::Closing,
        PathState::Closed,
    ];
    const ROOMS: [Room; 9] = [
        Room::Free,
        Room::Window,
        Room::Paced(Instant::ZERO),
        Room::Amplification,
        Room::NoCid,
        Room::NotValidated,
        Room::CopiesOnly,
        Room::Socket(Instant::ZERO),
        Room::Stuck,
    ];

    /// Any path, extreme figures included; `id` is set later.
    fn any_path() -> impl Strategy<Value = PathView> {
        let figure = || prop_oneof![Just(0u64), 0u64..10_000_000, Just(u64::MAX)];
        let time = || prop_oneof![Just(0u64), 0u64..2_000_000_000, Just(u64::MAX)].prop_map(Duration::from_nanos);
        let rtts = (proptest::option::of(time()), time(), time(), time());
        (0usize..6, 0..ROOMS.len(), rtts, figure(), figure(), figure(), figure()).prop_map(
            |(state, room, (rtt, rtt_var, rtt_min, max), window, in_flight, ssthresh, mss)| PathView {
                state: STATES[state],
                room: ROOMS[room],
                rtt,
                rtt_var,
                rtt_min,
                rtt_flight_bytes: in_flight / 3,
                recent_rtt: RecentRtt { max, ..RecentRtt::default() },
                window_bytes: window,
                in_flight_bytes: in_flight,
                ssthresh_bytes: ssthresh,
                max_datagram_bytes: mss,
                ..PathView::new(PathId::ZERO)
            },
        )
    }

    proptest! {
        #[test]
        fn only_open_paths_of_the_best_tier_are_named(
            rounds in proptest::collection::vec(
                (proptest::collection::vec(any_path(), 0..5), any::<u64>(), any::<u64>(), any::<u64>()), 1..20),
        ) {
            for name in NAMES {
                let mut scheduler = by_name(name).unwrap().build(Random::from_u64(5));
                let mut twin = by_name(name).unwrap().build(Random::from_u64(5));
                for (paths, now, unsent, credit) in &rounds {
                    let paths: Vec<_> =
                        paths.iter().zip(0..).map(|(p, id)| PathView { id: PathId(id), ..*p }).collect();
                    let now = Instant::from_nanos(*now);
                    let kind = DemandKind::Stream;
                    let backlog = if unsent % 2 == 0 { Backlog::Growing } else { Backlog::Final };
                    let demand = Demand { now, kind, unsent_bytes: *unsent, send_credit_bytes: *credit, backlog };
                    let decision = scheduler.pick(&paths, &demand);
                    prop_assert_eq!(decision, twin.pick(&paths, &demand), "{}", name);
                    let open: Vec<_> = candidates(&paths).map(|p| p.id).collect();
                    match decision {
                        Decision::Send(id) => prop_assert!(open.contains(&id), "{}", name),
                        Decision::SendAlso { primary, copies } => {
                            prop_assert!(open.contains(&primary) && !copies.is_empty());
                            let takes_copy = |p: &PathView| matches!(p.room, Room::Free | Room::Paced(_));
                            let takers: Vec<_> = eligible(&paths).filter(|p| takes_copy(p)).map(|p| p.id).collect();
                            prop_assert!(copies.ids(&paths).all(|id| id != primary && takers.contains(&id)));
                        }
                        Decision::Wait(WaitReason::NoPath) => prop_assert_eq!(eligible(&paths).count(), 0),
                        // What is waited for will open by itself: an ack, the pacer's timer or its socket brings it.
                        Decision::Wait(WaitReason::Faster(id)) => prop_assert!(
                            eligible(&paths).any(|p| p.id == id && !p.has_room()) && !open.is_empty(), "{}", name),
                        Decision::Wait(WaitReason::Busy) => prop_assert!(name == "backup" || open.is_empty(), "{}", name),
                    }
                    for each in [&mut scheduler, &mut twin] {
                        if let Some(id) = decision.primary() {
                            each.on_sent(id, 1000, now);
                            each.on_acked(id, &Delivery { bytes: *unsent, sent_at: Instant::ZERO, now });
                        }
                        if unsent % 7 == 0 {
                            each.on_path_closing(PathId(1));
                            each.on_credit_blocked(now);
                        }
                    }
                }
            }
        }
    }
}
