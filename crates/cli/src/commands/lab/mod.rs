//! `plait lab`: scenarios in real time, between network namespaces of this machine or through a relay on its loopback.

pub(crate) mod args;
mod doctor;
mod figure;
mod run;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plait_lab::{LabError, sandbox};
use serde_json::json;

use crate::error::CliError;
use crate::output::print_json;
use crate::stop;
use args::LabCommand;

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::Running(error.to_string()) }
    }
}

/// Runs a command of the laboratory, in namespaces of its own where it needs some.
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
    let work = move || match sandbox::is_inside() {
        true => inside(&command, &stop),
        false => match &command {
            LabCommand::Run(args) if args.relay => run::run(args, &stop),
            _ => outside(&stop).inspect_err(tell),
        },
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CliError::running(error, "this is a fault of plait")))
}

/// Tells programs that read why nothing was begun; standard error says it too.
fn tell(error: &CliError) {
    if std::env::args().any(|word| word == "--json" || word == "--json-stream") {
        let command = std::env::args().skip(1).take(2).collect::<Vec<_>>().join(" ");
        let _ = print_json(&json!({ "command": command, "ok": false, "error": error.to_string() }));
    }
}

/// Runs this command line again inside; its exit code is ours.
fn outside(stop: &AtomicBool) -> Result<(), CliError> {
    let code = sandbox::enter(std::env::args_os().skip(1))?.wait(stop)?;
    match code {
        Some(0) => Ok(()),
        // It has said why.
        Some(code) => std::process::exit(code),
        None => {
            let what = "the laboratory did not end when it was told to, and was killed";
            Err(CliError::running(
                what,
                "nothing of it is left behind; what --out has is good, the same command goes on",
            ))
        }
    }
}

fn inside(command: &LabCommand, stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    let told = Arc::clone(stop);
    std::thread::spawn(move || {
        sandbox::wait_for_outer();
        told.store(true, Ordering::Relaxed);
    });
    match command {
        LabCommand::Doctor(args) => doctor::run(*args, stop),
        LabCommand::Run(args) => run::run(args, stop),
        LabCommand::List => figure::list(),
        LabCommand::Figure(args) => figure::make(args, stop),
    }
}
