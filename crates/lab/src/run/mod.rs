//! One run: two hosts joined by emulated links, a contender's server and client on them, and what came of it.

mod outcome;
mod program;
mod work;

pub(crate) use outcome::{Answer, Completion, PathShare, RunFailure};
pub(crate) use program::{ClientOutput, Program, Ready};
pub(crate) use work::{PathEnds, Work};
