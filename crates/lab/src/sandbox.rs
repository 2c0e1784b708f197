//! Namespaces of the laboratory's own: this program runs itself again inside them, and everything goes with it.
//!
//! The inner process is the first of a process namespace of its own, with its own mounts and its own network. When it
//! ends, however it ends, the kernel ends every process in there, and with the last of them the devices, the namespaces
//! and the mounts. No name of the machine is used, so nothing has to be swept but temporary folders; without root the same
//! works in a user namespace. The outer process holds a pipe that the inner one reads: when the outer is gone, `kill -9`
//! included, the pipe ends and so does the inner.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::unistd::{Pid, Uid, getpid};

use crate::clock::{ClockPoint, pause};
use crate::error::LabError;
use crate::tool;

/// Tells the inner process that it is the inner one.
const INSIDE: &str = "PLAIT_LAB_INSIDE";
/// What an inner process is told by its outer one before the pipe ends.
const GO: u8 = b'g';

/// How long an inner process may take to end when it is told to: the kernel takes away one device after the other, each in some
/// 70 ms, four for each of 64 runs side by side. Whoever does not want to wait tells the outer one again.
const STOP_TIME: Duration = Duration::from_secs(30);
/// From one look whether it has ended to the next.
const LOOK: Duration = Duration::from_millis(20);

/// True in the process that runs inside.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some() && getpid() == Pid::from_raw(1)
}

/// The kinds of namespaces, as `unshare` calls them.
fn flags() -> Vec<&'static str> {
    let mut flags = vec!["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if !Uid::effective().is_root() {
        flags.extend(["--user", "--map-root-user"]);
    }
    flags
}

/// Starts this program again inside, with these arguments.
///
/// # Errors
/// No namespaces can be made here.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Result<Inside, LabError> {
    let tried = tool::run("unshare", flags().into_iter().chain(["true"]));
    tried.map_err(|error| match error {
        LabError::Refused { said, .. } => LabError::NoNamespaces { said },
        other => other,
    })?;
    let this = std::env::current_exe().map_err(LabError::io("this program cannot find itself"))?;
    let mut command = Command::new("unshare");
    command.args(flags()).arg("--").arg(this).args(args).env(INSIDE, "1").stdin(Stdio::piped());
    let mut child = command.spawn().map_err(|error| tool::missing("unshare", error))?;
    if let Some(pipe) = &mut child.stdin {
        io::Write::write_all(pipe, &[GO]).map_err(LabError::io("the inner process does not listen"))?;
    }
    Ok(Inside { child })
}

/// The inner process, as the outer one sees it.
#[derive(Debug)]
pub struct Inside {
    child: Child,
}

impl Inside {
    /// Waits for its end; gives its exit code, none where a signal ended it. Once `stop` is set it is told to end, and a
    /// while later it is killed.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(&mut self, stop: &AtomicBool) -> Result<Option<i32>, LabError> {
        let mut told: Option<ClockPoint> = None;
        // `wait` of the standard library would end the pipe, and with it the inner process.
        loop {
            let ended = self.child.try_wait().map_err(LabError::io("the inner process cannot be waited for"))?;
            if let Some(status) = ended {
                return Ok(status.code());
            }
            if stop.load(Ordering::Relaxed) {
                drop(self.child.stdin.take());
                if ClockPoint::now().since(*told.get_or_insert_with(ClockPoint::now)) > STOP_TIME {
                    let _ = self.child.kill();
                }
            }
            pause(LOOK);
        }
    }
}

/// Inside: returns when the outer process is gone, or wants the inner one to end.
pub fn wait_for_outer() {
    let mut rest = Vec::new();
    // A pipe that cannot be read is one without an outer process.
    let _ = io::stdin().lock().read_to_end(&mut rest);
}
