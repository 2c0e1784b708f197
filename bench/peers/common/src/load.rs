//! What the clients do, whoever they are.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use crate::Measured;
use crate::lab::{self, Transfer};
use crate::peer::{Peer, connect};

/// How often a paced sender writes.
const TICK: Duration = Duration::from_millis(10);

/// What a client does with its server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// `bytes BYTES STREAMS`: fetches so many bytes in all on so many streams of one connection.
    Bytes { bytes: u64, streams: u64 },
    /// `requests COUNT BYTES LANES`: sends so many requests of so many bytes, each for an answer of as many and on a stream of
    /// its own, so many at once on one connection.
    Requests { count: u64, bytes: usize, lanes: u64 },
    /// `connections COUNT MBPS SECONDS`: on each of so many connections writes to a stream at so many Mbit/s, every 10 ms.
    Connections { count: u64, mbps: u64, seconds: u64 },
    /// `handshakes COUNT LANES`: makes so many connections, so many at once, and drops each as soon as it stands.
    Handshakes { count: u64, lanes: u64 },
    /// `idle COUNT`: holds so many connections.
    Idle { count: u64 },
    /// A transfer of `plait lab`.
    Lab(Transfer),
}

impl Load {
    /// As a command line says; none where it says something else.
    pub fn from_words(words: &[&str]) -> Option<Self> {
        let (kind, numbers) = words.split_first()?;
        let numbers: Vec<u64> =
            numbers.iter().map(|word| word.parse().ok().filter(|n| *n > 0)).collect::<Option<_>>()?;
        Some(match (*kind, &numbers[..]) {
            ("bytes", &[bytes, streams]) => Self::Bytes { bytes, streams },
            ("requests", &[count, bytes, lanes]) => {
                Self::Requests { count, bytes: usize::try_from(bytes).ok()?, lanes }
            }
            ("connections", &[count, mbps, seconds]) => Self::Connections { count, mbps, seconds },
            ("handshakes", &[count, lanes]) => Self::Handshakes { count, lanes },
            ("idle", &[count]) => Self::Idle { count },
            ("lab-download", &[bytes]) => Self::Lab(Transfer::Download { bytes }),
            ("lab-upload", &[bytes]) => Self::Lab(Transfer::Upload { bytes }),
            ("lab-requests", &[count, request_bytes, response_bytes, every_ms]) => {
                Self::Lab(Transfer::Requests { count, request_bytes, response_bytes, every_ms })
            }
            _ => return None,
        })
    }
}

/// Does what is asked for, says what it took, and waits to be killed.
pub async fn run<P: Peer>(peer: P, load: Load) -> ! {
    match load {
        Load::Bytes { bytes, streams } => fetch(&peer, bytes, streams).await,
        Load::Requests { count, bytes, lanes } => request(&peer, count, bytes, lanes).await,
        Load::Connections { count, mbps, seconds } => send_paced(&peer, count, mbps, seconds).await,
        Load::Handshakes { count, lanes } => shake_hands(&peer, count, lanes).await,
        Load::Idle { count } => hold(&peer, count).await,
        Load::Lab(transfer) => lab::run(&peer, transfer).await,
    }
}

async fn connect_to_many<P: Peer>(peer: &P, count: u64) -> Vec<P::Connection> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(connect(peer).await);
    }
    connections
}

/// What each of `count` gets of a sum: the first ones take what cannot be shared out evenly.
fn shares(sum: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |at| sum / count + u64::from(at < sum % count))
}

/// Sends a question of `bytes` bytes for `answer` bytes.
async fn ask<P: Peer>(connection: &P::Connection, bytes: usize, answer: u64) {
    let mut question = answer.to_be_bytes().to_vec();
    question.resize(bytes.max(8), 0);
    let mut stream = P::open(connection).await;
    P::write(&mut stream, question.into()).await;
    assert_eq!(P::finish(stream).await, answer, "bytes of an answer");
}

async fn all<T: 'static>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("no panic"));
    }
    results
}

async fn fetch<P: Peer>(peer: &P, bytes: u64, streams: u64) -> ! {
    let connection = connect(peer).await;
    let measured = Measured::start();
    let streams: Vec<_> = shares(bytes, streams)
        .map(|bytes| {
            let connection = connection.clone();
            tokio::spawn(async move { ask::<P>(&connection, 8, bytes).await })
        })
        .collect();
    all(streams).await;
    measured.finish(Vec::new())
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
async fn request<P: Peer>(peer: &P, count: u64, bytes: usize, lanes: u64) -> ! {
    let connection = connect(peer).await;
    // The first ones meet buffers and code that nobody used before.
    for _ in 0..100 {
        ask::<P>(&connection, bytes, bytes as u64).await;
    }
    let measured = Measured::start();
    let lanes: Vec<_> = shares(count, lanes)
        .map(|count| {
            let connection = connection.clone();
            tokio::spawn(async move {
                let mut delays = Vec::new();
                for _ in 0..count {
                    let began = Instant::now();
                    ask::<P>(&connection, bytes, bytes as u64).await;
                    delays.push(began.elapsed());
                }
                delays
            })
        })
        .collect();
    let delays = all(lanes).await;
    measured.finish(delays.into_iter().flatten().collect())
}

async fn send_paced<P: Peer>(peer: &P, count: u64, mbps: u64, seconds: u64) -> ! {
    let connections = connect_to_many(peer, count).await;
    let ticks = seconds * 1_000 / TICK.as_millis() as u64;
    let piece = Bytes::from(vec![7; (mbps * 125_000 / 100) as usize]);
    let measured = Measured::start();
    let streams = connections.into_iter().enumerate().map(|(at, connection)| {
        let piece = piece.clone();
        tokio::spawn(async move {
            // They do not all write at the same moment.
            tokio::time::sleep(TICK * at as u32 / count as u32).await;
            let mut clock = interval(TICK);
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut stream = P::open(&connection).await;
            P::write(&mut stream, Bytes::from_static(&[0; 8])).await;
            for _ in 0..ticks {
                clock.tick().await;
                P::write(&mut stream, piece.clone()).await;
            }
            assert_eq!(P::finish(stream).await, 0, "bytes of an answer");
        })
    });
    all(streams.collect::<Vec<_>>()).await;
    measured.finish(Vec::new())
}

async fn shake_hands<P: Peer>(peer: &P, count: u64, lanes: u64) -> ! {
    drop(connect(peer).await);
    let measured = Measured::start();
    let mut tasks = JoinSet::new();
    for count in shares(count, lanes) {
        let peer = peer.clone();
        tasks.spawn(async move {
            for _ in 0..count {
                drop(connect(&peer).await);
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("no panic");
    }
    measured.finish(Vec::new())
}

/// Says `ready` when one connection stands, and the times when all do.
async fn hold<P: Peer>(peer: &P, count: u64) -> ! {
    let _one = connect(peer).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let measured = Measured::start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let _connections = connect_to_many(peer, count).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    measured.finish(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::{Load, Transfer, shares};

    #[test]
    fn loads_are_read_from_words() {
        let rows: [(&str, Option<Load>); 10] = [
            ("lab-upload 7", Some(Load::Lab(Transfer::Upload { bytes: 7 }))),
            (
                "lab-requests 3 750 900 400",
                Some(Load::Lab(Transfer::Requests {
                    count: 3,
                    request_bytes: 750,
                    response_bytes: 900,
                    every_ms: 400,
                })),
            ),
            ("bytes 10 2", Some(Load::Bytes { bytes: 10, streams: 2 })),
            ("requests 9 750 3", Some(Load::Requests { count: 9, bytes: 750, lanes: 3 })),
            ("connections 100 10 5", Some(Load::Connections { count: 100, mbps: 10, seconds: 5 })),
            ("handshakes 5 1", Some(Load::Handshakes { count: 5, lanes: 1 })),
            ("idle 1000", Some(Load::Idle { count: 1_000 })),
            ("idle", None),
            ("idle 0", None),
            ("bytes ten 2", None),
        ];
        for (text, expected) in rows {
            assert_eq!(Load::from_words(&text.split(' ').collect::<Vec<_>>()), expected, "{text}");
        }
    }

    #[test]
    fn shares_add_up() {
        assert_eq!(shares(10, 4).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(shares(2, 3).sum::<u64>(), 2);
    }
}
