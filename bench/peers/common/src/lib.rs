//! What the peers have in common: their command line, their windows, what they print.
//!
//! A peer is called `server CERT KEY` or `client CERT ADDRESS LOAD`, with PEM files. The server prints its address. On each
//! stream it drops what comes and answers the first eight bytes, big-endian, with so many bytes: the protocol `perf` of
//! draft-banks-quic-performance. The loads of a client are in [`Load`].

pub mod lab;
mod load;
mod measured;
mod peer;

use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use lab::Setting;
pub use load::{Load, run};
pub use measured::Measured;
use measured::say;
pub use peer::Peer;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The protocol's name in the handshake.
pub const ALPN: &[u8] = b"perf";
/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";
/// Bytes that may be on their way, on a stream and on the connection.
pub const WINDOW_BYTES: u32 = 4 << 20;
/// Largest datagram of every contestant, bytes of UDP payload: what the variable `PEER_DATAGRAM` says, else 1452.
pub fn datagram_bytes() -> u16 {
    std::env::var("PEER_DATAGRAM").ok().and_then(|text| text.parse().ok()).unwrap_or(1452)
}

/// The same as the variable `PEER_WINDOW` says, else [`WINDOW_BYTES`].
pub fn window_bytes() -> u32 {
    std::env::var("PEER_WINDOW").ok().and_then(|text| text.parse().ok()).unwrap_or(WINDOW_BYTES)
}

/// Bytes that a sender hands over at once.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// What a client sent on a stream: how many bytes it asks for, in the first eight.
#[derive(Default)]
pub struct Question {
    head: Vec<u8>,
}

impl Question {
    /// Takes in the next bytes; all but the first eight are dropped.
    pub fn take(&mut self, bytes: &[u8]) {
        let missing = 8 - self.head.len();
        self.head.extend(bytes.iter().take(missing));
    }

    /// How many bytes it asks for; none where it is too short.
    pub fn wanted(&self) -> Option<u64> {
        Some(u64::from_be_bytes(*self.head.first_chunk()?))
    }
}

/// What a peer is to do.
pub enum Role {
    Server(ServerTask),
    Client(ClientTask),
}

/// A server's files.
pub struct ServerTask {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What a client is to do.
pub struct ClientTask {
    /// Whom to trust.
    pub cert: PathBuf,
    pub server: SocketAddr,
    pub load: Load,
}

impl Role {
    /// As the command line says.
    ///
    /// # Panics
    /// It says something else.
    pub fn from_args() -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["server", cert, key] => Self::Server(ServerTask { cert: cert.into(), key: key.into() }),
            ["client", cert, server, ref load @ ..] => Self::Client(ClientTask {
                cert: cert.into(),
                server: server.parse().expect("an address"),
                load: Load::from_words(load).expect("a load: see its documentation"),
            }),
            _ => panic!("server CERT KEY, or client CERT ADDRESS LOAD"),
        }
    }
}

impl ServerTask {
    /// The certificates and the key.
    ///
    /// # Panics
    /// The files cannot be read.
    pub fn identity(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivateKeyDer::from_pem_file(&self.key).expect("a key");
        (certificates(&self.cert), key)
    }

    /// TLS 1.3 by aws-lc-rs, for QUIC.
    ///
    /// # Panics
    /// The files cannot be read.
    pub fn tls(&self) -> rustls::ServerConfig {
        let (chain, key) = self.identity();
        let builder = rustls::ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("TLS 1.3");
        let mut tls = builder.with_no_client_auth().with_single_cert(chain, key).expect("an identity");
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls
    }
}

impl ClientTask {
    /// Whom to trust.
    ///
    /// # Panics
    /// The file cannot be read.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.cert) {
            roots.add(certificate).expect("a root");
        }
        roots
    }

    /// TLS 1.3 by aws-lc-rs, for QUIC.
    ///
    /// # Panics
    /// The file cannot be read.
    pub fn tls(&self) -> rustls::ClientConfig {
        let roots = self.roots();
        let builder = rustls::ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("TLS 1.3");
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls
    }
}

fn certificates(file: &PathBuf) -> Vec<CertificateDer<'static>> {
    let file = std::fs::File::open(file).expect("a certificate");
    CertificateDer::pem_reader_iter(BufReader::new(file)).collect::<Result<_, _>>().expect("PEM")
}

/// AES-128-GCM alone, as all others have it.
fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    // The first ones may take a tenth of a second, which no handshake should.
    provider.secure_random.fill(&mut [0; 32]).expect("randomness");
    provider.cipher_suites.retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

/// Says where the server listens.
pub fn announce(address: SocketAddr) {
    say(&address.to_string());
}
