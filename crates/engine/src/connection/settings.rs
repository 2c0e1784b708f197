//! What was decided about a connection before its first packet.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plait_base::{Instant, Violation};
use plait_crypto::{ClientTlsConfig, OneRttKeys};
use plait_wire::Version;
use plait_wire::header::FixedBitRule;

use crate::config::{EndpointConfig, MigrationPolicy, ServerConfig, Switch, TokenStore, TransportConfig, token_name};

/// What was decided before the first packet.
pub(crate) struct Settings {
    pub(crate) transport: Arc<TransportConfig>,
    pub(crate) endpoint: Arc<EndpointConfig>,
    pub(crate) role: RoleSettings,
    pub(crate) migration: MigrationPolicy,
}

/// What only one side needs after the handshake began.
pub(crate) enum RoleSettings {
    Client(Box<ClientSettings>),
    Server(Arc<ServerConfig>),
}

/// What a client keeps of its configuration.
pub(crate) struct ClientSettings {
    pub(crate) tls: ClientTlsConfig,
    pub(crate) server_name: String,
    pub(crate) token_store: Arc<dyn TokenStore>,
}

impl Settings {
    /// Whether packets with the fixed bit cleared are taken.
    pub(crate) fn fixed_bit_rule(&self) -> FixedBitRule {
        // RFC 9287 3: whoever announced it must take packets with the bit cleared
        match self.transport.wire.grease == Switch::On && self.endpoint.grease == Switch::On {
            true => FixedBitRule::Ignored,
            false => FixedBitRule::MustBeSet,
        }
    }

    /// True when these keys are to be updated as soon as that is allowed.
    pub(crate) fn wants_new_keys(&self, keys: Option<&OneRttKeys>, now: Instant) -> bool {
        keys.is_some_and(|keys| keys.wants_update(now, self.transport.timing.key_update_interval))
    }

    /// True on a server whose clients may go on from another address of theirs to this one of ours.
    pub(crate) fn lets_clients_move_to(&self, local: SocketAddr) -> bool {
        let RoleSettings::Server(server) = &self.role else { return false };
        // RFC 9000 9.6.3, 18.2: disable_active_migration does not keep clients from our preferred address
        let preferred = [server.preferred_v4.map(SocketAddr::V4), server.preferred_v6.map(SocketAddr::V6)];
        self.migration == MigrationPolicy::Allowed || preferred.contains(&Some(local))
    }

    /// NEW_TOKEN came from the server, and `rtt` is known of it: both are kept for the next connection there.
    pub(crate) fn on_new_token(&self, version: Version, token: &[u8], rtt: Option<Duration>) -> Result<(), Violation> {
        let RoleSettings::Client(client) = &self.role else { return Err(Violation::NewTokenFromClient) };
        let ClientSettings { token_store, server_name, .. } = &**client;
        if let Some(rtt) = rtt {
            token_store.note_rtt(server_name, rtt);
        }
        if token.len() <= plait_base::limits::MAX_TOKEN_BYTES {
            token_store.insert(&token_name(server_name, version), Bytes::copy_from_slice(token));
        }
        Ok(())
    }
}
