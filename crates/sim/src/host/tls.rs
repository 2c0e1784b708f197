//! The identity of simulated servers and a client that trusts anyone, with sizes that never vary from run to run.

use std::sync::{Arc, OnceLock};

use plait_engine::crypto::{ClientTlsConfig, Protection, ServerTlsConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

/// The application protocol of simulated transfers.
const ALPN: &[u8] = b"plait-sim";

/// TLS of both ends, made once in a process.
#[derive(Clone, Debug)]
pub struct Identity {
    client: ClientTlsConfig,
    server: ServerTlsConfig,
}

/// Why no identity could be made: the cryptographic library refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no certificate could be made: {0}")]
pub struct IdentityError(String);

impl Identity {
    /// The identity that all runs of this process share. No session is ever resumed, so that runs cannot meet.
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
}

fn make() -> Result<Identity, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    // Ed25519 signatures and a fixed serial number always have the same length.
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(|e| e.to_string())?;
    let mut params = CertificateParams::new(vec!["localhost".into()]).map_err(|e| e.to_string())?;
    params.serial_number = Some(SerialNumber::from(42u64));
    let cert = params.self_signed(&key).map_err(|e| e.to_string())?.der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(str::to_owned)?;
    let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .map_err(|e| e.to_string())?;
    server.alpn_protocols = vec![ALPN.to_vec()];
    let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting(provider)))
        .with_no_client_auth();
    client.alpn_protocols = vec![ALPN.to_vec()];
    let client = ClientTlsConfig::from_rustls(Arc::new(client)).map_err(|e| e.to_string())?;
    Ok(Identity {
        client: client.with_changes(|config| config.resumption = Resumption::disabled()),
        server: ServerTlsConfig::from_rustls(Arc::new(server)).map_err(|e| e.to_string())?,
    })
}

#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
