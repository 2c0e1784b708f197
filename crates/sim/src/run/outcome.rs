//! What a run gave: the row of a result file.

use std::time::Duration;

use super::cross::CrossOutcome;
use super::network::Traffic;
use super::oracle::Fault;
use super::series::Series;
use crate::host::app::Exchange;
use crate::host::decisions::Decisions;
use crate::host::ledger::{PathFigures, StateChange};

/// Why a run did not finish that was told to stop.
pub(crate) const STOPPED: &str = "stopped";

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything that was asked for arrived.
    Complete,
    /// The time limit came first, or nothing would ever have happened again.
    Unfinished(&'static str),
    /// The connection was lost or an application saw something wrong.
    Failed(String),
}

/// One path's share of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathOutcome {
    /// What the sender of the bulk of the data noted, over all path ids that ran here.
    pub sender: PathFigures,
    /// What its own link carried.
    pub traffic: Traffic,
}

/// A named link after a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOutcome {
    /// The name that the scenario gives it.
    pub name: String,
    /// What it carried.
    pub traffic: Traffic,
}

/// The world around the connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// Each named link.
    pub links: Vec<LinkOutcome>,
    /// Each source of cross traffic.
    pub cross: Vec<CrossOutcome>,
    /// Datagrams sent, arrived and lost in the whole world.
    pub datagrams: (u64, u64, u64),
    /// Events that the simulator went through.
    pub events: u64,
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// From the first packet to the last byte read; the time limit for unfinished runs.
    pub elapsed: Duration,
    /// Payload bytes that arrived at their place.
    pub verified_bytes: u64,
    /// When the handshake was complete.
    pub handshake: Option<Duration>,
    /// When the first byte of an answer was read.
    pub first_byte: Option<Duration>,
    /// Requests with their answers.
    pub exchanges: Vec<Exchange>,
    /// Longest time in which nothing arrived in order though more was to come, after the first byte.
    pub stall_longest: Duration,
    /// How often that lasted longer than a stall may.
    pub stalls: u32,
    /// Decisions of the sender's scheduler.
    pub decisions: Decisions,
    /// Changes of path states at the sender.
    pub changes: Vec<StateChange>,
    /// One entry for each path of the scenario.
    pub paths: Vec<PathOutcome>,
    /// Rules that were broken.
    pub faults: Vec<Fault>,
    /// What the world around the connection did.
    pub around: Around,
    /// A hash over the times, addresses and sizes of all datagrams.
    pub digest: u64,
    /// Time series, where they were wanted.
    pub series: Option<Series>,
}

impl Outcome {
    /// True when it was told to stop before it was done: no result.
    pub fn was_stopped(&self) -> bool {
        self.end == End::Unfinished(STOPPED)
    }

    /// True when all arrived and no rule was broken.
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }

    /// Mean goodput from the first packet to the last byte, bit/s; 0 for runs that did not complete.
    pub fn goodput_bps(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if self.is_complete() && seconds > 0.0 { self.verified_bytes as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Delay of each answered request.
    pub fn delays(&self) -> Vec<Duration> {
        self.exchanges.iter().filter_map(|e| Some(e.answered?.since(e.asked))).collect()
    }
}
