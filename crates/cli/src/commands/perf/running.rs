//! A load while it runs: people watch it, something may end it early, and what came of it by then is noted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use plait::Connection;

use super::outcome::{LoadJob, PerfOutcome, flow, rounds, silent};
use crate::error::CliError;
use crate::meter::Meter;
use crate::output::progress::{LoadCounts, ProgressDisplay, Snapshot};
use crate::output::summary::PathSummary;
use crate::paths::PathTable;
use crate::perf::bulk;
use crate::perf::connections::{self, Knocker};
use crate::perf::datagrams::{self, DatagramSummary};
use crate::perf::delays::SharedDelays;
use crate::perf::dialer::Dialer;
use crate::perf::load::{ConnectionLoad, Extent, RequestLoad, Workload};
use crate::perf::load_meters::LoadMeters;
use crate::perf::paced;
use crate::perf::pipe::PipeError;
use crate::perf::plan::PerfPlan;
use crate::perf::requests;
use crate::transfer::watched;

/// The paths of each connection that shares a load.
struct Books(Vec<PathTable>);

impl Books {
    fn new(dialer: &Dialer) -> Self {
        Self(dialer.connections().map(|_| PathTable::default()).collect())
    }

    /// Looks at them now: all that there were, those of the first connection first.
    fn sample(&mut self, dialer: &Dialer) -> Vec<PathSummary> {
        self.0.iter_mut().zip(dialer.connections()).for_each(|(book, connection)| book.sample(connection));
        self.0.iter().flat_map(PathTable::paths).collect()
    }
}

/// Runs the load, showing how it goes, and notes what came of it; a server may be silent for `patience` once it should be over.
pub(super) async fn run_load(
    job: LoadJob<'_>,
    dialer: &Dialer,
    patience: Duration,
    outcome: &mut PerfOutcome,
) -> Result<(), CliError> {
    let plan = job.plan;
    if let (Workload::Datagrams(load), Some(connection)) = (&plan.load, dialer.connection()) {
        job.ending.or(datagrams::wait_for_room(connection, load)).await?;
    }
    let room = dialer.connection().map_or(0, Connection::datagram_send_buffer_space);
    let mut books = Books::new(dialer);
    let meters = LoadMeters::start(dialer);
    let mut look = || {
        let counts = meters.counts(&plan.load, dialer);
        let paths = books.sample(dialer);
        Snapshot { at_s: meters.all.seconds(), bytes: counts.bytes(), paths, load: Some(counts) }
    };
    let working = async {
        tokio::select! {
            done = work(plan, dialer, &meters) => done,
            () = dialer.silence(plan.load.time(), patience) => Err(silent(plan)),
        }
    };
    let done = shown(job, working, &mut look).await;
    meters.settle(&plan.load, dialer, done.is_ok());
    outcome.take(&plan.load, &meters);
    outcome.paths = books.sample(dialer);
    if let (Workload::Datagrams(load), Some(connection)) = (&plan.load, dialer.connection()) {
        let sent = meters.datagrams.load(Ordering::Relaxed);
        outcome.datagrams = Some(DatagramSummary::new(connection, load, sent, room));
    }
    done
}

/// Awaits `work`, showing by `look` how it fares, unless something ends it early.
async fn shown(
    job: LoadJob<'_>,
    work: impl Future<Output = Result<(), CliError>>,
    look: &mut impl FnMut() -> Snapshot,
) -> Result<(), CliError> {
    let mut progress = ProgressDisplay::new(job.args.show, None, job.plan.load.total_bytes()).every(job.plan.interval);
    let reader_left = progress.reader_left();
    let done = tokio::select! {
        done = job.ending.or(watched(work, look, &mut progress)) => done,
        () = reader_left.notified() => {
            Err(CliError::running("standard output was closed", "the load was ended, since nobody reads how it goes"))
        }
    };
    progress.finish();
    done
}

async fn work(plan: &PerfPlan, dialer: &Dialer, meters: &LoadMeters) -> Result<(), CliError> {
    let failed = |error: PipeError| match error {
        PipeError::Silent => silent(plan),
        error => {
            let hint = "check that the server still runs, and look at its log";
            CliError::running(format!("{}: {error}", plan.connect.host), hint)
        }
    };
    match &plan.load {
        Workload::Bulk(load) => bulk::run(dialer, load, meters).await.map_err(failed),
        Workload::Requests(load @ RequestLoad { interval: Some(every), extent: Extent::Amount(count), .. }) => {
            paced::run(dialer, load, (*count, *every), meters).await.map_err(failed)
        }
        Workload::Requests(load) => requests::run(dialer, load, meters).await.map_err(failed),
        Workload::Datagrams(load) => match dialer.connection() {
            Some(connection) => datagrams::send(connection, load, &meters.datagrams).await,
            None => Ok(()),
        },
        Workload::Connections(_) => Ok(()),
    }
}

/// Makes connections, showing how many there are, and notes what came of it.
pub(super) async fn run_connections(
    job: LoadJob<'_>,
    knocker: &Knocker,
    load: &ConnectionLoad,
    outcome: &mut PerfOutcome,
) -> Result<(), CliError> {
    let (meter, delays) = (Meter::start(), SharedDelays::default());
    let mut look = || {
        let counts = LoadCounts { count: Some(delays.count()), ..LoadCounts::default() };
        Snapshot { at_s: meter.seconds(), load: Some(counts), ..Snapshot::default() }
    };
    let done = shown(job, connections::run(knocker, load, &delays), &mut look).await;
    meter.stop();
    outcome.flows.total = Some(flow(&meter));
    outcome.rounds = Some(rounds(&delays.snapshot(), load.lanes, &meter));
    done
}
