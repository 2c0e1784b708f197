//! Where a process begins: arguments, the log, the runtime, the exit code.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use clap::Parser;
use plait_sim::Policies;
use tracing_subscriber::EnvFilter;

use crate::args::{Command, CommandLine, LaboratoryLine};
use crate::commands;
use crate::fail::Fail;

/// The whole command: what `plait` does with the arguments of this process.
pub fn plait() -> ExitCode {
    let line = CommandLine::parse();
    observe(match &line.command {
        Command::Serve(args) if !args.quiet => "plait=info",
        _ => "error",
    });
    finish(run(line.command))
}

/// `plait sim` alone, with `policies` that scenario files may name beside those of the engine: takes the arguments of
/// this process as `plait sim` would.
pub fn laboratory(policies: Policies) -> ExitCode {
    let line = LaboratoryLine::parse();
    observe("error");
    finish(commands::sim::run(line.command, policies))
}

/// Runs a command to its end and turns that into an exit code.
fn finish(command: impl Future<Output = Result<(), Fail>>) -> ExitCode {
    let result = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => Err(Fail::running(format!("the runtime cannot start: {error}"), "are there free file handles?")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            eprintln!("plait: {fail}");
            ExitCode::from(fail.exit_code())
        }
    }
}

async fn run(command: Command) -> Result<(), Fail> {
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Get(args) => commands::get::run(args).await,
        Command::Sim(command) => commands::sim::run(command, Policies::new()).await,
        Command::Interop => commands::interop::run().await,
    }
}

/// Shows what the parts say of themselves on standard error: what `RUST_LOG` asks for, else `usual`.
fn observe(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(stderr().is_terminal()).init();
}
