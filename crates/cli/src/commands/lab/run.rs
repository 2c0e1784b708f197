//! `plait lab run`: a scenario file in real time.

use std::sync::atomic::AtomicBool;

use plait_lab::command::{self, LabRow, LabRunRequest, LabRuns, RunStep};
use plait_lab::{Family, Wiring};
use serde_json::{Value, json};

use super::args::LabRunArgs;
use crate::commands::sim::{self, json};
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{eprint_line, print_json, print_line};

/// What a relay leaves out, in a line.
const RELAY: &str = "through a relay on loopback: no TCP and MPTCP, no IPv6, no addresses that come and go, no refusal of \
                     packets that are too large, and both ends share the stack of this machine";

/// Runs the file with every contender that was named.
pub(super) fn run(args: &LabRunArgs, stop: &AtomicBool) -> Result<(), CliError> {
    let ran = run_all(args, stop);
    let (runs, failure) = match ran {
        Ok(runs) => {
            let failed = runs.rows.iter().filter(|found| !found.row.is_complete()).count();
            let what = format!("{failed} of {} runs did not complete", runs.rows.len());
            let failure = (failed > 0).then(|| CliError::running(what, "their rows say why"));
            (runs, failure)
        }
        Err(error) => (LabRuns { rows: Vec::new(), files: Vec::new() }, Some(error)),
    };
    let LabRuns { rows, files } = runs;
    if args.show.is_json() {
        let (error, runs) = (failure.as_ref().map(ToString::to_string), rows.iter().map(object).collect::<Vec<_>>());
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let ok = failure.is_none();
        print_json(&json!({ "command": "lab run", "ok": ok, "runs": runs, "files": files, "error": error }))?;
    } else if !rows.is_empty() {
        table(&rows).lines().iter().try_for_each(|line| print_line(line))?;
        files.iter().try_for_each(|file| print_line(&format!("wrote {}", file.display())))?;
    }
    failure.map_or(Ok(()), Err)
}

/// A run as an object: the columns of the simulator's, and the laboratory's own.
fn object(found: &LabRow) -> Value {
    json::row(&found.row)
}

fn run_all(args: &LabRunArgs, stop: &AtomicBool) -> Result<LabRuns, CliError> {
    let request = LabRunRequest {
        file: args.file.clone(),
        sets: args.sets.clone(),
        seeds: args.seeds,
        contenders: args.contenders.clone(),
        time_limit: args.max_time,
        wiring: match (args.relay, args.ipv6) {
            (true, _) => Wiring::Relay,
            (false, true) => Wiring::Namespaces(Family::V6),
            (false, false) => Wiring::Namespaces(Family::V4),
        },
        scheduling: args.scheduling.wanted(),
        out: args.out.clone().map(|out| (out, sim::pictures(args.png))),
        qlog: args.qlog.clone(),
        commit: sim::commit()?,
    };
    let show = args.show;
    if args.relay {
        eprint_line(RELAY);
    }
    let runs = command::run(&request, stop, |step| match step {
        RunStep::Inherited(note) => eprint_line(note),
        RunStep::Swept(count) => eprint_line(&format!("{count} folders of laboratories that were killed are gone now")),
        RunStep::Beyond(mbps) => {
            eprint_line(&format!(
                "{mbps:.0} Mbit/s in sum are more than `plait lab doctor` measures: look at lab_late_ms"
            ));
        }
        RunStep::Run(found) if show.json_stream => {
            // What cannot be printed now cannot be at the end either, and is told then.
            let _ = print_json(&json!({ "event": "run", "run": object(found) }));
        }
        RunStep::Run(found) if !show.json => eprint_line(&line(found)),
        RunStep::Run(_) => {}
    })?;
    Ok(runs)
}

fn line(found: &LabRow) -> String {
    let cell = |name| found.row.cell(name).unwrap_or_default();
    let late = if found.is_late { "; the machine was too busy for it to count" } else { "" };
    match found.row.seconds() {
        Some(seconds) => format!("{}, seed {}: {seconds:.3} s{late}", found.contender, cell("seed")),
        None => format!("{}, seed {}: {} {}{late}", found.contender, cell("seed"), cell("end"), cell("error")),
    }
}

fn table(rows: &[LabRow]) -> Table {
    let mut table =
        Table::new(&["contender", "seed", "end", "seconds", "Mbit/s", "worst delay ms", "late p99 ms", "late max"]);
    for found in rows {
        let cell = |name| found.row.cell(name).unwrap_or_default().to_owned();
        let number = |name, digits: usize| found.row.number(name).map_or(String::new(), |n| format!("{n:.digits$}"));
        table.row(vec![
            found.contender.clone(),
            cell("seed"),
            cell("end"),
            number("seconds", 3),
            number("goodput_mbps", 2),
            number("delay_max_ms", 1),
            number("lab_late_ms", 3),
            number("lab_late_max_ms", 3),
        ]);
    }
    table
}
