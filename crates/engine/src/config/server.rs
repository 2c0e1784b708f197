//! What a server does with those who come.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use plait_base::{Random, limits};
use plait_crypto::{ServerTlsConfig, TokenKey};
use plait_wire::Version;

use super::{MigrationPolicy, TransportConfig};

/// When a client must prove its address before we spend anything on it (RFC 9000 8.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only when the application calls `retry`, or when half the places of undecided connections are taken.
    Application,
    /// As before, and once at least so many connections wait for the application or are in their handshake.
    AtLeast(usize),
    /// Always, unless the client brings a token.
    Always,
}

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub(crate) tls: ServerTlsConfig,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) token_key: Arc<TokenKey>,
    pub(crate) retry: RetryPolicy,
    pub(crate) retry_token_lifetime: Duration,
    pub(crate) validation_token_lifetime: Duration,
    pub(crate) validation_tokens_sent: u32,
    pub(crate) migration: MigrationPolicy,
    pub(crate) preferred_v4: Option<SocketAddrV4>,
    pub(crate) preferred_v6: Option<SocketAddrV6>,
    pub(crate) max_incoming: usize,
    pub(crate) incoming_buffer_bytes: usize,
    pub(crate) incoming_lifetime: Duration,
    pub(crate) preferred_versions: Vec<Version>,
}

impl ServerConfig {
    /// Defaults, with the key that seals address tokens. Servers behind one name should share the key.
    pub fn new(tls: ServerTlsConfig, token_key: TokenKey) -> Self {
        Self {
            tls,
            transport: Arc::default(),
            token_key: Arc::new(token_key),
            retry: RetryPolicy::AtLeast(limits::MAX_INCOMING_CONNECTIONS),
            retry_token_lifetime: Duration::from_secs(15),
            validation_token_lifetime: Duration::from_secs(14 * 24 * 3600),
            validation_tokens_sent: 2,
            migration: MigrationPolicy::Allowed,
            preferred_v4: None,
            preferred_v6: None,
            max_incoming: limits::MAX_INCOMING_CONNECTIONS,
            incoming_buffer_bytes: 1 << 20,
            incoming_lifetime: Duration::from_secs(10),
            preferred_versions: Vec::new(),
        }
    }

    /// Defaults, with a token key that nobody else has.
    pub fn from_random(tls: ServerTlsConfig, random: &mut Random) -> Self {
        Self::new(tls, TokenKey::generate(random))
    }

    /// The transport of accepted connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// The key that seals Retry and NEW_TOKEN tokens.
    pub fn token_key(&mut self, key: TokenKey) -> &mut Self {
        self.token_key = Arc::new(key);
        self
    }

    /// When clients must prove their address first. Default: from 1024 unfinished handshakes on. Whatever the policy, also
    /// while half of [`Self::max_incoming`] connections wait for the application, by default 512.
    pub fn retry_policy(&mut self, policy: RetryPolicy) -> &mut Self {
        self.retry = policy;
        self
    }

    /// How long a Retry token may travel. At least 1 s, default 15 s.
    pub fn retry_token_lifetime(&mut self, lifetime: Duration) -> &mut Self {
        self.retry_token_lifetime = lifetime.max(Duration::from_secs(1));
        self
    }

    /// How long a NEW_TOKEN token holds. Default 14 days; zero accepts none.
    pub fn validation_token_lifetime(&mut self, lifetime: Duration) -> &mut Self {
        self.validation_token_lifetime = lifetime;
        self
    }

    /// NEW_TOKEN tokens sent on a connection, and again after each new validated address. 0 to 8, default 2.
    pub fn validation_tokens_sent(&mut self, count: u32) -> &mut Self {
        self.validation_tokens_sent = count.min(limits::MAX_STORED_TOKENS as u32);
        self
    }

    /// Whether a path follows its client to a new address. Default allowed.
    pub fn migration(&mut self, policy: MigrationPolicy) -> &mut Self {
        self.migration = policy;
        self
    }

    /// An IPv4 address to which clients should move after the handshake (RFC 9000 9.6). Default none.
    pub fn preferred_address_v4(&mut self, address: Option<SocketAddrV4>) -> &mut Self {
        self.preferred_v4 = address;
        self
    }

    /// An IPv6 address to which clients should move after the handshake. Default none.
    pub fn preferred_address_v6(&mut self, address: Option<SocketAddrV6>) -> &mut Self {
        self.preferred_v6 = address;
        self
    }

    /// Connections that may wait for the application's decision. 1 to 65536, default 1024.
    pub fn max_incoming(&mut self, count: usize) -> &mut Self {
        self.max_incoming = count.clamp(1, 1 << 16);
        self
    }

    /// Bytes of further datagrams kept for all waiting connections together. Default 1 MiB; one connection keeps at
    /// most 8 datagrams.
    pub fn incoming_buffer_size_total(&mut self, bytes: usize) -> &mut Self {
        self.incoming_buffer_bytes = bytes;
        self
    }

    /// Versions to which clients are moved, best first, when they began in another and say that they know one of these
    /// (RFC 9368 2.3): their first packets are answered in it, without a round trip more. Name the client's own version
    /// too where it is as good as what follows it. Default none: every connection stays in the version
    /// that its client began in.
    pub fn preferred_versions(&mut self, versions: Vec<Version>) -> &mut Self {
        self.preferred_versions = versions.into_iter().filter(|v| v.is_supported()).collect();
        self
    }

    /// How long a connection waits for the application before its place may go to another. Default 10 s.
    pub fn incoming_lifetime(&mut self, lifetime: Duration) -> &mut Self {
        self.incoming_lifetime = lifetime;
        self
    }
}
