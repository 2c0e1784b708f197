//! One run: two hosts joined by emulated links, a contender's server and client on them, and what came of it.

mod one;
mod outcome;
mod process;
mod program;
mod told;
mod unreal;
mod work;

pub(crate) use one::{Bench, Ran, run};
pub(crate) use outcome::{Answer, Completion, PathShare, RunFailure};
pub(crate) use program::{ClientOutput, Program, Ready};
pub(crate) use work::{PathEnds, Work};
