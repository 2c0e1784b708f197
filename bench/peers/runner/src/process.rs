//! Programs that run on a core of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A program that says nothing for longer has failed.
const SILENCE: Duration = Duration::from_secs(120);

/// A process that is killed when it is dropped.
pub struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Process {
    /// Starts `program` on one core; its standard output is read line by line.
    pub fn start(cpu: &str, program: &Path, args: &[String], datagram: u64) -> Result<Self, String> {
        let mut command = Command::new("taskset");
        command
            .args(["-c", cpu])
            .arg(program)
            .args(args)
            .env("PEER_DATAGRAM", datagram.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("taskset (of util-linux): {error}"))?;
        let lines = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, lines })
    }

    /// The next line that it prints; one that takes too long is stopped.
    pub fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let (done, is_done) = mpsc::channel::<()>();
        let pid = self.child.id().to_string();
        let watch = std::thread::spawn(move || {
            let is_late = is_done.recv_timeout(SILENCE) == Err(mpsc::RecvTimeoutError::Timeout);
            if is_late {
                let _ = Command::new("kill").arg(pid).status();
            }
            is_late
        });
        let read = self.lines.read_line(&mut line);
        drop(done);
        if watch.join().is_ok_and(|is_late| is_late) {
            return Err(format!("it said nothing for {} s", SILENCE.as_secs()));
        }
        match read {
            Ok(0) => Err("it ended before it said anything; see above".into()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Memory that is its own or shared and in core, bytes.
    pub fn resident_bytes(&self) -> Result<u64, String> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).map_err(|error| error.to_string())?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in status")?;
        let kib = line.trim().trim_end_matches(" kB").parse::<u64>().map_err(|error| error.to_string())?;
        Ok(kib * 1024)
    }

    /// User and system time so far, seconds. `stat` tells it in hundredths of a second. What the threads that live ran for is known
    /// to the nanosecond, and is the same unless one has ended.
    pub fn cpu_seconds(&self) -> Result<f64, String> {
        let of = format!("/proc/{}", self.child.id());
        let stat = std::fs::read_to_string(format!("{of}/stat")).map_err(|error| error.to_string())?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).ok_or("no times in stat");
        // proc(5): utime and stime, hundredths of a second.
        let all = (ticks(11)? + ticks(12)?) / 100.0;
        let threads = std::fs::read_dir(format!("{of}/task")).map_err(|error| error.to_string())?;
        let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
            let ran = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            ran.split_whitespace().next()?.parse::<f64>().ok()
        };
        Ok(all.max(threads.filter_map(of_thread).sum::<f64>() / 1e9))
    }
}

/// Keeps each of these cores busy, as long as the processes live.
pub fn burn(cpus: &[String]) -> Result<Vec<Process>, String> {
    let words = ["-c".to_owned(), "while :; do :; done".to_owned()];
    cpus.iter().map(|cpu| Process::start(cpu, Path::new("sh"), &words, 0)).collect()
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
