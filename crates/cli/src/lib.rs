//! The `plait` command as a library: a program of three lines is the laboratory with a scheduler or congestion
//! controller of its own.
//!
//! ```no_run
//! use plait_sim::Policies;
//! // with_scheduler(...) and with_controller(...) add a program's own to those of the engine.
//! fn main() -> std::process::ExitCode {
//!     plait_cli::sim_main(Policies::new())
//! }
//! ```

mod args;
mod clock;
mod command_line;
mod commands;
mod connect;
mod error;
mod http;
mod identity;
mod key_log;
mod listen;
mod local;
mod measure;
mod meter;
mod names;
mod options;
mod output;
mod paths;
mod patience;
mod pattern;
mod perf;
mod relay;
mod service;
mod start;
mod stop;
mod tls;
mod transfer;
mod transport;
mod units;
mod usage;
mod zone;

pub use start::{plait, sim_main};
