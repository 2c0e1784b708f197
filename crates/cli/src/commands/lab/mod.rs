//! `plait lab`: scenarios in real time, between network namespaces of this machine.

pub(crate) mod args;
mod figure;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plait_lab::doctor::{self, Finding};
use plait_lab::{LabError, sandbox};
use serde_json::json;

use crate::commands::sim::args::ShowArgs;
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{print_json, print_line};
use crate::stop;
use args::LabCommand;

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::Running(error.to_string()) }
    }
}

/// Runs a command of the laboratory, in namespaces of its own.
pub(crate) async fn run(command: LabCommand) -> Result<(), CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    let asked = stop::asked();
    tokio::spawn(async move {
        asked.await;
        heard.store(true, Ordering::Relaxed);
    });
    if let LabCommand::List = command {
        return figure::list();
    }
    let work = move || if sandbox::is_inside() { inside(&command, &stop) } else { outside(&stop) };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CliError::running(error, "this is a fault of plait")))
}

/// Runs this command line again inside; its exit code is ours.
fn outside(stop: &AtomicBool) -> Result<(), CliError> {
    let code = sandbox::enter(std::env::args_os().skip(1))?.wait(stop)?;
    match code {
        Some(0) => Ok(()),
        // It has said why.
        Some(code) => std::process::exit(code),
        None => Err(CliError::running("the laboratory was killed", "nothing of it is left behind")),
    }
}

fn inside(command: &LabCommand, stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    let told = Arc::clone(stop);
    std::thread::spawn(move || {
        sandbox::wait_for_outer();
        told.store(true, Ordering::Relaxed);
    });
    match command {
        LabCommand::Doctor(show) => examine(*show),
        LabCommand::Run(args) => run::run(args, stop),
        LabCommand::List => figure::list(),
        LabCommand::Figure(args) => figure::make(args, stop),
    }
}

fn examine(show: ShowArgs) -> Result<(), CliError> {
    let findings = doctor::look();
    if show.is_json() {
        let object = |finding: &Finding| {
            let (ok, text) = match &finding.found {
                Ok(text) => (true, text),
                Err(text) => (false, text),
            };
            json!({ "kind": finding.kind, "name": finding.name, "ok": ok, "found": text })
        };
        let findings: Vec<_> = findings.iter().map(object).collect();
        return print_json(&json!({ "command": "lab doctor", "ok": true, "findings": findings, "error": null }));
    }
    let mut table = Table::new(&["", "", "found"]);
    for finding in findings {
        let found = finding.found.unwrap_or_else(|missing| format!("no: {missing}"));
        table.row(vec![finding.kind.to_owned(), finding.name, found]);
    }
    table.lines().iter().try_for_each(|line| print_line(line))
}
