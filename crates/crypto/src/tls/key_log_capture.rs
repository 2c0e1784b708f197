//! A session that may end in another QUIC version than it began in (RFC 9368 2.3): its secrets and tickets on the way.
//!
//! rustls fixes the version when a session is made. Its key log tells the traffic secrets, which are the same in every
//! version, and `versioned` makes packet keys of them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::tls13::OkmBlock;
use rustls::server::StoresServerSessions;
use rustls::{KeyLog, NamedGroup};
use rustls_pki_types::ServerName;

use super::store::SessionStore;
use crate::initial::V2;

/// The secrets of interest, as key logs name them: client's and server's, of Handshake and of 1-RTT packets.
const LABELS: [&str; 4] = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
];

/// Encryption level of a pair of traffic secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretLevel {
    Handshake,
    OneRtt,
}

/// What one session tells on its way; secrets are wiped when taken, and when it is dropped.
pub(crate) struct KeyLogCapture {
    log: Arc<dyn KeyLog>,
    /// The version that the session moves to, once known.
    to: OnceLock<u32>,
    kept: Mutex<CapturedSecrets>,
}

#[derive(Default)]
struct CapturedSecrets {
    secrets: [Option<OkmBlock>; 4],
    /// Nothing is kept any more: the session stays in its version.
    closed: bool,
}

impl KeyLogCapture {
    /// `log` is the key log of the configuration; it goes on hearing everything.
    pub(crate) fn new(log: Arc<dyn KeyLog>) -> Self {
        Self { log, to: OnceLock::new(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, CapturedSecrets> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session goes on in `version`; the first call counts.
    pub(crate) fn move_to(&self, version: u32) {
        let _ = self.to.set(version);
    }

    /// The version moved to.
    pub(crate) fn target(&self) -> Option<u32> {
        self.to.get().copied()
    }

    /// The session stays in its version, or has all its keys: what was kept is wiped, and no more is.
    pub(crate) fn close(&self) {
        *self.kept() = CapturedSecrets { closed: true, ..CapturedSecrets::default() };
    }

    /// The secrets of client and server at a level, if TLS has told them.
    pub(crate) fn take(&self, level: SecretLevel) -> Option<(OkmBlock, OkmBlock)> {
        let mut kept = self.kept();
        let [client, server, client_1rtt, server_1rtt] = &mut kept.secrets;
        match level {
            SecretLevel::Handshake => client.take().zip(server.take()),
            SecretLevel::OneRtt => client_1rtt.take().zip(server_1rtt.take()),
        }
    }
}

impl KeyLog for KeyLogCapture {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(at) = LABELS.iter().position(|l| *l == label)
            && secret.len() <= OkmBlock::MAX_LEN
        {
            let mut kept = self.kept();
            if !kept.closed {
                kept.secrets[at] = Some(OkmBlock::new(secret));
            }
        }
        if self.log.will_log(label) {
            self.log.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label) || self.log.will_log(label)
    }
}

impl fmt::Debug for KeyLogCapture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLogCapture").field("to", &self.to).finish_non_exhaustive()
    }
}

/// A client's tickets: taken from the store of the first version, kept in that of the version in use (RFC 9369 5).
#[derive(Debug)]
pub(crate) struct ClientTickets {
    pub(crate) stores: SessionStore,
    pub(crate) from: u32,
    pub(crate) capture: Arc<KeyLogCapture>,
}

impl ClientTickets {
    fn of(&self, version: u32) -> &dyn ClientSessionStore {
        if version == V2 { &*self.stores.v2 } else { &*self.stores.v1 }
    }

    fn first(&self) -> &dyn ClientSessionStore {
        self.of(self.from)
    }
}

impl ClientSessionStore for ClientTickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.first().set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.first().kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.first().set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.first().tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.first().remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.of(self.capture.target().unwrap_or(self.from)).insert_tls13_ticket(server_name, value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.first().take_tls13_ticket(server_name)
    }
}

/// A server's sessions: resumed from the store of the first version, kept in that of the version moved to (RFC 9369 5).
#[derive(Debug)]
pub(crate) struct ServerTickets {
    pub(crate) from: Arc<dyn StoresServerSessions>,
    pub(crate) to: Arc<dyn StoresServerSessions>,
}

impl StoresServerSessions for ServerTickets {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.to.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.from.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.from.take(key)
    }

    fn can_cache(&self) -> bool {
        self.to.can_cache()
    }
}
