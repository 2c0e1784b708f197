//! What a server promised with a session's ticket: it is resumed only where the promise can be kept.

use std::fmt;
use std::sync::Arc;

use rustls::server::StoresServerSessions;

/// Ends a stored session that says what was promised with it.
const MARK: &[u8; 8] = b"promised";

/// A store of sessions that notes the limits in force with each, and gives none out that was promised more.
///
/// RFC 9000 7.4.1: a server that accepts 0-RTT must not have lowered the limits that its client remembers.
pub(super) struct PromisedSessions {
    inner: Arc<dyn StoresServerSessions>,
    limits: Vec<u64>,
}

impl PromisedSessions {
    pub(super) fn new(inner: Arc<dyn StoresServerSessions>, limits: &[u64]) -> Self {
        Self { inner, limits: limits.to_vec() }
    }

    /// The session without what was noted; none when it says nothing, or more than holds now.
    fn admit(&self, mut value: Vec<u8>) -> Option<Vec<u8>> {
        let marked = value.len().checked_sub(MARK.len())?;
        let session = marked.checked_sub(8 * self.limits.len())?;
        let noted =
            value.get(session..marked)?.chunks_exact(8).filter_map(|b| b.try_into().ok().map(u64::from_be_bytes));
        let kept = value.ends_with(MARK) && noted.zip(&self.limits).all(|(then, &now)| then <= now);
        value.truncate(session);
        kept.then_some(value)
    }
}

impl StoresServerSessions for PromisedSessions {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        self.limits.iter().for_each(|limit| value.extend_from_slice(&limit.to_be_bytes()));
        value.extend_from_slice(MARK);
        self.inner.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.admit(self.inner.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.admit(self.inner.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

impl fmt::Debug for PromisedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromisedSessions").field("limits", &self.limits).finish_non_exhaustive()
    }
}
