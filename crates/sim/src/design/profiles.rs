//! Sixteen pairs of paths as hosts have them, and a few that are unkind: what several paths are to be good for.

use std::fmt::Write;

/// When a path that pauses does so first, and for how long it goes on, virtual seconds.
const PAUSES_S: (f64, u32) = (1.0, 600);

/// A pair of paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// A short name, fit for a folder.
    pub name: &'static str,
    /// Both paths in words, the first one first: rate in Mbit/s / round-trip time in ms.
    pub title: &'static str,
    /// The tables of both paths.
    paths: &'static str,
    /// Whether the first path falls silent now and then.
    pause: Option<Pause>,
}

/// A path that carries nothing for a moment, time and again.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pause {
    every_s: u32,
    milliseconds: u32,
}

impl Profile {
    /// Whether runs of different seeds differ.
    pub fn is_random(&self) -> bool {
        self.paths.contains("loss") || self.paths.contains("vary")
    }

    /// The tables of paths and events of a scenario.
    pub fn network(&self) -> String {
        let mut text = self.paths.to_owned();
        let Some(Pause { every_s, milliseconds }) = self.pause else { return text };
        let (first, until) = PAUSES_S;
        for at in (0..until / every_s).map(|count| first + f64::from(count * every_s)) {
            let end = at + f64::from(milliseconds) / 1e3;
            let _ = write!(text, "[[event]]\nat_s = {at:?}\npath = 0\nstate = \"down\"\n");
            let _ = write!(text, "[[event]]\nat_s = {end:?}\npath = 0\nstate = \"up\"\n");
        }
        text
    }
}

/// A profile whose paths are always there.
const fn steady(name: &'static str, title: &'static str, paths: &'static str) -> Profile {
    Profile { name, title, paths, pause: None }
}

/// All of them.
pub const PROFILES: [Profile; 16] = [
    steady(
        "fibre-lte",
        "fibre 100/10 + LTE 30/50",
        "[[path]]\nrate_mbps = 100\nrtt_ms = 10\nqueue_ms = 20\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
    ),
    steady(
        "lte-lte",
        "LTE 30/50 + LTE 20/70",
        "[[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n\
         [[path]]\nrate_mbps = 20\nrtt_ms = 70\nqueue_ms = 200\n",
    ),
    steady(
        "fibre-geo",
        "fibre 100/10 + GEO 20/600",
        "[[path]]\nrate_mbps = 100\nrtt_ms = 10\nqueue_ms = 20\n\
         [[path]]\nrate_mbps = 20\nrtt_ms = 600\nqueue_ms = 600\n",
    ),
    steady(
        "lte-geo",
        "LTE 30/50 + GEO 20/600",
        "[[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n\
         [[path]]\nrate_mbps = 20\nrtt_ms = 600\nqueue_ms = 600\n",
    ),
    Profile {
        name: "starlink-lte",
        title: "Starlink 100/40, 0.5 % loss, silent for 150 ms each 15 s + LTE 30/50",
        paths: "[[path]]\nrate_mbps = 100\nrtt_ms = 40\nqueue_ms = 60\nloss = 0.005\n\
                [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
        pause: Some(Pause { every_s: 15, milliseconds: 150 }),
    },
    steady(
        "dsl-lte",
        "DSL 16/30, 1 up + LTE 30/50, 10 up",
        "[[path]]\nrate_mbps = 16\nrtt_ms = 30\nqueue_ms = 100\nup = { rate_mbps = 1 }\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\nup = { rate_mbps = 10 }\n",
    ),
    steady(
        "wifi-lte",
        "Wi-Fi 50/5, losses in bursts + LTE 30/50",
        "[[path]]\nrate_mbps = 50\nrtt_ms = 5\nqueue_ms = 50\n\
         loss_model = { kind = \"gilbert-elliott\", to_bad = 0.001, to_good = 0.1, loss_good = 0.0, loss_bad = 0.5 }\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
    ),
    steady(
        "3g-lte",
        "3G 2/120 + LTE 30/50",
        "[[path]]\nrate_mbps = 2\nrtt_ms = 120\nqueue_ms = 500\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
    ),
    steady(
        "equal",
        "two of 50/20",
        "[[path]]\nrate_mbps = 50\nrtt_ms = 20\nqueue_ms = 50\n\
         [[path]]\nrate_mbps = 50\nrtt_ms = 20\nqueue_ms = 50\n",
    ),
    steady(
        "equal-lossy",
        "two of 50/20, the first with 1 % loss",
        "[[path]]\nrate_mbps = 50\nrtt_ms = 20\nqueue_ms = 50\nloss = 0.01\n\
         [[path]]\nrate_mbps = 50\nrtt_ms = 20\nqueue_ms = 50\n",
    ),
    steady(
        "rtts",
        "20/20 + 20/320",
        "[[path]]\nrate_mbps = 20\nrtt_ms = 20\nqueue_ms = 50\n\
         [[path]]\nrate_mbps = 20\nrtt_ms = 320\nqueue_ms = 50\n",
    ),
    steady(
        "rates",
        "100/30 + 1/30",
        "[[path]]\nrate_mbps = 100\nrtt_ms = 30\nqueue_ms = 50\n\
         [[path]]\nrate_mbps = 1\nrtt_ms = 30\nqueue_ms = 50\n",
    ),
    steady(
        "queues",
        "20/40 with a queue of 20 ms + 20/40 with one of 2 s",
        "[[path]]\nrate_mbps = 20\nrtt_ms = 40\nqueue_ms = 20\n\
         [[path]]\nrate_mbps = 20\nrtt_ms = 40\nqueue_ms = 2000\n",
    ),
    steady(
        "5g-lte",
        "5G 20 to 200/15, another rate each 100 ms + LTE 30/50",
        "[[path]]\nrate_mbps = 110\nrtt_ms = 15\nqueue_ms = 50\n\
         vary = { interval_ms = 100, rate_mbps = [20, 200] }\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
    ),
    steady(
        "dead-lte",
        "nearly dead 0.05/100, 20 % loss + LTE 30/50",
        "[[path]]\nrate_mbps = 0.05\nrtt_ms = 100\nqueue_ms = 500\nloss = 0.2\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 50\nqueue_ms = 200\n",
    ),
    steady(
        "lossy",
        "20/40 + 30/30, both with 2 % loss",
        "[[path]]\nrate_mbps = 20\nrtt_ms = 40\nqueue_ms = 100\nloss = 0.02\n\
         [[path]]\nrate_mbps = 30\nrtt_ms = 30\nqueue_ms = 100\nloss = 0.02\n",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_a_scenario_of_two_paths() {
        for profile in &PROFILES {
            let text = format!(
                "name = \"{}\"\n{}[transfer]\nkind = \"download\"\nbytes = 1000\n[endpoints]\n",
                profile.name,
                profile.network()
            );
            let tree = crate::scenario::Tree::parse(profile.name, &text).unwrap();
            let scenario = crate::scenario::Scenario::read(&tree, &crate::scenario::Traces::default())
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.paths.len(), 2, "{}", profile.name);
        }
    }
}
