//! Streams as applications hold them: one half to write, one half to read.

mod errors;
mod receive;
mod send;

use crate::connection::State;

pub use errors::{ReadError, ReadExactError, ReadToEndError, ResetError, StoppedError, WriteError};
pub use receive::RecvStream;
pub use send::{SendStream, Written};

/// Whether a stream began in 0-RTT, and so ends if the server refuses that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Yes,
    No,
}

impl Early {
    /// For a stream that is opened now.
    pub(crate) fn of(state: &State) -> Self {
        let connection = state.engine.connection();
        // What is opened between the refusal and the end of the handshake goes with what comes after it.
        let early = connection.side().is_client() && connection.is_handshaking() && !state.is_0rtt_rejected();
        if early { Self::Yes } else { Self::No }
    }

    /// True when the stream is gone because 0-RTT was refused.
    pub(crate) fn is_rejected(self, state: &State) -> bool {
        self == Self::Yes && state.is_0rtt_rejected()
    }
}
