//! Time series of a run: figures of every path sampled at an interval of virtual time.

use std::time::Duration;

use plait_base::Instant;

use crate::host::decisions::Verdicts;
use crate::host::ledger::Ledger;

/// Samples that are kept; beyond them every second one is dropped and the interval doubles.
const SAMPLES_MAX: usize = 1_000;

/// One path at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathSample {
    /// UDP bytes that the links of the path let through towards the receiver so far.
    pub carried_bytes: u64,
    /// The sender's congestion window, bytes.
    pub window_bytes: u64,
    /// Its bytes in flight.
    pub in_flight_bytes: u64,
    /// Its smoothed RTT, ms; 0 before the first sample.
    pub rtt_ms: f64,
    /// What the decisions of the sender's scheduler meant for it so far.
    pub verdicts: Verdicts,
    /// How long a packet towards the receiver would wait in the queue now, ms.
    pub queue_ms: f64,
}

/// One source of cross traffic at one moment; what it does not have, as packets at a rate have no window, is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossSample {
    /// Payload bytes that have arrived.
    pub bytes: u64,
    /// Its sender's congestion window, bytes.
    pub window_bytes: u64,
    /// Its bytes in flight.
    pub in_flight_bytes: u64,
    /// Its smoothed RTT, ms; 0 before the first sample.
    pub rtt_ms: f64,
}

/// All paths at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// When the sample was taken.
    pub at: Instant,
    /// Payload bytes received in order so far.
    pub verified_bytes: u64,
    /// Each path of the scenario.
    pub paths: Vec<PathSample>,
    /// Each source of cross traffic.
    pub cross: Vec<CrossSample>,
}

/// Samples in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// From one sample to the next.
    pub interval: Duration,
    /// What the sources of cross traffic are called.
    pub cross: Vec<String>,
    /// The samples, in the order of time.
    pub samples: Vec<Sample>,
}

impl Series {
    /// An empty series with this interval at first, and cross traffic of these names.
    pub fn new(interval: Duration, cross: Vec<String>) -> Self {
        Self { interval, cross, samples: Vec::new() }
    }

    /// When the next sample is due.
    pub(crate) fn next_at(&self) -> Instant {
        self.samples.last().map_or(Instant::ZERO, |last| last.at + self.interval)
    }

    pub(crate) fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() > SAMPLES_MAX {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval *= 2;
        }
    }
}

/// The sender's view of a path of the scenario: of the newest path id that ran over it.
pub(crate) fn of_ledger(ledger: &Ledger, path: usize) -> PathSample {
    let newest = ledger.chosen_paths().rev().find(|(_, figures)| figures.scenario_path == Some(path));
    newest.map_or_else(PathSample::default, |(_, figures)| PathSample {
        carried_bytes: 0,
        window_bytes: figures.window_bytes,
        in_flight_bytes: figures.in_flight_bytes,
        rtt_ms: figures.rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3),
        verdicts: verdicts(ledger, path),
        queue_ms: 0.0,
    })
}

/// Verdicts over all path ids that ran over a path of the scenario.
fn verdicts(ledger: &Ledger, path: usize) -> Verdicts {
    let mut sum = Verdicts::default();
    let ids = ledger.chosen_paths().filter(|(_, figures)| figures.scenario_path == Some(path)).map(|(id, _)| id);
    for counts in ids.filter_map(|id| ledger.decisions.record.as_ref()?.verdicts.get(&id)) {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    sum
}
