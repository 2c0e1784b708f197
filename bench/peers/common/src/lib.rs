//! What the peers have in common: their command line, their windows, what they print.
//!
//! A peer is called `server CERT KEY` or `client CERT ADDRESS BYTES STREAMS`, with PEM files. The server prints its address. On
//! each stream it answers eight bytes, big-endian, with so many bytes: the protocol `perf` of draft-banks-quic-performance. The
//! client asks, drops what comes, prints the seconds and the CPU seconds that it took, and waits to be killed.

use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
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

/// Bytes that a sender hands over at once.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Longest request that a server takes.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// How many bytes a request asks for: its first eight say so.
///
/// # Panics
/// It has fewer.
pub fn wanted(request: &[u8]) -> u64 {
    u64::from_be_bytes(*request.first_chunk().expect("eight bytes"))
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

/// What a client is to fetch.
pub struct ClientTask {
    /// Whom to trust.
    pub cert: PathBuf,
    pub server: SocketAddr,
    /// On all streams together.
    pub bytes: u64,
    pub streams: u64,
}

impl Role {
    /// As the command line says.
    ///
    /// # Panics
    /// It says something else.
    pub fn from_args() -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let number = |text: &String| text.parse().expect("a number");
        match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["server", cert, key] => Self::Server(ServerTask { cert: cert.into(), key: key.into() }),
            ["client", cert, server, _, _] => Self::Client(ClientTask {
                cert: cert.into(),
                server: server.parse().expect("an address"),
                bytes: number(&args[3]),
                streams: number(&args[4]),
            }),
            _ => panic!("server CERT KEY, or client CERT ADDRESS BYTES STREAMS"),
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
    /// TLS 1.3 by aws-lc-rs, for QUIC.
    ///
    /// # Panics
    /// The file cannot be read.
    pub fn tls(&self) -> rustls::ClientConfig {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.cert) {
            roots.add(certificate).expect("a root");
        }
        let builder = rustls::ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("TLS 1.3");
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![ALPN.to_vec()];
        tls
    }

    /// How many bytes stream `at` carries: the first ones take what cannot be shared out evenly.
    pub fn share(&self, at: u64) -> u64 {
        self.bytes / self.streams + u64::from(at < self.bytes % self.streams)
    }
}

fn certificates(file: &PathBuf) -> Vec<CertificateDer<'static>> {
    let file = std::fs::File::open(file).expect("a certificate");
    CertificateDer::pem_reader_iter(BufReader::new(file)).collect::<Result<_, _>>().expect("PEM")
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Says where the server listens.
pub fn announce(address: SocketAddr) {
    say(&address.to_string());
}

/// A transfer that is being measured.
pub struct Measured {
    began: Instant,
    cpu_seconds: f64,
}

impl Measured {
    /// It begins now.
    #[allow(clippy::disallowed_methods, reason = "it measures")]
    pub fn start() -> Self {
        Self { began: Instant::now(), cpu_seconds: cpu_seconds() }
    }

    /// Says how long it took and how much of a core, and waits to be killed.
    pub fn finish(self) -> ! {
        let (seconds, cpu) = (self.began.elapsed().as_secs_f64(), cpu_seconds() - self.cpu_seconds);
        say(&format!("{seconds} {cpu}"));
        loop {
            std::thread::park();
        }
    }
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("times");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("standard output");
}
