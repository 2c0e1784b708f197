//! What can be typed after `plait sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plait_sim::campaign::Shard;

use crate::units::whole;

/// The commands of the laboratory.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Run a scenario file: once, or over seeds and its sweep
    Run(SimRunArgs),
    /// Show the figures that can be made, and the designs, schedulers and controllers that scenarios may name
    List,
    /// Put the result files of all shards of a campaign together
    Merge(SimMergeArgs),
    /// Run random networks with faults and random settings, each with every check; shrink what fails to a small scenario
    Swarm(SimSwarmArgs),
    /// Make one of the papers' figures, or run a gate: never-worse, profiles, further, fairness, shared-queues, ack-routes, migration, reordering, startup
    Figure(SimFigureArgs),
}

/// Largest seed that a swarm draws.
const SEED_MAX: u64 = i64::MAX as u64 - 100_000_000;
/// Most points of a design, or rounds, that a figure may be asked for.
const POINTS_MAX: u64 = 5_000;

/// What is printed, and for whom.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShowArgs {
    /// Print one JSON object on standard output, as its last line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one JSON object a line while it runs, the result last
    #[arg(long)]
    pub(crate) json_stream: bool,
}

impl ShowArgs {
    /// True when standard output carries JSON.
    pub(crate) fn is_json(self) -> bool {
        self.json || self.json_stream
    }
}

/// `plait sim run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimRunArgs {
    /// The scenario file to run
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Runs of each point, with seeds counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1..=1_000_000))]
    pub(crate) seeds: u64,
    /// Override a value of the file, as path.0.loss=0.01; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Folder for results and report; a campaign that was interrupted goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write a qlog file of each connection to the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) qlog: bool,
    /// Capture a link of a single run to pcapng files in the folder of --out: path.0, link.NAME, either with .up or .down, or all; repeatable
    #[arg(long, value_name = "LINK", requires = "out")]
    pub(crate) pcap: Vec<String>,
    /// Write each plot as a PNG file too, to the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) png: bool,
    /// Run one part of the campaign only, as 2/8
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// `plait sim merge`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimMergeArgs {
    /// Result files of all shards
    #[arg(value_name = "FILE.csv", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE.csv")]
    pub(crate) out: PathBuf,
}

/// `plait sim swarm`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimSwarmArgs {
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole::<u64>(1..=100_000_000))]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = whole::<u64>(0..=SEED_MAX))]
    pub(crate) from: u64,
    /// Let simulated threads serve the paths of both ends; each seed also draws their order, stalls and deaths
    #[arg(long)]
    pub(crate) workers: bool,
    /// Override a value that is drawn, as endpoints.scheduler=minrtt; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Folder for small scenarios that fail, which `plait sim run` replays
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// `plait sim figure`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SimFigureArgs {
    /// Names, as `plait sim list` shows them, or `all`
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Number of points of the design, or rounds, instead of the paper's
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=POINTS_MAX))]
    pub(crate) points: Option<usize>,
    /// Override a value of the figure, as endpoints.scheduler=ecf; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Folder for data and report
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write each plot as a PNG file too, to the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) png: bool,
    /// Write each figure between its marks, `<!-- figure NAME -->` or `<!-- table NAME -->` and `<!-- end NAME -->`,
    /// in this Markdown file; repeatable
    #[arg(long, value_name = "FILE.md")]
    pub(crate) into: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Print the claims as a Markdown table
    #[arg(long, conflicts_with_all = ["json", "json_stream"])]
    pub(crate) markdown: bool,
}
