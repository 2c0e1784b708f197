//! HTTP/0.9 over QUIC streams (ALPN `hq-interop`): one request line a stream, the bare body back.

pub(crate) mod budget;
pub(crate) mod client;
pub(crate) mod file;
pub(crate) mod policies;
pub(crate) mod request;
pub(crate) mod root;
pub(crate) mod server;
pub(crate) mod sink;

use plait::{SendStream, WriteError};

use crate::service::{Receiver, Service};

/// Files and synthetic bodies.
pub(crate) const FILES: Service =
    Service { protocols: &["hq-interop"], server: "plait serve", receiver: Receiver::Reads };

/// Longest request line, bytes.
pub(crate) const MAX_REQUEST_BYTES: usize = 8192;

/// Why a server resets a stream; the codes read like those of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request is not one.
    BadRequest,
    /// It may not be asked for, or not again.
    Forbidden,
    /// There is no such file, or none that may be seen.
    NotFound,
    /// The client took nothing of what it asked for, for too long; the connection ends with this.
    Stalled,
    /// The file could not be read.
    Broken,
}

impl Refusal {
    /// The application error code on the wire.
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Stalled => 408,
            Self::Broken => 500,
        }
    }

    /// The refusal of that code.
    pub(crate) fn from_code(code: u64) -> Option<Self> {
        [Self::BadRequest, Self::Forbidden, Self::NotFound, Self::Stalled, Self::Broken]
            .into_iter()
            .find(|refusal| refusal.code() == code)
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
        // Closed: the reset that answers the stop was acked before the end of the request was to be sent.
        Err(WriteError::Stopped(_) | WriteError::ClosedStream) => Ok(()),
        sent => sent,
    }
}
