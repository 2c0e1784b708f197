//! Where a process begins: arguments, the log, the runtime, the exit code.

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use plait_sim::Policies;
use tracing_subscriber::EnvFilter;

use crate::command_line::{Command, CommandLine, SimLine};
use crate::error::CliError;
use crate::output::eprint_line;
use crate::perf::args::PerfCommand;
use crate::{commands, key_log, usage};

/// How long work in the background, such as taking an unfinished file away, may go on after the end.
const TIDY_TIME: Duration = Duration::from_millis(500);

/// The whole command: what `plait` does with the arguments of this process.
pub fn plait() -> ExitCode {
    let line: CommandLine = match usage::parse("plait") {
        Ok(line) => line,
        Err(code) => return code,
    };
    observe(match &line.command {
        Command::Serve(args) if !args.listen.quiet => "plait=info",
        Command::Perf(PerfCommand::Server(args)) if !args.listen.quiet => "plait=info",
        // What it says of a certificate that it refuses is said by us too.
        _ => "error,rustls_platform_verifier=off",
    });
    let threads = match &line.command {
        Command::Serve(args) => args.listen.threads,
        Command::Get(args) => args.connect.threads,
        Command::Perf(PerfCommand::Server(args)) => args.listen.threads,
        Command::Perf(PerfCommand::Client(args)) => args.connect.threads,
        _ => None,
    };
    key_log::warn_where_unwritable(&line.command);
    finish(run(line.command), threads, || usage::name::<CommandLine>("plait"))
}

/// `plait sim` alone, with `policies` that scenario files may name beside those of the engine: takes the arguments of
/// this process as `plait sim` would.
pub fn sim_main(policies: Policies) -> ExitCode {
    let program = std::env::args().next().unwrap_or_default();
    let program = Path::new(&program).file_stem().map_or("laboratory".into(), |name| name.to_string_lossy());
    let line: SimLine = match usage::parse(&program) {
        Ok(line) => line,
        Err(code) => return code,
    };
    observe("error");
    finish(commands::sim::run(line.command, policies), None, || usage::name::<SimLine>(&program))
}

/// Runs a command to its end, on so many threads or one a core, and turns that into an exit code; `name` is what was called.
fn finish(
    command: impl Future<Output = Result<(), CliError>>,
    threads: Option<usize>,
    name: impl FnOnce() -> String,
) -> ExitCode {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprint_line(&format!("plait: the runtime cannot start: {error}; are there free file handles?"));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(command);
    let code = match &result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            let hint =
                if matches!(fail, CliError::Usage(_)) { format!(" (see `{} --help`)", name()) } else { String::new() };
            eprint_line(&format!("plait: {fail}{hint}"));
            ExitCode::from(fail.exit_code())
        }
    };
    // A thread that waits for a pipe nobody reads must not hold up the end.
    runtime.shutdown_timeout(TIDY_TIME);
    code
}

async fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Get(args) => commands::get::run(args).await,
        Command::Sim(command) => commands::sim::run(command, Policies::new()).await,
        #[cfg(target_os = "linux")]
        Command::Lab(command) => commands::lab::run(command).await,
        Command::Perf(command) => commands::perf::run(command).await,
        Command::Interop => commands::interop::run().await,
    }
}

/// Shows what the parts say of themselves on standard error: what `RUST_LOG` asks for, else `usual`.
fn observe(usual: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(stderr().is_terminal());
    // A log that nobody reads any more is no reason to stop: its own complaint would have nowhere to go either.
    log.log_internal_errors(false).init();
}
