//! The identity of simulated servers and a client that trusts anyone, with sizes that never vary from run to run.

use std::sync::{Arc, OnceLock};

use plait_engine::crypto::{CipherSuite, ClientTlsConfig, Protection, ServerTlsConfig, tls};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::KeyLog;
use rustls::pki_types::PrivateKeyDer;

/// The application protocol of simulated transfers.
const ALPN: &[u8] = b"plait-sim";

/// Cipher suites of simulated runs, in the order in which they were offered when their digests were first taken: the suite
/// decides how long the handshake is.
const SUITES: [CipherSuite; 3] = [CipherSuite::Aes256Gcm, CipherSuite::Aes128Gcm, CipherSuite::ChaCha20Poly1305];

/// TLS of both ends, made once in a process.
#[derive(Clone, Debug)]
pub struct Identity {
    client: ClientTlsConfig,
    server: ServerTlsConfig,
    shown: tls::Identity,
}

/// Why no identity could be made: the cryptographic library refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no certificate could be made: {0}")]
pub struct IdentityError(String);

impl Identity {
    /// The identity that all runs of this process share. No session is ever resumed, so that runs cannot meet.
    ///
    /// # Errors
    /// A certificate cannot be made; every later call says the same.
    pub fn shared() -> Result<&'static Self, IdentityError> {
        static MADE: OnceLock<Result<Identity, IdentityError>> = OnceLock::new();
        MADE.get_or_init(|| make().map_err(IdentityError)).as_ref().map_err(Clone::clone)
    }

    /// The client's side, with this protection after the handshake.
    pub fn client(&self, protection: Protection) -> ClientTlsConfig {
        self.client.clone().with_protection(protection)
    }

    /// The server's side.
    pub fn server(&self, protection: Protection) -> ServerTlsConfig {
        self.server.clone().with_protection(protection)
    }

    /// The server's side, whose secrets are told to `log`.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub fn server_logged(
        &self,
        protection: Protection,
        log: Arc<dyn KeyLog>,
    ) -> Result<ServerTlsConfig, IdentityError> {
        let server = ServerTlsConfig::builder(self.shown.clone()).alpn([ALPN]).suites(SUITES).key_log(log).build();
        server.map(|server| server.with_protection(protection)).map_err(|e| IdentityError(e.to_string()))
    }
}

fn make() -> Result<Identity, String> {
    // Ed25519 signatures and a fixed serial number always have the same length.
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|e| e.to_string())?;
    let mut params = CertificateParams::new(vec!["localhost".into()]).map_err(|e| e.to_string())?;
    params.serial_number = Some(SerialNumber::from(42u64));
    let cert = params.self_signed(&key).map_err(|e| e.to_string())?.der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(str::to_owned)?;
    let shown = tls::Identity::new(vec![cert], key);
    let server = ServerTlsConfig::builder(shown.clone()).alpn([ALPN]).suites(SUITES).build();
    let client =
        ClientTlsConfig::builder().accept_any_certificate().no_resumption().alpn([ALPN]).suites(SUITES).build();
    Ok(Identity { client: client.map_err(|e| e.to_string())?, server: server.map_err(|e| e.to_string())?, shown })
}
