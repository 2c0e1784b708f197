//! Whether the network of a scenario lets a run complete: what is taken from the initial path comes back.

use std::time::Duration;

use plait_base::Instant;
use plait_netsim::link::{LinkState, Rate};
use plait_netsim::{InterfaceState, Treat};

use crate::scenario::{DuplexPlan, LinkPlan, Place, RulePlan, Scenario, WORKERS_MAX, WorkerFault, WorkerFaultKind};

/// The largest share lost for good.
const LOSS_MAX: f64 = 0.2;
/// The least rate, bit/s.
const RATE_MIN: u64 = 100_000;
/// The longest one-way delay.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// True when a run must complete once the last event is over.
pub(super) fn is_usable(scenario: &Scenario) -> bool {
    let mut plans: Vec<DuplexPlan> = scenario.duplexes().cloned().collect();
    let initial = scenario.endpoints.handshake.initial_path;
    let (mut interface, mut troubled) = (InterfaceState::Up, false);
    let (mut goes_away, mut ends_others) = (false, false);
    let way = scenario.way(initial);
    // Few workers: any of them serves the initial path.
    let few_workers = scenario.endpoints.workers.is_none_or(|workers| (workers.count as u64) < WORKERS_MAX);
    for event in &scenario.events {
        if let Some(plan) = plans.get_mut(event.place.0) {
            event.up.apply(&mut plan.up);
            event.down.apply(&mut plan.down);
        }
        // RFC 9000 9: addresses stay the same until the handshake is over
        let unsure = troubled || event.at < HANDSHAKE;
        let may_begin = event.place == Place::path(initial) || !scenario.endpoints.handshake.first_path_only;
        if event.rebind.is_some() && may_begin && unsure {
            return false;
        }
        troubled |= way.contains(&event.place) && event.rebind.is_none() && event.worker.is_none();
        if event.worker.is_some_and(|fault| ends_paths(&fault)) && (few_workers || event.place == Place::path(initial))
        {
            return false;
        }
        ends_others |= event.worker.is_some_and(|fault| ends_paths(&fault));
        if event.place == Place::path(initial) {
            goes_away |= event.interface == Some(InterfaceState::Down);
            interface = event.interface.unwrap_or(interface);
        }
    }
    let good = way.iter().filter_map(|place| plans.get(place.0)).all(|plan| carries(&plan.up) && carries(&plan.down));
    let ruled_out = scenario.rules.iter().any(|rule| way.contains(&rule.place) && closes(rule));
    // A client leaves a path whose interface goes away. A server whose other path is given up with its worker meanwhile has none
    // left by which to say so: the connection ends.
    let may_be_cut_off = goes_away && ends_others;
    good && !ruled_out && !may_be_cut_off && interface == InterfaceState::Up
}

fn carries(plan: &LinkPlan) -> bool {
    let loss = plan.loss.mean(1500);
    let fast = match plan.rate {
        Rate::Fixed(bps) => bps >= RATE_MIN,
        Rate::Unlimited | Rate::Trace(_) => true,
    };
    plan.state == LinkState::Up && loss + plan.corrupt <= LOSS_MAX && fast && plan.delay <= DELAY_MAX
}

/// The longest stall of a worker that its connection surely waits for, messages included.
pub(super) const STALL_MAX: Duration = Duration::from_millis(50);

/// True for what may cost a worker's connection the paths that it serves.
fn ends_paths(fault: &WorkerFault) -> bool {
    match fault.kind {
        WorkerFaultKind::Stalls(time) => time > STALL_MAX,
        WorkerFaultKind::DiesSeen | WorkerFaultKind::DiesUnseen => true,
    }
}

/// Handshakes are over by then on a path to which nothing happened.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// A rule that may keep a path shut for good, or takes too much.
fn closes(rule: &RulePlan) -> bool {
    let when = &rule.when;
    let harms = matches!(rule.treat, Treat::Drop | Treat::FlipBit | Treat::Scramble | Treat::Truncate(_));
    let ends = when.time.end < Instant::ZERO + Duration::from_secs(60) || when.position.end - when.position.start <= 6;
    let seldom = when.every >= 3 || when.share <= 0.3 || when.bytes.start >= 1201;
    harms && !ends && !seldom
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Traces, Tree};
    use crate::swarm::draw;
    use crate::swarm::further::FURTHER_FROM;

    fn read(text: &str) -> Scenario {
        Scenario::read(&Tree::parse("x", text).unwrap(), &Traces::default()).unwrap()
    }

    #[test]
    fn what_is_drawn_is_usable() {
        for seed in (0..2_000).chain(FURTHER_FROM..FURTHER_FROM + 2_000) {
            let text = draw(seed);
            assert!(is_usable(&read(&text)), "seed {seed}:\n{text}");
        }
    }

    #[test]
    fn what_stays_away_is_noticed() {
        let base = "[[path]]\nrate_mbps = 1\nnat = { }\n[transfer]\nkind = \"upload\"\n";
        assert!(is_usable(&read(base)));
        for bad in [
            "[[event]]\nat_s = 1\npath = 0\nstate = \"down\"",
            "[[event]]\nat_s = 1\npath = 0\ninterface = \"down\"",
            "[[event]]\nat_s = 1\npath = 0\nup = { loss = 1.0 }",
            "[[event]]\nat_s = 1\npath = 0\nrebind = \"port\"",
            "[[rule]]\npath = 0\nfrom_s = 1",
            "[[event]]\nat_s = 1\npath = 0\nworker_dies = \"seen\"",
            "[[event]]\nat_s = 1\npath = 0\nworker_stalls_ms = 500",
        ] {
            assert!(!is_usable(&read(&format!("{base}{bad}"))), "{bad}");
        }
        let away =
            "[[event]]\nat_s = 1\npath = 0\ninterface = \"down\"\n[[event]]\nat_s = 2\npath = 0\ninterface = \"up\"\n";
        let dies = "[[event]]\nat_s = 1.5\npath = 1\nworker_dies = \"seen\"\n";
        let two = |events: &str| {
            let paths = "[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 1\n";
            is_usable(&read(&format!(
                "{paths}[transfer]\nkind = \"upload\"\n[endpoints]\nworkers = {WORKERS_MAX}\n{events}"
            )))
        };
        assert!(two(away) && two(dies) && !two(&format!("{away}{dies}")));
    }
}
