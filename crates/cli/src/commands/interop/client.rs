//! The runner's client: downloads each request into a folder, over connections as the test case wants them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plait::{ClientConfig, Connection, Endpoint, EndpointConfig, PathId, Version, path_policy};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use url::Url;

use super::Setting;
use super::case::Case;
use crate::commands::get::{move_early, update_keys_early};
use crate::connect::handshake_failure;
use crate::error::CliError;
use crate::http::FILES;
use crate::http::client::fetch;
use crate::http::sink::Sink;
use crate::meter::Meter;
use crate::options::{ClientTls, Destination, Suites, TransportPlan, Trust};
use crate::output::print_json;
use crate::{local, transport};

/// Requests under way at once.
const REQUESTS_AT_ONCE: usize = 128;
/// How long a server may take to send a session ticket after the handshake.
const TICKET_TIME: Duration = Duration::from_millis(300);
/// How long a second path may take to open.
const PATH_TIME: Duration = Duration::from_secs(10);
/// How long a closing connection may take to say goodbye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Round trips after the handshake in which a client has moved to the address that the server prefers.
const PREFERENCE_RTTS: u32 = 4;
/// Paths of a multipath connection.
const PATHS: u32 = 4;
/// Nobody speaks a version of this form (RFC 9000 15).
const RESERVED_VERSION: u32 = 0x1a2a_3a4a;

/// The server and what is wanted of it.
struct Errand<'a> {
    setting: &'a Setting,
    host: String,
    remotes: Vec<SocketAddr>,
    endpoint: Endpoint,
}

/// What a run has found out, printed at its end.
#[derive(Default)]
struct Findings {
    resumed: bool,
    early_data: bool,
    /// QUIC version of the last connection looked at.
    version: u32,
    paths: Vec<serde_json::Value>,
}

/// Downloads all requests.
pub(super) async fn run(setting: &Setting) -> Result<(), CliError> {
    let targets = targets(setting)?;
    let first = targets.first().ok_or_else(|| CliError::usage("REQUESTS names no URL"))?;
    let host = first.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let remotes = remotes(setting, &host, first.port().unwrap_or(443)).await?;
    let endpoint = endpoint(setting.case, &remotes)?;
    endpoint.set_default_client_config(config(setting)?);
    let errand = Errand { setting, host, remotes, endpoint };
    let mut findings = Findings::default();
    let (one, rest) = targets.split_at(1);
    match setting.case {
        Case::Connections => {
            for target in &targets {
                let connection = errand.connect().await?;
                errand.download(&connection, std::slice::from_ref(target)).await?;
                connection.close(0, b"");
            }
        }
        Case::Resumption | Case::ZeroRtt => errand.twice(one, rest, &mut findings).await?,
        Case::Multipath => errand.on_two_paths(&targets, &mut findings).await?,
        _ => {
            let connection = errand.connect().await?;
            errand.download(&connection, &targets).await?;
            findings.sample(&connection);
            connection.close(0, b"");
            if setting.case == Case::SecondVersion && findings.version != Version::V2.0 {
                return Err(CliError::running("the server stayed in version 1", "it must offer version 2"));
            }
        }
    }
    // A server that does not hear of the end times out.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, errand.endpoint.wait_idle()).await;
    let Findings { resumed, early_data, version, paths } = findings;
    print_json(&json!({
        "ok": true, "files": targets.len(), "resumed": resumed, "early_data": early_data, "version": version,
        "paths": paths,
    }))
}

impl Errand<'_> {
    fn remote(&self) -> SocketAddr {
        self.remotes[0]
    }

    async fn connect(&self) -> Result<Connection, CliError> {
        let connecting = self.begin()?;
        connecting.await.map_err(|error| handshake_failure(&self.host, FILES, self.remote(), &error))
    }

    fn begin(&self) -> Result<plait::Connecting, CliError> {
        let begun = self.endpoint.connect(self.remote(), &self.host);
        begun.map_err(|error| CliError::running(format!("cannot connect to {}: {error}", self.host), "check REQUESTS"))
    }

    /// The first file over a first connection, the others over a second that resumes it.
    async fn twice(&self, one: &[Url], rest: &[Url], findings: &mut Findings) -> Result<(), CliError> {
        let first = self.connect().await?;
        self.download(&first, one).await?;
        tokio::time::sleep(TICKET_TIME.max(first.rtt() * 2)).await;
        first.close(0, b"");
        let second = if self.setting.case == Case::Resumption {
            let connection = self.connect().await?;
            self.download(&connection, rest).await?;
            connection
        } else {
            let Ok((connection, accepted)) = self.begin()?.into_0rtt() else {
                return Err(CliError::running("the first session allows no early data", "look at the server"));
            };
            let done = self.download(&connection, rest).await;
            findings.early_data = accepted.await;
            if findings.early_data {
                done?;
            } else {
                self.download(&connection, rest).await?;
            }
            connection
        };
        findings.sample(&second);
        second.close(0, b"");
        if findings.resumed {
            Ok(())
        } else {
            Err(CliError::running("the session was not resumed", "look at the server"))
        }
    }

    /// Half of the files over two paths, the others over the second alone.
    async fn on_two_paths(&self, targets: &[Url], findings: &mut Findings) -> Result<(), CliError> {
        let connection = self.connect().await?;
        let hint = "look at the server's log";
        if !connection.is_multipath() {
            return Err(CliError::running("multipath was not negotiated", hint));
        }
        let other =
            *self.remotes.get(1).ok_or_else(|| CliError::usage("the server has one address; add --other-address"))?;
        let from = local::system_choice(other)?.ip;
        match tokio::time::timeout(PATH_TIME, connection.open_path((from, other))).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(CliError::running(format!("no path to {other}: {error}"), hint)),
            Err(_) => return Err(CliError::running(format!("no path to {other} in time"), hint)),
        }
        let (half, rest) = targets.split_at(targets.len().div_ceil(2));
        self.download(&connection, half).await?;
        findings.sample(&connection);
        if let Some(path) = connection.path(PathId::ZERO) {
            path.close().map_err(|error| CliError::running(format!("path 0 does not close: {error}"), hint))?;
        }
        self.download(&connection, rest).await?;
        findings.sample(&connection);
        connection.close(0, b"");
        Ok(())
    }

    /// Downloads these, many at once.
    async fn download(&self, connection: &Connection, targets: &[Url]) -> Result<(), CliError> {
        let meter = Arc::new(Meter::start());
        if self.setting.case == Case::KeyUpdate {
            tokio::spawn(update_keys_early(connection.clone(), Arc::clone(&meter)));
        }
        if self.setting.case == Case::Migration {
            tokio::spawn(move_away(connection.clone(), self.endpoint.clone(), self.remote(), Arc::clone(&meter)));
        }
        let room = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
        let mut running = JoinSet::new();
        for target in targets {
            let path = target.path().to_owned();
            let file = self.setting.downloads.join(path.trim_start_matches('/'));
            let (connection, meter, room) = (connection.clone(), Arc::clone(&meter), Arc::clone(&room));
            running.spawn(async move {
                let _held = room.acquire_owned().await;
                let sink = Sink::open(&Destination::File(file)).await?;
                fetch(&connection, &path, sink, &meter).await
            });
        }
        while let Some(done) = running.join_next().await {
            done.map_err(|error| CliError::running(error, "try again"))??;
        }
        Ok(())
    }
}

/// Moves to another port of ours in the middle of a download, unless the server has an address that it prefers to this one.
async fn move_away(connection: Connection, endpoint: Endpoint, server: SocketAddr, meter: Arc<Meter>) {
    // Its preferred address is probed at once, and used when it answers.
    tokio::time::sleep(connection.rtt() * PREFERENCE_RTTS).await;
    if let (true, Some(ip)) = (connection.remote_address() == server, connection.local_ip()) {
        move_early(connection, endpoint, ip, meter).await;
    }
}

impl Findings {
    fn sample(&mut self, connection: &Connection) {
        let agreed = connection.handshake_data();
        (self.resumed, self.version) = (agreed.resumed, agreed.version.0);
        self.paths.extend(connection.stats().paths.iter().map(|path| {
            json!({"id": path.id.0, "remote": path.tuple.remote.to_string(), "state": path.state.name(),
                   "stream_bytes_received": path.stream_bytes_received})
        }));
    }
}

fn targets(setting: &Setting) -> Result<Vec<Url>, CliError> {
    let parse =
        |text: &String| Url::parse(text).map_err(|error| CliError::usage(format!("`{text}` is not a URL: {error}")));
    setting.requests.iter().map(parse).collect()
}

/// The server's addresses, the one of the handshake first.
async fn remotes(setting: &Setting, host: &str, port: u16) -> Result<Vec<SocketAddr>, CliError> {
    let found = tokio::net::lookup_host((host, port)).await;
    let mut found: Vec<_> = found
        .map_err(|error| CliError::running(format!("cannot find the address of {host} ({error})"), "check REQUESTS"))?
        .collect();
    if let Some(other) = setting.param("--other-address") {
        found.push(other.parse().map_err(|_| CliError::usage(format!("`{other}` is not an address with a port")))?);
    }
    found.dedup();
    if found.is_empty() {
        return Err(CliError::running(format!("{host} has no address"), "check REQUESTS"));
    }
    Ok(found)
}

/// An endpoint with a socket towards each address.
fn endpoint(case: Case, remotes: &[SocketAddr]) -> Result<Endpoint, CliError> {
    let mut binds: Vec<SocketAddr> = Vec::new();
    for remote in remotes {
        let bind = SocketAddr::new(local::system_choice(*remote)?.ip, 0);
        if !binds.contains(&bind) {
            binds.push(bind);
        }
    }
    let mut fresh =
        EndpointConfig::fresh().map_err(|error| CliError::running(error, "the system must provide randomness"))?;
    if case == Case::SecondVersion {
        // Servers that go by the client's preferred_version see that it likes version 2 better than the one it begins with.
        fresh.supported_versions(vec![Version::V2, Version::V1]);
    }
    Endpoint::new(fresh, None, binds).map_err(|error| CliError::running(error, "check the network"))
}

fn config(setting: &Setting) -> Result<ClientConfig, CliError> {
    let authority = setting.certs.join("ca.pem");
    let trust = if authority.is_file() { Trust::File(authority) } else { Trust::Anybody };
    let suites = if setting.case == Case::ChaCha20 { Suites::ChaCha20 } else { Suites::All };
    let mut config = transport::client_config(&ClientTls { suites, ..ClientTls::new(FILES, trust) })?;
    let paths = if setting.case == Case::Multipath { PATHS } else { 1 };
    let mut carriage = transport::config(&TransportPlan::usual(paths));
    if let Some(manual) = path_policy("manual") {
        carriage.path_policy(manual);
    }
    transport::log_to(&mut carriage, setting.qlog.as_ref())?;
    config.transport_config(Arc::new(carriage));
    if setting.case == Case::VersionNegotiation {
        config.version(Version(RESERVED_VERSION));
    }
    Ok(config)
}
