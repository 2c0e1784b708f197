//! Why connections end, as the application hears it and as CONNECTION_CLOSE says it.

use bytes::Bytes;
use plait_base::limits::MAX_REASON_BYTES;
use plait_base::observe::{CloseTrigger, TraceEvent};
use plait_base::{CloseCode, Space, TransportError};
use plait_wire::FrameWriter;
use plait_wire::frame::Close;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// The peer speaks no version that we speak.
    #[error("the peer supports none of our QUIC versions")]
    VersionMismatch,
    /// A rule was broken, by the peer or in the handshake; we closed the connection.
    #[error("we closed the connection: {0}")]
    TransportError(#[from] TransportError),
    /// The peer's transport closed the connection.
    #[error("the peer's transport closed the connection: {0}")]
    ConnectionClosed(TransportError),
    /// The peer's application closed the connection.
    #[error("the peer's application closed the connection: {0}")]
    ApplicationClosed(ApplicationClose),
    /// A stateless reset: the peer lost the connection's state.
    #[error("the peer lost the connection's state and reset it")]
    Reset,
    /// Nothing was heard for the idle timeout, or the handshake did not finish in time.
    #[error("timed out: nothing heard from the peer")]
    TimedOut,
    /// The network answered in the peer's place, before the peer did.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Our application closed the connection.
    #[error("closed by this application")]
    LocallyClosed,
}

/// What the network says of datagrams that it did not deliver (RFC 792, RFC 4443 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// The host is there, and nobody listens at the port.
    #[error("connection refused: nobody listens at the peer's port")]
    Port,
    /// No way leads to the host, or somebody on it forbids.
    #[error("the network has no way to the peer's address")]
    Host,
}

/// An application's close: its code and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationClose {
    /// The application's code, at most 2^62 - 1.
    pub code: u64,
    /// For people; may be any bytes.
    pub reason: Bytes,
}

impl std::fmt::Display for ApplicationClose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, ": {}", String::from_utf8_lossy(&self.reason))?;
        }
        Ok(())
    }
}

/// What our CONNECTION_CLOSE says.
#[derive(Clone, Debug)]
pub(crate) enum CloseFrame {
    /// The transport's close, type 0x1c.
    Transport(TransportError),
    /// The application's close, type 0x1d; becomes 0x1c with APPLICATION_ERROR before 1-RTT (RFC 9000 10.2.3).
    Application(ApplicationClose),
}

impl CloseFrame {
    /// Writes the frame into a packet of `space`, if it fits.
    pub(crate) fn write(&self, space: Space, w: &mut FrameWriter<'_>) -> bool {
        match self {
            Self::Application(close) if space == Space::Data => {
                w.write_close(Close::Application { code: close.code, reason: &close.reason })
            }
            // RFC 9000 10.2.3: an application's code and reason stay private before 1-RTT
            Self::Application(_) => {
                w.write_close(Close::Transport { code: CloseCode::APPLICATION_ERROR, frame_type: 0, reason: &[] })
            }
            Self::Transport(error) => {
                let reason = error.reason.as_bytes();
                let reason = &reason[..reason.len().min(MAX_REASON_BYTES)];
                w.write_close(Close::Transport { code: error.code, frame_type: error.frame.unwrap_or(0), reason })
            }
        }
    }

    /// The end by this frame of ours, for observers.
    pub(crate) fn traced(&self) -> TraceEvent {
        match self {
            Self::Transport(error) => closed_by_transport(Closer::Us, error),
            Self::Application(close) => closed_by_application(Closer::Us, close),
        }
    }
}

impl ConnectionError {
    /// The end for this reason, for observers. Of our own close [`CloseFrame::traced`] knows more.
    pub(crate) fn traced(&self) -> TraceEvent {
        let silently = |by, trigger| closed(by, trigger, None, self.to_string());
        match self {
            Self::ConnectionClosed(error) => closed_by_transport(Closer::Peer, error),
            Self::ApplicationClosed(close) => closed_by_application(Closer::Peer, close),
            Self::TransportError(error) => closed_by_transport(Closer::Us, error),
            Self::LocallyClosed => silently(Closer::Us, CloseTrigger::Application),
            Self::Reset => silently(Closer::Peer, CloseTrigger::StatelessReset),
            Self::TimedOut => silently(Closer::Us, CloseTrigger::IdleTimeout),
            Self::VersionMismatch => silently(Closer::Us, CloseTrigger::VersionMismatch),
            Self::Unreachable(_) => silently(Closer::Us, CloseTrigger::Unreachable),
        }
    }
}

/// The end that closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closer {
    Us,
    Peer,
}

fn closed(by: Closer, trigger: CloseTrigger, code: Option<CloseCode>, reason: String) -> TraceEvent {
    TraceEvent::Closed { locally: by == Closer::Us, code, reason, trigger }
}

fn closed_by_transport(by: Closer, error: &TransportError) -> TraceEvent {
    let trigger = if error.code == CloseCode::NO_ERROR { CloseTrigger::NoError } else { CloseTrigger::Error };
    closed(by, trigger, Some(error.code), error.reason.clone())
}

fn closed_by_application(by: Closer, close: &ApplicationClose) -> TraceEvent {
    let reason = String::from_utf8_lossy(&close.reason).into_owned();
    closed(by, CloseTrigger::Application, Some(CloseCode(close.code)), reason)
}

impl From<Close<'_>> for ConnectionError {
    fn from(close: Close<'_>) -> Self {
        match close {
            Close::Transport { code, frame_type, reason } => {
                let mut error = TransportError::new(code, String::from_utf8_lossy(reason));
                error.frame = Some(frame_type).filter(|t| *t != 0);
                Self::ConnectionClosed(error)
            }
            Close::Application { code, reason } => {
                Self::ApplicationClosed(ApplicationClose { code, reason: Bytes::copy_from_slice(reason) })
            }
        }
    }
}
