//! A network with faults and a configuration for it, drawn from one seed as the text of a scenario.
//!
//! One path, the survivor, stays usable: whatever is taken away from it comes back. The initial path comes back too, so
//! that a handshake can end. All others may die for good. Such a run must complete.

use plait_base::Random;

use super::dice::{log, pick, round};
use super::further;
use crate::{ACK_PATHS, CONTROLLERS, REINJECTIONS, SCHEDULERS};

/// When the last fault begins at the latest, and how long one that heals lasts, seconds.
const FAULTS_UNTIL_S: f64 = 15.0;
const FAULT_MAX_S: f64 = 8.0;
/// Handshakes are over by then, seconds.
const HANDSHAKE_S: f64 = 4.0;
/// A run that is not done by then is stuck, virtual seconds.
const TIME_LIMIT_S: u64 = 900;

/// The scenario of a seed.
pub fn draw(seed: u64) -> String {
    draw_all(seed).text
}

/// A scenario, and what a further draw must know of it.
pub(super) struct Drawn {
    pub(super) text: String,
    pub(super) paths: usize,
    /// The paths that must live: survivor and initial path.
    pub(super) keeps: [usize; 2],
}

pub(super) fn draw_all(seed: u64) -> Drawn {
    let mut random = Random::from_u64(seed ^ 0x7377_6172_6d00_0001);
    let paths = *pick(&mut random, &[1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4, 6, 8]);
    let initial = random.below(paths as u64) as usize;
    let single = paths == 1 || random.chance(0.1);
    let survivor = if single { initial } else { random.below(paths as u64) as usize };
    let shared = random.chance(0.25);
    let still = random.chance(0.4);
    let text = format!("name = \"swarm-{seed}\"\nseed = {seed}\ntime_limit_s = {TIME_LIMIT_S}\n");
    let mut draft = Draft {
        random,
        paths,
        initial,
        survivor,
        single,
        shared,
        damage: false,
        slowest: f64::MAX,
        nats: Vec::new(),
        still,
        rebinds: false,
        further: further::random(seed),
        text,
    };
    draft.network();
    draft.faults();
    draft.load();
    draft.ends();
    Drawn { text: draft.text, paths, keeps: [survivor, initial] }
}

/// What is drawn so far.
struct Draft {
    random: Random,
    paths: usize,
    initial: usize,
    survivor: usize,
    single: bool,
    shared: bool,
    /// Whether bytes change on the way: then packets need real protection.
    damage: bool,
    /// Least rate on the way of the survivor, Mbit/s.
    slowest: f64,
    /// Whether nothing but rebinding happens to the initial path.
    still: bool,
    /// Whether a NAT rebinds.
    rebinds: bool,
    /// Randomness of further keys, where the seed draws them.
    further: Option<Random>,
    /// Which paths have a NAT.
    nats: Vec<bool>,
    text: String,
}

impl Draft {
    /// Between two values, evenly, three digits.
    fn even(&mut self, low: f64, high: f64) -> f64 {
        round(low + self.random.unit() * (high - low))
    }

    /// Between two values, evenly on a log scale, three digits.
    fn log(&mut self, low: f64, high: f64) -> f64 {
        log(&mut self.random, low, high)
    }

    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A line in a share of all cases.
    fn maybe(&mut self, share: f64, line: impl FnOnce(&mut Self) -> String) {
        if self.random.chance(share) {
            let line = line(self);
            self.line(line);
        }
    }

    /// A line of a further key in its place, in half of the cases of a seed that draws them.
    fn or_further(&mut self, line: String, further: impl FnOnce(&mut Random) -> String) -> String {
        let random = self.further.as_mut().and_then(|random| random.chance(0.5).then_some(random));
        random.map_or(line, further)
    }

    fn network(&mut self) {
        let from = self.text.len();
        if self.shared {
            self.line("[[link]]\nname = \"core\"");
            let (rate, delay) = (self.log(1.0, 60.0), self.even(0.0, 40.0));
            self.slowest = rate;
            self.line(format!("rate_mbps = {rate:?}\ndelay_ms = {delay:?}"));
            self.queue();
        }
        let link = from..self.text.len();
        for path in 0..self.paths {
            self.line("[[path]]");
            let rate = self.log(0.3, 100.0);
            if path == self.survivor {
                self.slowest = self.slowest.min(rate);
            }
            let rtt = self.log(1.0, 300.0);
            self.line(format!("rate_mbps = {rate:?}\nrtt_ms = {rtt:?}"));
            if self.shared && self.random.chance(0.7) {
                self.line("via = [\"core\"]");
            }
            self.queue();
            // Where addresses change, the handshake must be over by then whatever the seed.
            if !(self.still && path == self.initial) {
                self.blemishes();
            }
            let nat = self.random.chance(0.2);
            self.nats.push(nat);
            if nat {
                let timeout = self.even(20.0, 120.0);
                self.line(format!("nat = {{ timeout_s = {timeout:?} }}"));
            }
            let keeps = path == self.survivor || path == self.initial;
            match self.random.below(20) {
                0 if !keeps => self.line("up = { state = \"down\" }"),
                1..=3 => {
                    let up = (rate / self.log(1.0, 20.0)).max(0.1);
                    self.line(format!("up = {{ rate_mbps = {:?}, delay_ms = {:?} }}", round(up), round(rtt)));
                }
                4 | 5 => self.line(format!(
                    "vary = {{ interval_ms = 100, rate_mbps = [{:?}, {rate:?}], delay_ms = [{:?}, {:?}] }}",
                    round(rate * 0.5),
                    round(rtt * 0.4),
                    round(rtt * 0.6)
                )),
                _ => {}
            }
        }
        if self.random.chance(0.2) {
            self.cross();
        }
        // A link that nothing goes through is no scenario's.
        if !self.text.get(link.end..).is_some_and(|beyond| beyond.contains("\"core\"")) {
            self.text.replace_range(link, "");
        }
    }

    fn queue(&mut self) {
        let line = match self.random.below(6) {
            0 => format!("queue_bytes = {}", self.log(15_000.0, 1e6) as u64),
            1 => format!("queue_packets = {}", self.log(10.0, 400.0) as u64),
            _ => format!("queue_ms = {:?}", self.log(5.0, 800.0)),
        };
        self.line(line);
        self.maybe(0.2, |d| {
            let plain = format!("aqm = \"{}\"", pick(&mut d.random, &["codel", "red", "fq-codel"]));
            d.or_further(plain, further::aqm)
        });
    }

    fn blemishes(&mut self) {
        match self.random.below(10) {
            0..=3 => {}
            4..=7 => {
                let loss = self.log(0.0001, 0.03);
                self.line(format!("loss = {loss:?}"));
            }
            8 => {
                // The model goes on by packets: who waits for an ack moves it only by probes, some 25 of them before the idle
                // time-out. In bursts of 5 all are lost in 0.4 % of the bursts that begin so, in bursts of 12 in 11 %.
                let (mean, burst) = (self.log(0.001, 0.05), self.even(1.0, 5.0));
                let packets = format!("loss_model = {{ kind = \"bursts\", mean = {mean:?}, burst = {burst:?} }}");
                let line = self.or_further(packets, further::bursts);
                self.line(line);
            }
            _ => {
                let loss = self.even(0.03, 0.12);
                self.line(format!("loss = {loss:?}"));
            }
        }
        self.maybe(0.25, |d| {
            let jitter = format!("jitter_ms = {:?}", d.log(0.1, 20.0));
            d.further.as_mut().map_or(jitter.clone(), |random| format!("{jitter}\n{}", further::jitter_kind(random)))
        });
        self.maybe(0.15, |d| format!("reorder = {:?}\nreorder_ms = {:?}", d.even(0.0, 0.2), d.log(0.1, 80.0)));
        self.maybe(0.15, |d| format!("duplicate = {:?}", d.even(0.0, 0.2)));
        self.maybe(0.1, |d| {
            d.damage = true;
            format!("corrupt = {:?}", d.log(0.0001, 0.05))
        });
        self.maybe(0.15, |d| format!("mtu_bytes = {}", d.even(1228.0, 2000.0) as u64));
    }

    fn cross(&mut self) {
        let at = if self.shared { "link = \"core\"".to_owned() } else { format!("path = {}", self.survivor) };
        let (rate, start) = (round(self.slowest * 0.4), self.even(0.0, 3.0));
        let direction = *pick(&mut self.random, &["down", "up"]);
        let stop = start + 10.0;
        let kind = match self.random.below(3) {
            0 => format!("kind = \"constant\"\nrate_mbps = {rate:?}"),
            1 => format!("kind = \"on-off\"\nrate_mbps = {rate:?}\non_s = [0.1, 1.0]\noff_s = [0.1, 1.0]"),
            _ => format!("kind = \"flow\"\ncongestion = \"{}\"", pick(&mut self.random, &["cubic", "newreno"])),
        };
        self.line(format!(
            "[[cross]]\n{kind}\n{at}\ndirection = \"{direction}\"\nstart_s = {start:?}\nstop_s = {stop:?}"
        ));
    }

    fn faults(&mut self) {
        for _ in 0..self.random.below(7) {
            let path = self.random.below(self.paths as u64) as usize;
            let at = self.log(0.01, FAULTS_UNTIL_S);
            self.fault(path, at);
        }
        for _ in 0..self.random.below(6).saturating_sub(3) {
            self.rule();
        }
    }

    /// Something changes, and mostly changes back.
    fn fault(&mut self, path: usize, at: f64) {
        let nat = self.nats.get(path).copied().unwrap_or(false);
        let still = self.still && path == self.initial;
        if still && !nat {
            return;
        }
        if nat && (still || path != self.initial && self.random.chance(0.5)) {
            // A change of address during the handshake ends the connection (RFC 9000 9).
            let at = if still { round(at + HANDSHAKE_S) } else { at };
            let what = *pick(&mut self.random, &["port", "address"]);
            self.rebinds = true;
            return self.line(format!("[[event]]\nat_s = {at:?}\npath = {path}\nrebind = \"{what}\""));
        }
        let (now, then) = match self.random.below(12) {
            0 => ("state = \"down\"".to_owned(), "state = \"up\"".to_owned()),
            1 => ("interface = \"down\"".to_owned(), "interface = \"up\"".to_owned()),
            2 => ("loss = 1.0".to_owned(), "loss = 0.0".to_owned()),
            3 => ("down = { loss = 1.0 }".to_owned(), "down = { loss = 0.0 }".to_owned()),
            4 => ("up = { loss = 1.0 }".to_owned(), "up = { loss = 0.0 }".to_owned()),
            5 => (format!("loss = {:?}", self.even(0.05, 0.5)), "loss = 0.001".to_owned()),
            6 => {
                let rate = self.log(0.2, 100.0);
                (format!("rate_mbps = {rate:?}"), format!("rate_mbps = {:?}", rate.max(1.0)))
            }
            7 => (format!("rtt_ms = {:?}", self.log(1.0, 800.0)), format!("rtt_ms = {:?}", self.log(1.0, 200.0))),
            8 => (format!("mtu_bytes = {}", self.even(1228.0, 1500.0) as u64), "mtu_bytes = 1500".to_owned()),
            9 => (format!("reorder = {:?}\nreorder_ms = 40.0", self.even(0.0, 0.5)), "reorder = 0.0".to_owned()),
            10 => (format!("duplicate = {:?}", self.even(0.0, 0.6)), "duplicate = 0.0".to_owned()),
            _ => {
                self.damage = true;
                (format!("corrupt = {:?}", self.even(0.0, 0.4)), "corrupt = 0.0".to_owned())
            }
        };
        self.line(format!("[[event]]\nat_s = {at:?}\npath = {path}\n{now}"));
        let heals = path == self.survivor || path == self.initial || self.random.chance(0.5);
        if heals {
            let end = round(at + self.log(0.05, FAULT_MAX_S));
            self.line(format!("[[event]]\nat_s = {end:?}\npath = {path}\n{then}"));
        }
    }

    fn rule(&mut self) {
        let path = self.random.below(self.paths as u64) as usize;
        let dies = path != self.survivor && path != self.initial;
        let from = self.even(0.0, 5.0);
        let what = match self.random.below(8) {
            0 => format!("larger_than_bytes = {}", self.even(1200.0, 1450.0) as u64),
            1 => format!("every = {}", 3 + self.random.below(30)),
            // More in a row would take longer than a connection lives: each probe waits twice as long as the one before.
            2 => format!("skip = {}\ncount = {}", self.random.below(300), 1 + self.random.below(6)),
            3 => format!("action = \"duplicate\"\nshare = {:?}", self.even(0.0, 0.5)),
            4 => format!("action = \"delay\"\nshare = 0.1\ndelay_ms = {:?}", self.log(1.0, 200.0)),
            5 => {
                self.damage = true;
                let action = *pick(&mut self.random, &["scramble", "flip-bit", "truncate"]);
                format!("action = \"{action}\"\nshare = {:?}", self.even(0.0, 0.2))
            }
            6 if dies => format!("from_s = {from:?}"),
            6 => format!("from_s = {from:?}\nto_s = {:?}", round(from + self.log(0.05, FAULT_MAX_S))),
            _ => format!("action = \"{}\"", pick(&mut self.random, &["clear-ecn", "mark-ce"])),
        };
        let direction = *pick(&mut self.random, &["both", "down", "up"]);
        self.line(format!("[[rule]]\npath = {path}\ndirection = \"{direction}\"\n{what}"));
    }

    fn load(&mut self) {
        self.line("[transfer]");
        // What the survivor can carry in about ten seconds without any fault.
        let most = (self.slowest * 1e6).clamp(2e4, if self.random.chance(0.05) { 1e7 } else { 1.5e6 });
        let bytes = self.log(1_000.0, most) as u64;
        let line = match self.random.below(10) {
            0..=4 => format!("kind = \"download\"\nbytes = {bytes}"),
            5 | 6 => format!("kind = \"upload\"\nbytes = {bytes}"),
            7 => format!("kind = \"bulk-for\"\nseconds = {:?}", self.even(20.0, 30.0).min(4e6 / most + 18.0)),
            _ => format!(
                "kind = \"request-response\"\nrequest_bytes = {}\nresponse_bytes = {}\ninterval_ms = {:?}\ncount = {}",
                self.log(16.0, 2_000.0) as u64,
                self.log(1.0, 20_000.0) as u64,
                self.log(5.0, 800.0),
                1 + self.random.below(40)
            ),
        };
        self.line(line);
    }

    fn ends(&mut self) {
        let initial = self.initial;
        self.line(format!("[endpoints]\ninitial_path = {initial}"));
        if self.single {
            self.line("extension = \"none\"");
        }
        self.maybe(0.8, |d| format!("scheduler = \"{}\"", pick(&mut d.random, &SCHEDULERS)));
        self.maybe(0.7, |d| format!("congestion = \"{}\"", pick(&mut d.random, &CONTROLLERS)));
        self.maybe(0.6, |d| format!("ack_path = \"{}\"", pick(&mut d.random, &ACK_PATHS)));
        self.maybe(0.4, |d| format!("reinjection = \"{}\"", pick(&mut d.random, &REINJECTIONS)));
        self.maybe(0.4, |d| {
            let usual = format!("receive_window_bytes = {}", d.log(20_000.0, 4e6) as u64);
            d.or_further(usual, further::window)
        });
        self.maybe(0.3, |_| "duplicate_until_rtt = false".to_owned());
        if self.nats.contains(&true) {
            // Where a NAT forgets, an end that only receives is never heard of again unless it speaks up.
            let seconds = self.even(0.5, 8.0);
            // A client that waits for bytes asks of its own accord.
            let line = self.or_further(format!("keep_alive_s = {seconds:?}"), |_| String::new());
            self.line(line);
        }
        let lines = self.further.as_mut().map(further::ends).unwrap_or_default();
        lines.iter().for_each(|line| self.line(line));
        let tries_others = self.further.as_mut().is_some_and(further::tries_other_paths);
        // RFC 9000 9: an address stays the same until the handshake is over, and any may be that of the handshake then.
        if tries_others && !self.rebinds {
            self.line("first_path_only = false");
        }
        // The newest draw comes last: a seed draws of the others what it always did.
        let lines = self.further.as_mut().map(further::asked_acks).unwrap_or_default();
        lines.iter().for_each(|line| self.line(line));
        if !self.damage {
            self.maybe(0.3, |_| "protection = \"null\"".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, Traces, Tree};

    #[test]
    fn every_seed_is_a_scenario() {
        for seed in (0..3_000).chain(further::FURTHER_FROM..further::FURTHER_FROM + 3_000) {
            let text = draw(seed);
            let tree = Tree::parse("drawn.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let scenario = Scenario::read(&tree, &Traces::default());
            let scenario = scenario.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
            assert!(scenario.unused_links().is_empty(), "seed {seed}: {text}");
        }
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn further_keys_are_drawn_from_their_seed_on() {
        let all = |from: u64| (from..from + 1_000).map(draw).collect::<String>();
        let (old, new) = (all(0), all(further::FURTHER_FROM));
        for key in [
            "jitter_kind = \"drift\"",
            "jitter_kind = \"free\"",
            "burst_ms",
            "bad_ms",
            "device_packets",
            "min_bytes",
            "target_ms",
            "max_burst_bytes",
            "tell_paths",
            "first_path_only",
            "ack_frequency_packets",
            "ack_frequency_delay_ms",
        ] {
            assert!(!old.contains(key) && new.contains(key), "{key}");
        }
        let silent = |text: &str| text.contains("rebind") && !text.contains("keep_alive_s");
        let count = |from: u64| (from..from + 1_000).filter(|seed| silent(&draw(*seed))).count();
        assert!(count(0) == 0 && count(further::FURTHER_FROM) > 10);
    }
}
