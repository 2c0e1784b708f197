//! A scheduler of one's own in the whole of `plait sim`:
//! `cargo run --release --example custom_scheduler -- run examples/two-paths.toml --set endpoints.scheduler=earliest`

use std::process::ExitCode;
use std::time::Duration;

use plait_sim::Policies;
use plait_sim::base::Random;
use plait_sim::schedule::{Decision, Demand, PathView, Scheduler, SchedulerFactory, WaitReason, eligible};

/// Sends each packet where it should arrive first: behind what is in flight on that path, half a round trip later.
#[derive(Debug)]
struct Earliest;

/// When a packet given to `path` now should arrive; a path sends a window a round trip.
fn arrival(path: &PathView) -> Duration {
    let Some(rtt) = path.rtt else { return Duration::MAX };
    let rounds = (path.in_flight_bytes + path.max_datagram_bytes) as f64 / path.window_bytes.max(1) as f64;
    rtt.mul_f64(0.5 + rounds)
}

impl Scheduler for Earliest {
    fn name(&self) -> &'static str {
        "earliest"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        // `eligible` leaves out paths that are closed, not validated, or kept as a backup while better ones work.
        let Some(best) = eligible(paths).min_by_key(|path| arrival(path)) else {
            return Decision::Wait(WaitReason::NoPath);
        };
        match eligible(paths).filter(|path| path.has_room()).min_by_key(|path| arrival(path)) {
            None => Decision::Wait(WaitReason::Busy),
            // A window of `best` opens within its round trip: waiting for it pays if another path takes longer still.
            Some(open) if arrival(open) > arrival(best).saturating_mul(3) => {
                Decision::Wait(WaitReason::Faster(best.id))
            }
            Some(open) => Decision::Send(open.id),
        }
    }
}

#[derive(Debug)]
struct EarliestFactory;

impl SchedulerFactory for EarliestFactory {
    fn name(&self) -> &'static str {
        "earliest"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Earliest)
    }
}

fn main() -> ExitCode {
    plait_cli::sim_main(Policies::new().with_scheduler(EarliestFactory))
}
