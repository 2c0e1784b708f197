//! What a contender's client says of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::program::ClientOutput;
use super::work::Work;
use crate::clock::ClockPoint;

/// When the last byte was at the client's application (of an upload: at the server's, as far as the client can know).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Completion {
    /// The client read the clock that all processes share, CLOCK_MONOTONIC.
    At(ClockPoint),
    /// The client does not say: the last packet with more than 100 bytes of it that the emulator handed over counts.
    #[allow(dead_code, reason = "for programs that tell no time, as the example among the tests")]
    LastPacket,
}

/// What one path had of a transfer, by the contender's own book.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PathShare {
    /// Bytes of datagrams or segments that the sender of the data sent.
    pub(crate) sent_bytes: u64,
    /// Packets of it.
    pub(crate) packets_sent: u64,
    /// Packets of it that were taken for lost, or sent again.
    pub(crate) packets_lost: u64,
    /// Its smoothed round trip at the end.
    pub(crate) rtt: Option<Duration>,
}

/// A run that came to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Payload bytes that arrived; of requests those of the answers.
    pub(crate) bytes: u64,
    /// When the last of them did.
    pub(crate) completion: Completion,
    /// How long the handshake took, where the client says.
    pub(crate) handshake: Option<Duration>,
    /// Requests: when each was made, since the first of them, and how long its answer took; none for one without answer.
    pub(crate) requests: Vec<(Duration, Option<Duration>)>,
    /// What each path of the scenario had, in its order, as far as the contender says; empty where it does not.
    pub(crate) paths: Vec<PathShare>,
    /// Anything that belongs in the result row, by column: the congestion control that ran, versions, fallbacks.
    pub(crate) notes: BTreeMap<String, String>,
}

/// Why a run gave no time. It is a result, and stands in the row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunFailure {
    /// The time limit came first.
    #[error("not done within {0:.0?}")]
    TimeLimit(Duration),
    /// A program of the contender could not be started.
    #[error("{program} cannot be started: {said}")]
    NotStarted {
        /// The program that was tried.
        program: String,
        /// What the system said.
        said: String,
    },
    /// The server was not ready in time, or ended.
    #[error("the server did not become ready: {0}")]
    Server(String),
    /// The server ended while the client still needed it.
    #[error("the server ended with {code} in the middle: {said}; the client: {client}")]
    ServerDied {
        /// Its exit code, or `a signal`.
        code: String,
        /// The last line of its complaint.
        said: String,
        /// What came of the client.
        client: Box<RunFailure>,
    },
    /// The client ended badly.
    #[error("the client ended with {code}: {said}")]
    Client {
        /// Its exit code, or `a signal`.
        code: String,
        /// The last line of its complaint.
        said: String,
    },
    /// The client ended well, and what it said is not what was expected of it.
    #[error("the client's answer makes no sense: {0}")]
    Nonsense(String),
    /// The contender did something else than what is compared: a fall-back to one path, another congestion control.
    #[error("it did something else: {0}")]
    Strayed(String),
}

impl RunFailure {
    /// Of a client that left nothing that can be read.
    pub(crate) fn of_client(work: &Work, output: &ClientOutput) -> Self {
        match output.timed_out {
            true => Self::TimeLimit(work.time_limit),
            false => Self::Client { code: output.code_name(), said: output.complaint().to_owned() },
        }
    }
}
