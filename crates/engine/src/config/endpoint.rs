//! What holds for all connections of an endpoint.

use std::sync::Arc;
use std::time::Duration;

use plait_base::{ConnectionId, Instant, Random, limits};
use plait_crypto::{CidSteering, ResetKey};
use plait_wire::Version;

use super::Switch;

/// Settings of an endpoint, client or server.
///
/// ```
/// use plait_engine::config::EndpointConfig;
/// use plait_base::Random;
/// let mut endpoint = EndpointConfig::from_random(&mut Random::from_u64(1));
/// endpoint.cid_len(12);
/// ```
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub(crate) cid_len: usize,
    pub(crate) steering: Option<Arc<CidSteering>>,
    pub(crate) reset_key: Arc<ResetKey>,
    pub(crate) grease: Switch,
    pub(crate) stateless_resets: Switch,
    pub(crate) resets_per_second: u32,
    pub(crate) versions: Vec<Version>,
    pub(crate) origin_unix: Duration,
    pub(crate) max_connections: usize,
}

impl EndpointConfig {
    /// Defaults, with the key from which stateless reset tokens are derived. An endpoint that comes back with the
    /// same key after a crash can reset the connections that it lost (RFC 9000 10.3).
    pub fn new(reset_key: ResetKey) -> Self {
        Self {
            cid_len: 8,
            steering: None,
            reset_key: Arc::new(reset_key),
            grease: Switch::On,
            stateless_resets: Switch::On,
            resets_per_second: 1000,
            versions: vec![Version::V1, Version::V2],
            origin_unix: Duration::ZERO,
            max_connections: 1 << 20,
        }
    }

    /// Defaults, with a reset key that nobody else has.
    pub fn from_random(random: &mut Random) -> Self {
        Self::new(ResetKey::generate(random))
    }

    /// Length of our connection ids. 0 to 20 bytes, default 8.
    ///
    /// With 0 the endpoint can only be a client, one connection per 4-tuple, without multipath (RFC 10069) and
    /// without stateless resets of its own. Below 4 bytes ids of different connections soon collide.
    pub fn cid_len(&mut self, bytes: usize) -> &mut Self {
        self.cid_len = bytes.min(limits::MAX_CID_LEN);
        self
    }

    /// Length of our connection ids, as [`Self::cid_len`] set it.
    pub fn cid_bytes(&self) -> usize {
        self.cid_len
    }

    /// Lets the ids of connections lead to one of several receivers: those of path n of a connection to the n-th after the one that
    /// [`Incoming::set_receiver`](crate::Incoming::set_receiver) named. Default none: ids lead nowhere.
    pub fn steer_cids(&mut self, steering: Option<Arc<CidSteering>>) -> &mut Self {
        self.steering = steering;
        self
    }

    /// A random id of `len` bytes; one that leads to a receiver where there are several.
    pub(crate) fn draw_cid(&self, len: usize, receiver: Option<usize>, random: &mut Random) -> ConnectionId {
        match (&self.steering, receiver) {
            (Some(steering), Some(receiver)) => steering.connection_id(len, receiver, random),
            _ => random.connection_id(len),
        }
    }

    /// The key from which stateless reset tokens are derived.
    pub fn reset_key(&mut self, key: ResetKey) -> &mut Self {
        self.reset_key = Arc::new(key);
        self
    }

    /// Whether to accept packets with a zero fixed bit (RFC 9287). Default on.
    pub fn grease_quic_bit(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.grease = switch.into();
        self
    }

    /// Whether to answer packets of unknown connections with stateless resets. Default on.
    pub fn stateless_resets(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.stateless_resets = switch.into();
        self
    }

    /// Stateless resets sent in a second at most, and as many answers to first packets that begin no connection: version
    /// negotiations and closes together. Default 1000; 0 sends none.
    pub fn max_resets_per_second(&mut self, count: u32) -> &mut Self {
        self.resets_per_second = count;
        self
    }

    /// Versions that a server accepts, best first. Default v1 and v2; versions that we cannot speak are left out, and
    /// an empty list means v1 alone.
    pub fn supported_versions(&mut self, versions: Vec<Version>) -> &mut Self {
        let mut spoken: Vec<Version> = Vec::new();
        for version in versions {
            if (version == Version::V1 || version == Version::V2) && !spoken.contains(&version) {
                spoken.push(version);
            }
        }
        if spoken.is_empty() {
            spoken.push(Version::V1);
        }
        self.versions = spoken;
        self
    }

    /// Seconds from 1970 to the origin of the caller's [`Instant`]s, so that tokens mean the same after a restart and
    /// on sibling machines. Default 0: tokens hold only within one run.
    pub fn origin_unix(&mut self, since_1970: Duration) -> &mut Self {
        self.origin_unix = since_1970;
        self
    }

    /// Connections at once, beyond which new ones are refused. Default 2^20.
    pub fn max_connections(&mut self, count: usize) -> &mut Self {
        self.max_connections = count;
        self
    }

    /// `now` in seconds since 1970, as tokens carry it.
    pub(crate) fn unix_seconds(&self, now: Instant) -> u64 {
        self.origin_unix.saturating_add(now.since_origin()).as_secs()
    }

    /// True when `version` is accepted.
    pub(crate) fn supports(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_we_speak() {
        let mut config = EndpointConfig::from_random(&mut Random::from_u64(1));
        config.supported_versions(vec![Version(7), Version::V2, Version::V2]);
        assert_eq!(config.versions, [Version::V2]);
        config.supported_versions(vec![]);
        assert!(config.supports(Version::V1) && !config.supports(Version::V2));
    }

    #[test]
    fn token_time_counts_from_the_origin() {
        let mut config = EndpointConfig::from_random(&mut Random::from_u64(1));
        config.origin_unix(Duration::from_secs(1_000));
        assert_eq!(config.unix_seconds(Instant::ZERO + Duration::from_millis(2_500)), 1_002);
    }
}
