//! Connections one after the other: how long a handshake takes, and how many there are a second.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::delays::Delays;
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

/// Connects, as often at once as the load says; each connection ends when its handshake is complete.
pub(crate) async fn run(knocker: &Knocker, load: &ConnectionLoad) -> Result<Delays, CliError> {
    let turns = Arc::new(Turns::new(load.extent));
    let delays = Arc::new(Mutex::new(Delays::default()));
    let mut lanes = JoinSet::new();
    for _ in 0..load.lanes {
        let (knocker, turns, delays) = (knocker.clone(), Arc::clone(&turns), Arc::clone(&delays));
        lanes.spawn(async move {
            while turns.take() {
                let took = match &knocker {
                    Knocker::Quic(caller, plan) => one(caller, plan).await?,
                    Knocker::Tcp(dialer) => dialer.connect().await?.1,
                };
                delays.lock().unwrap_or_else(PoisonError::into_inner).add(took);
            }
            Ok::<_, CliError>(())
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.map_err(|error| CliError::Running(error.to_string()))??;
    }
    let delays = delays.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(delays)
}

async fn one(caller: &Caller, plan: &ConnectPlan) -> Result<Duration, CliError> {
    let clock = Clock::start();
    let connecting = caller.begin()?;
    let remote = connecting.remote_address();
    let failed = |error| handshake_failure(&plan.host, plan.tls.service, remote, &error);
    let made = tokio::time::timeout(plan.timeout, connecting).await;
    let connection = made.unwrap_or(Err(plait::ConnectionError::TimedOut)).map_err(failed)?;
    let took = clock.elapsed();
    connection.close(0, b"done");
    Ok(took)
}
