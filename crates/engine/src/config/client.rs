//! What a client brings to a connection.

use std::sync::Arc;

use plait_base::ConnectionId;
use plait_crypto::ClientTlsConfig;
use plait_wire::Version;

use super::{MemoryTokenStore, TokenStore, TransportConfig};

/// Settings of outgoing connections.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(crate) tls: ClientTlsConfig,
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) version: Version,
    pub(crate) token_store: Arc<dyn TokenStore>,
    pub(crate) first_dcid: Option<ConnectionId>,
}

impl ClientConfig {
    /// Defaults: QUIC v1, tokens kept in memory for 256 servers.
    pub fn new(tls: ClientTlsConfig) -> Self {
        Self {
            tls,
            transport: Arc::default(),
            version: Version::V1,
            token_store: Arc::new(MemoryTokenStore::default()),
            first_dcid: None,
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
}
