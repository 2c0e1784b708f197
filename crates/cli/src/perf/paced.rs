//! Requests that begin at an interval, answered or not: how long each takes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::HEAD_BYTES;
use super::delays::Delays;
use super::dialer::Dialer;
use super::head::Head;
use super::load::RequestLoad;
use super::load_meters::LoadMeters;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use crate::clock::Clock;
use crate::units::rounded;

/// A request, and its answer if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Exchange {
    /// When it was due, since the first one.
    pub(crate) at_ms: f64,
    /// From then until its answer was read to the end; none without an answer.
    pub(crate) delay_ms: Option<f64>,
}

/// Every request that was due, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

impl Exchanges {
    /// What there is by now.
    pub(crate) fn list(&self) -> Vec<Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long those took that were answered.
    pub(crate) fn delays(&self) -> Delays {
        let mut delays = Delays::default();
        for ms in self.list().iter().filter_map(|exchange| exchange.delay_ms) {
            delays.add(Duration::from_secs_f64(ms.max(0.0) / 1e3));
        }
        delays
    }

    /// How many were answered.
    pub(crate) fn answered(&self) -> u64 {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().filter(|exchange| exchange.delay_ms.is_some()).count() as u64
    }

    fn ask(&self, at: Duration) {
        let exchange = Exchange { at_ms: ms(at), delay_ms: None };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    fn answer(&self, index: usize, now: Duration) {
        if let Some(exchange) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
            exchange.delay_ms = Some(rounded(ms(now) - exchange.at_ms, 3));
        }
    }
}

fn ms(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 3)
}

/// What a request is made of.
#[derive(Clone, Debug)]
struct Request {
    padding: Bytes,
    answer_bytes: u64,
}

impl Request {
    async fn write(&self, writer: &mut PipeWriter, meters: &LoadMeters) -> Result<(), PipeError> {
        writer.begin(Head::Bytes(self.answer_bytes), Some(self.padding.len() as u64)).await?;
        meters.up.add(HEAD_BYTES as u64);
        writer.write_counted(self.padding.clone(), |bytes| meters.up.add(bytes)).await?;
        writer.end_one().await
    }
}

/// Makes `count` requests, one each `every`; `meters` count what goes each way, and are told of each.
pub(crate) async fn run(
    dialer: &Dialer,
    load: &RequestLoad,
    (count, every): (u64, Duration),
    meters: &LoadMeters,
) -> Result<(), PipeError> {
    let exchanges = &meters.exchanges;
    let request = Request { padding: load.padding(), answer_bytes: load.response_bytes };
    let clock = Clock::start();
    let mut due = interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let first = due.tick().await;
    let since_first = |at: Instant| at.saturating_duration_since(first);
    match dialer.open().await? {
        // One connection carries all, and answers come in the order of the requests.
        (mut writer @ PipeWriter::Tls(_), mut reader) => {
            let asking = async {
                let mut at = first;
                for index in 0..count {
                    if index > 0 {
                        at = due.tick().await;
                    }
                    exchanges.ask(since_first(at));
                    request.write(&mut writer, meters).await?;
                }
                Ok(())
            };
            let answers = async {
                for index in 0..count {
                    reader.take_answer(request.answer_bytes, |bytes| meters.down.on_chunk(bytes)).await?;
                    exchanges.answer(index as usize, clock.elapsed());
                }
                Ok(())
            };
            tokio::try_join!(asking, answers).map(|_| ())
        }
        pair => {
            let (mut asked, mut pair, mut at) = (JoinSet::new(), Some(pair), first);
            for index in 0..count {
                if index > 0 {
                    at = due.tick().await;
                }
                exchanges.ask(since_first(at));
                let pair = match pair.take() {
                    Some(pair) => pair,
                    None => dialer.open().await?,
                };
                let (request, meters) = (request.clone(), meters.clone());
                asked.spawn(async move {
                    one(pair, &request, &meters).await?;
                    meters.exchanges.answer(index as usize, clock.elapsed());
                    Ok::<_, PipeError>(())
                });
            }
            while let Some(done) = asked.join_next().await {
                done.map_err(|error| PipeError::Gone(error.to_string()))??;
            }
            Ok(())
        }
    }
}

async fn one(
    (mut writer, mut reader): (PipeWriter, PipeReader),
    request: &Request,
    meters: &LoadMeters,
) -> Result<(), PipeError> {
    request.write(&mut writer, meters).await?;
    reader.take_answer(request.answer_bytes, |bytes| meters.down.on_chunk(bytes)).await
}
