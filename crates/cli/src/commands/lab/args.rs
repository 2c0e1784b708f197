//! What can be typed after `plait lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::commands::sim::args::ShowArgs;
use crate::units::{parse_seconds, whole};

/// The commands of the laboratory in real time.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Say what this machine can do: namespaces, devices, MPTCP, and which stacks can be compared on it
    Doctor(ShowArgs),
    /// Run a scenario file, the same that `plait sim run` takes, with one stack after the other
    Run(LabRunArgs),
}

/// `plait lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabRunArgs {
    /// The scenario file to run
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Who takes part, as `plait lab doctor` names them, with commas between
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "plait,plait-single")]
    pub(crate) contenders: Vec<String>,
    /// Runs of each point and contender, with seeds counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1..=1_000_000))]
    pub(crate) seeds: u64,
    /// Set a value over the file's, as path.0.loss=0.01; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Give up on a run after so many seconds, where its scenario does not say sooner
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    pub(crate) max_time: Duration,
    /// IPv6 in place of IPv4
    #[arg(long)]
    pub(crate) ipv6: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}
