//! `plait perf` between two processes, and between one of ours and another's.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use plait::{ClientConfig, ClientTlsConfig, Connection, Endpoint, Identity, ServerConfig, ServerTlsConfig};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_described, stderr, summary};

/// A running `plait perf server`.
struct Server {
    process: Child,
    // Kept open: the server must not find its standard output closed.
    _stdout: BufReader<ChildStdout>,
    address: SocketAddr,
    dir: TempDir,
}

impl Server {
    fn start(extra: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ca = dir.path().join("ca.pem");
        let args = ["perf", "server", "--quiet", "--listen", "127.0.0.1:0", "--cert-out", ca.to_str().unwrap()];
        let mut process = plait(&args).args(extra).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        let address = ready["addresses"][0].as_str().unwrap().parse().unwrap();
        Self { process, _stdout: stdout, address, dir }
    }

    /// What a client prints with these flags.
    fn client(&self, flags: &[&str]) -> Output {
        let (address, ca) = (self.address.to_string(), self.dir.path().join("ca.pem"));
        let args = ["perf", "client", &address, "--ca", ca.to_str().unwrap(), "--json"];
        plait(&args).args(flags).output().expect("the command runs")
    }

    /// The summary of a client that succeeds.
    fn told(&self, flags: &[&str]) -> Value {
        let output = self.client(flags);
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let told = summary(&output);
        assert_eq!((&told["command"], &told["ok"]), (&"perf".into(), &true.into()), "{flags:?}: {told}");
        assert_described(&told);
        told
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").env_remove("SSLKEYLOGFILE").stdin(Stdio::null());
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn bytes_go_up_and_down() {
    let server = Server::start(&[]);
    let up = server.told(&["-n", "3M", "-P", "3", "--single", "--cc", "newreno"]);
    assert_eq!((&up["mode"], &up["carrier"], &up["direction"]), (&"bulk".into(), &"quic".into(), &"up".into()));
    assert_eq!((&up["up"]["bytes"], &up["down"], &up["bytes"]), (&3_000_000.into(), &Value::Null, &3_000_000.into()));
    assert!(number(&up["up"]["goodput_mbps"]) > 0.0 && number(&up["handshake_ms"]) > 0.0, "{up}");
    assert!(number(&up["cpu_seconds"]["client"]) > 0.0 && number(&up["cpu_seconds"]["server"]) > 0.0, "{up}");
    // The side that sends is ours here, and the server's when it sends.
    assert_eq!((&up["congestion"], &up["streams"]), (&"newreno".into(), &3.into()));
    let down = server.told(&["-R", "-n", "3000001", "-P", "2", "--cc", "newreno", "--server-cc", "bbr"]);
    assert_eq!((&down["down"]["bytes"], &down["up"]), (&3_000_001.into(), &Value::Null));
    assert_eq!((&down["congestion"], &down["policies"]["ours"]["congestion"]), (&"bbr".into(), &"newreno".into()));
    let both = server.told(&["--bidir", "-n", "1M", "--path", "127.0.0.1", "--path", "127.0.0.2"]);
    assert_eq!((&both["up"]["bytes"], &both["down"]["bytes"]), (&1_000_000.into(), &1_000_000.into()));
    assert_eq!((&both["bytes"], &both["congestion"]), (&2_000_000.into(), &Value::Null));
    assert_eq!((&both["extension"], both["paths"].as_array().unwrap().len()), (&"multipath".into(), 2));
    // Never more on its way than the window: one of 64 KiB is full all the time, and it goes on.
    let narrow = server.told(&["-R", "-n", "2M", "--window", "64Ki"]);
    assert_eq!(narrow["bytes"], 2_000_000);
    // Datagrams as large as loopback carries them; a first search takes some round trips of data.
    let jumbo = server.told(&["-n", "20M", "--mtu", "65507"]);
    assert_eq!((&jumbo["bytes"], &jumbo["paths"][0]["mtu_bytes"]), (&20_000_000.into(), &65_507.into()));
    // Nothing is a transfer too.
    assert_eq!(server.told(&["-n", "0"])["bytes"], 0);
}

#[test]
fn threads_serve_a_path_each_between_the_same_two_addresses() {
    let server = Server::start(&["--threads", "2"]);
    let policies = ["--scheduler", "round-robin", "--server-scheduler", "round-robin"];
    for direction in [&[][..], &["-R"], &["--bidir", "-P", "4"]] {
        let flags = [&["--threads", "2", "-n", "300M"][..], direction, &policies].concat();
        // A path goes to a thread once a look finds it busy and at rest: seldom that comes late in so short a load.
        let are_busy = (0..5).any(|_| {
            let told = server.told(&flags);
            let workers = told["workers"].as_array().unwrap();
            assert_eq!((workers.len(), told["paths"].as_array().unwrap().len()), (2, 2), "{flags:?}: {told}");
            workers.iter().all(|worker| {
                let moved = number(&worker["sent_bytes"]) + number(&worker["received_bytes"]);
                number(&worker["loans"]) > 0.0 && moved > 1e6
            })
        });
        assert!(are_busy, "{flags:?}: a thread had nothing to do, five times");
    }
    assert!(server.told(&["-n", "1M", "--threads", "1"])["workers"].as_array().unwrap().is_empty());
}

#[test]
fn there_are_as_many_paths_as_threads_however_many_those_are() {
    let server = Server::start(&["--threads", "12"]);
    let told = server.told(&["--threads", "12", "-t", "1"]);
    let count = |what: &str| told[what].as_array().map_or(0, Vec::len);
    // A path that a busy machine holds up is given up for another, which is told beside it.
    assert!(count("workers") == 12 && count("paths") >= 12, "{told}");
}

#[test]
fn shards_are_connections_that_share_nothing_but_the_load() {
    let server = Server::start(&[]);
    for direction in [&[][..], &["-R"]] {
        let told = server.told(&[&["--placement", "shard", "--threads", "3", "-n", "3M"][..], direction].concat());
        assert_eq!(
            (&told["ok"], &told["bytes"], &told["streams"]),
            (&true.into(), &3_000_000.into(), &3.into()),
            "{told}"
        );
        assert_eq!(told["placement"], "shard", "{told}");
        // One of each connection, which carried its share and no more.
        let paths = told["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 3, "{told}");
        for path in paths {
            let moved = number(&path["sent_bytes"]) + number(&path["received_bytes"]);
            assert!((1e6..2e6).contains(&moved), "{told}");
        }
    }
}

#[test]
fn pinned_streams_go_over_a_path_each() {
    let server = Server::start(&[]);
    for (direction, by) in [(&[][..], "sent_bytes"), (&["-R"], "stream_bytes_received")] {
        let flags = ["--placement", "pinned", "--threads", "2", "-P", "2", "-n", "40M", "--reinjection", "none"];
        let told = server.told(&[&flags[..], &["--server-reinjection", "none"], direction].concat());
        assert_eq!((&told["ok"], &told["bytes"]), (&true.into(), &40_000_000.into()), "{told}");
        let paths = told["paths"].as_array().unwrap();
        assert_eq!(paths.len(), 2, "{told}");
        // Half of the load is on either, but for what left before the second path stood.
        assert!(paths.iter().all(|path| number(&path[by]) > 15e6), "{told}");
    }
    let told = server.told(&["--placement", "pinned", "--threads", "2", "-n", "20M", "--reinjection", "none"]);
    let by_path = told["paths"].as_array().unwrap().iter().map(|path| number(&path["sent_bytes"]));
    assert!(by_path.into_iter().fold(f64::MAX, f64::min) < 2e6, "one stream has one path: {told}");
}

#[test]
fn a_null_receiver_acknowledges_what_it_does_not_read() {
    let server = Server::start(&["--null-receiver"]);
    let up = server.told(&["-t", "1", "--threads", "2", "--scheduler", "round-robin"]);
    assert_eq!((&up["null_receiver"], up["paths"].as_array().map(Vec::len)), (&true.into(), Some(2)), "{up}");
    let bytes = number(&up["bytes"]);
    // More than any window that a server has else.
    assert!(bytes > 64e6, "{up}");
    for path in up["paths"].as_array().unwrap() {
        assert_eq!((&path["state"], number(&path["sent_bytes"]) > bytes / 10.0), (&"active".into(), true), "{up}");
    }
    assert!(number(&up["cpu_seconds"]["server"]) > 0.0, "it still answers questions: {up}");
    assert_eq!(server.told(&["-R", "-n", "3M"])["bytes"], 3_000_000);
    for load in [&["-n", "1M"][..], &["--requests", "--count", "1"], &["--datagrams", "-t", "0.1"]] {
        let output = server.client(load);
        assert_eq!((output.status.code(), stderr(&output).contains("null receiver")), (Some(1), true), "{load:?}");
    }
    assert_eq!(Server::start(&[]).told(&["-n", "1M"])["null_receiver"], false);
}

#[test]
fn scaling_measures_each_number_of_threads_and_says_what_to_expect() {
    let told = |flags: &[&str]| {
        let output =
            plait(&["perf", "scaling", "--json", "--quiet", "--rounds", "2", "--max", "2"]).args(flags).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        summary(&output)
    };
    let both = told(&["-n", "20M"]);
    assert_eq!((&both["command"], &both["mode"], &both["ok"]), (&"perf".into(), &"scaling".into(), &true.into()));
    let of = |run: &Value| (run["direction"].as_str().unwrap().to_owned(), run["threads"].as_u64().unwrap());
    let round = [("up".to_owned(), 1), ("up".to_owned(), 2), ("down".to_owned(), 1), ("down".to_owned(), 2)];
    let runs = both["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(of).collect::<Vec<_>>(), [round.clone(), round].concat(), "{both}");
    for run in runs {
        assert!(number(&run["goodput_gbps"]) > 0.0 && number(&run["client_s_per_gb"]) > 0.0, "{run}");
        assert!(number(&run["server_s_per_gb"]) > 0.0, "{run}");
    }
    // Two numbers of threads are too few for a law.
    assert_eq!(both["outlooks"].as_array().unwrap().iter().map(|of| &of["law"]).collect::<Vec<_>>(), [&Value::Null; 2]);
    let alone = told(&["--null-receiver", "-t", "0.3"]);
    assert_eq!((&alone["null_receiver"], alone["runs"].as_array().unwrap().len()), (&true.into(), 4), "{alone}");
    let stream =
        plait(&["perf", "scaling", "--json-stream", "-q", "--rounds", "1", "--max", "2", "-n", "1M"]).output().unwrap();
    let lines = String::from_utf8_lossy(&stream.stdout).into_owned();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 5, "four runs and the summary: {lines}");
    assert!(events[..4].iter().all(|event| event["event"] == "run" && event["round"] == 1), "{lines}");
    assert_eq!((&events[0]["run"], &events[4]["ok"]), (&events[4]["runs"][0], &true.into()), "{lines}");
    let nothing = plait(&["perf", "scaling", "-n", "0"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2), "{}", stderr(&nothing));
    assert!(stderr(&nothing).contains("no bytes has no rate"), "{}", stderr(&nothing));
    let refused = plait(&["perf", "scaling", "--null-receiver", "-n", "1M"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn a_load_of_a_time_ends_in_time() {
    let server = Server::start(&["--tcp"]);
    for flags in [&["-t", "0.4"][..], &["-t", "0.4", "-R"], &["-t", "0.4", "--bidir"], &["-t", "0.4", "--tcp"]] {
        let told = server.told(flags);
        let seconds = number(&told["seconds"]);
        assert!((0.4..3.0).contains(&seconds) && number(&told["bytes"]) > 10_000.0, "{flags:?}: {told}");
    }
    let output = server.client(&["-t", "0.5", "-i", "0.1", "--json-stream", "-q"]);
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let intervals = lines.lines().filter(|line| line.contains("\"event\":\"interval\"")).count();
    assert!(intervals >= 2 && stderr(&output).is_empty(), "{lines}{}", stderr(&output));
}

#[test]
fn requests_leave_at_an_interval() {
    let server = Server::start(&["--tcp", "--cc", "cubic"]);
    for carrier in [&[][..], &["--tcp", "--cc", "cubic"]] {
        let flags = ["--requests", "--count", "5", "--every-ms", "60", "--response-size", "900", "--no-questions"];
        let told = server.told(&[carrier, &flags].concat());
        let exchanges = told["exchanges"].as_array().unwrap();
        let due: Vec<f64> = exchanges.iter().map(|exchange| number(&exchange["at_ms"])).collect();
        assert_eq!(due, [0.0, 60.0, 120.0, 180.0, 240.0], "{told}");
        assert!(exchanges.iter().all(|exchange| number(&exchange["delay_ms"]) > 0.0), "{told}");
        // 750 bytes of each request, and 900 of each answer.
        assert_eq!((&told["bytes"], &told["requests"]["count"]), (&8250.into(), &5.into()));
        let (total, seconds) = (number(&told["total_seconds"]), number(&told["seconds"]));
        let per_second = 5.0 / seconds;
        assert!((number(&told["requests"]["per_second"]) / per_second - 1.0).abs() < 0.01, "{told}");
        assert!(seconds >= 0.24 && total > seconds && total < seconds + 2.0, "{told}");
        let clock = number(&told["clock"]["finished_s"]) - number(&told["clock"]["started_s"]);
        assert!((clock - total).abs() < 1e-3, "{told}");
        assert_eq!(told["cpu_seconds"]["server"], Value::Null, "nothing was asked: {told}");
        let down = server.told(&[carrier, &["-R", "-n", "300k", "--no-questions"]].concat());
        let first = number(&down["first_byte_ms"]) / 1e3;
        assert!(first > 0.0 && first <= number(&down["total_seconds"]), "{down}");
    }
    // Ten requests take 9 s: it ends before, and says what became of those that were due.
    let output = server.client(&["--requests", "--count", "10", "--every-ms", "1000", "--max-time", "1.5"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("not done after 1.5 s"), "{}", stderr(&output));
    let told = summary(&output);
    assert!((1..=2).contains(&told["exchanges"].as_array().unwrap().len()), "{told}");
}

#[test]
fn requests_and_connections_are_timed() {
    let server = Server::start(&["--tcp"]);
    for carrier in [&[][..], &["--tcp"]] {
        let of = |flags: &[&str]| server.told(&[carrier, flags].concat());
        let requests =
            of(&["--requests", "--count", "50", "-P", "4", "--request-size", "9", "--response-size", "70000"]);
        let (rounds, delays) = (&requests["requests"], &requests["requests"]["delay_ms"]);
        assert_eq!(
            (&rounds["count"], &rounds["at_once"], &requests["bytes"]),
            (&50.into(), &4.into(), &3_500_450.into())
        );
        let told = ["min", "p50", "p90", "p99", "p99.9", "max"].map(|name| number(&delays[name]));
        assert_eq!((&requests["up"]["bytes"], &requests["down"]["bytes"]), (&450.into(), &3_500_000.into()));
        assert!(told[0] > 0.0 && told.is_sorted() && number(&rounds["per_second"]) > 0.0, "{rounds}");
        let connections = of(&["--connections", "--count", "20", "-P", "3"]);
        assert_eq!((&connections["connections"]["count"], &connections["requests"]), (&20.into(), &Value::Null));
        assert!(number(&connections["connections"]["delay_ms"]["min"]) > 0.0, "{connections}");
    }
    assert!(number(&server.told(&["--requests", "-t", "0.2"])["requests"]["count"]) > 1.0);
}

#[test]
fn datagrams_are_counted_where_they_arrive() {
    let server = Server::start(&[]);
    let told = server.told(&["--datagrams", "-b", "4", "-l", "500", "-t", "0.5"]);
    let datagrams = &told["datagrams"];
    assert_eq!((&datagrams["sent"], &datagrams["size_bytes"]), (&500.into(), &500.into()));
    assert_eq!((&datagrams["received"]["received"], &datagrams["received"]["bytes"]), (&500.into(), &250_000.into()));
    assert_eq!((&datagrams["loss"], &told["bytes"]), (&0.0.into(), &250_000.into()));
    // More than any path takes: it ends in time all the same, and what counts is what came.
    let output = server.client(&["--datagrams", "-b", "100000", "-t", "0.5", "-i", "0.1"]);
    let flood = summary(&output);
    assert_eq!((&flood["ok"], &flood["bytes"]), (&true.into(), &flood["datagrams"]["received"]["bytes"]), "{flood}");
    assert!(number(&flood["seconds"]) < 3.0 && number(&flood["datagrams"]["loss"]) > 0.0, "{flood}");
    assert!(stderr(&output).contains("a second"), "lines of progress: {}", stderr(&output));
    let output = server.client(&["--datagrams", "-l", "60000", "-t", "0.5"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bytes at most, see -l"), "{}", stderr(&output));
}

#[test]
fn datagrams_wait_for_the_path_to_take_them() {
    let server = Server::start(&["--mtu", "9000"]);
    for flags in [&["-l", "1400"][..], &["-l", "8000", "--mtu", "9000"]] {
        let told = server.told(&[&["--datagrams", "-t", "0.3", "-b", "5"], flags].concat());
        assert_eq!(told["datagrams"]["sent"], told["datagrams"]["received"]["received"], "{told}");
    }
    let output = server.client(&["--datagrams", "-l", "9500", "--mtu", "9000", "-t", "0.3"]);
    assert_eq!(output.status.code(), Some(1));
    // The true limit is that of the search, not where it begins.
    let most = stderr(&output).split("takes ").nth(1).and_then(|text| text.split(' ').next()?.parse::<u32>().ok());
    assert!(most.is_some_and(|most| (8900..9000).contains(&most)), "{}", stderr(&output));
}

#[test]
fn what_was_done_until_it_was_given_up_is_reported() {
    let server = Server::start(&["--tcp"]);
    let cut = |flags: &[&str]| {
        let output = server.client(&[flags, &["--max-time", "0.8"]].concat());
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {}", stderr(&output));
        let told = summary(&output);
        assert!(told["error"].as_str().unwrap().contains("not done after 0.8 s"), "{flags:?}: {told}");
        assert!((0.1..5.0).contains(&number(&told["seconds"])), "{flags:?}: {told}");
        told
    };
    for (flags, way) in
        [(&["-n", "1000G"][..], "up"), (&["-n", "1000G", "-R"], "down"), (&["-n", "1000G", "--tcp"], "up")]
    {
        let told = cut(flags);
        assert!(number(&told["bytes"]) > 1e5 && told[way]["bytes"] == told["bytes"], "{flags:?}: {told}");
    }
    assert_eq!(cut(&["-n", "1000G"])["paths"].as_array().map(Vec::len), Some(1));
    let requests = cut(&["--requests", "--count", "100000000", "-P", "2"]);
    assert!(number(&requests["requests"]["delay_ms"]["p99"]) > 0.0, "{requests}");
    let connections = cut(&["--connections", "--count", "100000000"]);
    assert!(number(&connections["connections"]["count"]) > 0.0, "{connections}");
    let datagrams = cut(&["--datagrams", "-t", "60"]);
    assert!(number(&datagrams["datagrams"]["received"]["bytes"]) > 0.0, "{datagrams}");
}

/// A client that runs and has shown an interval, and the lines that it prints from then on.
fn running(server: &Server, flags: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let address = server.address.to_string();
    let args = ["perf", "client", &address, "--insecure", "--json-stream", "-i", "0.1", "-q"];
    let mut client = plait(&args).args(flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("\"event\":\"interval\""), "{line}");
    (client, lines)
}

/// Sends a signal, by its name, to a process.
#[cfg(unix)]
fn signal(name: &str, process: &Child) {
    assert!(Command::new("kill").args([name, &process.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_server_that_falls_silent_is_no_success() {
    let loads: [&[&str]; 6] = [
        &["-t", "0.8"],
        &["-t", "0.8", "-R", "--no-questions"],
        &["-t", "0.8", "--requests"],
        &["-t", "0.8", "--datagrams"],
        &["-t", "0.8", "--tcp"],
        &["-t", "0.8", "--tcp", "-R"],
    ];
    std::thread::scope(|scope| {
        for flags in loads {
            scope.spawn(move || {
                let server = Server::start(&["--tcp"]);
                let (mut client, lines) = running(&server, flags);
                signal("-STOP", &server.process);
                let last = lines.lines().map_while(Result::ok).last().unwrap();
                assert_eq!(client.wait().unwrap().code(), Some(1), "{flags:?}: {last}");
                let told: Value = serde_json::from_str(&last).unwrap();
                assert!(told["error"].as_str().unwrap().contains("the server answers no more"), "{flags:?}: {told}");
                // What it had by then, and no wait for the connection to time out.
                let is_bulk = told["mode"] == "bulk";
                assert!(!is_bulk || number(&told["bytes"]) > 0.0, "{flags:?}: {told}");
                // Nobody knows what came of datagrams.
                assert!(told["mode"] != "datagrams" || told["bytes"] == 0, "{flags:?}: {told}");
                assert!(number(&told["total_seconds"]) < 20.0, "{flags:?}: {told}");
            });
        }
    });
}

#[cfg(unix)]
#[test]
fn an_interrupted_load_tells_what_was_done() {
    let server = Server::start(&[]);
    let (mut client, lines) = running(&server, &["-t", "60", "--requests"]);
    signal("-INT", &client);
    let last = lines.lines().map_while(Result::ok).last().unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(1), "{last}");
    let told: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(told["error"], "stopped before it was done", "{told}");
    assert!(number(&told["requests"]["count"]) > 0.0 && number(&told["requests"]["delay_ms"]["p50"]) > 0.0, "{told}");
}

#[test]
fn a_server_that_keeps_to_its_policies_tells_them() {
    let server = Server::start(&["--fixed-policies", "--cc", "bbr"]);
    let output = server.client(&["-R", "-n", "100k", "--server-cc", "newreno"]);
    let told = summary(&output);
    assert!(stderr(&output).contains("going on with its own"), "{}", stderr(&output));
    assert_eq!((&told["ok"], &told["congestion"]), (&true.into(), &"bbr".into()), "{told}");
    assert_eq!(told["policies"]["theirs"]["congestion"], "bbr", "{told}");
    assert_eq!(told["policies"]["asked"]["congestion"], "newreno", "{told}");
}

#[test]
fn a_load_ends_where_nobody_reads_how_it_goes() {
    let server = Server::start(&[]);
    let (client, lines) = running(&server, &["-t", "600"]);
    drop(lines);
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("standard output was closed"), "{}", stderr(&output));
}

#[test]
fn tcp_is_told_apart() {
    // Where the kernel has it; a socket of MPTCP takes clients of TCP too.
    let has_mptcp = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let server = Server::start(&[if has_mptcp { "--mptcp" } else { "--tcp" }]);
    let tcp = server.told(&["--tcp", "-n", "2M", "-P", "2"]);
    assert_eq!((&tcp["carrier"], &tcp["up"]["bytes"]), (&"tcp".into(), &2_000_000.into()));
    assert_eq!(
        (&tcp["extension"], &tcp["policies"], &tcp["paths"]),
        (&"none".into(), &Value::Null, &Value::Array(vec![]))
    );
    assert!(number(&tcp["handshake_ms"]) > 0.0 && number(&tcp["cpu_seconds"]["server"]) >= 0.0, "{tcp}");
    if has_mptcp {
        let mptcp = server.told(&["--mptcp", "-R", "-n", "2M"]);
        assert_eq!((&mptcp["carrier"], &mptcp["down"]["bytes"]), (&"mptcp".into(), &2_000_000.into()));
    }
    // The side that sends is the server, whose kernel decides.
    let reno = Server::start(&["--tcp", "--cc", "newreno"]);
    if cfg!(target_os = "linux") {
        assert_eq!(reno.told(&["--tcp", "-R", "-n", "1M"])["congestion"], "reno");
    }
    if has_mptcp {
        // A server without MPTCP is spoken to over TCP, and that is said.
        let output = reno.client(&["--mptcp", "-n", "1M"]);
        let told = summary(&output);
        assert_eq!((&told["ok"], &told["carrier"]), (&true.into(), &"tcp".into()), "{told}");
        assert!(stderr(&output).contains("does not speak MPTCP"), "{}", stderr(&output));
    }
    if cfg!(target_os = "linux") {
        // No kernel has it.
        let output = reno.client(&["--tcp", "--cc", "auto", "-n", "1M"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("this kernel does not send by `auto`"), "{}", stderr(&output));
    }
    let untrusted = plait(&["perf", "client", &reno.address.to_string(), "--tcp", "-n", "1M"]).output().unwrap();
    assert_eq!(untrusted.status.code(), Some(1));
    assert!(stderr(&untrusted).contains("accept any with --insecure"), "{}", stderr(&untrusted));
    let without = Server::start(&[]);
    let output = without.client(&["--tcp"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("check that `plait perf server --tcp` runs there"), "{}", stderr(&output));
    assert_eq!(summary(&output)["ok"], false);
}

/// Carries TCP connections to `server`, each only after so long; gives the address to connect to.
#[allow(clippy::disallowed_methods, reason = "a handshake is held up in real time")]
fn slow_relay(server: SocketAddr, wait: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let carry = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        })
    };
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                thread::sleep(wait);
                let Ok(server) = TcpStream::connect(server) else { return };
                let (client_reads, server_reads) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                carry(client, server);
                carry(server_reads, client_reads);
            });
        }
    });
    address
}

#[test]
fn no_handshake_of_tcp_lies_within_the_time_of_the_load() {
    let server = Server::start(&["--tcp"]);
    let (wait, ca) = (Duration::from_secs(1), server.dir.path().join("ca.pem"));
    let relay = slow_relay(server.address, wait).to_string();
    for load in [&["-n", "10K"][..], &["-n", "10K", "-R", "-P", "2"], &["--requests", "--count", "1"]] {
        let args = ["perf", "client", &relay, "--tcp", "--json", "--ca", ca.to_str().unwrap()];
        let output = plait(&args).args(load).output().unwrap();
        let told = summary(&output);
        assert_eq!(told["ok"], true, "{load:?}: {}", stderr(&output));
        let (load_s, handshake_s) = (number(&told["seconds"]), number(&told["handshake_ms"]) / 1e3);
        assert!(handshake_s >= wait.as_secs_f64() && load_s < wait.as_secs_f64(), "{load:?}: {told}");
    }
}

#[test]
fn over_tcp_both_ways_the_controller_of_both_kernels_is_told() {
    let told = Server::start(&["--tcp"]).told(&["--tcp", "--bidir", "-n", "1M"]);
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok();
    assert_eq!(told["congestion"].as_str(), name.as_deref().map(str::trim), "{told}");
    // Two that differ have no name in common.
    let reno = Server::start(&["--tcp", "--cc", "newreno"]);
    if name.as_deref().is_some_and(|name| name.trim() != "reno") {
        assert_eq!(reno.told(&["--tcp", "--bidir", "-n", "1M"])["congestion"], Value::Null);
    }
}

#[test]
fn a_port_that_tcp_has_taken_is_named() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let output = plait(&["perf", "server", "--tcp", "--listen", &taken.local_addr().unwrap().to_string()]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot listen for tcp: "), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let wrong: [(&[&str], &str); 10] = [
        (&["perf", "client", "x", "--requests", "--every-ms", "0", "--count", "2"], "from 0.001 to 60000"),
        (&["perf", "client", "x", "--requests", "--every-ms", "0.0000001", "--count", "2"], "from 0.001 to 60000"),
        (&["perf", "client", "x", "-t", "1", "-n", "1"], "cannot be used with"),
        (&["perf", "client", "x", "-R", "--bidir"], "cannot be used with"),
        (&["perf", "client", "x", "--requests", "--connections"], "cannot be used with"),
        (&["perf", "client", "x", "-b", "5"], "--datagrams"),
        (&["perf", "client", "x", "-P", "0"], "from 1 to 1000"),
        (&["perf", "client", "http://x/"], "names no server"),
        (&["perf", "client", "x", "--datagrams", "--mptcp"], "no datagrams over TCP"),
        (&["perf", "server", "--tcp", "--mptcp"], "cannot be used with"),
    ];
    for (args, expected) in wrong {
        let output = plait(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    let server = Server::start(&[]);
    let url = format!("https://{}/bytes/1K", server.address);
    let output = plait(&["get", &url, "--insecure", "--discard"]).output().unwrap();
    assert!(
        stderr(&output).contains("does not speak hq-interop; ask a server that `plait serve` runs"),
        "{}",
        stderr(&output)
    );
}

/// A client that knows the protocol of the draft alone.
async fn stranger(server: SocketAddr) -> (Endpoint, Connection) {
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let tls = ClientTlsConfig::builder().alpn(["perf"]).accept_any_certificate().build().unwrap();
    endpoint.set_default_client_config(ClientConfig::new(tls));
    let connection = endpoint.connect(server, "localhost").unwrap().await.unwrap();
    (endpoint, connection)
}

#[tokio::test]
async fn strangers_are_served() {
    let server = Server::start(&["--patience", "1"]);
    let (_endpoint, connection) = stranger(server.address).await;
    let ask = async |begin: &[u8]| {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(begin).await.unwrap();
        send.finish().unwrap();
        recv.read_to_end(1_000_000).await
    };
    assert_eq!(ask(&1000_u64.to_be_bytes()).await.unwrap().len(), 1000);
    assert_eq!(ask(&[&7_u64.to_be_bytes()[..], &[1; 5000]].concat()).await.unwrap().len(), 7);
    // Too short, more than a stream can carry, a question that this protocol does not have.
    for begin in [&[0, 0, 1][..], &u64::MAX.to_be_bytes(), &(1_u64 << 62).to_be_bytes()] {
        let error = ask(begin).await.unwrap_err().to_string();
        assert!(error.contains("400"), "{begin:?}: {error}");
    }
    // Without a way back the answer has a stream of its own.
    let mut send = connection.open_uni().await.unwrap();
    send.write_all(&1234_u64.to_be_bytes()).await.unwrap();
    send.finish().unwrap();
    let mut recv = connection.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(10_000).await.unwrap().len(), 1234);
    // Who takes nothing of what it asked for is given up, with all that it holds.
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&((1_u64 << 62) - 1).to_be_bytes()).await.unwrap();
    send.finish().unwrap();
    let end = tokio::time::timeout(Duration::from_secs(20), connection.closed()).await.expect("it is given up");
    assert!(end.to_string().contains("you take nothing"), "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_the_draft_alone_is_enough() {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let identity = Identity::new(vec![identity.cert.der().clone()], key.into());
    let tls = ServerTlsConfig::builder(identity).alpn(["perf"]).build().unwrap();
    let endpoint = Endpoint::server(ServerConfig::new(tls).unwrap(), (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = endpoint.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else { continue };
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let Ok(request) = recv.read_to_end(10_000_000).await else { continue };
                    let wanted = u64::from_be_bytes(request[..8].try_into().unwrap());
                    let _ = send.write_all(&vec![7; usize::try_from(wanted).unwrap()]).await;
                    let _ = send.finish();
                }
            });
        }
    });
    let run = move |flags: &'static [&'static str]| {
        let args = ["perf", "client", &address, "--insecure", "--json"];
        let mut command = plait(&args);
        async move { tokio::task::spawn_blocking(move || command.args(flags).output().unwrap()).await.unwrap() }
    };
    for flags in [&["-n", "200000"][..], &["-n", "200000", "-R", "-P", "2"], &["--requests", "--count", "5"]] {
        let output = run(flags).await;
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let told = summary(&output);
        assert_eq!((&told["cpu_seconds"]["server"], &told["policies"]["theirs"]), (&Value::Null, &Value::Null));
    }
    let output = run(&["-R", "-n", "1000", "--server-cc", "bbr"]).await;
    let told = summary(&output);
    assert!(stderr(&output).contains("going on with its own") && told["congestion"].is_null(), "{told}");
}
