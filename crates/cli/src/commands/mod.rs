//! The commands, a file each.

pub(crate) mod demo;
pub(crate) mod get;
pub(crate) mod interop;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
pub(crate) mod perf;
pub(crate) mod serve;
pub(crate) mod sim;
