//! What became of the attempts that one call to connect made.

use std::time::Duration;

use plait_base::FourTuple;
use plait_engine::connection::ConnectionError;

/// One attempt of a client to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Our address and the server's.
    pub tuple: FourTuple,
    /// When it began, since the first one did.
    pub after: Duration,
    /// What became of it.
    pub outcome: AttemptOutcome,
}

/// What became of an attempt to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Nothing yet, or another one was faster.
    Open,
    /// It became the connection.
    Connected,
    /// It failed, or the network said that it would.
    Failed(ConnectionError),
}
