//! What `plait perf client` prints at its end.

use super::outcome::PerfOutcome;
use super::summary::{ClockSummary, ConnectionSummary, FlowSummary, LoadSummary, PerfSummary};
use crate::connect;
use crate::error::CliError;
use crate::options::Multipath;
use crate::output::summary::{AttemptSummary, BothSides};
use crate::output::table::Table;
use crate::output::{Format, print_json, print_line};
use crate::perf::args::PerfClientArgs;
use crate::perf::carrier::{Carrier, Kernel};
use crate::perf::delays::DelaySummary;
use crate::perf::plan::PerfPlan;
use crate::units::{human_bytes, rounded};

/// Prints what came of it, well or badly.
pub(super) fn report(
    plan: &PerfPlan,
    args: &PerfClientArgs,
    outcome: &PerfOutcome,
    error: Option<&CliError>,
) -> Result<(), CliError> {
    let summary = summary(plan, outcome, error);
    if Format::of(args.show).is_json() {
        return print_json(&summary);
    }
    if outcome.flows.total.is_none() {
        return Ok(());
    }
    table(&summary).lines().iter().try_for_each(|line| print_line(line))
}

fn table(summary: &PerfSummary) -> Table {
    let cpu = |side: Option<f64>| side.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
    let (ours, theirs) = (cpu(summary.cpu_seconds.client), cpu(summary.cpu_seconds.server));
    if let Some(rounds) = summary.requests.as_ref().or(summary.connections.as_ref()) {
        let heading = ["", "done", "a second", "p50 ms", "p90", "p99", "p99.9", "most", "CPU s here", "there"];
        let mut table = Table::new(&heading);
        let DelaySummary { p50, p90, p99, p999, max, .. } = rounds.delay_ms.unwrap_or_default();
        let delays = [p50, p90, p99, p999, max].map(|ms| format!("{ms:.3}"));
        let mut row = vec![summary.load.mode.to_owned(), rounds.count.to_string(), format!("{:.1}", rounds.per_second)];
        row.extend(delays);
        row.extend([ours, theirs]);
        table.row(row);
        return table;
    }
    if let Some(datagrams) = &summary.datagrams {
        let mut table = Table::new(&["", "Mbit/s", "sent", "received", "lost", "out of order", "jitter ms"]);
        let of = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            "datagrams".to_owned(),
            format!("{:.3}", summary.goodput_mbps),
            datagrams.sent.to_string(),
            of(datagrams.received.map(|there| there.received.to_string())),
            of(datagrams.loss.map(|loss| format!("{:.2} %", loss * 100.0))),
            of(datagrams.received.map(|there| there.reordered.to_string())),
            of(datagrams.received.map(|there| format!("{:.3}", there.jitter_ms))),
        ]);
        return table;
    }
    let mut table = Table::new(&["", "bytes", "seconds", "Mbit/s", "CPU s here", "there"]);
    for (name, flow) in [("up", summary.up), ("down", summary.down)] {
        let Some(flow) = flow else { continue };
        table.row(vec![
            name.to_owned(),
            human_bytes(flow.bytes),
            format!("{:.3}", flow.seconds),
            format!("{:.1}", flow.goodput_mbps),
            ours.clone(),
            theirs.clone(),
        ]);
    }
    table
}

fn summary(plan: &PerfPlan, outcome: &PerfOutcome, error: Option<&CliError>) -> PerfSummary {
    let total = outcome.flows.total.unwrap_or(FlowSummary::NOTHING);
    let of_mode = |mode: &str| outcome.rounds.clone().filter(|_| plan.load.name() == mode);
    PerfSummary {
        command: "perf",
        ok: error.is_none(),
        host: plan.connect.host.clone(),
        load: LoadSummary {
            mode: plan.load.name(),
            carrier: outcome.kernel.spoken.map_or(plan.carrier.name(), Kernel::name),
            placement: plan.placement(),
            direction: plan.load.direction(),
            streams: plan.streams,
        },
        bytes: total.bytes,
        seconds: total.seconds,
        total_seconds: outcome.whole.as_ref().map(|whole| rounded(whole.seconds(), 6)),
        clock: clock(outcome),
        first_byte_ms: outcome.first_byte_s.map(|s| rounded(s * 1e3, 3)),
        goodput_mbps: total.goodput_mbps,
        up: outcome.flows.up,
        down: outcome.flows.down,
        cpu_seconds: outcome.cost.cpu,
        workers: outcome.cost.workers.clone(),
        null_receiver: outcome.told.null_receiver,
        requests: of_mode("requests"),
        exchanges: Some(outcome.exchanges.clone()).filter(|list| !list.is_empty()),
        connections: of_mode("connections"),
        datagrams: outcome.datagrams.clone(),
        connection: connection_summary(plan, outcome),
        error: error.map(ToString::to_string),
    }
}

fn clock(outcome: &PerfOutcome) -> Option<ClockSummary> {
    let (whole, end) = (outcome.whole.as_ref()?, outcome.finished_s?);
    Some(ClockSummary { started_s: rounded(end - whole.seconds(), 6), finished_s: rounded(end, 6) })
}

fn connection_summary(plan: &PerfPlan, outcome: &PerfOutcome) -> ConnectionSummary {
    let connection = outcome.connection.as_ref();
    let multipath = match connection {
        Some(connection) if connection.is_multipath() => Multipath::Negotiated,
        _ => Multipath::Absent,
    };
    let ours =
        connection.map_or_else(|| plan.connect.transport.named(multipath), |connection| connection.policies().into());
    let theirs = outcome.told.policies.clone();
    let handshake_ms = outcome.handshake_s.map(|s| rounded(s * 1e3, 3));
    if plan.carrier != Carrier::Quic {
        let sender = match plan.load.direction() {
            Some("up") => outcome.kernel.ours.clone(),
            Some("down") => outcome.kernel.theirs.clone(),
            // Both kernels send, and nothing else tells of them.
            _ => outcome.kernel.ours.clone().filter(|ours| Some(ours) == outcome.kernel.theirs.as_ref()),
        };
        return ConnectionSummary::of_kernel(handshake_ms, sender);
    }
    let (sender, receiver) = match plan.load.direction() {
        Some("up") => (Some(ours.clone()), theirs.clone()),
        Some("down") => (theirs.clone(), Some(ours.clone())),
        _ => (None, None),
    };
    ConnectionSummary {
        handshake_ms,
        extension: connect::extension_name(connection, outcome.handshake_s),
        scheduler: sender.as_ref().map(|sender| sender.scheduler.clone()),
        congestion: sender.map(|sender| sender.congestion),
        ack_path: receiver.map(|receiver| receiver.ack_path),
        policies: Some(BothSides { ours, theirs, asked: (&plan.wish).into() }),
        attempts: outcome.attempts.iter().map(AttemptSummary::from).collect(),
        paths: outcome.paths.clone(),
    }
}
