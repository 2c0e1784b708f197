//! Requests and responses, each on a stream of its own: how long one takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::HEAD_BYTES;
use super::dialer::Dialer;
use super::head::Head;
use super::load::{Extent, RequestLoad};
use super::load_meters::LoadMeters;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use crate::clock::Clock;

/// Which requests are still to be made.
#[derive(Debug)]
pub(crate) struct Turns {
    until: Option<Instant>,
    left: AtomicU64,
}

impl Turns {
    /// As many as the extent allows.
    pub(crate) fn new(extent: Extent) -> Self {
        match extent {
            Extent::Time(time) => Self { until: Some(Instant::now() + time), left: AtomicU64::new(u64::MAX) },
            Extent::Amount(count) => Self { until: None, left: AtomicU64::new(count) },
        }
    }

    /// When the last one may begin; none where their number ends them.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether there is one more.
    pub(crate) fn take(&self) -> bool {
        let in_time = self.until.is_none_or(|until| Instant::now() < until);
        in_time && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// Makes the requests, as many at once as the load says; `meters` count what goes each way, and how long each takes.
pub(crate) async fn run(dialer: &Dialer, load: &RequestLoad, meters: &LoadMeters) -> Result<(), PipeError> {
    let turns = Arc::new(Turns::new(load.extent));
    let padding = load.padding();
    let mut lanes = JoinSet::new();
    for _ in 0..load.lanes {
        let (dialer, meters, load, padding) = (dialer.clone(), meters.clone(), *load, padding.clone());
        let turns = Arc::clone(&turns);
        lanes.spawn(async move {
            // Over TCP the connection of the last request carries the next.
            let mut kept = None;
            while turns.take() {
                let clock = Clock::start();
                let pair = match kept.take() {
                    Some(pair) => pair,
                    None => dialer.open().await?,
                };
                kept = one(pair, &load, padding.clone(), &meters).await?;
                meters.delays.add(clock.elapsed());
            }
            Ok::<_, PipeError>(())
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.map_err(|error| PipeError::Gone(error.to_string()))??;
    }
    Ok(())
}

/// One request with its response; gives back what carries another.
async fn one(
    (mut writer, mut reader): (PipeWriter, PipeReader),
    load: &RequestLoad,
    padding: Bytes,
    meters: &LoadMeters,
) -> Result<Option<(PipeWriter, PipeReader)>, PipeError> {
    writer.begin(Head::Bytes(load.response_bytes), Some(padding.len() as u64)).await?;
    meters.up.add(HEAD_BYTES as u64);
    writer.write_counted(padding, |bytes| meters.up.add(bytes)).await?;
    writer.end_one().await?;
    reader.take_answer(load.response_bytes, |bytes| meters.down.on_chunk(bytes)).await?;
    Ok(match writer {
        PipeWriter::Quic(_) => None,
        PipeWriter::Tls(_) => Some((writer, reader)),
    })
}
