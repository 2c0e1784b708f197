//! One run: a contender's server and client, joined by emulated links, and what came of it.

mod bench;
mod beside;
mod one;
mod outcome;
mod process;
mod program;
mod scheduling;
mod told;
mod unreal;
mod wiring;
mod work;

pub(crate) use bench::Bench;
pub(crate) use one::{Ran, check, run};
pub(crate) use outcome::{Answer, Completion, PathShare, RunFailure};
pub(crate) use program::{ClientOutput, Program, Ready};
pub use scheduling::CpuScheduling;
pub(crate) use told::{read_delays, sum_mbps};
pub use wiring::Wiring;
pub(crate) use work::Work;
