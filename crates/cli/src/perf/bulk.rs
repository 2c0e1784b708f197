//! Bytes without pause, one way or both.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::code;
use super::dialer::Dialer;
use super::head::Head;
use super::load::{BulkLoad, Extent};
use super::load_meters::LoadMeters;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::units::MAX_BYTES;

/// How long a server that sends over TCP may be silent when a load of a time ends.
const LAST_SIGN_TIME: Duration = Duration::from_secs(4);

/// When a stream is to end.
#[derive(Clone, Copy, Debug)]
enum StreamEnd {
    At(Instant),
    After(u64),
}

/// The end of stream `at` of so many that share `extent`.
fn end(extent: Extent, at: u64, streams: u64) -> StreamEnd {
    match extent {
        Extent::Time(time) => StreamEnd::At(Instant::now() + time),
        // The first ones take what cannot be shared out evenly.
        Extent::Amount(bytes) => StreamEnd::After(bytes / streams + u64::from(at < bytes % streams)),
    }
}

/// Runs the load to its end.
pub(crate) async fn run(dialer: &Dialer, load: &BulkLoad, meters: &LoadMeters) -> Result<(), PipeError> {
    let (mut ups, mut downs) = (JoinSet::new(), JoinSet::new());
    for at in 0..load.up {
        let (dialer, meter) = (dialer.clone(), Arc::clone(&meters.up));
        let (pattern, end) = (Pattern::new(), end(load.extent, at, load.up));
        ups.spawn(async move {
            let (writer, reader) = dialer.open().await?;
            upload(writer, reader, &pattern, end, &meter).await
        });
    }
    for at in 0..load.down {
        let (dialer, meter, end) = (dialer.clone(), Arc::clone(&meters.down), end(load.extent, at, load.down));
        downs.spawn(async move {
            let (writer, reader) = dialer.open().await?;
            download(writer, reader, &meter, end).await
        });
    }
    let up = async {
        let done = all(&mut ups).await;
        meters.up.stop();
        done
    };
    let down = async {
        let done = all(&mut downs).await;
        meters.down.stop();
        done
    };
    tokio::try_join!(up, down).map(|_| ())
}

/// Waits for every stream; the first failure ends the others.
async fn all(streams: &mut JoinSet<Result<(), PipeError>>) -> Result<(), PipeError> {
    while let Some(done) = streams.join_next().await {
        done.map_err(|error| PipeError::Gone(error.to_string()))??;
    }
    Ok(())
}

/// Sends until the end. One of a number of bytes waits until the server has read them. One of a time stops at once over
/// QUIC, where what was not acknowledged by then does not count; TCP does not tell, so that it waits there as well.
async fn upload(
    mut writer: PipeWriter,
    mut reader: PipeReader,
    pattern: &Pattern,
    end: StreamEnd,
    meter: &Meter,
) -> Result<(), PipeError> {
    writer.begin(Head::Bytes(0), None).await?;
    let (mut offset, len) = (0, if let StreamEnd::After(bytes) = end { bytes } else { MAX_BYTES });
    let mut over = pin!(until(end));
    let mut piece = Bytes::new();
    while offset < len {
        if piece.is_empty() {
            piece = pattern.piece(offset, len);
        }
        tokio::select! {
            biased;
            () = &mut over => match writer {
                PipeWriter::Quic(_) => {
                    writer.reset(code::ENOUGH);
                    reader.stop(code::ENOUGH);
                    return Ok(());
                }
                PipeWriter::Tls(_) => break,
            },
            written = writer.write(&mut piece) => {
                let written = written? as u64;
                offset += written;
                if let PipeWriter::Tls(_) = writer {
                    meter.add(written);
                }
            }
        }
    }
    writer.finish().await?;
    reader.take(None, |_| {}).await
}

/// Receives until the end.
async fn download(
    mut writer: PipeWriter,
    mut reader: PipeReader,
    meter: &Meter,
    end: StreamEnd,
) -> Result<(), PipeError> {
    let len = if let StreamEnd::After(bytes) = end { bytes } else { MAX_BYTES };
    // A connection of TCP stays open our way: Linux lets no subflow of MPTCP join one that is half closed.
    match &mut writer {
        PipeWriter::Quic(_) => {
            writer.begin(Head::Bytes(len), None).await?;
            writer.finish().await?;
        }
        PipeWriter::Tls(_) => {
            writer.begin(Head::Bytes(len), Some(0)).await?;
            writer.end_one().await?;
        }
    }
    let (mut bytes, mut over) = (0, pin!(until(end)));
    loop {
        if bytes == len && matches!(writer, PipeWriter::Tls(_)) {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = &mut over => {
                meter.stop();
                return end_download(&mut reader).await;
            }
            received = reader.receive_any() => match received? {
                Some(received) => {
                    bytes += received as u64;
                    meter.on_chunk(received);
                }
                None if bytes == len => return Ok(()),
                None => return Err(PipeError::Gone(format!("the server sent {bytes} bytes, not {len}"))),
            },
        }
    }
}

/// Wants no more. Over TCP whatever still comes shows that the server is there; QUIC tells that by its acknowledgements.
async fn end_download(reader: &mut PipeReader) -> Result<(), PipeError> {
    match reader {
        PipeReader::Quic(_) => reader.stop(code::ENOUGH),
        PipeReader::Tls(..) => {
            let more = tokio::time::timeout(LAST_SIGN_TIME, reader.receive_any()).await;
            more.map_err(|_| PipeError::Silent)??;
        }
    }
    Ok(())
}

async fn until(end: StreamEnd) {
    match end {
        StreamEnd::At(at) => sleep_until(at).await,
        StreamEnd::After(_) => std::future::pending().await,
    }
}
