//! One round of one contestant, whatever the mode.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::plan::{Mode, Plan, beside};
use crate::process::{Process, burn};
use crate::table::Column;

/// Receive and send windows of `plait perf`, as those of the peers.
const WINDOW: &str = "4Mi";

/// Who takes part.
#[derive(Clone, Copy)]
pub struct Contestant {
    pub name: &'static str,
    kind: Kind,
    /// Whether it takes part where nobody names those who do.
    pub joins: Joins,
}

/// When a contestant takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    Always,
    WhenNamed,
}

impl Contestant {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, joins: Joins::Always }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// A program of this workspace.
    Peer(&'static str),
    /// `plait perf` with these flags of the server and of the client.
    Plait(&'static [&'static str], &'static [&'static str]),
}

const LIMIT: Contestant = Contestant::new("limit", Kind::Peer("peer-limit"));
const TLS_TCP: Contestant = Contestant::new("tls-tcp", Kind::Plait(&["--tcp"], &["--tcp"]));
const S2N: Contestant = Contestant::new("s2n-quic", Kind::Peer("peer-s2n"));
const QUINN: Contestant = Contestant::new("quinn", Kind::Peer("peer-quinn"));
const NOQ: Contestant = Contestant::new("noq", Kind::Peer("peer-noq"));
const PLAIT: Contestant = Contestant::new("plait", Kind::Peer("peer-plait"));
/// The same where `plait` is the program `plait perf`.
const PLAIT_PROGRAM: Contestant = Contestant { name: "plait-program", joins: Joins::WhenNamed, ..PLAIT };
/// Built as a dependency of any crate is: in the release profile as cargo has it.
const PLAIT_PLAIN: Contestant =
    Contestant { name: "plait-plain", kind: Kind::Peer("../plain/release/peer-plait"), joins: Joins::WhenNamed };

const BULK: [Contestant; 10] = [
    LIMIT,
    TLS_TCP,
    Contestant::new("tls-mptcp", Kind::Plait(&["--mptcp"], &["--mptcp"])),
    Contestant::new("plait", Kind::Plait(&["--cc", "cubic"], &["--path", "127.0.0.1"])),
    Contestant::new(
        "plait-two-paths",
        Kind::Plait(&["--cc", "cubic"], &["--path", "127.0.0.1", "--path", "127.0.0.2"]),
    ),
    PLAIT_PROGRAM,
    PLAIT_PLAIN,
    S2N,
    QUINN,
    NOQ,
];
const OTHERS: [Contestant; 5] = [PLAIT, PLAIT_PLAIN, S2N, QUINN, NOQ];

impl Mode {
    /// Who takes part in it.
    pub fn contestants(self) -> &'static [Contestant] {
        match self {
            Self::Bulk => &BULK,
            _ => &OTHERS,
        }
    }

    /// What a round of it gives.
    pub fn columns(self) -> &'static [Column] {
        const fn column(title: &'static str, key: &'static str, decimals: usize) -> Column {
            Column { title, key, decimals }
        }
        const BULK: [Column; 3] = [
            column("Gbit/s", "gbits_per_s", 2),
            column("CPU s/GB, sender", "sender_cpu_s_per_gb", 3),
            column("CPU s/GB, receiver", "receiver_cpu_s_per_gb", 3),
        ];
        const REQUESTS: [Column; 6] = [
            column("requests/s", "requests_per_s", 0),
            column("p50, µs", "p50_us", 1),
            column("p99, µs", "p99_us", 1),
            column("p99.9, µs", "p999_us", 1),
            column("CPU µs a request, server", "server_cpu_us", 1),
            column("client", "client_cpu_us", 1),
        ];
        const HANDSHAKES: [Column; 2] =
            [column("handshakes/s", "handshakes_per_s", 0), column("CPU ms a handshake, server", "server_cpu_ms", 3)];
        const CONNECTIONS: [Column; 4] = [
            column("Mbit/s in all", "mbits_per_s", 0),
            column("seconds", "seconds", 2),
            column("CPU s/GB, sender", "sender_cpu_s_per_gb", 3),
            column("CPU s/GB, receiver", "receiver_cpu_s_per_gb", 3),
        ];
        const IDLE: [Column; 2] =
            [column("bytes a connection, server", "server_bytes", 0), column("client", "client_bytes", 0)];
        match self {
            Self::Bulk => &BULK,
            Self::Requests => &REQUESTS,
            Self::Handshakes => &HANDSHAKES,
            Self::Connections => &CONNECTIONS,
            Self::Idle => &IDLE,
        }
    }
}

/// The files of a server's identity.
pub struct Identity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// One round: its figures in the order of the mode's columns.
pub fn round(plan: &Plan, contestant: &Contestant, identity: &Identity) -> Result<Vec<f64>, String> {
    let _load = burn(if plan.is_loaded { &plan.cpus } else { &[] })?;
    match contestant.kind {
        Kind::Peer(program) => peers(plan, program, identity),
        Kind::Plait(of_server, of_client) => perf(plan, of_server, of_client, identity),
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A program of this workspace as server, and as client the same, but for handshakes, where one client serves to compare servers.
fn peers(plan: &Plan, program: &str, identity: &Identity) -> Result<Vec<f64>, String> {
    let [server_cpu, client_cpu] = &plan.cpus;
    let args = ["server".into(), text(&identity.cert), text(&identity.key)];
    let mut server = Process::start(server_cpu, &beside(program)?, &args, plan.datagram)?;
    let address = server.line()?;
    let client = if plan.mode == Mode::Handshakes { "peer-plait" } else { program };
    let load = plan.mode.load(plan);
    let args: Vec<_> =
        ["client".into(), text(&identity.cert), address].into_iter().chain(load.iter().cloned()).collect();
    let cpu_at_start = server.cpu_seconds()?;
    let mut client = Process::start(client_cpu, &beside(client)?, &args, plan.datagram)?;
    let ready = client.line()?;
    if ready != "ready" {
        return Err(format!("it said `{ready}`"));
    }
    let before = Cost::of(&server, &client)?;
    let line = client.line()?;
    let told: Vec<f64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    let &[seconds, client_cpu, ref delays @ ..] = &told[..] else { return Err(format!("it said `{line}`")) };
    let after = Cost::of(&server, &client)?;
    let server_cpu = after.server_cpu - before.server_cpu;
    let number = |at: usize| load.get(at).and_then(|word| word.parse::<f64>().ok()).ok_or("a load without numbers");
    let first = number(1)?;
    Ok(match plan.mode {
        // The handshake is the sender's too: one among millions of packets.
        Mode::Bulk => bulk(first, seconds, after.server_cpu - cpu_at_start, client_cpu),
        Mode::Requests => {
            let &[p50, p99, p999] = delays else { return Err(format!("it said `{line}`")) };
            vec![first / seconds, p50, p99, p999, server_cpu / first * 1e6, client_cpu / first * 1e6]
        }
        Mode::Handshakes => vec![first / seconds, server_cpu / first * 1e3],
        Mode::Connections => {
            let bytes = first * number(2)? * 125_000.0 * number(3)?;
            let gigabytes = bytes / 1e9;
            vec![bytes * 8e-6 / seconds, seconds, client_cpu / gigabytes, server_cpu / gigabytes]
        }
        Mode::Idle => {
            let each = |after: u64, before: u64| (after as f64 - before as f64) / first;
            vec![each(after.server_bytes, before.server_bytes), each(after.client_bytes, before.client_bytes)]
        }
    })
}

/// What two processes took so far.
struct Cost {
    server_cpu: f64,
    server_bytes: u64,
    client_bytes: u64,
}

impl Cost {
    fn of(server: &Process, client: &Process) -> Result<Self, String> {
        let (server_bytes, client_bytes) = (server.resident_bytes()?, client.resident_bytes()?);
        Ok(Self { server_cpu: server.cpu_seconds()?, server_bytes, client_bytes })
    }
}

fn bulk(bytes: f64, seconds: f64, sender: f64, receiver: f64) -> Vec<f64> {
    let gigabytes = bytes / 1e9;
    vec![gigabytes * 8.0 / seconds, sender / gigabytes, receiver / gigabytes]
}

/// `plait perf`, a transfer from the server.
fn perf(plan: &Plan, of_server: &[&str], of_client: &[&str], identity: &Identity) -> Result<Vec<f64>, String> {
    let plait = beside("../../../../target/release/plait")?;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let [server_cpu, client_cpu] = &plan.cpus;
    let mut args =
        words(&["perf", "server", "--quiet", "--listen", "127.0.0.1:0", "--threads", "1", "--window", WINDOW]);
    args.extend(["--cert".into(), text(&identity.cert), "--key".into(), text(&identity.key)]);
    args.extend(["--mtu".into(), plan.datagram.to_string()]);
    args.extend(words(of_server));
    let mut server = Process::start(server_cpu, &plait, &args, plan.datagram)?;
    let ready: Value = serde_json::from_str(&server.line()?).map_err(|error| error.to_string())?;
    let address = ready["addresses"][0].as_str().ok_or("no address")?.to_owned();
    let before = server.cpu_seconds()?;
    let mut args = words(&["perf", "client", &address, "--reverse", "--json", "--quiet", "--threads", "1"]);
    args.extend(words(&["--window", WINDOW, "--ca"]));
    args.push(text(&identity.cert));
    for (flag, value) in [("--bytes", plan.bytes), ("--streams", plan.streams), ("--mtu", plan.datagram)] {
        args.extend([flag.to_owned(), value.to_string()]);
    }
    args.extend(words(of_client));
    let mut client = Process::start(client_cpu, &plait, &args, plan.datagram)?;
    let told: Value = serde_json::from_str(&client.line()?).map_err(|error| error.to_string())?;
    if told["ok"] != true {
        return Err(told["error"].to_string());
    }
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("it said {told}"));
    let (seconds, receiver) = (number(&told["seconds"])?, number(&told["cpu_seconds"]["client"])?);
    Ok(bulk(plan.bytes as f64, seconds, server.cpu_seconds()? - before, receiver))
}
