//! Who serves the paths of a network that was drawn, and what befalls them, from randomness of their own.

use std::fmt::Write;

use plait_base::Random;

use super::dice::{log, pick, round};
use super::draw::Drawn;
use super::usable::STALL_MAX;
use crate::scenario::WORKERS_MAX;

/// When the last fault of a worker comes at the latest, seconds.
const FAULTS_UNTIL_S: f64 = 15.0;
/// The longest stall of others, ms.
const LONG_STALL_MAX_MS: f64 = 3_000.0;

/// The scenario of a seed, whose ends have workers.
pub fn draw_with_workers(seed: u64) -> String {
    let Drawn { mut text, paths, keeps } = super::draw::draw_all(seed);
    let mut random = Random::from_u64(seed ^ 0x776f_726b_6572_0001);
    let count = *pick(&mut random, &[1, 1, 2, 2, 3, 4, WORKERS_MAX, WORKERS_MAX]);
    let lending = if random.chance(0.8) { "eager" } else { "on-demand" };
    // The last table of what was drawn is that of the endpoints.
    let _ = writeln!(text, "workers = {count}\nlending = \"{lending}\"");
    // From a generator of its own: what is drawn behind it stays what it was for each seed.
    if Random::from_u64(seed ^ 0x7069_6e6e_6564_0001).chance(0.2) {
        text.push_str("placement = \"pinned\"\n");
    }
    // A path that is given up beside one whose interface is away may be a server's last.
    let goes_away = text.contains("interface = \"down\"");
    for _ in 0..random.below(6).saturating_sub(2) {
        let path = random.below(paths as u64) as usize;
        let at = log(&mut random, 0.05, FAULTS_UNTIL_S);
        let end = pick(&mut random, &["client", "server", "both"]);
        // With few workers any of them serves a path that must live.
        let must_live = keeps.contains(&path) || count < WORKERS_MAX || goes_away;
        let what = match random.below(4) {
            0 if !must_live => "worker_dies = \"seen\"".to_owned(),
            1 if !must_live => "worker_dies = \"unseen\"".to_owned(),
            _ => {
                let longest = if must_live { STALL_MAX.as_secs_f64() * 1e3 } else { LONG_STALL_MAX_MS };
                format!("worker_stalls_ms = {:?}", round(log(&mut random, 1.0, longest)))
            }
        };
        let _ = writeln!(text, "[[event]]\nat_s = {at:?}\npath = {path}\nend = \"{end}\"\n{what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, Traces, Tree};
    use crate::swarm::FURTHER_FROM;
    use crate::swarm::usable::is_usable;

    #[test]
    fn every_seed_is_a_scenario_with_workers() {
        for seed in (0..1_000).chain(FURTHER_FROM..FURTHER_FROM + 1_000) {
            let text = draw_with_workers(seed);
            let tree = Tree::parse("x", &text).unwrap_or_else(|error| panic!("{seed}: {error}\n{text}"));
            let scenario = Scenario::read(&tree, &Traces::default()).unwrap_or_else(|e| panic!("{seed}: {e}\n{text}"));
            assert!(scenario.endpoints.workers.is_some() && is_usable(&scenario), "{seed}:\n{text}");
        }
        let all: String = (0..200).map(draw_with_workers).collect();
        for key in ["\"on-demand\"", "\"eager\"", "worker_stalls_ms", "\"seen\"", "\"unseen\"", "\"pinned\""] {
            assert!(all.contains(key), "{key}");
        }
    }
}
