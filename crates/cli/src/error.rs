//! How a command ends badly: one line that says what happened and what to try.

use std::fmt;

/// The contract of the interop runner: this exit code says that a test case is not supported.
const UNSUPPORTED: u8 = 127;

/// Why a command did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CliError {
    /// It was asked wrongly: exit code 2.
    Usage(String),
    /// It went wrong on the way: exit code 1.
    Running(String),
    /// The user stopped it: exit code 1.
    Interrupted,
    /// A test case of the interop runner that we do not know: exit code 127.
    Unsupported(String),
}

impl CliError {
    /// Something happened, and this may help.
    pub(crate) fn running(what: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self::Running(format!("{what}; {hint}"))
    }

    /// Wrong usage, and the right one.
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self::Usage(what.to_string())
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Running(_) | Self::Interrupted => 1,
            Self::Unsupported(_) => UNSUPPORTED,
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Running(what) => f.write_str(&one_line(what)),
            Self::Interrupted => f.write_str("stopped before it was done"),
            Self::Unsupported(case) => write!(f, "test case `{case}` is not supported"),
        }
    }
}

impl std::error::Error for CliError {}

/// Errors of others may span lines; ours do not.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_lines() {
        let fail = CliError::running("the port\nis taken", "choose another");
        assert_eq!((fail.exit_code(), fail.to_string().as_str()), (1, "the port is taken; choose another"));
        assert_eq!(CliError::usage("x").exit_code(), 2);
        assert_eq!(CliError::Interrupted.exit_code(), 1);
    }
}
