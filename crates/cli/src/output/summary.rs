//! The JSON objects that programs read; fields stay, new ones may come.

use std::collections::BTreeMap;

use plait::{Attempt, AttemptOutcome, WorkerFigures};
use serde::Serialize;

use crate::http::policies::{Named, Wish};
use crate::units::rounded;

/// A path, as every command reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct PathSummary {
    /// Path id of RFC 10069.
    pub(crate) id: u32,
    /// Our IP address and port.
    pub(crate) local: String,
    /// The peer's address.
    pub(crate) remote: String,
    /// `validating`, `active`, `backup`, `failed`, `unused`, `closing` or `closed`.
    pub(crate) state: &'static str,
    /// Why no packet of data can leave on it now, or none does; none for a path that is closing or closed.
    pub(crate) why_idle: Option<&'static str>,
    /// Smoothed RTT, milliseconds.
    pub(crate) rtt_ms: Option<f64>,
    /// Smallest RTT of the present way back, milliseconds.
    pub(crate) rtt_min_ms: Option<f64>,
    /// Congestion window of our side.
    pub(crate) cwnd_bytes: u64,
    /// Largest UDP payload.
    pub(crate) mtu_bytes: u64,
    /// UDP payload sent.
    pub(crate) sent_bytes: u64,
    /// UDP payload received.
    pub(crate) received_bytes: u64,
    /// Payload of STREAM frames received.
    pub(crate) stream_bytes_received: u64,
    /// Packets sent on this path, probes and those of acks alone included.
    pub(crate) packets_sent: u64,
    /// Packets that we sent and declared lost.
    pub(crate) packets_lost: u64,
    /// ACK and PATH_ACK frames sent for packets that arrived on this path, whichever path carried them.
    pub(crate) acks_sent: u64,
    /// ACK and PATH_ACK frames received for packets of this path, whichever path brought them.
    pub(crate) acks_received: u64,
}

/// One attempt to connect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AttemptSummary {
    /// Our IP address and port.
    pub(crate) local: String,
    /// The server's address.
    pub(crate) remote: String,
    /// When it began, since the first one did.
    pub(crate) at_ms: f64,
    /// `connected`, `failed`, or `unanswered` by the time when another one connected or all were given up.
    pub(crate) outcome: &'static str,
    /// Why it failed.
    pub(crate) error: Option<String>,
}

impl From<&Attempt> for AttemptSummary {
    fn from(attempt: &Attempt) -> Self {
        let (outcome, error) = match &attempt.outcome {
            AttemptOutcome::Connected => ("connected", None),
            AttemptOutcome::Failed(error) => ("failed", Some(error.to_string())),
            AttemptOutcome::Open => ("unanswered", None),
        };
        Self {
            local: attempt.tuple.local.to_string(),
            remote: attempt.tuple.remote.to_string(),
            at_ms: rounded(attempt.after.as_secs_f64() * 1e3, 3),
            outcome,
            error,
        }
    }
}

/// The policies of both sides of a connection. The side that sends decides how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BothSides {
    /// Those by which we send.
    pub(crate) ours: Named,
    /// Those by which the server sends; none where it did not tell.
    pub(crate) theirs: Option<Named>,
    /// What the server was asked for; none where it was asked for nothing.
    pub(crate) asked: Asked,
}

/// Policies asked for, by their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Asked(Option<BTreeMap<&'static str, &'static str>>);

impl From<&Wish> for Asked {
    fn from(wish: &Wish) -> Self {
        let named = wish.words().into_iter().filter_map(|(key, name)| Some((key, name?)));
        Self((!wish.is_empty()).then(|| named.collect()))
    }
}

/// Bytes of bodies that came more than once over these paths: sent again after a loss, or copied to another path.
pub(crate) fn duplicates(paths: &[PathSummary], bytes: u64) -> Option<u64> {
    let carried: u64 = paths.iter().map(|path| path.stream_bytes_received).sum();
    (!paths.is_empty()).then(|| carried.saturating_sub(bytes))
}

/// One of several downloads on a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DownloadSummary {
    /// What was asked for.
    pub(crate) url: String,
    /// Bytes of the body that arrived.
    pub(crate) bytes: u64,
    /// Time from the request to the end of the body.
    pub(crate) seconds: f64,
    /// Digest of the body; none when it did not arrive whole.
    pub(crate) sha256: Option<String>,
    /// The file written.
    pub(crate) output: Option<String>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// What one of our threads did that served paths and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WorkerSummary {
    /// Connections of clients that it took on.
    pub(crate) connections: u64,
    /// Paths that were lent to it, each as often as it was.
    pub(crate) loans: u64,
    /// UDP payload that it sent.
    pub(crate) sent_bytes: u64,
    /// UDP payload that it received, or that was handed to it.
    pub(crate) received_bytes: u64,
    /// Datagrams that another thread received and handed to it.
    pub(crate) handed_over: u64,
}

impl From<WorkerFigures> for WorkerSummary {
    fn from(figures: WorkerFigures) -> Self {
        let WorkerFigures { connections, loans, sent_bytes, received_bytes, handed_over, .. } = figures;
        Self { connections, loans, sent_bytes, received_bytes, handed_over }
    }
}

/// The last line of a server with threads that serve paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Stopped {
    /// The name of the line, always `stopped`.
    pub(crate) event: &'static str,
    /// What each of them did.
    pub(crate) workers: Vec<WorkerSummary>,
}

/// What `get --json` prints at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GetSummary {
    /// The command's name, `get`.
    pub(crate) command: &'static str,
    /// True when everything arrived.
    pub(crate) ok: bool,
    /// The first URL.
    pub(crate) url: String,
    /// Bytes of all bodies.
    pub(crate) bytes: u64,
    /// Time from the first packet of the handshake to the last byte.
    pub(crate) seconds: f64,
    /// `bytes` over `seconds`.
    pub(crate) goodput_mbps: f64,
    /// Time until the handshake was done.
    pub(crate) handshake_ms: Option<f64>,
    /// Time until the first byte of a body.
    pub(crate) first_byte_ms: Option<f64>,
    /// Digest of the body; none where there are several, each with its own in `downloads`.
    pub(crate) sha256: Option<String>,
    /// `multipath`, `multiflow` or `none`, as negotiated; none before the handshake was done.
    pub(crate) extension: Option<&'static str>,
    /// The scheduler of the server, which sent the body; none where it did not tell.
    pub(crate) scheduler: Option<String>,
    /// The congestion controller of the server; none where it did not tell.
    pub(crate) congestion: Option<String>,
    /// Our ack path: those of the body are ours.
    pub(crate) ack_path: String,
    /// The policies of both sides.
    pub(crate) policies: BothSides,
    /// What became of early data: `accepted`, `rejected`, or none when there was none.
    pub(crate) early_data: Option<&'static str>,
    /// True when the connection resumed an earlier session.
    pub(crate) resumed: bool,
    /// Longest time between two pieces of a body.
    pub(crate) longest_stall_ms: f64,
    /// Attempts to connect, in their order.
    pub(crate) attempts: Vec<AttemptSummary>,
    /// Bytes of bodies that came more than once; none when it failed.
    pub(crate) duplicate_bytes: Option<u64>,
    /// Our threads that served paths.
    pub(crate) workers: Vec<WorkerSummary>,
    /// Every path that there was.
    pub(crate) paths: Vec<PathSummary>,
    /// One entry for each URL.
    pub(crate) downloads: Vec<DownloadSummary>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// One download of the demo.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunSummary {
    /// `A`, `B`, `A+B` or `A+B, A dies`.
    pub(crate) name: &'static str,
    /// Time from the first packet of the handshake to the last byte.
    pub(crate) seconds: f64,
    /// Bytes of the body that arrived.
    pub(crate) bytes: u64,
    /// `bytes` over `seconds`.
    pub(crate) goodput_mbps: f64,
    /// Time until the handshake was done.
    pub(crate) handshake_ms: Option<f64>,
    /// Time until the first byte of the body.
    pub(crate) first_byte_ms: Option<f64>,
    /// Longest time between two pieces of the body.
    pub(crate) longest_stall_ms: f64,
    /// When path A died, where it did.
    pub(crate) killed_at_s: Option<f64>,
    /// True when the digest is that of the body asked for.
    pub(crate) bytes_intact: bool,
    /// Bytes of the body that came over the link of A and of B.
    pub(crate) bytes_by_path: BytesByPath,
    /// Bytes of the body that came more than once; none when it failed.
    pub(crate) duplicate_bytes: Option<u64>,
    /// Paths of the client.
    pub(crate) paths: Vec<PathSummary>,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// Bytes over each of the demo's two links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BytesByPath {
    /// Bytes over path A.
    #[serde(rename = "A")]
    pub(crate) a: u64,
    /// Bytes over path B.
    #[serde(rename = "B")]
    pub(crate) b: u64,
}

/// One link of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct LinkSummary {
    /// `A` or `B`.
    pub(crate) name: &'static str,
    /// Rate each way.
    pub(crate) rate_mbps: f64,
    /// Both ways together.
    pub(crate) rtt_ms: f64,
    /// Share lost each way.
    pub(crate) loss: f64,
    /// Longest wait in its queue.
    pub(crate) queue_ms: f64,
    /// Datagrams that it carried towards the client.
    pub(crate) down_packets: u64,
    /// Datagrams towards the client that it lost at random.
    pub(crate) down_lost: u64,
    /// Datagrams towards the client that found its queue full.
    pub(crate) down_queue_full: u64,
}

/// What `demo --json` prints at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DemoSummary {
    /// The command's name, `demo`.
    pub(crate) command: &'static str,
    /// True when every download arrived whole.
    pub(crate) ok: bool,
    /// Bytes of each download.
    pub(crate) bytes: u64,
    /// The downloads, in their order.
    pub(crate) runs: Vec<RunSummary>,
    /// What A+B gained over A and B; none when one of the three is missing.
    pub(crate) aggregation_benefit: Option<f64>,
    /// True when every body has the digest that it should have.
    pub(crate) bytes_intact: bool,
    /// The links of the relay.
    pub(crate) links: Vec<LinkSummary>,
    /// The scheduler of both sides.
    pub(crate) scheduler: &'static str,
    /// The congestion controller of both sides with one path and with two.
    pub(crate) congestion: Vec<&'static str>,
    /// The ack path of both sides.
    pub(crate) ack_path: &'static str,
    /// The policies of both sides, with two paths.
    pub(crate) policies: BothSides,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

/// What `--json-stream` prints while a transfer runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Interval<'a> {
    /// The event's name, `interval`.
    pub(crate) event: &'static str,
    /// Which transfer, where there are several.
    pub(crate) run: Option<&'a str>,
    /// Time since the transfer began.
    pub(crate) at_s: f64,
    /// Bytes of bodies so far.
    pub(crate) bytes: u64,
    /// Over the last interval.
    pub(crate) goodput_mbps: f64,
    /// The ways of a load, and what was done.
    #[serde(flatten)]
    pub(crate) load: Option<LoadInterval>,
    /// The paths as they are now.
    pub(crate) paths: &'a [PathSummary],
}

/// What an interval of `perf client` has besides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct LoadInterval {
    /// What left; none where nothing is to leave.
    pub(crate) up: Option<WayInterval>,
    /// What came; none where nothing is to come.
    pub(crate) down: Option<WayInterval>,
    /// Requests, connections or datagrams so far; none of bytes without pause.
    pub(crate) count: Option<u64>,
    /// Of these, over the last interval.
    pub(crate) per_second: Option<f64>,
}

/// One way of a load in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct WayInterval {
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Over the last interval.
    pub(crate) goodput_mbps: f64,
}

/// What `serve` prints when it is ready.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Listening {
    /// The event's name, `listening`.
    pub(crate) event: &'static str,
    /// Where, with the ports taken.
    pub(crate) addresses: Vec<String>,
}

#[cfg(test)]
mod tests {
    use plait::Policies;

    use super::*;

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    #[test]
    fn get_has_the_fields_that_programs_know() {
        let summary = GetSummary {
            command: "get",
            ok: true,
            url: "https://x/".into(),
            bytes: 1,
            seconds: 1.0,
            goodput_mbps: 1.0,
            handshake_ms: None,
            first_byte_ms: None,
            sha256: None,
            extension: Some("multipath"),
            scheduler: None,
            congestion: None,
            ack_path: "fastest".into(),
            policies: BothSides {
                ours: Policies { scheduler: "s", congestion: "c", ack_route: "a", reinjection: "r" }.into(),
                theirs: None,
                asked: (&Wish::default()).into(),
            },
            early_data: None,
            resumed: false,
            longest_stall_ms: 0.0,
            attempts: Vec::new(),
            duplicate_bytes: Some(0),
            workers: Vec::new(),
            paths: vec![PathSummary::default()],
            downloads: Vec::new(),
            error: None,
        };
        let json = serde_json::to_value(&summary).unwrap();
        let known = "command ok url bytes seconds goodput_mbps handshake_ms first_byte_ms sha256 extension scheduler \
                     congestion policies paths error";
        for key in known.split_whitespace() {
            assert!(keys(&json).contains(&key), "{key}");
        }
        let known = "id local remote state why_idle rtt_ms rtt_min_ms cwnd_bytes mtu_bytes sent_bytes received_bytes \
                     stream_bytes_received packets_sent packets_lost acks_sent acks_received";
        let known: std::collections::BTreeSet<_> = known.split_whitespace().collect();
        assert_eq!(keys(&json["paths"][0]).into_iter().collect::<std::collections::BTreeSet<_>>(), known);
        let policies = &json["policies"];
        assert_eq!((&policies["ours"]["ack_path"], &policies["theirs"]), (&"a".into(), &serde_json::Value::Null));
        assert_eq!(serde_json::to_string(&summary).unwrap().lines().count(), 1);
    }

    #[test]
    fn demo_names_links_by_letter() {
        let json = serde_json::to_value(BytesByPath { a: 1, b: 2 }).unwrap();
        assert_eq!(json, serde_json::json!({"A": 1, "B": 2}));
    }
}
