//! Programs of the system: `ip`, `tc`, `unshare` and others, run to their end.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::unistd::Pid;

use crate::error::LabError;

/// The package that a program comes with.
fn package(program: &str) -> &'static str {
    match program {
        "ip" | "tc" | "ss" => "iproute2",
        "sysctl" => "procps",
        _ => "util-linux",
    }
}

/// Runs a program to its end; gives its standard output.
///
/// # Errors
/// It is missing, or refused.
pub(crate) fn run(
    program: &'static str,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<String, LabError> {
    feed(program, args, "")
}

/// As [`run`], with a text on its standard input.
///
/// # Errors
/// It is missing, or refused.
pub(crate) fn feed(
    program: &'static str,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    text: &str,
) -> Result<String, LabError> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C goes to every process of a terminal's group. It ends the laboratory in order, and not half of what that sets up.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| missing(program, error))?;
    // A program that does not read says why in its exit code.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(text.as_bytes()));
    let done = child.wait_with_output().map_err(|error| missing(program, error))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    Err(LabError::Refused { command: words(&command), said })
}

/// Gives a thread real-time priority; false where that is not allowed.
pub(crate) fn raise(thread: Pid, priority: u8) -> bool {
    run("chrt", ["--fifo", "--pid", &priority.to_string(), &thread.to_string()]).is_ok()
}

/// A program that cannot be run.
pub(crate) fn missing(program: &'static str, error: io::Error) -> LabError {
    LabError::NoTool { program, error, package: package(program) }
}

fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_of_the_group_does_not_reach_what_is_set_up() {
        let own = nix::unistd::getpgrp().to_string();
        // proc(5): pid, name in brackets, state, parent, group.
        let stat = run("cat", ["/proc/self/stat"]).unwrap();
        assert_ne!(stat.rsplit(')').next().unwrap().split_whitespace().nth(2), Some(own.as_str()), "{stat}");
    }
}
