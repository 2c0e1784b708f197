//! One host: a network namespace, and programs in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, umount2};
use nix::sched::{CloneFlags, setns};

use crate::error::LabError;
use crate::tool;

/// A network namespace that is a file. It goes when this is dropped, unless a program is left in it.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: PathBuf,
}

/// What keeps IPv6 from speaking before it is asked to and from waiting before it does, IPv4 from refusing what comes by
/// another link than it would answer, and TCP from remembering the last run. Buffers are for windows of 16 MB.
const SETTINGS: [(&str, &str); 12] = [
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/all/router_solicitations", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 33554432"),
    ("net/ipv4/tcp_wmem", "4096 65536 33554432"),
    ("net/mptcp/enabled", "1"),
];

impl Namespace {
    /// A new one, at a file that is not there yet.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn new(file: PathBuf) -> Result<Self, LabError> {
        std::fs::File::create_new(&file).map_err(LabError::file(&file))?;
        let mut at = OsStr::new("--net=").to_owned();
        at.push(&file);
        tool::run("unshare", [at.as_os_str(), OsStr::new("true")])?;
        let space = Self { file };
        let script: String = SETTINGS.map(|(key, value)| format!("echo '{value}' > /proc/sys/{key}; ")).concat();
        // A kernel without one of them has no need of it.
        space.run("sh", ["-c", &format!("exec 2>/dev/null; {script} true")])?;
        space.ip("link set lo up")?;
        Ok(space)
    }

    /// The file that it is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// A program in it, not yet started.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut at = OsStr::new("--net=").to_owned();
        at.push(&self.file);
        let mut command = Command::new("nsenter");
        command.arg(at).arg("--").arg(program);
        command
    }

    /// Does something on a thread that is in it: sockets that are made there stay there.
    ///
    /// # Errors
    /// The system does not let the thread in.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let there = || {
            let file = std::fs::File::open(&self.file)?;
            setns(file, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        };
        let done = std::thread::scope(|scope| scope.spawn(there).join());
        let done = done.unwrap_or_else(|_| Err(std::io::Error::other("the thread gave up")));
        done.map_err(LabError::io("a thread on a host"))
    }

    /// Runs a program in it to its end; gives its standard output.
    ///
    /// # Errors
    /// It is missing, or refused.
    pub(crate) fn run(
        &self,
        program: &str,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<String, LabError> {
        let mut command = self.command(program);
        command.args(args);
        tool::run("nsenter", command.get_args())
    }

    /// One command of `ip` in it, as one would type it: `mptcp limits set subflows 2`.
    ///
    /// # Errors
    /// `ip` refuses.
    pub(crate) fn ip(&self, command: &str) -> Result<String, LabError> {
        self.run("ip", command.split_whitespace())
    }

    /// Several commands of `ip`, a line each, in one go, all of one family of addresses (`-4` or `-6`).
    ///
    /// # Errors
    /// `ip` refuses one.
    pub(crate) fn ip_batch(&self, family: &str, lines: &[String]) -> Result<(), LabError> {
        ip_batch(&self.file, family, lines)
    }
}

/// As [`Namespace::ip_batch`], in the one at this file.
///
/// # Errors
/// `ip` refuses one.
pub(super) fn ip_batch(file: &Path, family: &str, lines: &[String]) -> Result<(), LabError> {
    let mut at = OsStr::new("--net=").to_owned();
    at.push(file);
    let args = [at.as_os_str(), "--".as_ref(), "ip".as_ref(), family.as_ref(), "-batch".as_ref(), "-".as_ref()];
    tool::feed("nsenter", args, &lines.join("\n")).map(|_| ())
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What cannot be taken away now goes with the laboratory's own mounts.
        let _ = umount2(&self.file, MntFlags::MNT_DETACH);
    }
}
