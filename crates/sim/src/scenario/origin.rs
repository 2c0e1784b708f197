//! Where a value of a scenario was written.

use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A file name, or `--set`, or the name of a design.
    pub place: Arc<str>,
    /// The line in it, from 1.
    pub line: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.place),
            None => f.write_str(&self.place),
        }
    }
}
