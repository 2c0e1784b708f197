//! The plait command: multipath QUIC downloads, a server for them, and a demonstration.

mod args;
mod clock;
mod commands;
mod connect;
mod fail;
mod http;
mod local;
mod meant;
mod measure;
mod output;
mod paths;
mod relay;
mod stop;
mod tls;
mod transfer;
mod transport;
mod units;

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Command, CommandLine};
use fail::Fail;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    observe(&line.command);
    let result = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(line.command)),
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
        Command::Sim(command) => commands::sim::run(command).await,
        Command::Interop => commands::interop::run().await,
    }
}

/// Shows what the parts say of themselves on standard error: a server its requests, others what `RUST_LOG` asks for.
fn observe(command: &Command) {
    let usual = match command {
        Command::Serve(args) if !args.quiet => "plait=info",
        _ => "error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(stderr().is_terminal()).init();
}
