//! Configurations of both ends: the same on every run, small windows so that limits are soon reached.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plait_base::Random;
use plait_engine::crypto::tls::Identity;
use plait_engine::crypto::{ClientTlsConfig, Protection, ServerTlsConfig};
use plait_engine::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use rcgen::{CertificateParams, KeyPair};

/// PKCS #8 of an Ed25519 key, up to its 32 secret bytes (RFC 8410 7).
const PKCS8_ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A certificate that is the same in every run: its key is public and worth nothing.
fn identity() -> Identity {
    let pkcs8 = [&PKCS8_ED25519[..], &[7; 32]].concat();
    let key = KeyPair::try_from(pkcs8).expect("a well-formed key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a valid name");
    let certificate = params.self_signed(&key).expect("a certificate of our own");
    Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).expect("what we just made")
}

/// TLS of the server; null protection after the handshake.
fn server_tls() -> ServerTlsConfig {
    static TLS: OnceLock<ServerTlsConfig> = OnceLock::new();
    let make = || ServerTlsConfig::builder(identity()).alpn(["plait"]).build().expect("valid settings");
    TLS.get_or_init(make).clone().with_protection(Protection::NullAfterHandshake)
}

/// TLS of the client; null protection after the handshake.
fn client_tls() -> ClientTlsConfig {
    static TLS: OnceLock<ClientTlsConfig> = OnceLock::new();
    let make = || {
        let builder = ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]);
        builder.no_resumption().build().expect("valid settings")
    };
    TLS.get_or_init(make).clone().with_protection(Protection::NullAfterHandshake)
}

/// Transport of both ends.
pub fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_multipath_paths(4)
        .max_idle_timeout(Some(Duration::from_secs(20)))
        .max_concurrent_bidi_streams(4)
        .max_concurrent_uni_streams(4)
        .max_stream_receive_window(8 << 10)
        .max_receive_window(16 << 10)
        .send_window(64 << 10);
    Arc::new(config)
}

/// The server's settings.
pub fn server() -> ServerConfig {
    let mut config = ServerConfig::from_random(server_tls(), &mut Random::from_u64(77));
    config.transport_config(transport()).max_incoming(8).incoming_buffer_size_total(16 << 10);
    config
}

/// The client's settings.
pub fn client() -> ClientConfig {
    let mut config = ClientConfig::new(client_tls());
    config.transport_config(transport());
    config
}

/// Settings of an endpoint of either end.
pub fn endpoint(seed: u64) -> EndpointConfig {
    let mut config = EndpointConfig::from_random(&mut Random::from_u64(seed));
    config.max_connections(8);
    config
}
