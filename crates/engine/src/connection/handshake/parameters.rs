//! The transport parameters that we announce, from the configuration (RFC 9000 18.2).

use plait_base::{ConnectionId, ResetToken, Side, limits};
use plait_crypto::ClientTlsConfig;
use plait_stream::{DatagramsConfig, PeerLimits, StreamsConfig};
use plait_wire::params::{
    ActiveMigration, CidParameters, GreaseQuicBit, InitialLimits, PreferredAddress, TransportParameters,
    UnconfirmedPaths, VersionInfo,
};

use plait_wire::Version;

use crate::config::{EndpointConfig, MigrationPolicy, Switch, TransportConfig};
use crate::connection::settings::{RoleSettings, Settings};
use crate::endpoint::parts::{ConnectionParts, HandshakeIds, Role};

/// How streams and windows are set up.
pub(crate) fn datagrams_config(transport: &TransportConfig) -> DatagramsConfig {
    let buffers = &transport.datagrams;
    DatagramsConfig { receive_buffer: buffers.receive_buffer_bytes, send_buffer: buffers.send_buffer_bytes }
}

pub(crate) fn streams_config(transport: &TransportConfig) -> StreamsConfig {
    let s = &transport.streams;
    StreamsConfig {
        max_bidi: s.max_bidi,
        max_uni: s.max_uni,
        stream_window: s.stream_window.tuned(s.auto_tune),
        window: s.window.tuned(s.auto_tune),
        send_window: s.send_window_bytes,
    }
}

/// What a client announces, in its first handshake or after a change of version.
pub(crate) fn announced_by_client(settings: &Settings, ids: &HandshakeIds, version: Version) -> TransportParameters {
    let mut params = common(&settings.transport, &settings.endpoint, ids, version);
    if let RoleSettings::Client(client) = &settings.role {
        fit_to_tls(&mut params, &client.tls);
    }
    params
}

/// What a client's TLS cannot do is not offered: other nonces, other versions than that of its first flight (RFC 9368 3).
fn fit_to_tls(params: &mut TransportParameters, tls: &ClientTlsConfig) {
    if tls.may_move() {
        return;
    }
    params.announcements.own.uniflow_nonces = false;
    if let Some(info) = params.version_info.as_mut().filter(|info| info.chosen.is_supported()) {
        info.available = vec![info.chosen];
    }
}

/// What a client or server announces. `preferred` is the server's preferred address with the id issued for it.
pub(crate) fn announced(parts: &ConnectionParts, preferred: Option<PreferredAddress>) -> TransportParameters {
    let mut params = common(&parts.transport, &parts.endpoint, &parts.ids, parts.version);
    match &parts.role {
        Role::Client(client) => fit_to_tls(&mut params, &client.tls),
        Role::Server(server) => {
            params.cids.original_dcid = Some(parts.ids.original_dcid);
            params.cids.retry_scid = parts.ids.retry_scid;
            params.stateless_reset_token = Some(reset_token(parts, &parts.ids.local));
            params.preferred_address = preferred;
            if params.initial_max_path_id.is_some() {
                params.unconfirmed_paths = UnconfirmedPaths::Welcome;
            }
            if server.config.migration == MigrationPolicy::Refused {
                params.active_migration = ActiveMigration::Disabled;
            }
        }
    }
    params
}

fn common(
    transport: &TransportConfig,
    endpoint: &EndpointConfig,
    ids: &HandshakeIds,
    version: Version,
) -> TransportParameters {
    let granted = streams_config(transport).announced();
    let mut params = TransportParameters {
        cids: CidParameters { initial_scid: Some(ids.local), ..CidParameters::default() },
        limits: InitialLimits {
            max_data: granted.max_data,
            max_stream_data_bidi_local: granted.max_stream_data_bidi_local,
            max_stream_data_bidi_remote: granted.max_stream_data_bidi_remote,
            max_stream_data_uni: granted.max_stream_data_uni,
            max_streams_bidi: granted.max_streams_bidi,
            max_streams_uni: granted.max_streams_uni,
        },
        max_idle_timeout_ms: transport.timing.max_idle_timeout.map_or(0, |d| d.as_millis().max(1) as u64),
        active_cid_limit: transport.paths.cid_limit,
        max_udp_payload_bytes: u64::from(transport.mtu.max_receive),
        max_datagram_frame_bytes: datagrams_config(transport).announced_frame_bytes(),
        version_info: Some(VersionInfo { chosen: version, available: endpoint.versions.clone() }),
        initial_max_path_id: transport.paths.initial_max_path_id().filter(|_| has_ids(ids)),
        max_sending_uniflow_id: transport.paths.max_sending_uniflow_id().filter(|_| has_ids(ids)),
        announcements: transport.paths.announcements(),
        ..TransportParameters::default()
    };
    params.acks.max_delay_ms = transport.ack.max_delay.as_millis() as u64;
    // RFC 9000 18.2: max_ack_delay is never set below it
    params.acks.min_delay_us = Some(limits::MIN_ACK_DELAY.as_micros() as u64);
    params.acks.delay_exponent = transport.ack.delay_exponent;
    if transport.wire.grease == Switch::On && endpoint.grease == Switch::On {
        params.fixed_bit = GreaseQuicBit::Supported;
    }
    params
}

/// RFC 10069 2.1, Multiflow 3.1: connection ids on both sides. Without ours, or to a client without any, no extension is
/// offered.
fn has_ids(ids: &HandshakeIds) -> bool {
    !ids.local.is_empty() && !ids.remote.is_empty()
}

fn reset_token(parts: &ConnectionParts, cid: &ConnectionId) -> ResetToken {
    parts.endpoint.reset_key.token(cid)
}

/// The peer's stream limits out of its parameters.
pub(crate) fn peer_limits(params: &TransportParameters) -> PeerLimits {
    let l = &params.limits;
    PeerLimits {
        max_data: l.max_data,
        max_stream_data_bidi_local: l.max_stream_data_bidi_local,
        max_stream_data_bidi_remote: l.max_stream_data_bidi_remote,
        max_stream_data_uni: l.max_stream_data_uni,
        max_streams_bidi: l.max_streams_bidi,
        max_streams_uni: l.max_streams_uni,
    }
}

/// Reads the peer's encoded parameters.
pub(crate) fn decode(bytes: &[u8], us: Side) -> Result<TransportParameters, plait_base::Violation> {
    TransportParameters::decode(bytes, us.peer())
}
