//! The laboratory in real time: scenario files of the simulator between Linux network namespaces, with the stacks that
//! people have.
//!
//! `plait lab run FILE` makes two hosts and the paths between them. Each direction of each link goes through
//! `plait_netsim::link`, the model that the simulator has too, in one real-time loop that reads and writes TUN devices. On the hosts a contender's server
//! and client do the scenario's transfer: plait, kernel TCP, MPTCP and others. Each run records how late its loop was.
//!
//! | module | what |
//! |---|---|
//! | [`sandbox`] | this program again, in namespaces of its own: everything goes when it ends |
//! | `machine` | what this machine can do |
//! | `host` | both hosts: devices, addresses, routes |
//! | `emulator` | the real-time loop over the links, their changes, how late it was |
//! | `contender` | the stacks that are compared, one file each |
//! | `relay` | sockets on loopback in the place of hosts, for who may make none |
//! | `run` | one run, from the hosts to its result |
//! | [`campaign`] | many runs: the papers' figures, and reports |
//! | `doctor` | how exact the emulator is on this machine |
//!
//! The crate knows no engine: it runs programs, the `plait` command among them.
#![cfg(target_os = "linux")]

pub mod campaign;
mod clock;
pub mod command;
mod contender;
pub mod doctor;
mod emulator;
mod error;
mod host;
mod machine;
mod relay;
mod run;
pub mod sandbox;
mod scratch;
mod tool;

pub use contender::listed as contenders;
pub use error::LabError;
pub use host::Family;
pub use run::{CpuScheduling, Wiring};
