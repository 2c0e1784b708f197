//! What a client brings to a connection.

use std::sync::Arc;
use std::time::Duration;

use plait_base::ConnectionId;
use plait_crypto::ClientTlsConfig;
use plait_wire::Version;

use super::{MemoryTokenStore, TokenStore, TransportConfig};
use crate::endpoint::AttemptDelays;

/// Settings of outgoing connections.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) tls: ClientTlsConfig,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) version: Version,
    pub(crate) token_store: Arc<dyn TokenStore>,
    pub(crate) first_dcid: Option<ConnectionId>,
    pub(crate) attempt_delays: AttemptDelays,
}

/// How long an attempt to connect goes unanswered before the next begins from the same address of ours or another IP version,
/// where nothing else is said: the least Connection Attempt Delay that RFC 8305 8 recommends.
const ATTEMPT_DELAY: Duration = Duration::from_millis(100);
/// The same before one from another address of ours, which is most often another network: the shortest that RFC 8305 8 allows.
/// A host with several networks will open a path over each right after the handshake, and a handshake over the slower one alone
/// is felt: by this much at most. What it costs is that a server's first contact with such a host is often two handshakes.
pub const NETWORK_DELAY: Duration = Duration::from_millis(10);
/// RFC 8305 8: the shortest and the longest that it allows.
const ATTEMPT_DELAY_MIN: Duration = Duration::from_millis(10);
const ATTEMPT_DELAY_MAX: Duration = Duration::from_secs(2);
/// What a known round trip makes of the delay, at most: with a first pair that is dead, the handshake over the second is
/// to be done within a second and its round trip.
const KNOWN_DELAY_MAX: Duration = Duration::from_millis(900);

impl ClientConfig {
    /// Defaults: QUIC v1, tokens kept in memory for 256 servers.
    pub fn new(tls: ClientTlsConfig) -> Self {
        Self {
            tls,
            transport: Arc::default(),
            version: Version::V1,
            token_store: Arc::new(MemoryTokenStore::default()),
            first_dcid: None,
            attempt_delays: AttemptDelays { network: NETWORK_DELAY, other: ATTEMPT_DELAY },
        }
    }

    /// The transport of these connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// The version of the first packet, v1 or v2. Default v1; others leave it as it is, except the reserved ones that
    /// nobody speaks: they make a server show its versions, of which the best is taken (RFC 9000 6.3).
    pub fn version(&mut self, version: Version) -> &mut Self {
        if version == Version::V1 || version == Version::V2 || version.is_reserved() {
            self.version = version;
        }
        self
    }

    /// Where NEW_TOKEN tokens are kept. Default in memory, shared by clones of this value.
    pub fn token_store(&mut self, store: Arc<dyn TokenStore>) -> &mut Self {
        self.token_store = store;
        self
    }

    /// The destination connection id of the first packet, 8 to 20 bytes, for traces that must look alike. Default
    /// random; shorter ids are not taken (RFC 9000 7.2).
    pub fn first_dcid(&mut self, dcid: Option<ConnectionId>) -> &mut Self {
        self.first_dcid = dcid.filter(|id| id.len() >= 8);
        self
    }

    /// How long an attempt to connect goes unanswered before the next pair of addresses is tried beside it, 10 ms to 2 s.
    /// Default 10 ms where that is from another address of ours of the same IP version, else 100 ms (RFC 8305 8). To a server
    /// whose round trip is known it may be longer: [`Self::attempt_delays_to`].
    ///
    /// ```
    /// # use plait_engine::ClientConfig;
    /// /// One handshake at a time, as long as a server answers within a quarter of a second.
    /// fn be_patient(config: &mut ClientConfig) {
    ///     config.attempt_delay(std::time::Duration::from_millis(250));
    /// }
    /// ```
    pub fn attempt_delay(&mut self, delay: Duration) -> &mut Self {
        let delay = delay.clamp(ATTEMPT_DELAY_MIN, ATTEMPT_DELAY_MAX);
        self.attempt_delays = AttemptDelays { network: delay, other: delay };
        self
    }

    /// How long an attempt to connect to `server_name` goes unanswered before the next begins: [`Self::attempt_delay`], or
    /// one and a half times the round trip that the token store knows of it, 900 ms at most, where that is longer.
    pub fn attempt_delays_to(&self, server_name: &str) -> AttemptDelays {
        // RFC 8305 5: historical RTT data may influence the delay
        let known = self.token_store.rtt(server_name).map(|rtt| rtt.saturating_mul(3) / 2);
        let known = known.unwrap_or_default().min(KNOWN_DELAY_MAX);
        let AttemptDelays { network, other } = self.attempt_delays;
        AttemptDelays { network: network.max(known), other: other.max(known) }
    }
}
