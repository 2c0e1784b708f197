//! Streams that keep to a path each: on one thread and where paths are lent.

use plait_base::PathId;
use plait_engine::config::StreamPlacement;
use plait_engine::schedule::reinject;
use plait_engine::{Event, PathEvent, TransportConfig};

use super::world::{End, Lending, World};
use super::{finished, fixed_windows, seeds};
use crate::puppet::ms;

/// Nothing is repeated on an idle path: whatever arrives on one was sent there.
fn pinned(config: &mut TransportConfig) {
    config.stream_placement(StreamPlacement::Pinned).reinjection(reinject::by_name("none").expect("a name"));
}

fn came_by(end: &End, world: &World, path: u32) -> u64 {
    end.connection().path_statistics(world.now, PathId(path)).expect("a path").stream_bytes_received
}

#[test]
fn each_stream_keeps_to_one_path() {
    for lending in [Lending::Never, Lending::Eager] {
        let mut world = World::new(700, 2, pinned);
        world.lend(lending, lending);
        // The second path has a tenth of the first one's rate; by the scheduler's will it would carry a tenth of either stream.
        world.slow_path = Some((2, 4_000));
        let even = world.client.send(1_000_000);
        let odd = world.client.send(300_000);
        world.run_until_done(1, 5_000);
        assert_eq!(world.server.arrived[&even], finished(1_000_000), "{lending:?}");
        assert!(!world.server.arrived[&odd].is_finished, "{lending:?}: nobody helps the slow path");
        world.run_until_done(2, 20_000);
        assert_eq!(world.server.arrived[&odd], finished(300_000), "{lending:?}");
        assert_eq!(world.client.loans > 0, lending != Lending::Never);
        let (first, second) = (came_by(&world.server, &world, 0), came_by(&world.server, &world, 1));
        // What was sent twice counts twice. A packet or two go by the other path where theirs has just fallen silent.
        assert!((997_000..1_100_000).contains(&first), "{lending:?}: {first} bytes");
        assert!((297_000..400_000).contains(&second), "{lending:?}: {second} bytes");
    }
}

#[test]
fn many_streams_arrive_whatever_becomes_of_messages_and_packets() {
    for seed in seeds(12) {
        let mut world = World::new(720 + seed, 1 + seed as usize % 4, pinned);
        let lending = [Lending::Never, Lending::Eager][seed as usize / 2 % 2];
        world.lend(lending, if seed % 3 == 0 { Lending::Never } else { Lending::Eager });
        world.message_us = [0, 50, 2_000, 20_000][seed as usize % 4];
        world.loss = [0.0, 0.01, 0.05][seed as usize % 3];
        (world.client.astray, world.server.astray) = (seed % 5 * 3, 4);
        let sizes: Vec<u64> = (0..20).map(|_| 1 + world.random.below(60_000)).collect();
        let up: Vec<_> = sizes.iter().map(|bytes| world.client.send(*bytes)).collect();
        let down = [world.server.send(400_000), world.server.send(200_000)];
        world.run_until_done(22, 60_000);
        for (id, bytes) in up.iter().zip(&sizes) {
            assert_eq!(world.server.arrived[id], finished(*bytes), "seed {seed}");
        }
        assert_eq!(down.map(|id| world.client.arrived[&id].bytes), [400_000, 200_000], "seed {seed}");
    }
}

#[test]
fn the_peers_limits_hold_and_nobody_waits_for_credit_for_ever() {
    // One stream may use up the connection's credit while the other has what was lost to send.
    for (seed, window, total) in [(1, 1_199, 30_000), (2, 65_536, 900_000), (3, 1_000_000, 1_500_000)] {
        for lending in [Lending::Never, Lending::Eager] {
            let mut world = World::new(740 + seed, 3, |config| {
                pinned(config);
                fixed_windows(config, window);
            });
            world.lend(lending, lending);
            (world.message_us, world.loss) = (300, 0.02);
            let up: Vec<_> = (0..4).map(|_| world.client.send(total)).collect();
            world.run_until_done(4, 120_000);
            assert!(up.iter().all(|id| world.server.arrived[id] == finished(total)), "window {window} {lending:?}");
        }
    }
}

#[test]
fn the_streams_of_a_path_that_dies_or_falls_silent_go_to_others() {
    for seed in seeds(8) {
        let lending = [Lending::Never, Lending::Eager][seed as usize % 2];
        let mut world = World::new(760 + seed, 3, pinned);
        world.lend(lending, lending);
        world.message_us = seed % 3 * 400;
        let up: Vec<_> = (0..6).map(|_| world.client.send(700_000)).collect();
        world.run(60 + seed % 8 * 9);
        let now = world.now;
        if lending == Lending::Eager && seed % 4 == 1 {
            // Its holder fell with all that it had.
            let gone = world.client.take_holder(0).id();
            world.client.coordinator().on_gone(now, gone);
        } else {
            world.dead_path = Some(2);
        }
        world.run_until_done(6, 60_000);
        assert!(up.iter().all(|id| world.server.arrived[id] == finished(700_000)), "seed {seed}");
    }
}

#[test]
fn a_path_that_opens_later_gets_streams_that_run_already() {
    let mut world = World::new(780, 1, pinned);
    let up = [world.client.send(2_000_000), world.client.send(2_000_000)];
    world.run(200);
    let now = world.now;
    world.open_path(1);
    world.run_until_done(2, 20_000);
    assert!(up.iter().all(|id| world.server.arrived[id] == finished(2_000_000)));
    let opened = |event: &Event| matches!(event, Event::Path(PathEvent::Established { id: PathId(1) }));
    assert!(world.client.events.iter().any(opened), "{:?}", world.client.events);
    assert!(world.now.since(now) > ms(600), "there was something left to send");
    let second = came_by(&world.server, &world, 1);
    assert!(second > 1_000_000, "the second stream went there: {second} bytes");
}
