//! What servers do, by name.

/// What a server does for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Application protocols (ALPN), the one that says most first.
    pub(crate) protocols: &'static [&'static str],
    /// The command that runs such a server.
    pub(crate) server: &'static str,
    /// What such a server does with what it receives.
    pub(crate) receiver: Receiver,
}

/// What is done with packets that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// They are opened and read.
    Reads,
    /// They are counted and acknowledged: for measurements of who sends them.
    Counts,
}
