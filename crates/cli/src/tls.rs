//! Certificates: those a server shows and those a client trusts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use plait::tls::any_certificate;
use plait_sim::files::read_whole;
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, RootCertStore};
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::CliError;
use crate::options::{ClientTls, Sessions, Trust};

/// A certificate chain and its key.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    /// The certificate as PEM, where it was made here.
    pub(crate) made_pem: Option<String>,
}

impl Shown {
    /// Reads a chain and a key, both PEM.
    pub(crate) fn read(cert: &Path, key: &Path) -> Result<Self, CliError> {
        let chain = certificates("--cert", cert)?;
        let bytes = read("--key", key)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
            CliError::running(format!("--key {}: no private key in it ({error})", key.display()), "give a PEM file")
        })?;
        Ok(Self { chain, key, made_pem: None })
    }

    /// Makes a certificate of `key` that signs itself, for localhost, `names` and `addresses`. Whoever trusts one of a key
    /// trusts all of it: only name and key of the issuer count.
    pub(crate) fn self_signed(
        key: &KeyPair,
        names: &[String],
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, CliError> {
        let mut subjects = vec!["localhost".to_owned()];
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        for subject in addresses.into_iter().chain(loopback).map(|ip| ip.to_string()).chain(names.iter().cloned()) {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        let made = CertificateParams::new(subjects).and_then(|params| params.self_signed(key)).map_err(|error| {
            CliError::running(format!("no certificate could be made: {error}"), "check the names given with --name")
        })?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok(Self { chain: vec![made.der().clone()], key, made_pem: Some(made.pem()) })
    }
}

impl Clone for Shown {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key(), made_pem: self.made_pem.clone() }
    }
}

/// The suites in the order in which they are offered under QUIC: TLS over TCP is there to be compared with it.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// Draws the first random bytes of this process, for which the library gathers entropy: where that takes a tenth of a second, no
/// handshake should.
pub(crate) fn draw_randomness() -> Result<(), CliError> {
    let drawn = provider().secure_random.fill(&mut [0; 32]);
    drawn.map_err(|_| CliError::running("no random bytes can be had", "the system must provide randomness"))
}

fn cannot_begin(error: impl std::fmt::Display) -> CliError {
    CliError::running(format!("TLS cannot begin: {error}"), "check --key, --cert and --ca")
}

/// A server over TCP, with this certificate: TLS 1.3 as QUIC has it.
pub(crate) fn server_over_tcp(shown: Shown) -> Result<rustls::ServerConfig, CliError> {
    let builder = rustls::ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(cannot_begin)?;
    builder.with_no_client_auth().with_single_cert(shown.chain, shown.key).map_err(cannot_begin)
}

/// A client over TCP with this trust: TLS 1.3 as QUIC has it.
pub(crate) fn client_over_tcp(plan: &ClientTls) -> Result<rustls::ClientConfig, CliError> {
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(cannot_begin)?;
    let mut config = match &plan.trust {
        Trust::File(file) => builder.with_root_certificates(roots(file)?).with_no_client_auth(),
        Trust::System => builder.dangerous().with_custom_certificate_verifier(system_verifier()?).with_no_client_auth(),
        Trust::Anybody => {
            let anybody = any_certificate(provider());
            builder.dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
        }
    };
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    if plan.sessions == Sessions::Forgotten {
        config.resumption = rustls::client::Resumption::disabled();
    }
    Ok(config)
}

/// The certificates in a file, as roots to trust.
pub(crate) fn roots(file: &Path) -> Result<RootCertStore, CliError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("--ca", file)? {
        store.add(certificate).map_err(|error| {
            CliError::running(
                format!("--ca {}: a certificate in it cannot be trusted ({error})", file.display()),
                "give the certificates of authorities, or what `plait serve --cert-out` wrote",
            )
        })?;
    }
    Ok(store)
}

/// Trusts whom the operating system trusts.
pub(crate) fn system_verifier() -> Result<Arc<dyn ServerCertVerifier>, CliError> {
    match rustls_platform_verifier::Verifier::new(provider()) {
        Ok(verifier) => Ok(Arc::new(verifier)),
        Err(error) => Err(CliError::running(
            format!("this system has no certificates to trust ({error})"),
            "give the server's authority with --ca FILE, or accept any with --insecure",
        )),
    }
}

fn certificates(flag: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, CliError> {
    let bytes = read(flag, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let broken = |what: String| CliError::running(format!("{flag} {}: {what}", file.display()), "give a PEM file");
    match found {
        Ok(found) if found.is_empty() => Err(broken("no certificate in it".into())),
        Ok(found) => Ok(found),
        Err(PemError::MissingSectionEnd { .. }) => Err(broken("a certificate in it is cut off".into())),
        Err(error) => Err(broken(format!("not readable as PEM ({error})"))),
    }
}

fn read(flag: &str, file: &Path) -> Result<Vec<u8>, CliError> {
    read_whole(file)
        .map_err(|error| CliError::running(format!("{flag} {}: {error}", file.display()), "check the file name"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::identity::fresh;

    #[test]
    fn tcp_has_the_cipher_suites_of_quic_in_their_order() {
        let suites: Vec<_> = provider().cipher_suites.iter().map(|suite| suite.suite()).collect();
        assert_eq!(suites[0], CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert!(suites.contains(&CipherSuite::TLS13_AES_256_GCM_SHA384), "{suites:?}");
    }

    #[test]
    fn made_certificates_can_be_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let made =
            Shown::self_signed(&fresh().unwrap(), &["example.org".into()], ["127.0.0.2".parse().unwrap()]).unwrap();
        let file = dir.path().join("ca.pem");
        fs::write(&file, made.made_pem.as_deref().unwrap()).unwrap();
        assert_eq!(roots(&file).unwrap().len(), 1);
        fs::write(&file, "nothing").unwrap();
        assert!(roots(&file).unwrap_err().to_string().contains("no certificate in it"));
        assert!(roots(&dir.path().join("none")).unwrap_err().to_string().contains("--ca"));
        assert!(Shown::read(&file, &file).is_err());
    }
}
