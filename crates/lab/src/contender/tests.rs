//! Every contender's command lines, and how what a client says is read.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::{Scenario, Traces, Tree};

use super::example::Plain;
use super::*;
use crate::clock::ClockPoint;
use crate::host::{Family, PathEnds};
use crate::run::{Completion, Ready, Wiring};

const V4: Wiring = Wiring::Namespaces(Family::V4);

/// A transfer over so many paths, the second of them the initial one.
fn scenario(load: Load, paths: usize) -> Scenario {
    let text = "[[path]]\nrate_mbps = 10\n".repeat(paths)
        + "[transfer]\nkind = \"download\"\nbytes = 1\n\
           [endpoints]\ninitial_path = 1\nscheduler = \"ecf\"\nreceive_window_bytes = 1000000\n";
    let scenario = Scenario::read(&Tree::parse("x", &text).unwrap(), &Traces::default()).unwrap();
    Scenario { load, ..scenario }
}

/// The same over two paths, for a contender.
fn work(load: Load) -> Work {
    let scenario = scenario(load, 2);
    let ways = [1, 2].map(|number| PathEnds {
        client: IpAddr::from(Ipv4Addr::new(10, 0, number, 2)),
        device: format!("c{}", number - 1),
        server: ([10, 9, 0, 1], 4433).into(),
    });
    Work {
        load,
        ways: ways.to_vec(),
        listen: ([10, 9, 0, 1], 4433).into(),
        endpoints: scenario.endpoints,
        files: "/files".into(),
        qlog: None,
        time_limit: Duration::from_secs(60),
    }
}

fn words(program: &Program) -> String {
    let args = program.args.iter().map(|arg| arg.to_string_lossy().into_owned());
    let env = program.env.iter().map(|(name, value)| format!("{name}={value}"));
    env.chain(args).collect::<Vec<_>>().join(" ")
}

fn said(stdout: &str) -> ClientOutput {
    ClientOutput {
        code: Some(0),
        timed_out: false,
        stdout: stdout.to_owned(),
        stderr: String::new(),
        server_stderr: String::new(),
        ended: ClockPoint(Duration::ZERO),
    }
}

const DOWNLOAD: Load = Load::Download { bytes: 5_000 };
const REQUESTS: Load =
    Load::Requests { request_bytes: 750, response_bytes: 900, interval: Duration::from_millis(400), count: 3 };

#[test]
fn more_paths_than_a_client_opens_are_refused() {
    let accepts = |name: &str, paths| by_name(name).unwrap().accepts(&scenario(DOWNLOAD, paths), V4);
    assert_eq!(accepts("mptcp", 8), Ok(()));
    let refused = accepts("mptcp", 9).unwrap_err();
    assert!(refused.contains("8 subflows"), "{refused}");
    // As many as a scenario may have.
    for name in ["plait", "plait:extension=multiflow", "plait-single"] {
        assert_eq!(accepts(name, 64), Ok(()));
    }
}

#[test]
fn contenders_are_found_by_their_names() {
    for contender in all() {
        let found = by_name(contender.name()).unwrap();
        assert_eq!((found.name(), found.about()), (contender.name(), contender.about()));
        assert!(!found.name().contains([' ', ',']) && !found.about().is_empty());
    }
    assert_eq!(by_name("plait:scheduler=ecf").unwrap().name(), "plait:scheduler=ecf");
    let unknown = by_name("sctp").unwrap_err().to_string();
    assert!(unknown.contains("there are plait, plait-single, mptcp, tcp, noq, picoquic, quinn"), "{unknown}");
    assert!(
        by_name("plait:x=1").unwrap_err().to_string().starts_with("`plait:x=1`: there is no setting `x`; there are")
    );
    let twice = ["tcp", "plait", "tcp"].map(str::to_owned);
    assert!(by_names(&twice).unwrap_err().to_string().contains("the contender `tcp` is there twice"));
    assert_eq!(by_names(&twice[..2]).unwrap().len(), 2);
}

#[test]
fn several_paths_begin_with_the_initial_one() {
    let work = work(DOWNLOAD);
    let client = |name: &str| words(&by_name(name).unwrap().client(&work));
    let both = client("plait");
    assert!(both.ends_with("--path 10.0.2.2 --path 10.0.1.2"), "{both}");
    for part in [
        "-R -n 5000",
        "--scheduler ecf",
        "--window 1000000",
        "--no-questions",
        "--first-path-only",
        "--max-time 59",
        "10.9.0.1:4433",
    ] {
        assert!(both.contains(part), "{part}: {both}");
    }
    assert!(client("plait-single").ends_with("--path 10.0.2.2") && client("plait-single").contains("--extension none"));
    let tcp = client("tcp");
    assert!(tcp.ends_with("--tcp --cc cubic --path 10.0.2.2"), "{tcp}");
    assert!(client("mptcp").starts_with("-c ") && client("mptcp").ends_with("--mptcp --cc cubic --path 10.0.2.2"));
    assert!(
        client("noq").contains("PEER_LOCALS=10.0.2.2,10.0.1.2") && client("quinn").contains("PEER_LOCALS=10.0.2.2 ")
    );
    assert!(client("noq").ends_with("client /files/cert.pem 10.9.0.1:4433 lab-download 5000"), "{}", client("noq"));
}

#[test]
fn servers_listen_at_the_address_of_the_run() {
    let work = work(DOWNLOAD);
    for contender in all().iter().filter(|contender| contender.name() != "picoquic") {
        let server = contender.server(&work);
        assert!(words(&server).contains("10.9.0.1:4433"), "{}: {}", contender.name(), words(&server));
    }
    // It knows ports alone, and answers from the address that it was asked at.
    assert!(words(&by_name("picoquic").unwrap().server(&work)).starts_with("-p 4433 -c /files/cert.pem"));
    let multiflow = by_name("plait:extension=multiflow").unwrap();
    assert!(words(&multiflow.server(&work)).contains("--multiflow"));
    assert!(words(&multiflow.client(&work)).contains("--extension multiflow"));
}

#[test]
fn requests_are_made_at_their_interval() {
    let work = work(REQUESTS);
    let ours = words(&by_name("tcp").unwrap().client(&work));
    assert!(ours.contains("--requests --count 3 --every-ms 400 --request-size 750 --response-size 900"), "{ours}");
    assert!(words(&by_name("noq").unwrap().client(&work)).ends_with("lab-requests 3 750 900 400"));
    let text = r#"{"ok":false,"error":"x: not done after 60 s; see --max-time","bytes":900,"handshake_ms":30.5,
        "clock":{"finished_s":12.5},"exchanges":[{"at_ms":0,"delay_ms":20.5},{"at_ms":400,"delay_ms":null}]}"#;
    let text = text.replace('\n', "");
    // Requests without an answer are a result.
    let answer = by_name("plait").unwrap().outcome(&work, &said(&text)).unwrap();
    let ms = Duration::from_micros;
    assert_eq!(answer.requests, [(ms(0), Some(ms(20_500))), (ms(400_000), None)]);
    assert_eq!(answer.completion, Completion::At(ClockPoint(Duration::from_secs_f64(12.5))));
}

#[test]
fn failures_are_told_apart() {
    let (work, plait) = (work(DOWNLOAD), by_name("plait").unwrap());
    let of = |text: &str| plait.outcome(&work, &said(text)).unwrap_err();
    assert!(matches!(of("nonsense"), RunFailure::Client { .. }));
    assert!(matches!(of(r#"{"ok":false,"error":"x: not done after 60 s; see --max-time"}"#), RunFailure::TimeLimit(_)));
    assert!(matches!(of(r#"{"ok":false,"error":"lost"}"#), RunFailure::Client { said, .. } if said == "lost"));
    assert!(matches!(of(r#"{"ok":true,"bytes":5000}"#), RunFailure::Nonsense(_)));
    let single = r#"{"ok":true,"bytes":5000,"clock":{"finished_s":1.0},"extension":"none"}"#;
    assert!(matches!(of(single), RunFailure::Strayed(_)));
    let mptcp = by_name("mptcp").unwrap();
    let mut output = said(single);
    assert!(matches!(mptcp.outcome(&work, &output), Err(RunFailure::Strayed(_))), "it fell back");
    output.stderr = "MPTcpExt: MPCapableSYNACKRX MPJoinSynAckRx\nMPTcpExt: 1 1\n".to_owned();
    assert_eq!(mptcp.outcome(&work, &output).unwrap().notes["subflows"], "2");
}

/// What its client of commit d199d45 says, shortened.
const PICOQUIC: &str = "Waiting for packets.\nNegotiated ALPN: perf\nThe connection is closed!\nECN was not received.\n\
    Enable multipath: Success.\nConnection_duration_sec: 0.675387\nNb_transactions: 1\nUpload_bytes: 8\n\
    Download_bytes: 5000\nTPS: 1.480633\nClient exit with code = 0\n";

#[test]
fn picoquic_downloads_over_all_paths() {
    let (picoquic, work) = (by_name("picoquic").unwrap(), work(DOWNLOAD));
    let client = words(&picoquic.client(&work));
    assert!(
        client.ends_with("-A 10.0.1.2/0 10.9.0.1 4433 8:5000") && client.contains("-M -G cubic -Z 1000000"),
        "{client}"
    );
    assert!(picoquic.accepts(&scenario(DOWNLOAD, 2), V4).is_ok());
    assert!(picoquic.accepts(&scenario(REQUESTS, 2), V4).unwrap_err().contains("no requests"));
    let answer = picoquic.outcome(&work, &said(PICOQUIC)).unwrap();
    assert_eq!((answer.bytes, answer.completion), (5_000, Completion::LastPacket));
    assert_eq!(answer.notes["own_seconds"], "0.675387");
    let failed = |text: String| picoquic.outcome(&work, &said(&text)).unwrap_err();
    assert!(matches!(failed(PICOQUIC.replace("Success", "Refused")), RunFailure::Strayed(_)));
    let short = failed(PICOQUIC.replace("Download_bytes: 5000", "Download_bytes: 4000")).to_string();
    assert!(short.contains("4000 bytes came, not 5000"), "{short}");
    let error = "Connection ends with local error 0x433 (idle timeout).\n".to_owned();
    let error = failed(error).to_string();
    assert!(error.contains("the connection ended with local error 0x433 (idle timeout)"), "{error}");
    assert!(matches!(failed(String::new()), RunFailure::Client { .. }));
}

/// The example that strangers begin with does what the others do.
#[test]
fn an_example_of_ones_own() {
    let work = work(DOWNLOAD);
    assert!(Plain.accepts(&scenario(DOWNLOAD, 2), V4).is_ok() && Plain.accepts(&scenario(REQUESTS, 2), V4).is_err());
    assert!(Plain.accepts(&scenario(DOWNLOAD, 2), Wiring::Relay).is_err());
    assert!(words(&Plain.server(&work)).contains("head -c 5000 /dev/zero"));
    assert_eq!(Plain.server(&work).ready, Ready::Tcp(4433));
    assert!(words(&Plain.client(&work)).contains("TCP:10.9.0.1:4433,bind=10.0.2.2"));
    let answer = Plain.outcome(&work, &said("5000\n")).unwrap();
    assert_eq!((answer.bytes, answer.completion), (5_000, Completion::LastPacket));
    assert!(Plain.outcome(&work, &said("")).is_err() && !Plain.is_multipath() && !Plain.about().is_empty());
}
