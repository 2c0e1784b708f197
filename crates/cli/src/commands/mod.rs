//! The commands, a file each.

pub(crate) mod demo;
pub(crate) mod get;
pub(crate) mod interop;
pub(crate) mod perf;
pub(crate) mod serve;
pub(crate) mod sim;
