//! Stateless reset tokens of the peer's connection ids in use, as the endpoint knows them (RFC 9000 10.3).

use std::net::SocketAddr;

use plait_base::{PathId, ResetToken};

use crate::io::EndpointEvent;

/// The tokens that the endpoint watches for this connection.
#[derive(Debug, Default)]
pub(super) struct ResetTokens {
    watched: Vec<(PathId, ResetToken, SocketAddr)>,
}

impl ResetTokens {
    pub(super) fn watch(
        &mut self,
        path: PathId,
        token: ResetToken,
        remote: SocketAddr,
        tell: impl FnOnce(EndpointEvent),
    ) {
        self.watched.push((path, token, remote));
        tell(EndpointEvent::ResetToken { remote, token });
    }

    pub(super) fn forget(&mut self, path: PathId, token: ResetToken, mut tell: impl FnMut(EndpointEvent)) {
        self.watched.retain(|&(p, t, remote)| {
            let gone = p == path && t == token;
            if gone {
                tell(EndpointEvent::ForgetToken { remote, token });
            }
            !gone
        });
    }

    /// True when the datagram ends in a token of the peer at `remote`.
    pub(super) fn matches(&self, remote: SocketAddr, last: &[u8; 16]) -> bool {
        // Every token is compared, and each in constant time (RFC 9000 10.3.1).
        self.watched.iter().fold(false, |found, (_, token, at)| found | ((*at == remote) & token.matches(last)))
    }

    /// The path's peer is at another address now.
    pub(super) fn on_moved(&mut self, path: PathId, remote: SocketAddr, mut tell: impl FnMut(EndpointEvent)) {
        for entry in self.watched.iter_mut().filter(|(p, _, at)| *p == path && *at != remote) {
            tell(EndpointEvent::ForgetToken { remote: entry.2, token: entry.1 });
            tell(EndpointEvent::ResetToken { remote, token: entry.1 });
            entry.2 = remote;
        }
    }
}
