//! The client's side: one request on one stream, its body to a sink.

use plait::{Connection, Order, ReadError};

use super::sink::{Digested, Sink};
use super::{Refusal, send_request};
use crate::error::CliError;
use crate::meter::Meter;

/// Largest piece read at once, bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// Fetches `target` into `sink`.
pub(crate) async fn fetch(
    connection: &Connection,
    target: &str,
    mut sink: Sink,
    meter: &Meter,
) -> Result<Digested, CliError> {
    let lost = |error: &dyn std::fmt::Display| CliError::running(format!("{target}: {error}"), "try again");
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| lost(&error))?;
    send_request(&mut send, target).await.map_err(|error| lost(&error))?;
    loop {
        match recv.read_chunk(PIECE_BYTES, Order::Ordered).await {
            Ok(Some(chunk)) => {
                meter.on_chunk(chunk.bytes.len());
                sink.push(chunk.bytes).await?;
            }
            Ok(None) => return sink.finish().await,
            Err(ReadError::Reset(code)) => return Err(refused(target, code)),
            Err(error) => return Err(lost(&error)),
        }
    }
}

fn refused(target: &str, code: u64) -> CliError {
    match Refusal::from_code(code) {
        Some(Refusal::NotFound) => {
            CliError::running(format!("the server has no {target}"), "check the path, and --root of the server")
        }
        Some(Refusal::Forbidden) => CliError::running(
            format!("the server refuses {target}"),
            "policies may be asked for once a connection, and not of a server with --fixed-policies",
        ),
        Some(Refusal::BadRequest) => {
            CliError::running(format!("the server does not understand {target}"), "ask for a file or /bytes/100M")
        }
        Some(Refusal::Stalled) => {
            CliError::running(format!("the server waited too long for us to take {target}"), "see its --patience")
        }
        Some(Refusal::Broken) => {
            CliError::running(format!("the server could not read {target} to its end"), "look at the server's log")
        }
        None => {
            CliError::running(format!("the server broke off {target} with code {code}"), "look at the server's log")
        }
    }
}

#[cfg(test)]
mod tests;
