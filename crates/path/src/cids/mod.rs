//! Connection ids of one path id: those we issue and those the peer issued (RFC 9000 5.1, RFC 10069 3.2).

mod local;
mod remote;

pub(crate) use remote::check_encoding;

use plait_base::{ConnectionId, PathId, ResetToken};

pub(crate) use local::LocalCids;
pub(crate) use remote::RemoteCids;

/// Makes connection ids and their reset tokens; the endpoint's own, so that ids route back to it.
pub trait CidSource {
    /// A fresh id of non-zero length, unique within the endpoint, and its stateless reset token.
    fn issue(&mut self, path: PathId) -> (ConnectionId, ResetToken);
}

impl<F: FnMut(PathId) -> (ConnectionId, ResetToken)> CidSource for F {
    fn issue(&mut self, path: PathId) -> (ConnectionId, ResetToken) {
        self(path)
    }
}

/// A connection id that we issued: the endpoint routes it to this connection and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuedCid {
    /// Path that it belongs to.
    pub path: PathId,
    /// Its sequence number on the path.
    sequence: u64,
    /// The connection id itself.
    pub cid: ConnectionId,
}

#[cfg(test)]
mod tests;
