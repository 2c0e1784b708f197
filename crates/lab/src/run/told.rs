//! A run as the simulator would tell it: the same outcome, and so the same row.

use std::time::Duration;

use plait_base::Instant;
use plait_sim::campaign::Row;
use plait_sim::host::app::Exchange;
use plait_sim::host::ledger::PathFigures;
use plait_sim::run::cross::CrossOutcome;
use plait_sim::run::outcome::{Around, End, LinkOutcome, Outcome, PathOutcome};
use plait_sim::scenario::{CrossPlan, DuplexPlan, LinkPlan, NamedLink, Place, Scenario};

use super::{Ran, RunFailure};
use crate::doctor;
use crate::emulator::CrossCount;

impl Ran {
    /// What the simulator's outcome has, as far as it can be known of real hosts.
    pub(crate) fn told(&self, scenario: &Scenario) -> Outcome {
        let at = |time: Duration| Instant::ZERO + time;
        let (mut end, mut bytes, mut handshake, mut exchanges) = (End::Complete, 0, None, Vec::new());
        let mut shares = Vec::new();
        match &self.result {
            Ok(answer) => {
                (bytes, handshake, shares) = (answer.bytes, answer.handshake, answer.paths.clone());
                let begun = handshake.unwrap_or_default();
                let exchange = |(asked, delay): &(Duration, Option<Duration>)| {
                    let asked = at(begun + *asked);
                    Exchange { asked, answered: delay.map(|delay| asked + delay) }
                };
                exchanges = answer.requests.iter().map(exchange).collect();
                if exchanges.iter().any(|exchange| exchange.answered.is_none()) {
                    end = End::Unfinished("requests without answer");
                }
            }
            Err(RunFailure::TimeLimit(_)) => end = End::Unfinished("time limit"),
            Err(failure) => end = End::Failed(failure.to_string()),
        }
        let first_byte = self.result.as_ref().ok().and_then(|answer| answer.notes.get("first_byte_ms")?.parse().ok());
        let paths = scenario.paths.len();
        let path = |index: usize| {
            let share = shares.get(index).copied().unwrap_or_default();
            let sender = PathFigures {
                scenario_path: Some(index),
                sent_bytes: share.sent_bytes,
                packets_sent: share.packets_sent,
                packets_lost: share.packets_lost,
                rtt: share.rtt,
                ..PathFigures::default()
            };
            PathOutcome { sender, traffic: self.traffic.get(index).copied().unwrap_or_default() }
        };
        Outcome {
            end,
            elapsed: self.elapsed,
            verified_bytes: bytes,
            handshake,
            first_byte: first_byte.map(|ms: f64| Duration::from_secs_f64(ms.max(0.0) / 1e3)),
            exchanges,
            stall_longest: Duration::ZERO,
            stalls: 0,
            decisions: Default::default(),
            changes: Vec::new(),
            paths: (0..paths).map(path).collect(),
            faults: Vec::new(),
            around: self.around(scenario),
            // Times of the wall differ from run to run.
            digest: 0,
            series: None,
        }
    }

    /// What was in the network beside the paths.
    fn around(&self, scenario: &Scenario) -> Around {
        let paths = scenario.paths.len();
        let link = |(index, link): (usize, &NamedLink)| {
            let traffic = self.traffic.get(paths + index).copied().unwrap_or_default();
            LinkOutcome { name: link.name.clone(), traffic }
        };
        let cross = |(plan, count): (&CrossPlan, &CrossCount)| CrossOutcome {
            label: plan.label.clone(),
            bytes: count.arrived_bytes,
            lasted: plan.stop.map_or(self.elapsed, |stop| stop.min(self.elapsed)).saturating_sub(plan.start),
            packets_sent: count.sent_packets,
            ..CrossOutcome::default()
        };
        let sum = |of: fn(&plait_netsim::link::LinkStats) -> u64| {
            self.traffic.iter().take(paths).map(|traffic| of(&traffic.up) + of(&traffic.down)).sum()
        };
        let datagrams =
            (sum(|link| link.offered_packets), sum(|link| link.forwarded_packets), sum(|l| l.drops_total()));
        Around {
            links: scenario.links.iter().enumerate().map(link).collect(),
            cross: scenario.cross.iter().zip(&self.crossed).map(cross).collect(),
            datagrams,
            ..Around::default()
        }
    }

    /// Puts what the simulator's rows do not have behind a row: how late the loop was, whether that was too late, whether more
    /// was to be carried than was ever measured, when each request was answered, and what the contender noted.
    pub(crate) fn note(&self, scenario: &Scenario, row: &mut Row) {
        let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let mut put = |name: &str, value: String| row.cells.push((format!("lab_{name}"), value));
        put("late_p50_ms", ms(self.lateness.p50));
        put("late_ms", ms(self.lateness.p99));
        put("late_max_ms", ms(self.lateness.max));
        put("links", self.wiring.name().to_owned());
        put("real_time", self.real_time.to_string());
        put("cpu_scheduling", self.scheduling.name().to_owned());
        let yes = |is_so: bool| if is_so { "yes" } else { "" }.to_owned();
        put("is_late", yes(self.is_late));
        put("is_beyond", yes(sum_mbps(scenario) > doctor::measured_mbps()));
        put("delays_ms", self.delays());
        if !self.crossed.is_empty() {
            put("cross_begun_s", self.begun());
        }
        if let Ok(answer) = &self.result {
            answer.notes.iter().for_each(|(name, value)| put(name, value.clone()));
        }
    }

    /// When each stream of cross traffic first sent, seconds; `-` for one that never did.
    fn begun(&self) -> String {
        let one = |count: &CrossCount| {
            count.first.map_or("-".to_owned(), |at| format!("{:.3}", at.since_origin().as_secs_f64()))
        };
        self.crossed.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Each request with the time of its making and the delay of its answer, `-` without one.
    fn delays(&self) -> String {
        let Ok(answer) = &self.result else { return String::new() };
        let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let one = |(at, delay): &(Duration, Option<Duration>)| {
            format!("{}:{}", ms(*at + answer.handshake.unwrap_or_default()), delay.map_or("-".to_owned(), ms))
        };
        answer.requests.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// What a cell of delays says: time and delay of each request in ms, infinite without an answer.
pub(crate) fn read_delays(cell: &str) -> Vec<(f64, f64)> {
    let one = |word: &str| {
        let (at, delay) = word.split_once(':')?;
        Some((at.parse().ok()?, delay.parse().unwrap_or(f64::INFINITY)))
    };
    cell.split(' ').filter_map(one).collect()
}

/// What the paths of a scenario carry in sum towards the client or towards the server, whichever is more, Mbit/s: each as
/// much as the slowest link on its way.
pub(crate) fn sum_mbps(scenario: &Scenario) -> f64 {
    let links: Vec<&DuplexPlan> = scenario.duplexes().collect();
    let of = |way: fn(&DuplexPlan) -> &LinkPlan| -> f64 {
        let rate = |place: &Place| links.get(place.0).and_then(|link| way(link).rate.mean_bps());
        let path = |path| scenario.way(path).iter().filter_map(rate).min();
        (0..scenario.paths.len()).filter_map(path).map(|bps| bps as f64 / 1e6).sum()
    };
    of(|link| &link.up).max(of(|link| &link.down))
}
