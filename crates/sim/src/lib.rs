//! The laboratory in virtual time: scenarios, campaigns, oracles, figures and reports over the plait engine.
//!
//! A [`scenario::Scenario`] and a seed make a [`plait_netsim::World`] with a [`host::PlaitHost`] at either end, and the
//! world makes an [`run::outcome::Outcome`]: the same each time, on any machine and any number of threads.
//!
//! ```
//! use plait_sim::run::{self, Watch};
//! use plait_sim::scenario::{Scenario, Traces, Tree};
//!
//! let text = r#"
//! [[path]]
//! rate_mbps = 10
//! rtt_ms = 20
//! [[path]]
//! rate_mbps = 10
//! rtt_ms = 40
//! [transfer]
//! kind = "download"
//! bytes = 1_000_000
//! "#;
//! let scenario = Scenario::read(&Tree::parse("mine.toml", text)?, &Traces::default())?;
//! let outcome = run::run(&scenario, 1, Watch::default()).unwrap();
//! assert!(outcome.is_complete() && outcome.faults.is_empty());
//! assert!(outcome.goodput_bps() > 10e6, "more than either path alone: {}", outcome.goodput_bps());
//! # Ok::<(), plait_sim::scenario::ScenarioError>(())
//! ```

pub mod campaign;
pub mod command;
pub mod design;
pub mod figures;
pub mod files;
pub mod host;
pub mod pcap;
pub mod plot;
pub mod policies;
pub mod report;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod swarm;

/// Ids, times and randomness that policies are told of.
pub use plait_engine::base;
/// The trait of congestion controllers, for a program's own.
pub use plait_engine::congestion;
/// Congestion controllers of the engine.
pub use plait_engine::congestion::NAMES as CONTROLLERS;
/// Ack routes that a scenario may name.
pub use plait_engine::path::ack_route::NAMES as ACK_PATHS;
/// Names of path policies.
pub use plait_engine::path::policy::NAMES as PATH_POLICIES;
/// The trait of schedulers, for a program's own.
pub use plait_engine::schedule;
/// Schedulers of the engine.
pub use plait_engine::schedule::NAMES as SCHEDULERS;
pub use plait_engine::schedule::reinject::NAMES as REINJECTIONS;
pub use policies::Policies;
