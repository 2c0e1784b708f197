//! Connections one after the other: how long a handshake takes, and how many there are a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::delays::SharedDelays;
use super::load::ConnectionLoad;
use super::requests::Turns;
use super::tcp::TcpDialer;
use crate::clock::Clock;
use crate::connect::{Caller, handshake_failure};
use crate::error::CliError;
use crate::options::ConnectPlan;

/// Makes one connection after the other.
#[derive(Clone)]
pub(crate) enum Knocker {
    Quic(Caller, Box<ConnectPlan>),
    Tcp(TcpDialer),
}

/// How long a connection may take that began within the time of the load and is not there at its end.
const LAST_TIME: Duration = Duration::from_secs(3);

/// Connects, as often at once as the load says; each connection ends when its handshake is complete, and `delays` are told of it.
pub(crate) async fn run(knocker: &Knocker, load: &ConnectionLoad, delays: &SharedDelays) -> Result<(), CliError> {
    let turns = Arc::new(Turns::new(load.extent));
    let mut lanes = JoinSet::new();
    for _ in 0..load.lanes {
        let (knocker, turns, delays) = (knocker.clone(), Arc::clone(&turns), delays.clone());
        lanes.spawn(async move {
            while turns.take() {
                let last = turns.until().map(|until| until.saturating_duration_since(Instant::now()) + LAST_TIME);
                let took = match &knocker {
                    Knocker::Quic(caller, plan) => one(caller, plan, last).await?,
                    Knocker::Tcp(dialer) => dialer.connect_within(last).await?.1,
                };
                delays.add(took);
            }
            Ok::<_, CliError>(())
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.map_err(|error| CliError::Running(error.to_string()))??;
    }
    Ok(())
}

async fn one(caller: &Caller, plan: &ConnectPlan, last: Option<Duration>) -> Result<Duration, CliError> {
    let clock = Clock::start();
    let connecting = caller.begin()?;
    let remote = connecting.remote_address();
    let failed = |error| handshake_failure(&plan.host, plan.tls.service, remote, &error);
    let made = tokio::time::timeout(last.map_or(plan.timeout, |last| last.min(plan.timeout)), connecting).await;
    let connection = made.unwrap_or(Err(plait::ConnectionError::TimedOut)).map_err(failed)?;
    let took = clock.elapsed();
    connection.close(0, b"done");
    Ok(took)
}
