//! What is around a run, whoever takes part in it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{CpuScheduling, Wiring};
use crate::machine::Machine;

/// Where a run is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench<'a> {
    /// What this machine can do.
    pub(crate) machine: &'a Machine,
    /// What lies between client and server.
    pub(crate) wiring: Wiring,
    /// How programs are scheduled, as far as the machine allows it.
    pub(crate) scheduling: CpuScheduling,
    /// A folder of the run's own, which it makes and takes away.
    pub(crate) files: &'a Path,
    /// Where our own programs write qlog; none: nowhere.
    pub(crate) qlog: Option<&'a Path>,
    /// Set from outside to end the run early.
    pub(crate) stop: &'a AtomicBool,
}
