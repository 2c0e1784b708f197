//! Loads of `plait lab`: one transfer, told in one line of JSON with the clock that all processes share.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::measured::say;
use crate::peer::{Peer, connect};

/// What is transferred on one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transfer {
    /// `lab-download BYTES`: one stream to the client.
    Download { bytes: u64 },
    /// `lab-upload BYTES`: one stream to the server, head included.
    Upload { bytes: u64 },
    /// `lab-requests COUNT REQUEST RESPONSE MS`: a request each so many milliseconds, answered or not, on a stream of its own.
    Requests { count: u64, request_bytes: u64, response_bytes: u64, every_ms: u64 },
}

/// How the laboratory sets a peer, by variables of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// `PEER_LISTEN`: where the server listens; else at a port of its own on loopback.
    pub listen: Option<SocketAddr>,
    /// `PEER_LOCALS`: local addresses of the client's paths, the initial one first.
    pub locals: Vec<IpAddr>,
    /// `PEER_PATHS`: paths that a connection may have; none leaves multipath off.
    pub paths: Option<u32>,
    /// `PEER_LIMIT_MS`: requests without an answer by then have none.
    pub limit: Option<Duration>,
    /// `PEER_PATH_IDLE_MS`: after such a silence a path is given up; none leaves it to the peer.
    pub path_idle: Option<Duration>,
}

impl Setting {
    /// As the environment says.
    ///
    /// # Panics
    /// It says nonsense.
    pub fn from_environment() -> Self {
        Self::from_words(|name| std::env::var(name).ok())
    }

    fn from_words(word: impl Fn(&str) -> Option<String>) -> Self {
        let locals = word("PEER_LOCALS").unwrap_or_default();
        let locals = locals.split(',').filter(|text| !text.is_empty());
        let ms = |name: &str| word(name).map(|text| Duration::from_millis(text.parse().expect("milliseconds")));
        Self {
            listen: word("PEER_LISTEN").map(|text| text.parse().expect("an address with a port")),
            locals: locals.map(|text| text.parse().expect("an address")).collect(),
            paths: word("PEER_PATHS").map(|text| text.parse().expect("a number of paths")),
            limit: ms("PEER_LIMIT_MS"),
            path_idle: ms("PEER_PATH_IDLE_MS"),
        }
    }

    /// Where a server's socket is bound.
    pub fn server_address(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| ([127, 0, 0, 1], 0).into())
    }

    /// Where a client's socket is bound: to its only address, else to none in particular.
    pub fn client_address(&self) -> SocketAddr {
        match self.locals[..] {
            [] => ([127, 0, 0, 1], 0).into(),
            [only] => (only, 0).into(),
            [IpAddr::V4(_), ..] => ([0, 0, 0, 0], 0).into(),
            [IpAddr::V6(_), ..] => SocketAddr::new(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), 0),
        }
    }

    /// Local addresses of further paths.
    pub fn further(&self) -> &[IpAddr] {
        self.locals.get(1..).unwrap_or_default()
    }
}

/// CLOCK_MONOTONIC, seconds.
fn clock_s() -> f64 {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock")).as_secs_f64()
}

/// Does the transfer, says what came of it, and ends.
pub(crate) async fn run<P: Peer>(peer: &P, transfer: Transfer) -> ! {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{}", info.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
    }));
    let started_s = clock_s();
    let connection = connect(peer).await;
    let handshake_ms = (clock_s() - started_s) * 1e3;
    peer.open_paths(&connection);
    let mut told = match transfer {
        Transfer::Download { bytes } => json!({ "bytes": ask::<P>(&connection, 8, bytes).await }),
        Transfer::Upload { bytes } => {
            ask::<P>(&connection, bytes, 0).await;
            json!({ "bytes": bytes })
        }
        Transfer::Requests { count, request_bytes, response_bytes, every_ms } => {
            let every = Duration::from_millis(every_ms);
            requests::<P>(&connection, count, every, (request_bytes, response_bytes)).await
        }
    };
    let finished_s = clock_s();
    told["clock"] = json!({ "started_s": started_s, "finished_s": finished_s });
    told["handshake_ms"] = json!(handshake_ms);
    told["ok"] = json!(true);
    say(&told.to_string());
    std::process::exit(0)
}

/// A request of so many bytes, head included, for an answer of so many; gives how many came.
async fn ask<P: Peer>(connection: &P::Connection, bytes: u64, answer: u64) -> u64 {
    let mut stream = P::open(connection).await;
    P::write(&mut stream, Bytes::copy_from_slice(&answer.to_be_bytes())).await;
    let (piece, mut left) = (Bytes::from(vec![7; crate::CHUNK_BYTES]), bytes.saturating_sub(8));
    while left > 0 {
        let next = piece.slice(..left.min(piece.len() as u64) as usize);
        left -= next.len() as u64;
        P::write(&mut stream, next).await;
    }
    P::finish(stream).await
}

async fn requests<P: Peer>(
    connection: &P::Connection,
    count: u64,
    every: Duration,
    (request_bytes, response_bytes): (u64, u64),
) -> Value {
    let mut due = interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut tasks = JoinSet::new();
    let answers: Arc<Mutex<Vec<(u64, Duration, u64)>>> = Arc::default();
    let begun = due.tick().await;
    let (mut at, mut asked) = (begun, Vec::new());
    let asking = async {
        for index in 0..count {
            if index > 0 {
                at = due.tick().await;
            }
            asked.push(at.duration_since(begun));
            let connection = connection.clone();
            let answers = Arc::clone(&answers);
            tasks.spawn(async move {
                let got = ask::<P>(&connection, request_bytes, response_bytes).await;
                answers.lock().expect("no panic").push((index, at.elapsed(), got));
            });
        }
        // One that failed has no answer, and has said why.
        while tasks.join_next().await.is_some() {}
    };
    let limit = Setting::from_environment().limit.unwrap_or(Duration::MAX);
    // What came by then is told.
    let _ = timeout(limit, asking).await;
    let answers = answers.lock().expect("no panic");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let exchange = |(index, at): (usize, &Duration)| {
        let answer = answers.iter().find(|(of, ..)| *of == index as u64);
        json!({ "at_ms": ms(*at), "delay_ms": answer.map(|(_, delay, _)| ms(*delay)) })
    };
    let bytes: u64 = answers.iter().map(|(.., got)| got).sum();
    json!({ "bytes": bytes, "exchanges": asked.iter().enumerate().map(exchange).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn settings_are_read_from_the_environment() {
        let of = |words: &'static [(&str, &str)]| {
            let find = |name: &str| words.iter().find(|(known, _)| *known == name).map(|(_, word)| (*word).to_owned());
            Setting::from_words(find)
        };
        let none = of(&[]);
        assert_eq!(none, Setting::default());
        assert_eq!(
            (none.server_address(), none.client_address()),
            (([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 0).into())
        );
        let two = of(&[("PEER_LOCALS", "10.0.2.2,10.0.1.2"), ("PEER_LISTEN", "10.9.0.1:4433"), ("PEER_PATHS", "8")]);
        assert_eq!((two.client_address(), two.further().len(), two.paths), (([0, 0, 0, 0], 0).into(), 1, Some(8)));
        assert_eq!(two.server_address(), ([10, 9, 0, 1], 4433).into());
        assert_eq!(of(&[("PEER_LOCALS", "10.0.2.2")]).client_address(), ([10, 0, 2, 2], 0).into());
    }
}
