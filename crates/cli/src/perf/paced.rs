//! Requests that begin at an interval, answered or not: how long each takes.

use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::HEAD_BYTES;
use super::dialer::Dialer;
use super::head::Head;
use super::load::RequestLoad;
use super::load_meters::LoadMeters;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use crate::clock::Clock;

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
