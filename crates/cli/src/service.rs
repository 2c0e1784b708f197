//! What servers do, by name.

/// What a server does for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Application protocols (ALPN), the one that says most first.
    pub(crate) protocols: &'static [&'static str],
    /// The command that runs such a server.
    pub(crate) server: &'static str,
}
