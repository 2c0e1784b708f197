//! `plait perf`: load between two hosts, and what came of it.

mod client;
mod outcome;
mod report;
mod running;
mod scaling;
mod server;
mod summary;

use crate::error::CliError;
use crate::perf::args::PerfCommand;

/// Runs either side, or both.
pub(crate) async fn run(command: PerfCommand) -> Result<(), CliError> {
    match command {
        PerfCommand::Server(args) => server::run(*args).await,
        PerfCommand::Client(args) => client::run(*args).await,
        PerfCommand::Scaling(args) => scaling::run(args).await,
    }
}
