//! Twenty-two networks that no other gate has, written as a reviewer would who looks for what breaks.

use crate::command::CommandError;
use crate::stats::Sorted;

use super::claim::Reference;
use super::paired::{self, Compared, Contest, Load, Pair, SLOWER, Tally, percent, upper_median};
use super::{Figure, FigureRequest, Table};

/// Seeds of each.
const SEEDS: u64 = 9;

/// A network, what is set at the endpoints, and what is carried.
struct Further {
    name: &'static str,
    /// What it is, in the words of a table.
    title: &'static str,
    network: &'static str,
    endpoints: &'static str,
    load: Load,
}

const NETWORKS: [Further; 22] = [
    Further {
        name: "three-paths-window",
        title: "three paths of 20 Mbit/s, 10, 100 and 300 ms, a window of 128 kB",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 10\n[[path]]\nrate_mbps = 20\nrtt_ms = 100\n\
                  [[path]]\nrate_mbps = 20\nrtt_ms = 300\n",
        endpoints: "receive_window_bytes = 128000\n",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "upload-window",
        title: "20/10 + 20/200, the server's window 64 kB",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 10\n[[path]]\nrate_mbps = 20\nrtt_ms = 200\n",
        endpoints: "receive_window_bytes = 64000\n",
        load: Load::Upload(2_000_000),
    },
    Further {
        name: "three-packets-codel",
        title: "one queue of 3 packets with CoDel, 10 Mbit/s",
        network: "[[link]]\nname = \"shared\"\nrate_mbps = 10\ndelay_ms = 10\nqueue_packets = 3\naqm = \"codel\"\n\
                  [[path]]\nvia = [\"shared\"]\ndelay_ms = 5\n[[path]]\nvia = [\"shared\"]\ndelay_ms = 15\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "turns-bad",
        title: "20/20 + 20/40; after 1 s the first loses 30 % and takes 200 ms",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 20\n[[path]]\nrate_mbps = 20\nrtt_ms = 40\n\
                  [[event]]\nat_s = 1\npath = 0\nloss = 0.3\nrtt_ms = 200\n",
        endpoints: "",
        load: Load::Download(10_000_000),
    },
    Further {
        name: "lossy-acks",
        title: "20/10, 30 % lost on its way up, + 20/60",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 10\nup = { loss = 0.3 }\n[[path]]\nrate_mbps = 20\nrtt_ms = 60\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "late-lia",
        title: "two of 20/30, 10 % late by 10 ms, LIA",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 30\nreorder = 0.1\nreorder_ms = 10\n\
                  [[path]]\nrate_mbps = 20\nrtt_ms = 30\nreorder = 0.1\nreorder_ms = 10\n",
        endpoints: "congestion = \"lia\"\n",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "very-long",
        title: "10/600 + 10/1200",
        network: "[[path]]\nrate_mbps = 10\nrtt_ms = 600\n[[path]]\nrate_mbps = 10\nrtt_ms = 1200\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "policer",
        title: "10/30 that drops what waits over 3 ms, as a policer does, + 10/50",
        network: "[[path]]\nrate_mbps = 10\nrtt_ms = 30\nqueue_bytes = 4000\n[[path]]\nrate_mbps = 10\nrtt_ms = 50\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "bursts-in-time",
        title: "two of 20/30, 1 % lost in bursts of 20 ms",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 30\nloss_model = { kind = \"bursts\", mean = 0.01, burst_ms = 20 }\n\
                  [[path]]\nrate_mbps = 20\nrtt_ms = 30\nloss_model = { kind = \"bursts\", mean = 0.01, burst_ms = 20 }\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "redrawn",
        title: "two of 1 to 50 Mbit/s, drawn anew each 50 ms, RTT 30 and 60 ms",
        network: "[[path]]\nrate_mbps = 25\nrtt_ms = 30\nvary = { interval_ms = 50, rate_mbps = [1, 50] }\n\
                  [[path]]\nrate_mbps = 25\nrtt_ms = 60\nvary = { interval_ms = 50, rate_mbps = [1, 50] }\n",
        endpoints: "",
        load: Load::Download(10_000_000),
    },
    Further {
        name: "side-by-side",
        title: "20/30 beside three flows + 5/30 of its own",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 30\njitter_ms = 4\n[[path]]\nrate_mbps = 5\nrtt_ms = 30\njitter_ms = 4\n\
                  [[cross]]\nkind = \"flow\"\ncongestion = \"cubic\"\npath = 0\njitter_ms = 4\n\
                  [[cross]]\nkind = \"flow\"\ncongestion = \"cubic\"\npath = 0\nrtt_ms = 2\njitter_ms = 4\n\
                  [[cross]]\nkind = \"flow\"\ncongestion = \"newreno\"\npath = 0\nrtt_ms = 4\njitter_ms = 4\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "on-off",
        title: "10/30 under 9 Mbit/s that come and go + 10/60",
        network: "[[path]]\nrate_mbps = 10\nrtt_ms = 30\n[[path]]\nrate_mbps = 10\nrtt_ms = 60\n\
                  [[cross]]\nkind = \"on-off\"\nrate_mbps = 9\non_s = [0.1, 1.0]\noff_s = [0.1, 1.0]\npath = 0\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "thin-way-up",
        title: "50/10 with 0.2 Mbit/s up + 20/50",
        network: "[[path]]\nrate_mbps = 50\nrtt_ms = 10\nup = { rate_mbps = 0.2 }\n[[path]]\nrate_mbps = 20\nrtt_ms = 50\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "small-mtu",
        title: "50/20 + 50/20 that carries no more than 1,280 bytes of IP",
        network: "[[path]]\nrate_mbps = 50\nrtt_ms = 20\n[[path]]\nrate_mbps = 50\nrtt_ms = 20\nmtu_bytes = 1280\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "twice-and-broken",
        title: "two of 20/30, 10 % arrive twice, 1 % broken on the first",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 30\nduplicate = 0.1\ncorrupt = 0.01\n\
                  [[path]]\nrate_mbps = 20\nrtt_ms = 30\nduplicate = 0.1\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "flapping",
        title: "20/30 + 20/20 that is gone in every second half second, four times",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 30\n[[path]]\nrate_mbps = 20\nrtt_ms = 20\n\
                  [[event]]\nat_s = 0.5\npath = 1\nstate = \"down\"\n[[event]]\nat_s = 1\npath = 1\nstate = \"up\"\n\
                  [[event]]\nat_s = 1.5\npath = 1\nstate = \"down\"\n[[event]]\nat_s = 2\npath = 1\nstate = \"up\"\n\
                  [[event]]\nat_s = 2.5\npath = 1\nstate = \"down\"\n[[event]]\nat_s = 3\npath = 1\nstate = \"up\"\n\
                  [[event]]\nat_s = 3.5\npath = 1\nstate = \"down\"\n[[event]]\nat_s = 4\npath = 1\nstate = \"up\"\n",
        endpoints: "",
        load: Load::Download(10_000_000),
    },
    Further {
        name: "bloated-requests",
        title: "10/20 with a queue of 2 s, full of another's data, + 10/60",
        network: "[[path]]\nrate_mbps = 10\nrtt_ms = 20\nqueue_ms = 2000\n[[path]]\nrate_mbps = 10\nrtt_ms = 60\n\
                  [[cross]]\nkind = \"flow\"\ncongestion = \"cubic\"\npath = 0\njitter_ms = 4\n",
        endpoints: "",
        load: Load::Requests(20_000),
    },
    Further {
        name: "bunches",
        title: "two of 50/20 with RED and 20 ms of jitter, in order",
        network: "[[path]]\nrate_mbps = 50\nrtt_ms = 20\njitter_ms = 20\naqm = \"red\"\n\
                  [[path]]\nrate_mbps = 50\nrtt_ms = 20\njitter_ms = 20\naqm = \"red\"\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "dead-upload-window",
        title: "0.1/60 with 5 % loss + 20/30, the server's window 64 kB",
        network: "[[path]]\nrate_mbps = 0.1\nrtt_ms = 60\nloss = 0.05\n[[path]]\nrate_mbps = 20\nrtt_ms = 30\n",
        endpoints: "receive_window_bytes = 64000\n",
        load: Load::Upload(2_000_000),
    },
    Further {
        name: "slows-down",
        title: "50/20 + 20/40; after 1 s the first has 1 Mbit/s and a full queue",
        network: "[[path]]\nrate_mbps = 50\nrtt_ms = 20\nqueue_ms = 100\n[[path]]\nrate_mbps = 20\nrtt_ms = 40\n\
                  [[event]]\nat_s = 1\npath = 0\nrate_mbps = 1\n",
        endpoints: "",
        load: Load::Download(15_000_000),
    },
    Further {
        name: "four-paths-queue",
        title: "four paths through one queue of 20 packets, 20 Mbit/s",
        network: "[[link]]\nname = \"shared\"\nrate_mbps = 20\ndelay_ms = 10\nqueue_packets = 20\n\
                  [[path]]\nvia = [\"shared\"]\ndelay_ms = 5\n[[path]]\nvia = [\"shared\"]\ndelay_ms = 6\n\
                  [[path]]\nvia = [\"shared\"]\ndelay_ms = 7\n[[path]]\nvia = [\"shared\"]\ndelay_ms = 8\n",
        endpoints: "",
        load: Load::Download(4_000_000),
    },
    Further {
        name: "lossy-window",
        title: "20/20 with 1 % loss + 20/80, a window of 256 kB",
        network: "[[path]]\nrate_mbps = 20\nrtt_ms = 20\nloss = 0.01\n[[path]]\nrate_mbps = 20\nrtt_ms = 80\n",
        endpoints: "receive_window_bytes = 256000\n",
        load: Load::Download(4_000_000),
    },
];

impl Further {
    fn contest(&self, seeds: u64) -> Contest {
        Contest {
            group: self.title.to_owned(),
            name: self.name.to_owned(),
            network: self.network.to_owned(),
            endpoints: self.endpoints.to_owned(),
            load: self.load,
            seeds,
        }
    }
}

/// Median over the pairs of a comparison.
fn median(compared: &Compared, of: fn(&Pair) -> f64) -> f64 {
    upper_median(&Sorted::new(compared.pairs.iter().map(of)))
}

/// The gate: in the median of each network and order, no more than the better path alone takes.
pub(super) fn further(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let seeds = request.seeds(SEEDS);
    let contests: Vec<Contest> = NETWORKS.iter().map(|further| further.contest(seeds)).collect();
    let compared = paired::compare(request, "further", &contests)?;
    let mut figure = Figure::default();
    let mut table = Table::new([
        "network, Mbit/s / RTT ms",
        "transfer",
        "better path alone",
        "both, better first",
        "worse first",
        "median, better first",
        "worse first",
        "worst of all",
        "",
    ]);
    let mut slower = 0;
    for further in &NETWORKS {
        let of: Vec<&Compared> = compared.iter().filter(|compared| compared.contest.name == further.name).collect();
        let order = |best| of.iter().find(|compared| compared.is_best_first() == best);
        let (Some(better), Some(worse)) = (order(true), order(false)) else {
            slower += 1;
            continue;
        };
        let is_held = of.iter().all(|compared| !compared.is_missing() && median(compared, Pair::allowed) <= SLOWER);
        slower += usize::from(!is_held);
        let (alone, both) = better.medians();
        let worst = Tally::of(of.iter().copied()).cells().pop().unwrap_or_default();
        let seconds = |seconds: f64| format!("{seconds:.3} s");
        let both_ways = |compared: &Compared| {
            let (allowed, raw) = (percent(median(compared, Pair::allowed)), percent(median(compared, Pair::raw)));
            if allowed == raw { allowed } else { format!("{allowed} ({raw})") }
        };
        table.rows.push(vec![
            further.title.to_owned(),
            further.load.to_string(),
            seconds(alone),
            seconds(both),
            seconds(worse.medians().1),
            both_ways(better),
            both_ways(worse),
            worst,
            if is_held { "held" } else { "NOT HELD" }.to_owned(),
        ]);
    }
    figure.failed = slower > 0;
    let count = NETWORKS.len() - slower;
    figure.claim(
        "networks whose median is at most 3 % over the better path alone, from either path",
        Reference::asked_for("every one"),
        format!("{count} of {}: {}", NETWORKS.len(), if figure.failed { "NOT HELD" } else { "held" }),
    );
    figure.tables.push(table);
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::{Scenario, Traces, Tree};

    #[test]
    fn each_is_a_scenario_of_its_own() {
        let names: BTreeSet<_> = NETWORKS.iter().map(|further| further.name).collect();
        assert_eq!(names.len(), NETWORKS.len());
        for further in &NETWORKS {
            let Contest { network, endpoints, .. } = further.contest(1);
            let text = format!("{network}[transfer]\nkind = \"download\"\nbytes = 1\n[endpoints]\n{endpoints}");
            let scenario = Scenario::read(&Tree::parse(further.name, &text).unwrap(), &Traces::default());
            let paths = scenario.unwrap_or_else(|error| panic!("{}: {error}", further.name)).paths.len();
            assert!(paths >= 2, "{}: {paths} paths", further.name);
        }
    }
}
