//! What is known of a load when it ends, well or badly.

use std::sync::Arc;

use plait::{Attempt, Connection};

use super::summary::{CpuSummary, FlowSummary, RoundSummary};
use crate::error::CliError;
use crate::http::policies::Named;
use crate::meter::Meter;
use crate::output::summary::{PathSummary, WorkerSummary};
use crate::perf::args::PerfClientArgs;
use crate::perf::carrier::Kernel;
use crate::perf::datagrams::{DatagramReport, DatagramSummary};
use crate::perf::delays::Delays;
use crate::perf::ending::Ending;
use crate::perf::exchanges::Exchange;
use crate::perf::load::{RequestLoad, Workload};
use crate::perf::load_meters::LoadMeters;
use crate::perf::plan::PerfPlan;
use crate::units::{mbps, rounded};

/// What is to be done, and what may end it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadJob<'a> {
    pub(super) plan: &'a PerfPlan,
    pub(super) args: &'a PerfClientArgs,
    pub(super) ending: &'a Ending,
}

/// What is known of the whole when it ends, well or badly.
#[derive(Debug, Default)]
pub(super) struct PerfOutcome {
    pub(super) connection: Option<Connection>,
    pub(super) handshake_s: Option<f64>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) told: Told,
    pub(super) paths: Vec<PathSummary>,
    pub(super) flows: Flows,
    pub(super) cost: Cost,
    pub(super) rounds: Option<RoundSummary>,
    pub(super) datagrams: Option<DatagramSummary>,
    /// Runs since the first packet of the connection, to the end of the load.
    pub(super) whole: Option<Arc<Meter>>,
    /// The shared clock at the end of the load.
    pub(super) finished_s: Option<f64>,
    /// Time from the first packet to the first byte that came for the load.
    pub(super) first_byte_s: Option<f64>,
    /// Each request of those at an interval.
    pub(super) exchanges: Vec<Exchange>,
    /// What is known of the kernel's transport.
    pub(super) kernel: KernelSide,
}

/// What is known of the kernel's transport, over TCP.
#[derive(Debug, Default)]
pub(super) struct KernelSide {
    /// The one that is spoken; none before that is known, and over QUIC.
    pub(super) spoken: Option<Kernel>,
    /// The controllers by which our kernel sends, and the server's.
    pub(super) ours: Option<String>,
    pub(super) theirs: Option<String>,
}

/// What moved, in all and each way.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Bytes both ways, over so many seconds; none where the load did not begin.
    pub(super) total: Option<FlowSummary>,
    pub(super) up: Option<FlowSummary>,
    pub(super) down: Option<FlowSummary>,
}

/// What the server says of itself, where it does.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) policies: Option<Named>,
    /// Whether it acknowledges what it does not read.
    pub(super) null_receiver: Option<bool>,
}

/// What the load cost us, and who did the work.
#[derive(Debug, Default)]
pub(super) struct Cost {
    pub(super) cpu: CpuSummary,
    /// Our threads that served paths.
    pub(super) workers: Vec<WorkerSummary>,
}

impl PerfOutcome {
    /// What `meters` have, once they are settled.
    pub(super) fn take(&mut self, load: &Workload, meters: &LoadMeters) {
        let (up, down) = (flow(&meters.up), flow(&meters.down));
        let mut seconds = meters.all.seconds();
        match load {
            Workload::Bulk(bulk) => {
                (self.flows.up, self.flows.down) = ((bulk.up > 0).then_some(up), (bulk.down > 0).then_some(down));
                self.first_byte_s = meters.down.arrivals().first().map(|at| at.as_secs_f64());
                // A server that is waited for in vain adds nothing.
                let ways = [self.flows.up, self.flows.down];
                seconds = ways.iter().flatten().map(|way| way.seconds).fold(0.0, f64::max);
            }
            Workload::Requests(_) => (self.flows.up, self.flows.down) = (Some(up), Some(down)),
            Workload::Connections(_) | Workload::Datagrams(_) => {}
        }
        self.flows.total = Some(FlowSummary::new(up.bytes + down.bytes, seconds));
        self.exchanges = meters.exchanges.list();
        self.rounds = match load {
            Workload::Requests(RequestLoad { interval: Some(_), .. }) => {
                Some(rounds(&meters.exchanges.delays(), 1, &meters.all))
            }
            Workload::Requests(load) => Some(rounds(&meters.delays.snapshot(), load.lanes, &meters.all)),
            _ => None,
        };
    }

    /// What the server saw of datagrams; none where it does not tell. What left counts in its place, but not where the server
    /// is gone.
    pub(super) fn hear(&mut self, report: Option<DatagramReport>, is_there: bool) {
        let Some(datagrams) = &mut self.datagrams else { return };
        datagrams.hear(report);
        let is_known = report.is_some() || is_there;
        self.flows.total = self.flows.total.map(|total| {
            let (bytes, seconds) = datagrams.moved(total.seconds);
            FlowSummary::new(if is_known { bytes } else { 0 }, seconds)
        });
    }
}

/// What a meter has.
pub(super) fn flow(meter: &Meter) -> FlowSummary {
    FlowSummary::new(meter.bytes(), meter.seconds())
}

/// What became of things that took so long, so many at once, over the time of `meter`.
pub(super) fn rounds(delays: &Delays, at_once: u64, meter: &Meter) -> RoundSummary {
    let seconds = meter.seconds();
    let per_second = if seconds > 0.0 { delays.count() as f64 / seconds } else { 0.0 };
    RoundSummary { count: delays.count(), at_once, per_second: rounded(per_second, 3), delay_ms: delays.summary() }
}

impl FlowSummary {
    pub(super) const NOTHING: Self = Self { bytes: 0, seconds: 0.0, goodput_mbps: 0.0 };

    /// So many bytes in so many seconds.
    pub(super) fn new(bytes: u64, seconds: f64) -> Self {
        Self { bytes, seconds: rounded(seconds, 6), goodput_mbps: rounded(mbps(bytes, seconds), 3) }
    }
}

/// The server fell silent.
pub(super) fn silent(plan: &PerfPlan) -> CliError {
    CliError::running(
        format!("{}: the server answers no more", plan.connect.host),
        "what it had by then is reported; check that it still runs",
    )
}
