//! Where a client keeps sessions to resume; one store can serve many configurations.

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientSessionMemoryCache, ClientSessionStore};

/// Remembered sessions of a client, apart for each QUIC version; clones share them.
#[derive(Clone)]
pub struct SessionStore {
    pub(crate) v1: Arc<dyn ClientSessionStore>,
    pub(crate) v2: Arc<dyn ClientSessionStore>,
}

impl SessionStore {
    /// Keeps sessions of about `servers` servers in memory.
    pub fn new(servers: usize) -> Self {
        Self {
            v1: Arc::new(ClientSessionMemoryCache::new(servers)),
            v2: Arc::new(ClientSessionMemoryCache::new(servers)),
        }
    }

    /// Stores of the caller's own. RFC 9369 4.1: sessions of one version must not be resumed in another, hence two.
    pub fn custom(v1: Arc<dyn ClientSessionStore>, v2: Arc<dyn ClientSessionStore>) -> Self {
        Self { v1, v2 }
    }
}

impl Default for SessionStore {
    fn default() -> Self {
        Self::new(256)
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionStore(..)")
    }
}
