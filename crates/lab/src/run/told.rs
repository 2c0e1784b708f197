//! A run as the simulator would tell it: the same outcome, and so the same row.

use std::time::Duration;

use plait_base::Instant;
use plait_sim::campaign::Row;
use plait_sim::host::app::Exchange;
use plait_sim::host::ledger::PathFigures;
use plait_sim::run::outcome::{Around, End, LinkOutcome, Outcome, PathOutcome};
use plait_sim::scenario::Scenario;

use super::{Ran, RunFailure};

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
        let link = |(index, link): (usize, &plait_sim::scenario::NamedLink)| {
            let traffic = self.traffic.get(paths + index).copied().unwrap_or_default();
            LinkOutcome { name: link.name.clone(), traffic }
        };
        let sum = |of: fn(&plait_netsim::link::LinkStats) -> u64| {
            self.traffic.iter().take(paths).map(|traffic| of(&traffic.up) + of(&traffic.down)).sum()
        };
        let datagrams =
            (sum(|link| link.offered_packets), sum(|link| link.forwarded_packets), sum(|l| l.drops_total()));
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
            around: Around {
                links: scenario.links.iter().enumerate().map(link).collect(),
                datagrams,
                ..Around::default()
            },
            // Times of the wall differ from run to run.
            digest: 0,
            series: None,
        }
    }

    /// Puts what the simulator's rows do not have behind a row: how late the loop was, whether that was too late, and what
    /// the contender noted.
    pub(crate) fn note(&self, row: &mut Row) {
        let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let mut put = |name: &str, value: String| row.cells.push((format!("lab_{name}"), value));
        put("late_p50_ms", ms(self.lateness.p50));
        put("late_ms", ms(self.lateness.p99));
        put("late_max_ms", ms(self.lateness.max));
        put("real_time", self.real_time.to_string());
        put("is_late", if self.is_late { "yes" } else { "" }.to_owned());
        if let Ok(answer) = &self.result {
            answer.notes.iter().for_each(|(name, value)| put(name, value.clone()));
        }
    }
}
