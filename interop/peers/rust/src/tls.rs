//! Certificates and rustls settings.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::args::Options;

/// Writes a certificate for localhost and the loopback addresses.
pub fn make_certificate(dir: &Path) -> Result<()> {
    let names = ["localhost", "server", "server4", "server6", "127.0.0.1", "127.0.0.2", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    fs::create_dir_all(dir)?;
    fs::write(dir.join("cert.pem"), made.cert.pem())?;
    fs::write(dir.join("priv.key"), made.signing_key.serialize_pem())?;
    Ok(())
}

fn provider(options: &Options) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    if options.chacha20 {
        provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256];
    }
    Arc::new(provider)
}

/// The suite of Initial packets, which is AES whatever was negotiated.
pub fn initial_suite() -> Option<rustls::quic::Suite> {
    aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()
}

pub fn server(options: &Options) -> Result<Arc<ServerConfig>> {
    let chain = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let mut config = ServerConfig::builder_with_provider(provider(options))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"hq-interop".to_vec()];
    config.max_early_data_size = u32::MAX;
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok(Arc::new(config))
}

/// A client and the count of certificates it has checked: a resumed handshake checks none.
pub fn client(options: &Options) -> Result<(Arc<ClientConfig>, Arc<Checks>)> {
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(&options.ca).with_context(|| format!("--ca {:?}", options.ca))? {
        roots.add(cert?)?;
    }
    let provider = provider(options);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let checks = Arc::new(Checks { verifier, count: AtomicUsize::new(0) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(checks.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"hq-interop".to_vec()];
    config.enable_early_data = options.early;
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    Ok((Arc::new(config), checks))
}

/// Counts what the real verifier is asked.
#[derive(Debug)]
pub struct Checks {
    verifier: Arc<WebPkiServerVerifier>,
    count: AtomicUsize,
}

impl Checks {
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

impl ServerCertVerifier for Checks {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.verifier.verify_server_cert(leaf, rest, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
