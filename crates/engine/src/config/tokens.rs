//! Where a client keeps the NEW_TOKEN tokens that spare it a later Retry (RFC 9000 8.1.3).

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use plait_base::limits;
use plait_wire::Version;

/// A client's memory of tokens, by server name. Shared by connections, hence `&self`. Tokens of QUIC version 2 come with
/// a name of their own, the server's and what no host name has in it, as they are of no use in version 1.
pub trait TokenStore: Send + Sync + fmt::Debug {
    /// Keeps a token that `server_name` gave.
    fn insert(&self, server_name: &str, token: Bytes);
    /// Gives a token for `server_name` and forgets it: a token is used once (RFC 9000 8.1.3).
    fn take(&self, server_name: &str) -> Option<Bytes>;

    /// Notes how long a round trip to `server_name` takes, as its token comes. Keeps nothing unless a store says otherwise.
    fn note_rtt(&self, _server_name: &str, _rtt: Duration) {}

    /// The round trip to `server_name` that was noted last; none unless a store says otherwise.
    fn rtt(&self, _server_name: &str) -> Option<Duration> {
        None
    }
}

/// The name under which tokens of a server are kept (RFC 9369 5: apart for each version).
pub(crate) fn token_name(server_name: &str, version: Version) -> Cow<'_, str> {
    if version == Version::V2 { Cow::Owned(format!("{server_name} (v2)")) } else { Cow::Borrowed(server_name) }
}

/// Keeps no tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTokenStore;

impl TokenStore for NoTokenStore {
    fn insert(&self, _server_name: &str, _token: Bytes) {}

    fn take(&self, _server_name: &str) -> Option<Bytes> {
        None
    }
}

/// Keeps the newest tokens of the servers heard from last, in memory.
///
/// The lock is held for a map look-up and nothing else; it is taken once or twice in the life of a connection.
pub struct MemoryTokenStore {
    max_servers: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Tokens, oldest first, with the time of the last insertion by count.
    servers: BTreeMap<String, (u64, VecDeque<Bytes>)>,
    /// Round trips, with the time of the last note by count.
    rtts: BTreeMap<String, (u64, Duration)>,
    insertions: u64,
}

/// Forgets the server that was heard from least recently where there is no room for another.
fn make_room<T>(servers: &mut BTreeMap<String, (u64, T)>, server_name: &str, max_servers: usize) {
    if servers.contains_key(server_name) || servers.len() < max_servers {
        return;
    }
    let oldest = servers.iter().min_by_key(|(_, (at, _))| *at).map(|(name, _)| name.clone());
    if let Some(name) = oldest {
        servers.remove(&name);
    }
}

impl MemoryTokenStore {
    /// A store for at most `max_servers` names (at least 1), with 8 tokens of 1024 bytes each at most, and the round trips
    /// to as many.
    pub fn new(max_servers: usize) -> Self {
        Self { max_servers: max_servers.max(1), kept: Mutex::default() }
    }
}

impl Default for MemoryTokenStore {
    /// For 256 servers.
    fn default() -> Self {
        Self::new(256)
    }
}

impl fmt::Debug for MemoryTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTokenStore").field("max_servers", &self.max_servers).finish_non_exhaustive()
    }
}

impl TokenStore for MemoryTokenStore {
    fn insert(&self, server_name: &str, token: Bytes) {
        if token.is_empty() || token.len() > limits::MAX_TOKEN_BYTES {
            return;
        }
        let Ok(mut kept) = self.kept.lock() else { return };
        kept.insertions += 1;
        let now = kept.insertions;
        make_room(&mut kept.servers, server_name, self.max_servers);
        let (at, tokens) = kept.servers.entry(server_name.to_owned()).or_default();
        *at = now;
        if tokens.len() >= limits::MAX_STORED_TOKENS {
            tokens.pop_front();
        }
        // A copy: the token must not pin the datagram that it arrived in.
        tokens.push_back(Bytes::copy_from_slice(&token));
    }

    fn take(&self, server_name: &str) -> Option<Bytes> {
        let mut kept = self.kept.lock().ok()?;
        let (_, tokens) = kept.servers.get_mut(server_name)?;
        let newest = tokens.pop_back();
        if tokens.is_empty() {
            kept.servers.remove(server_name);
        }
        newest
    }

    fn note_rtt(&self, server_name: &str, rtt: Duration) {
        let Ok(mut kept) = self.kept.lock() else { return };
        kept.insertions += 1;
        let now = kept.insertions;
        make_room(&mut kept.rtts, server_name, self.max_servers);
        kept.rtts.insert(server_name.to_owned(), (now, rtt));
    }

    fn rtt(&self, server_name: &str) -> Option<Duration> {
        self.kept.lock().ok()?.rtts.get(server_name).map(|(_, rtt)| *rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_token_first_and_only_once() {
        // RFC 9000 8.1.3-5
        let store = MemoryTokenStore::default();
        store.insert("a", Bytes::from_static(b"1"));
        store.insert("a", Bytes::from_static(b"2"));
        assert_eq!(store.take("a").as_deref(), Some(&b"2"[..]));
        assert_eq!(store.take("a").as_deref(), Some(&b"1"[..]));
        assert_eq!(store.take("a"), None);
    }

    #[test]
    fn round_trips_are_of_the_servers_heard_from_last() {
        let store = MemoryTokenStore::new(2);
        let ms = Duration::from_millis;
        for (name, rtt) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            store.note_rtt(name, ms(rtt));
        }
        assert_eq!(["a", "b", "c"].map(|name| store.rtt(name)), [Some(ms(3)), None, Some(ms(4))]);
        assert_eq!(store.take("a"), None, "no token came");
        NoTokenStore.note_rtt("a", ms(1));
        assert_eq!(NoTokenStore.rtt("a"), None);
    }

    #[test]
    fn bounded_in_servers_tokens_and_bytes() {
        let store = MemoryTokenStore::new(2);
        for name in ["a", "b", "c"] {
            store.insert(name, Bytes::from_static(b"t"));
        }
        assert_eq!(store.take("a"), None);
        assert!(store.take("b").is_some() && store.take("c").is_some());
        for _ in 0..100 {
            store.insert("d", Bytes::from_static(b"t"));
        }
        assert_eq!(std::iter::from_fn(|| store.take("d")).count(), limits::MAX_STORED_TOKENS);
        store.insert("e", Bytes::from(vec![0; limits::MAX_TOKEN_BYTES + 1]));
        store.insert("e", Bytes::new());
        assert_eq!(store.take("e"), None);
    }
}
