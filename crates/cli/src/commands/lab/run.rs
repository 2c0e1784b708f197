//! `plait lab run`: a scenario file in real time.

use std::sync::atomic::AtomicBool;

use plait_lab::Family;
use plait_lab::command::{self, LabRow, LabRunRequest, RunStep};
use serde_json::{Value, json};

use super::args::LabRunArgs;
use crate::commands::sim::{self, json};
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{eprint_line, print_json, print_line};

/// Runs the file with every contender that was named.
pub(super) fn run(args: &LabRunArgs, stop: &AtomicBool) -> Result<(), CliError> {
    let ran = run_all(args, stop);
    let failed = ran.as_ref().map_or(0, |rows| rows.iter().filter(|found| !found.row.is_complete()).count());
    let (rows, failure) = match ran {
        Ok(rows) if failed > 0 => {
            let what = format!("{failed} of {} runs did not complete", rows.len());
            (rows, Some(CliError::running(what, "their rows say why")))
        }
        Ok(rows) => (rows, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    if args.show.is_json() {
        let (error, runs) = (failure.as_ref().map(ToString::to_string), rows.iter().map(object).collect::<Vec<_>>());
        print_json(&json!({ "command": "lab run", "ok": failure.is_none(), "runs": runs, "error": error }))?;
    } else if !rows.is_empty() {
        table(&rows).lines().iter().try_for_each(|line| print_line(line))?;
    }
    failure.map_or(Ok(()), Err)
}

/// A run as an object: the columns of the simulator's, and the laboratory's own.
fn object(found: &LabRow) -> Value {
    json::row(&found.row)
}

fn run_all(args: &LabRunArgs, stop: &AtomicBool) -> Result<Vec<LabRow>, CliError> {
    let request = LabRunRequest {
        file: args.file.clone(),
        sets: args.sets.clone(),
        seeds: args.seeds,
        contenders: args.contenders.clone(),
        time_limit: args.max_time,
        family: if args.ipv6 { Family::V6 } else { Family::V4 },
        commit: sim::commit()?,
    };
    let show = args.show;
    let rows = command::run(&request, stop, |step| match step {
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
    Ok(rows)
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
