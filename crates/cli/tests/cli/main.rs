//! The command and the programs built on it, each run as a process. One test program, because each links the whole library.

mod campaign;
mod command;
#[cfg(target_os = "linux")]
mod ending;
mod examples;
mod hoarders;
mod interop;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod lab_figure;
#[cfg(target_os = "linux")]
mod lab_relay;
mod perf;
#[path = "../../../engine/tests/puppet/mod.rs"]
mod puppet;
mod support;
#[cfg(unix)]
mod swarm;
