//! The servers under test, each in a process of its own so that its resident memory means something.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plait::{Endpoint, EndpointConfig, ServerConfig, TransportConfig};

use crate::puppet;

/// Tells this test program to be a server.
const ROLE: &str = "PLAIT_HOARDERS_SERVER";
/// What the library's server promises each connection for unread stream data, bytes.
pub const WINDOW: u64 = 2 << 20;
/// What it promises for unread datagrams, bytes.
pub const DATAGRAMS: u64 = 1 << 20;

/// A server in a process of its own.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    /// The protocol that it speaks.
    pub alpn: &'static str,
}

impl Server {
    /// The library's: an application that reads bidirectional streams and leaves everything else unread.
    pub fn library() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["hoarders::server::server_process", "--exact", "--nocapture"]).env(ROLE, "1");
        Self::start(command, "plait", |line| line.split("listening on ").nth(1)?.parse().ok())
    }

    /// `plait serve` of a folder, with more flags.
    pub fn command(root: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
        command.args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--root"]).arg(root).args(flags);
        command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
        Self::start(command, "hq-interop", |line| {
            let ready: serde_json::Value = serde_json::from_str(line).ok()?;
            ready["addresses"][0].as_str()?.parse().ok()
        })
    }

    fn start(mut command: Command, alpn: &'static str, address: impl Fn(&str) -> Option<SocketAddr>) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| address(&line)).expect("the server's address");
        // It must not end for want of a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address, alpn }
    }

    /// Resident memory, bytes; none where the system does not tell.
    pub fn resident(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    }

    /// Processor time used so far, ticks of 10 ms.
    pub fn ticks(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The process of [`Server::library`]; an ordinary run of the tests ends at once.
#[test]
fn server_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // It ends with its parent, however that ends.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut transport = TransportConfig::default();
        transport.receive_window(WINDOW).stream_receive_window(WINDOW / 2);
        // Hoarders keep what they have for as long as a slow machine takes.
        transport.max_idle_timeout(Some(Duration::from_secs(600))).handshake_timeout(None);
        transport.datagram_receive_buffer_size(Some(DATAGRAMS as usize));
        let mut config = ServerConfig::new(puppet::server_tls()).unwrap();
        config.transport_config(transport.into());
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::new(EndpointConfig::fresh().unwrap(), Some(config), [address]).unwrap();
        println!("listening on {}", endpoint.local_addrs()[0]);
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                while let Ok((_, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        while let Ok(Some(_)) = recv.read_chunk(1 << 20, plait::Order::Ordered).await {}
                    });
                }
            });
        }
    });
}
