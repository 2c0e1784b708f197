//! The client's side: one request on one stream, its body to a sink.

use plait::{Connection, Order, ReadError, SendStream, WriteError};

use super::Refusal;
use super::meter::Meter;
use super::sink::{Digested, Sink};
use crate::error::CliError;

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

/// Asks for `target`. A server that answers before it has seen the end of the request may stop the stream: the answer
/// comes all the same, or a reset that tells more (RFC 9114 4.1 says so for HTTP/3).
pub(crate) async fn send_request(send: &mut SendStream, target: &str) -> Result<(), WriteError> {
    let request = format!("GET {target}\r\n");
    let sent = match send.write_all(request.as_bytes()).await {
        Ok(()) => send.finish(),
        Err(error) => Err(error),
    };
    match sent {
        Err(WriteError::Stopped(_)) => Ok(()),
        sent => sent,
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
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use plait::{Endpoint, EndpointConfig};

    use super::*;
    use crate::options::{Suites, Trust};
    use crate::tls::Shown;
    use crate::{identity, transport};

    #[tokio::test]
    async fn answers_to_requests_that_were_stopped_are_read() {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let shown = Shown::self_signed(&identity::fresh().unwrap(), &[], []).unwrap();
        let server = Endpoint::server(transport::server_config(shown, Suites::All).unwrap(), any_port).unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let (mut send, mut recv) = connection.accept_bi().await.unwrap();
            recv.stop(0).unwrap();
            send.write_all(b"hello").await.unwrap();
            send.finish().unwrap();
            connection.closed().await;
        });
        let client = Endpoint::new(EndpointConfig::fresh().unwrap(), None, [any_port]).unwrap();
        client.set_default_client_config(transport::client_config(&Trust::Anybody, Suites::All).unwrap());
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        // The server hears of the stream by its first byte.
        send.write_all(b"G").await.unwrap();
        assert_eq!(send.stopped().await.unwrap(), Some(0));
        send_request(&mut send, "/hello").await.unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"hello");
    }
}
