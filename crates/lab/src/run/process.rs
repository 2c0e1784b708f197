//! Programs of a contender while they run: started, waited for, killed with all that they started.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::program::{code_name, complaint};
use super::wiring::Site;
use super::{ClientOutput, CpuScheduling, Program, Ready, RunFailure};
use crate::clock::{ClockPoint, pause};

/// From one look at a program to the next.
const LOOK: Duration = Duration::from_millis(2);
/// How long a server may take to become ready.
const READY_TIME: Duration = Duration::from_secs(10);
/// The most that is kept of what a program says.
const SAID_BYTES_MAX: usize = 16 << 20;

/// What a program has said so far on one of its outputs.
#[derive(Debug, Default)]
struct Said(Mutex<Vec<u8>>);

impl Said {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn keep(&self, piece: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = SAID_BYTES_MAX.saturating_sub(kept.len()).min(piece.len());
        kept.extend_from_slice(piece.get(..room).unwrap_or_default());
    }
}

/// A program that runs; it is killed when dropped, and its whole group with it.
#[derive(Debug)]
pub(super) struct Started {
    child: Child,
    out: Arc<Said>,
    err: Arc<Said>,
    readers: Vec<JoinHandle<()>>,
}

fn listen(from: Option<impl Read + Send + 'static>, to: &Arc<Said>) -> Option<JoinHandle<()>> {
    let (mut from, to) = (from?, Arc::clone(to));
    let reader = move || {
        let mut piece = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            to.keep(piece.get(..count).unwrap_or_default());
        }
    };
    std::thread::Builder::new().name("lab-output".to_owned()).spawn(reader).ok()
}

/// What is reported of a program that cannot be started.
fn not_started(program: &Program, error: &std::io::Error) -> RunFailure {
    RunFailure::NotStarted { program: program.file.display().to_string(), said: error.to_string() }
}

impl Started {
    /// Starts a program.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start(site: Site<'_>, scheduling: CpuScheduling, program: &Program) -> Result<Self, RunFailure> {
        let mut words = scheduling.front().iter().map(OsStr::new).chain([program.file.as_os_str()]);
        let mut command = site.command(words.next().unwrap_or_default());
        command.args(words);
        // Whoever gives up says why, and not where.
        command.args(&program.args).env("RUST_BACKTRACE", "0").envs(program.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| not_started(program, &error))?;
        let (out, err) = (Arc::new(Said::default()), Arc::new(Said::default()));
        let readers = listen(child.stdout.take(), &out).into_iter().chain(listen(child.stderr.take(), &err)).collect();
        Ok(Self { child, out, err, readers })
    }

    /// Waits until a server is ready.
    ///
    /// # Errors
    /// It ended, or did not become ready in time.
    pub(super) fn wait_ready(&mut self, site: Site<'_>, ready: &Ready, stop: &AtomicBool) -> Result<(), RunFailure> {
        let begun = ClockPoint::now();
        while !self.is_ready(site, ready) {
            let ended = self.child.try_wait().ok().flatten();
            let late = ClockPoint::now().since(begun) > READY_TIME;
            if ended.is_some() || late || stop.load(Ordering::Relaxed) {
                self.kill();
                let why = if ended.is_some() { "it ended" } else { "nothing listens yet" };
                return Err(RunFailure::Server(format!("{why}: {}", complaint(&self.err.text()))));
            }
            pause(LOOK);
        }
        Ok(())
    }

    fn is_ready(&self, site: Site<'_>, ready: &Ready) -> bool {
        let listens = |flag: &str, port: &u16| {
            let seen = site.sockets(&["-H", "-n", "-l", flag, &format!("sport = :{port}")]);
            seen.is_ok_and(|lines| !lines.trim().is_empty())
        };
        match ready {
            Ready::Says(words) => self.out.text().contains(words) || self.err.text().contains(words),
            Ready::Udp(port) => listens("-u", port),
            Ready::Tcp(port) => listens("-t", port),
        }
    }

    /// Whether it has ended by itself, and then whether it ended well.
    pub(super) fn ended(&mut self) -> Option<bool> {
        self.child.try_wait().ok().flatten().map(|status| status.success())
    }

    /// What became of a run whose client failed: this server may have ended before, which says more.
    pub(super) fn explain(&mut self, client: RunFailure) -> RunFailure {
        let Ok(Some(status)) = self.child.try_wait() else { return client };
        // With the rest of what it said.
        self.kill();
        let (code, said) = (code_name(status.code()), self.complaint());
        RunFailure::ServerDied { code, said, client: Box::new(client) }
    }

    /// What it complained of.
    pub(super) fn complaint(&self) -> String {
        complaint(&self.err.text()).to_owned()
    }

    /// Waits for a client's end, until the time limit or until told to stop.
    pub(super) fn wait(mut self, time_limit: Duration, server: &Self, stop: &AtomicBool) -> ClientOutput {
        let begun = ClockPoint::now();
        let (mut code, mut timed_out) = (None, false);
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                code = status.code();
                break;
            }
            timed_out = ClockPoint::now().since(begun) > time_limit;
            if timed_out || stop.load(Ordering::Relaxed) {
                break;
            }
            pause(LOOK);
        }
        let ended = ClockPoint::now();
        self.kill();
        let (stdout, stderr, server_stderr) = (self.out.text(), self.err.text(), server.err.text());
        ClientOutput { code, timed_out, stdout, stderr, server_stderr, ended }
    }

    /// Ends it and all that it started, and hears the rest of what they said.
    fn kill(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // A group that has ended is what is wanted.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = self.child.wait();
        self.readers.drain(..).for_each(|reader| _ = reader.join());
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::tool;

    /// Real-time priority and policy (sched(7)), the 40th and 41st field of a `stat` of proc(5).
    fn scheduled(stat: &str) -> (u32, u32) {
        let behind_name: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (behind_name[37].parse().unwrap(), behind_name[38].parse().unwrap())
    }

    /// How a program that another one starts is scheduled.
    fn of_child(scheduling: CpuScheduling) -> (u32, u32) {
        let program = Program::new("sh", ["-c", "cat /proc/self/stat; true"]);
        let mut started = Started::start(Site::Here, scheduling, &program).unwrap();
        while started.ended().is_none() {
            pause(LOOK);
        }
        assert_eq!(started.ended(), Some(true), "{}", started.complaint());
        started.kill();
        scheduled(&started.out.text())
    }

    /// What is said of a run that was not done in time, with such a server.
    fn explained(server: &str, is_over: bool) -> String {
        let program = Program::new("sh", ["-c", server]);
        let mut started = Started::start(Site::Here, CpuScheduling::Inherited, &program).unwrap();
        while is_over && started.ended().is_none() {
            pause(LOOK);
        }
        started.explain(RunFailure::TimeLimit(Duration::from_secs(5))).to_string()
    }

    #[test]
    fn a_server_that_died_in_the_middle_is_named() {
        assert_eq!(explained("exec sleep 60", false), "not done within 5s");
        let died = "the server ended with code 3 in the middle: no memory; the client: not done within 5s";
        assert_eq!(explained("echo 'no memory' >&2; exit 3", true), died);
        let killed = "the server ended with a signal in the middle: it said nothing; the client: not done within 5s";
        assert_eq!(explained("kill -9 $$", true), killed);
    }

    #[test]
    fn programs_and_what_they_start_are_scheduled_as_asked() {
        let own = tool::run("cat", ["/proc/self/stat"]).map(|stat| scheduled(&stat)).unwrap();
        assert_eq!(of_child(CpuScheduling::Inherited), own);
        match Machine::look().real_time {
            // SCHED_RR is 2, and 1 its least priority.
            Ok(()) => assert_eq!(of_child(CpuScheduling::RoundRobin), (1, 2)),
            Err(why) => println!("!! SKIPPED: programs in real time: {why}"),
        }
    }
}
