//! Controllers against each other: rounds of acks over shared or separate bottlenecks, losses by window share.

use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId, Random};
use plait_congestion::{
    Acked, Congestion, CongestionController, CongestionKind, Limit, RateSample, RttSample, by_name,
};

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(50);

/// One path of one connection over one bottleneck.
struct Path {
    controller: Box<dyn CongestionController>,
    id: PathId,
    connection: usize,
    bottleneck: usize,
    delivered: u64,
}

fn path(name: &str, id: u32, connection: usize, bottleneck: usize) -> Path {
    let controller = by_name(name).unwrap().build(PathId(id), Instant::ZERO, MSS);
    Path { controller, id: PathId(id), connection, bottleneck, delivered: 0 }
}

/// Plays `rounds` round trips; each bottleneck takes `capacity` bytes a round. Returns bytes delivered per path in the
/// second half.
fn play(paths: &mut [Path], capacity: u64, rounds: u64) -> Vec<u64> {
    let mut random = Random::from_u64(11);
    let mut shared = vec![SharedPathMetrics::default(); paths.len()];
    for round in 0..rounds {
        let now = Instant::ZERO + RTT * (round as u32 + 1);
        let bottlenecks = paths.iter().map(|p| p.bottleneck).max().unwrap_or(0) + 1;
        for bottleneck in 0..bottlenecks {
            let total: u64 = paths.iter().filter(|p| p.bottleneck == bottleneck).map(|p| p.controller.window()).sum();
            // A packet of a random flow hits the full queue: flows lose in proportion to their windows.
            let mut victim = random.below(total.max(1));
            for path in paths.iter_mut().filter(|p| p.bottleneck == bottleneck) {
                let (window, shared) = (path.controller.window(), &mut shared[path.connection]);
                let hit = total > capacity && victim < window;
                victim = if victim < window { u64::MAX } else { victim - window };
                for _ in 0..window / MSS {
                    path.controller.on_acked(&acked(path.id, now, round), shared);
                }
                path.delivered += if round * 2 >= rounds { window } else { 0 };
                if hit {
                    let kind = CongestionKind::Loss;
                    let event =
                        Congestion { path: path.id, now, sent_at: now, kind, lost_bytes: MSS, in_flight: window };
                    path.controller.on_congestion(&event, shared);
                }
                shared.update(PathMetrics {
                    window_bytes: path.controller.window(),
                    ssthresh_bytes: path.controller.ssthresh(),
                    rtt: Some(RTT),
                    max_datagram_bytes: MSS,
                    active: true,
                    between_losses_bytes: path.controller.between_losses_bytes(),
                    ..PathMetrics::new(path.id)
                });
            }
        }
    }
    paths.iter().map(|p| p.delivered).collect()
}

fn acked(path: PathId, now: Instant, round: u64) -> Acked {
    Acked {
        path,
        now,
        bytes: MSS,
        bytes_total: MSS,
        sent_at: now - RTT,
        largest: round,
        next_number: round + 1,
        rtt: RttSample { latest: RTT, smoothed: RTT, min: RTT, ..RttSample::default() },
        in_flight: 0,
        limit: Limit::Window,
        delivery: RateSample {
            total_bytes: MSS,
            prior_bytes: 0,
            interval: RTT,
            flight_bytes: MSS,
            lost_bytes: 0,
            limit: Limit::Window,
        },
    }
}

/// Two paths of one connection and one NewReno over one bottleneck: the connection's rate over NewReno's.
fn share(name: &str) -> f64 {
    let mut paths = [path(name, 0, 0, 0), path(name, 1, 0, 0), path("newreno", 0, 1, 0)];
    let delivered = play(&mut paths, 100 * MSS, 20_000);
    (delivered[0] + delivered[1]) as f64 / delivered[2] as f64
}

#[test]
fn coupled_paths_share_a_bottleneck_like_one_flow() {
    for name in ["lia", "olia", "balia"] {
        let share = share(name);
        assert!((0.6..1.5).contains(&share), "{name} {share}");
    }
    let uncoupled = share("newreno");
    assert!((1.7..2.3).contains(&uncoupled), "newreno {uncoupled}");
}

#[test]
fn every_controller_fills_two_separate_bottlenecks() {
    // BBR goes by rates, which rounds do not have.
    for name in plait_congestion::NAMES.into_iter().filter(|name| !name.ends_with("bbr")) {
        let mut paths = [path(name, 0, 0, 0), path(name, 1, 0, 1)];
        let delivered = play(&mut paths, 50 * MSS, 4000);
        for bytes in &delivered {
            // Of 50 segments in each of 2000 rounds; halving at 50 leaves three quarters.
            let share = *bytes as f64 / (50 * MSS * 2000) as f64;
            assert!((0.65..1.02).contains(&share), "{name} {delivered:?}");
        }
    }
}

#[test]
fn olia_leaves_the_congested_path() {
    // Path 0 shares its bottleneck with four NewRenos, path 1 is alone: it should carry nearly all.
    let mut paths = vec![path("olia", 0, 0, 0), path("olia", 1, 0, 1)];
    paths.extend((1..5).map(|i| path("newreno", 0, i, 0)));
    let delivered = play(&mut paths, 60 * MSS, 10_000);
    assert!(delivered[0] * 5 < delivered[1], "{delivered:?}");
    assert!(delivered[0] * 2 < delivered[2], "{delivered:?}");
}
