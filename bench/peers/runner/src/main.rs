//! Runs plait and its peers in turns over loopback, each end a process on a core of its own, and tells goodput and CPU time.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

const USAGE: &str = "\
Usage: run [--rounds N] [--bytes N] [--streams N] [--datagram N] [--cpus SENDER,RECEIVER] [--only NAME,...] [--csv FILE]

Each round every contestant moves so many bytes (2000000000) on so many streams (1) of one connection from a sender on one
core to a receiver on another (0,1), in datagrams of so many bytes of UDP payload (1452). After so many rounds (5) a table says the medians, with least and most.";

/// Receive and send windows of plait, as those of the peers.
const WINDOW: &str = "4Mi";

/// A transfer that takes longer has failed.
const TRANSFER_TIME: Duration = Duration::from_secs(120);

/// Who takes part.
#[derive(Clone, Copy)]
struct Contestant {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A program of this workspace.
    Peer(&'static str),
    /// `plait perf` with these flags of the server and of the client.
    Plait(&'static [&'static str], &'static [&'static str]),
}

const CONTESTANTS: [Contestant; 8] = [
    Contestant { name: "limit", kind: Kind::Peer("peer-limit") },
    Contestant { name: "tls-tcp", kind: Kind::Plait(&["--tcp"], &["--tcp"]) },
    Contestant { name: "tls-mptcp", kind: Kind::Plait(&["--mptcp"], &["--mptcp"]) },
    Contestant { name: "plait", kind: Kind::Plait(&["--cc", "cubic"], &["--path", "127.0.0.1"]) },
    Contestant {
        name: "plait-two-paths",
        kind: Kind::Plait(&["--cc", "cubic"], &["--path", "127.0.0.1", "--path", "127.0.0.2"]),
    },
    Contestant { name: "s2n-quic", kind: Kind::Peer("peer-s2n") },
    Contestant { name: "quinn", kind: Kind::Peer("peer-quinn") },
    Contestant { name: "noq", kind: Kind::Peer("peer-noq") },
];

/// What is asked for.
struct Plan {
    rounds: u64,
    bytes: u64,
    streams: u64,
    datagram: u64,
    cpus: [String; 2],
    only: Option<Vec<String>>,
    csv: Option<PathBuf>,
    plait: PathBuf,
}

/// One transfer.
#[derive(Clone, Copy)]
struct Sample {
    gbits: f64,
    sender: f64,
    receiver: f64,
}

fn main() -> ExitCode {
    let done = Plan::from_args().and_then(|plan| run(&plan));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

impl Plan {
    fn from_args() -> Result<Self, String> {
        let mut plan = Self {
            rounds: 5,
            bytes: 2_000_000_000,
            streams: 1,
            datagram: 1452,
            cpus: ["0".into(), "1".into()],
            only: None,
            csv: None,
            plait: beside("../../../../target/release/plait")?,
        };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| USAGE.to_owned())?;
            let number = || {
                value
                    .parse::<u64>()
                    .ok()
                    .filter(|number| *number > 0)
                    .ok_or_else(|| format!("{flag}: `{value}`\n{USAGE}"))
            };
            match flag.as_str() {
                "--rounds" => plan.rounds = number()?,
                "--bytes" => plan.bytes = number()?,
                "--streams" => plan.streams = number()?,
                "--datagram" => plan.datagram = number()?,
                "--cpus" => {
                    let (sender, receiver) = value.split_once(',').ok_or_else(|| USAGE.to_owned())?;
                    plan.cpus = [sender.to_owned(), receiver.to_owned()];
                }
                "--only" => plan.only = Some(value.split(',').map(str::to_owned).collect()),
                "--csv" => plan.csv = Some(value.into()),
                _ => return Err(format!("there is no {flag}\n{USAGE}")),
            }
        }
        for name in plan.only.iter().flatten() {
            if !CONTESTANTS.iter().any(|contestant| contestant.name == name) {
                let names: Vec<_> = CONTESTANTS.iter().map(|contestant| contestant.name).collect();
                return Err(format!("there is no contestant `{name}`; there are {}", names.join(", ")));
            }
        }
        Ok(plan)
    }
}

/// A file beside our own program.
fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.parent().unwrap_or(Path::new(".")).join(name))
}

fn run(plan: &Plan) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .map_err(|error| error.to_string())?;
    let write = |file: &Path, text: String| std::fs::write(file, text).map_err(|error| error.to_string());
    write(&cert, made.cert.pem())?;
    write(&key, made.signing_key.serialize_pem())?;
    let takes_part = |contestant: &&Contestant| {
        plan.only.as_ref().is_none_or(|only| only.iter().any(|name| name == contestant.name))
    };
    let contestants: Vec<&Contestant> = CONTESTANTS.iter().filter(takes_part).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); contestants.len()];
    let mut csv = "round,contestant,streams,bytes,gbits_per_s,sender_cpu_s_per_gb,receiver_cpu_s_per_gb\n".to_owned();
    for round in 1..=plan.rounds {
        for (contestant, samples) in contestants.iter().zip(&mut samples) {
            eprint!("\rround {round} of {}: {:20}", plan.rounds, contestant.name);
            let (name, streams, bytes) = (contestant.name, plan.streams, plan.bytes);
            // A peer that fails is a finding, and no reason to stop.
            let sample = match transfer(plan, contestant, &cert, &key) {
                Ok(sample) => sample,
                Err(why) => {
                    eprintln!("\n{name} failed: {why}");
                    let _ = writeln!(csv, "{round},{name},{streams},{bytes},,,");
                    continue;
                }
            };
            let Sample { gbits, sender, receiver } = sample;
            let _ = writeln!(csv, "{round},{name},{streams},{bytes},{gbits:.4},{sender:.4},{receiver:.4}");
            samples.push(sample);
        }
    }
    eprintln!();
    println!(
        "| {} bytes on {} streams, {} rounds | Gbit/s | CPU s/GB, sender | CPU s/GB, receiver |",
        plan.bytes, plan.streams, plan.rounds
    );
    println!("|---|---|---|---|");
    for (contestant, samples) in contestants.iter().zip(&samples) {
        let column = |of: fn(&Sample) -> f64| spread(samples.iter().map(of).collect());
        let name = match plan.rounds - samples.len() as u64 {
            0 => contestant.name.to_owned(),
            failed => format!("{} ({failed} failed)", contestant.name),
        };
        println!("| {name} | {} | {} | {} |", column(|s| s.gbits), column(|s| s.sender), column(|s| s.receiver));
    }
    match &plan.csv {
        Some(file) => write(file, csv),
        None => Ok(()),
    }
}

/// Median, least and most.
fn spread(mut values: Vec<f64>) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
    format!("{median:.2} ({:.2}-{:.2})", values[0], values[values.len() - 1])
}

/// A process that is killed when it is dropped.
struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(plan: &Plan, cpu: &str, program: &Path, args: &[String]) -> Result<Self, String> {
        let mut command = Command::new("taskset");
        command
            .args(["-c", cpu])
            .arg(program)
            .args(args)
            .env("PEER_DATAGRAM", plan.datagram.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("taskset (of util-linux): {error}"))?;
        let lines = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, lines })
    }

    /// The next line that it prints; one that takes too long is stopped.
    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let (done, is_done) = mpsc::channel::<()>();
        let pid = self.child.id().to_string();
        let watch = std::thread::spawn(move || {
            let is_late = is_done.recv_timeout(TRANSFER_TIME) == Err(mpsc::RecvTimeoutError::Timeout);
            if is_late {
                let _ = Command::new("kill").arg(pid).status();
            }
            is_late
        });
        let read = self.lines.read_line(&mut line);
        drop(done);
        if watch.join().is_ok_and(|is_late| is_late) {
            return Err(format!("it said nothing for {} s", TRANSFER_TIME.as_secs()));
        }
        match read {
            Ok(0) => Err("it ended before it said anything; see above".into()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// User and system time so far.
    fn cpu_seconds(&self) -> Result<f64, String> {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).map_err(|error| error.to_string())?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).ok_or("no times in stat");
        // proc(5): utime and stime, hundredths of a second.
        Ok((ticks(11)? + ticks(12)?) / 100.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn transfer(plan: &Plan, contestant: &Contestant, cert: &Path, key: &Path) -> Result<Sample, String> {
    let text = |path: &Path| path.display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (bytes, streams) = (plan.bytes.to_string(), plan.streams.to_string());
    let [sender_cpu, receiver_cpu] = &plan.cpus;
    let gigabytes = plan.bytes as f64 / 1e9;
    let (seconds, sender, receiver) = match contestant.kind {
        Kind::Peer(program) => {
            let program = beside(program)?;
            let mut server = Process::start(plan, sender_cpu, &program, &["server".into(), text(cert), text(key)])?;
            let address = server.line()?;
            let before = server.cpu_seconds()?;
            let args = ["client".into(), text(cert), address, bytes, streams];
            let mut client = Process::start(plan, receiver_cpu, &program, &args)?;
            let line = client.line()?;
            let (seconds, cpu) = line.split_once(' ').ok_or_else(|| format!("it said `{line}`"))?;
            let number = |word: &str| word.parse::<f64>().map_err(|_| format!("it said `{line}`"));
            (number(seconds)?, server.cpu_seconds()? - before, number(cpu)?)
        }
        Kind::Plait(of_server, of_client) => {
            let mut args =
                words(&["perf", "server", "--quiet", "--listen", "127.0.0.1:0", "--threads", "1", "--window", WINDOW]);
            args.extend(["--cert".into(), text(cert), "--key".into(), text(key)]);
            args.extend(["--mtu".into(), plan.datagram.to_string()]);
            args.extend(words(of_server));
            let mut server = Process::start(plan, sender_cpu, &plan.plait, &args)?;
            let ready: Value = serde_json::from_str(&server.line()?).map_err(|error| error.to_string())?;
            let address = ready["addresses"][0].as_str().ok_or("no address")?.to_owned();
            let before = server.cpu_seconds()?;
            let mut args = words(&[
                "perf",
                "client",
                &address,
                "--reverse",
                "--json",
                "--quiet",
                "--threads",
                "1",
                "--window",
                WINDOW,
            ]);
            args.extend(["--bytes".into(), bytes, "--streams".into(), streams, "--ca".into(), text(cert)]);
            args.extend(["--mtu".into(), plan.datagram.to_string()]);
            args.extend(words(of_client));
            let mut client = Process::start(plan, receiver_cpu, &plan.plait, &args)?;
            let told: Value = serde_json::from_str(&client.line()?).map_err(|error| error.to_string())?;
            if told["ok"] != true {
                return Err(told["error"].to_string());
            }
            let number = |value: &Value| value.as_f64().ok_or_else(|| format!("it said {told}"));
            (number(&told["seconds"])?, server.cpu_seconds()? - before, number(&told["cpu_seconds"]["client"])?)
        }
    };
    Ok(Sample {
        gbits: plan.bytes as f64 * 8.0 / 1e9 / seconds,
        sender: sender / gigabytes,
        receiver: receiver / gigabytes,
    })
}
