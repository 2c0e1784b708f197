//! One bulk download over loopback: plait on one path and on two, and quinn, interleaved, each end a process of its own.
//!
//! `cargo bench -p plait --bench loopback -- [GIGABYTES] [ROUNDS]` prints Gbit/s and CPU seconds per GB of each end,
//! median, least and most. Windows are the same for all: 2 MiB a stream, 4 MiB a connection.
#![allow(clippy::disallowed_methods)] // it measures

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

const STREAM_WINDOW: u64 = 2 << 20;
const WINDOW: u64 = 4 << 20;
const CHUNK_BYTES: usize = 64 * 1024;
const ALPN: &[u8] = b"bulk";

const LOCAL: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))];

/// Who transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contender {
    Plait,
    PlaitTwoPaths,
    Quinn,
}

impl Contender {
    const ALL: [Self; 3] = [Self::Plait, Self::PlaitTwoPaths, Self::Quinn];

    fn name(self) -> &'static str {
        match self {
            Self::Plait => "plait",
            Self::PlaitTwoPaths => "plait, two paths",
            Self::Quinn => "quinn 0.11",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// One transfer: goodput and the CPU time of both ends.
#[derive(Clone, Copy)]
struct Sample {
    gbits: f64,
    sender: f64,
    receiver: f64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let role = |name| args.first().is_some_and(|a| a == name);
    if role("serve") || role("fetch") {
        let contender = args.get(1).and_then(|a| Contender::by_name(a)).expect("a contender");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        match role("serve") {
            true => runtime.block_on(serve(contender)),
            false => {
                let remote = args.get(2).and_then(|a| a.parse().ok()).expect("an address");
                let bytes = args.get(3).and_then(|a| a.parse().ok()).expect("a size");
                runtime.block_on(fetch(contender, remote, bytes));
            }
        }
        return;
    }
    let number = |i: usize, default| args.get(i).and_then(|a| a.parse::<u64>().ok()).unwrap_or(default);
    let (gigabytes, rounds) = (number(0, 2), number(1, 5));
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); Contender::ALL.len()];
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (contender, samples) in Contender::ALL.into_iter().zip(&mut samples) {
            samples.push(measure(contender, gigabytes * 1_000_000_000));
        }
    }
    println!("| {gigabytes} GB, {rounds} rounds | Gbit/s | CPU s/GB sender | CPU s/GB receiver |\n|---|---|---|---|");
    for (contender, samples) in Contender::ALL.into_iter().zip(&samples) {
        let column = |of: fn(&Sample) -> f64| spread(samples.iter().map(of).collect());
        let (g, s, r) = (column(|x| x.gbits), column(|x| x.sender), column(|x| x.receiver));
        println!("| {} | {g} | {s} | {r} |", contender.name());
    }
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    format!("{median:.2} ({:.2}-{:.2})", values[0], values[values.len() - 1])
}

fn child(args: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(args).stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().expect("a second process")
}

fn measure(contender: Contender, bytes: u64) -> Sample {
    let mut server = child(&["serve", contender.name()]);
    let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
    let address = lines.next().and_then(Result::ok).expect("an address");
    let before = cpu_seconds(server.id());
    let mut client = child(&["fetch", contender.name(), &address, &bytes.to_string()]);
    let mut report = BufReader::new(client.stdout.take().expect("its output")).lines();
    let seconds: f64 = report.next().and_then(Result::ok).and_then(|l| l.parse().ok()).expect("a time");
    let gigabytes = bytes as f64 / 1e9;
    let sample = Sample {
        gbits: bytes as f64 * 8.0 / 1e9 / seconds,
        sender: (cpu_seconds(server.id()) - before) / gigabytes,
        receiver: cpu_seconds(client.id()) / gigabytes,
    };
    for mut process in [client, server] {
        let _ = process.kill();
        let _ = process.wait();
    }
    sample
}

/// User and system time of a process so far, from its stat file (Linux); 0 elsewhere.
fn cpu_seconds(pid: u32) -> f64 {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return 0.0 };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn certificate() -> (Vec<rustls::pki_types::CertificateDer<'static>>, rustls::pki_types::PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    (vec![made.cert.der().clone()], key.into())
}

fn announce(address: SocketAddr) {
    println!("{address}");
    std::io::stdout().flush().expect("output");
}

/// Says how long it took, then waits to be asked for its CPU time and killed.
async fn finish(started: Instant) {
    println!("{}", started.elapsed().as_secs_f64());
    std::io::stdout().flush().expect("output");
    tokio::time::sleep(Duration::from_secs(60)).await;
}

fn transport(contender: Contender) -> Arc<plait::TransportConfig> {
    let mut config = plait::TransportConfig::default();
    config.max_stream_receive_window(STREAM_WINDOW).stream_receive_window(STREAM_WINDOW);
    config.max_receive_window(WINDOW).receive_window(WINDOW).send_window(WINDOW);
    let paths = if contender == Contender::PlaitTwoPaths { 2 } else { 1 };
    config.max_concurrent_multipath_paths(paths);
    if let Some(cubic) = plait::congestion_controller("cubic") {
        config.congestion_controller_factory(cubic).multipath_controller(None);
    }
    Arc::new(config)
}

async fn serve(contender: Contender) {
    let (chain, key) = certificate();
    let payload = Bytes::from(vec![7; CHUNK_BYTES]);
    if contender == Contender::Quinn {
        let mut config = quinn::ServerConfig::with_single_cert(chain, key).expect("quinn's configuration");
        config.transport_config(quinn_transport());
        let endpoint = quinn::Endpoint::server(config, SocketAddr::new(LOCAL[0], 0)).expect("a socket");
        announce(endpoint.local_addr().expect("an address"));
        let connection = endpoint.accept().await.expect("a client").await.expect("a connection");
        let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
        let asked = receive.read_to_end(8).await.expect("a size");
        let mut left = u64::from_be_bytes(asked.try_into().expect("eight bytes"));
        while left > 0 {
            let chunk = payload.slice(..payload.len().min(left as usize));
            left -= chunk.len() as u64;
            send.write_chunk(chunk).await.expect("room");
        }
        let _ = send.finish();
        let _ = connection.closed().await;
        return;
    }
    let mut config = plait::ServerConfig::with_single_cert(chain, key, [ALPN]).expect("a configuration");
    config.transport_config(transport(contender));
    let endpoint = plait::Endpoint::server(config, SocketAddr::new(LOCAL[0], 0)).expect("a socket");
    announce(endpoint.local_addr().expect("an address"));
    let connection = endpoint.accept().await.expect("a client").await.expect("a connection");
    let (mut send, mut receive) = connection.accept_bi().await.expect("a stream");
    let asked = receive.read_to_end(8).await.expect("a size");
    let mut left = u64::from_be_bytes(asked.try_into().expect("eight bytes"));
    while left > 0 {
        let chunk = payload.slice(..payload.len().min(left as usize));
        left -= chunk.len() as u64;
        send.write_chunk(chunk).await.expect("room");
    }
    let _ = send.finish();
    connection.closed().await;
}

async fn fetch(contender: Contender, remote: SocketAddr, bytes: u64) {
    if contender == Contender::Quinn {
        let endpoint = quinn::Endpoint::client(SocketAddr::new(LOCAL[0], 0)).expect("a socket");
        let connection =
            endpoint.connect_with(quinn_client(), remote, "localhost").expect("a start").await.expect("a connection");
        let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
        let started = Instant::now();
        send.write_all(&bytes.to_be_bytes()).await.expect("room");
        let _ = send.finish();
        let mut got = 0;
        while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.expect("data") {
            got += chunk.bytes.len() as u64;
        }
        assert_eq!(got, bytes);
        return finish(started).await;
    }
    let mut config = plait::ClientConfig::insecure([ALPN]).expect("a configuration");
    config.transport_config(transport(contender));
    let endpoint = plait::Endpoint::client(SocketAddr::new(LOCAL[0], 0)).expect("a socket");
    let connection = endpoint.connect_with(config, remote, "localhost").expect("a start").await.expect("a connection");
    if contender == Contender::PlaitTwoPaths {
        let local = endpoint.add_socket(SocketAddr::new(LOCAL[1], 0)).expect("a second socket");
        connection.open_path(plait::FourTuple { local, remote }).await.expect("a second path");
    }
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    let started = Instant::now();
    send.write_all(&bytes.to_be_bytes()).await.expect("room");
    let _ = send.finish();
    let mut got = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, plait::Order::Ordered).await.expect("data") {
        got += chunk.bytes.len() as u64;
    }
    assert_eq!(got, bytes);
    finish(started).await;
}

fn quinn_transport() -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    config.stream_receive_window(quinn::VarInt::from_u32(STREAM_WINDOW as u32));
    config.receive_window(quinn::VarInt::from_u32(WINDOW as u32)).send_window(WINDOW);
    Arc::new(config)
}

fn quinn_client() -> quinn::ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).expect("a cipher suite");
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(quinn_transport());
    config
}

/// Takes any certificate: both ends are ours.
#[derive(Debug)]
struct Anyone(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &rustls::pki_types::CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
