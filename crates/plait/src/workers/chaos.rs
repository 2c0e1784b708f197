//! Paths that come and go, threads that stand still or fall, at both ends at once, while bytes move both ways and are checked.
//!
//! Ten minutes of it: `PLAIT_CHAOS_SECONDS=600 cargo test --release -p plait --lib workers::chaos -- --nocapture`; `PLAIT_SEED`
//! draws other trouble. Three seconds otherwise.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::Random;
use tokio::time::Instant;

use super::tests::{Ends, connected_by};
use crate::{Connection, Endpoint, FourTuple, Path};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Bytes of one transfer.
const BYTES: usize = 3_000_000;
/// Sockets of the client: paths between them and the server's one share two threads at each end.
const SOCKETS: usize = 3;
const THREADS: usize = 2;
/// However bad it gets, a transfer ends within this: the watchdog.
const PATIENCE: Duration = Duration::from_secs(20);
/// A thread stands still no longer than this; longer than it takes to be given up.
const FREEZE_MAX_MS: u64 = 500;
/// After a freeze no thread falls for so long: the frozen one's paths may be given up late, and the fallen one's was the last then.
const FREEZE_TOLL: Duration = Duration::from_millis(FREEZE_MAX_MS + 1_000);
/// Between two blows.
const CALM_MAX_MS: u64 = 100;

/// What was done.
#[derive(Debug, Default)]
struct Blows {
    opened: u64,
    closed: u64,
    frozen: u64,
    fallen: u64,
}

/// A number that a variable of the environment says.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Sends bytes of a pattern of their own again and again until the time is over; how often.
async fn transfers(from: &Connection, to: &Connection, salt: u8, until: Instant) -> Outcome<u64> {
    let mut count = 0;
    while Instant::now() < until {
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8 ^ salt ^ count as u8).collect();
        let send = async {
            let mut send = from.open_uni().await?;
            send.write_all(&bytes).await?;
            send.finish()?;
            send.stopped().await?;
            Outcome::Ok(())
        };
        let receive = async {
            let got = to.accept_uni().await?.read_to_end(BYTES).await?;
            assert!(got == bytes, "wrong bytes");
            Outcome::Ok(())
        };
        let both = async { tokio::try_join!(send, receive) };
        tokio::time::timeout(PATIENCE, both)
            .await
            .map_err(|_| format!("transfer {count} of {salt} does not end"))??;
        count += 1;
    }
    Ok(count)
}

impl Ends {
    /// The client's paths that carry data now, as both ends see it: one may have given up what the other still counts on.
    fn working(&self) -> Vec<Path> {
        let is_measured = |path: &Path| path.stats().is_some_and(|stats| stats.rtt.is_some());
        let is_there = |path: &Path| self.server.path(path.id()).is_some_and(|there| is_measured(&there));
        self.client.paths().into_iter().filter(|path| is_measured(path) && is_there(path)).collect()
    }

    /// Opens a path from a socket that has none.
    async fn open_one(&self, locals: &[SocketAddr]) -> bool {
        let used: Vec<SocketAddr> =
            self.client.paths().iter().filter_map(|path| Some(path.stats()?.tuple.local)).collect();
        let Some(local) = locals.iter().find(|local| !used.contains(local)) else { return false };
        let tuple = FourTuple { local: *local, remote: self.client.remote_address() };
        tokio::time::timeout(Duration::from_secs(2), self.client.open_path(tuple))
            .await
            .is_ok_and(|opened| opened.is_ok())
    }

    /// Strikes until the time is over; at least one path is always left alone.
    async fn strike(&self, random: &mut Random, until: Instant) -> Blows {
        let mut blows = Blows::default();
        let locals = self.client_endpoint.local_addrs();
        let endpoints: [&Endpoint; 2] = [&self.client_endpoint, &self.server_endpoint];
        let mut thawed_at = Instant::now();
        // On a machine that is slow, once at least.
        while Instant::now() < until || blows.opened == 0 {
            tokio::time::sleep(Duration::from_millis(random.below(CALM_MAX_MS))).await;
            let shared = endpoints[random.below(2) as usize].shared();
            let (pool, thread) = (shared.workers().unwrap(), random.below(THREADS as u64) as usize);
            let working = self.working();
            match random.below(4) {
                0 if working.len() >= 2 => {
                    let which = random.below(working.len() as u64) as usize;
                    blows.closed += u64::from(working[which].close().is_ok());
                }
                1 if working.len() == SOCKETS && Instant::now() >= thawed_at => {
                    pool.fault(thread).unwrap().panic_once();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    blows.fallen += u64::from(!pool.fault(thread).unwrap().spare());
                    // The path is given up when its end is heard of, at the latest when its thread was waited for.
                    let wait = Instant::now() + Duration::from_secs(2);
                    while self.working().len() == SOCKETS && Instant::now() < wait {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                2 if working.len() >= 2 => {
                    pool.freeze(thread, Duration::from_millis(random.below(FREEZE_MAX_MS)));
                    blows.frozen += 1;
                    thawed_at = Instant::now() + FREEZE_TOLL;
                }
                _ => blows.opened += u64::from(self.open_one(&locals).await),
            }
        }
        blows
    }
}

#[test]
fn whatever_paths_and_threads_do_the_bytes_are_right_and_never_stop() {
    let seconds = number("PLAIT_CHAOS_SECONDS").unwrap_or(3);
    let mut random = Random::from_u64(number("PLAIT_SEED").unwrap_or(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ends = connected_by("manual", SOCKETS).await;
        let until = Instant::now() + Duration::from_secs(seconds);
        let work = async {
            tokio::try_join!(
                transfers(&ends.client, &ends.server, 0, until),
                transfers(&ends.server, &ends.client, 128, until)
            )
        };
        let (done, blows) = tokio::join!(work, ends.strike(&mut random, until));
        let reasons = [ends.client.close_reason(), ends.server.close_reason()];
        let (up, down) = done.unwrap_or_else(|error| panic!("{error}: {reasons:?} after {blows:?}"));
        let loans: Vec<u64> = [&ends.client_endpoint, &ends.server_endpoint]
            .iter()
            .flat_map(|endpoint| endpoint.workers().into_iter().map(|worker| worker.loans))
            .collect();
        println!("{up} transfers up, {down} down in {seconds} s; {blows:?}; loans {loans:?}");
        assert!(reasons.iter().all(Option::is_none), "{reasons:?}");
        assert!(up > 0 && down > 0 && blows.opened > 0 && loans.iter().sum::<u64>() > 0);
    });
}
