//! Who wants to hear when the network does not deliver what a socket sent.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plait_engine::connection::Unreachable;

/// What is told of datagrams that the network did not deliver: a connection.
pub(crate) trait OnUnreachable: fmt::Debug + Send + Sync {
    /// The network says that the peer is out of reach.
    fn on_unreachable(&self, why: Unreachable);
}

/// Those who listen at one socket, each with the address that it sends to.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<(SocketAddr, Arc<dyn OnUnreachable>)>>);

impl Listeners {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<(SocketAddr, Arc<dyn OnUnreachable>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
