//! The TLS session of either end, as its configuration and the versions ask.

use plait_base::{CloseCode, Random, TransportError};
use plait_crypto::{ClientTlsConfig, ConfigError, TlsSession};
use plait_wire::Version;
use plait_wire::params::PreferredAddress;

use super::parameters;
use super::uniflows::UniflowOffer;
use super::versions::{DeferredTls, VersionSwitching, Versions};
use crate::endpoint::parts::{ConnectionParts, Role};

/// A TLS session at its start.
pub(crate) struct Tls {
    pub(crate) session: TlsSession,
    /// On a server whose client's parameters decide of versions or nonces: what it chooses from.
    pub(crate) deferred: Option<Box<DeferredTls>>,
    /// What our parameters in it say of uniflows.
    pub(crate) uniflows: UniflowOffer,
}

pub(crate) fn session(
    parts: &ConnectionParts,
    preferred: Option<PreferredAddress>,
    random: &mut Random,
) -> Result<Tls, TransportError> {
    let params = parameters::announced(parts, preferred);
    let encoded = params.encode(parts.side(), random);
    let uniflows = UniflowOffer::of(&params);
    let mut deferred = None;
    let session = match &parts.role {
        Role::Client(client) => client_session(&client.tls, &versions(parts), &uniflows, &client.server_name, encoded),
        Role::Server(server) => {
            let spoken = server.config.preferred_versions.iter().copied().filter(|v| parts.endpoint.supports(*v));
            let preferred: Vec<Version> = spoken.collect();
            // RFC 9000 7.4.1: 0-RTT of clients that were promised more is refused
            let tls = server.config.tls.with_early_limits(&params.early_limits());
            let may_move = preferred.first().is_some_and(|best| *best != parts.version);
            if may_move || uniflows.may_change_nonces() {
                let tls = tls.clone();
                deferred = Some(Box::new(DeferredTls::new(tls, params, random.fork(), preferred)));
            }
            TlsSession::new_server(&tls, parts.version.0, encoded)
        }
    };
    let session = session.map_err(|e| TransportError::new(CloseCode::INTERNAL_ERROR, e.to_string()))?;
    Ok(Tls { session, deferred, uniflows })
}

pub(crate) fn client_session(
    tls: &ClientTlsConfig,
    versions: &Versions,
    uniflows: &UniflowOffer,
    server_name: &str,
    params: Vec<u8>,
) -> Result<TlsSession, ConfigError> {
    let version = versions.original.0;
    match versions.may_change() || uniflows.may_change_nonces() {
        true => TlsSession::new_movable_client(tls, version, server_name, params),
        false => TlsSession::new_client(tls, version, server_name, params),
    }
}

pub(crate) fn versions(parts: &ConnectionParts) -> Versions {
    let switching = match &parts.role {
        Role::Client(client) => client_switching(&client.tls),
        Role::Server(_) => VersionSwitching::Fixed,
    };
    Versions::new(parts.version, parts.endpoint.versions.clone(), switching)
}

pub(crate) fn client_switching(tls: &ClientTlsConfig) -> VersionSwitching {
    if tls.may_move() { VersionSwitching::Allowed } else { VersionSwitching::Fixed }
}
