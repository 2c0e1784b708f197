//! The client's way to a server: its addresses, our sockets, the handshake, further paths.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{Bind, Connection, ConnectionError, Endpoint, EndpointConfig, PathEvent, Version};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::fail::Fail;
use crate::http::meter::Meter;
use crate::local::{self, Local};
use crate::meant::{EarlyData, GetPlan, Locals, VersionTaste};
use crate::output::remark;
use crate::transport;

/// How long a closing connection may take to say goodbye.
pub(crate) const FAREWELL_TIME: Duration = Duration::from_millis(500);
/// Least time that a server gets to send a session ticket after the handshake.
const TICKET_TIME: Duration = Duration::from_millis(100);

/// A connection with what belongs to it.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) endpoint: Endpoint,
    pub(crate) remote: SocketAddr,
    /// Local addresses of further paths.
    pub(crate) further: Vec<IpAddr>,
    /// Runs since the first packet.
    pub(crate) meter: Arc<Meter>,
    pub(crate) handshake: Handshake,
}

/// How far the handshake is.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// Done.
    Done,
    /// Early data was offered: becomes whether it was taken, once the handshake is done.
    Early(JoinHandle<bool>),
}

/// Connects as planned, to the first address of the host that answers.
pub(crate) async fn connect(plan: &GetPlan) -> Result<Connected, Fail> {
    let clock = Clock::start();
    let remotes = addresses(plan).await?;
    let mut failure = Fail::running(format!("{} has no address", plan.host), "check the name");
    for (at, remote) in remotes.iter().enumerate() {
        let share = (remotes.len() - at) as u32;
        let patience = plan.connect_timeout.saturating_sub(clock.elapsed()) / share;
        match connect_to(plan, *remote, patience).await {
            Ok(connected) => return Ok(connected),
            Err(fail) => failure = fail,
        }
    }
    Err(failure)
}

/// The host's addresses; those that suit the first named path come first.
async fn addresses(plan: &GetPlan) -> Result<Vec<SocketAddr>, Fail> {
    let host = plan.host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, plan.port)).await.map_err(|error| {
        Fail::running(format!("cannot find the address of {host} ({error})"), "check the name and your connection")
    })?;
    let mut found: Vec<_> = found.collect();
    if let Locals::Named(names) = &plan.locals
        && let Some(Ok(ip)) = names.first().map(|name| name.parse::<IpAddr>())
    {
        found.sort_by_key(|remote| remote.is_ipv4() != ip.is_ipv4());
    }
    found.dedup();
    Ok(found)
}

async fn connect_to(plan: &GetPlan, remote: SocketAddr, patience: Duration) -> Result<Connected, Fail> {
    let locals = locals(plan, remote)?;
    let endpoint = endpoint(&locals, plan.habits.taste)?;
    if plan.locals == Locals::All && !remote.ip().is_loopback() {
        endpoint.follow_interfaces();
    }
    let (trust, suites) = (plan.trust.clone(), plan.habits.suites);
    let mut config = off_thread(move || transport::client_config(&trust, suites)).await?;
    let mut carriage = transport::config(&plan.transport);
    transport::open_all_paths(&mut carriage);
    transport::log_to(&mut carriage, plan.habits.qlog.as_ref())?;
    config.transport_config(Arc::new(carriage));
    if let Some(version) = plan.habits.version {
        config.version(Version(version));
    }
    endpoint.set_default_client_config(config);
    if plan.early_data != EarlyData::No {
        fetch_ticket(plan, &endpoint, remote, patience).await?;
    }
    let meter = Arc::new(Meter::start());
    let (connection, handshake) = shake_hands(plan, &endpoint, remote, (patience, &meter)).await?;
    let further = locals.iter().skip(1).map(|local| local.ip).collect();
    Ok(Connected { connection, endpoint, remote, further, meter, handshake })
}

fn locals(plan: &GetPlan, remote: SocketAddr) -> Result<Vec<Local>, Fail> {
    let names = match &plan.locals {
        Locals::Single => return Ok(vec![local::anywhere(remote)?]),
        Locals::All => return local::all(remote),
        Locals::Named(names) => names,
    };
    let mut locals: Vec<Local> = Vec::with_capacity(names.len());
    for name in names {
        let local = local::resolve(name, remote)?;
        if locals.iter().any(|other| other.ip == local.ip) {
            return Err(Fail::usage(format!("--path {name}: {} is used by another --path already", local.ip)));
        }
        locals.push(local);
    }
    Ok(locals)
}

/// An endpoint with a socket for each local address.
fn endpoint(locals: &[Local], taste: VersionTaste) -> Result<Endpoint, Fail> {
    let address = |local: &Local| SocketAddr::new(local.ip, 0);
    let bind = |local: &Local| match &local.interface {
        Some(name) => Bind::address(address(local)).interface(name),
        None => Bind::address(address(local)),
    };
    let config = || {
        let mut config =
            EndpointConfig::fresh().map_err(|error| Fail::running(error, "the system must provide randomness"))?;
        if taste == VersionTaste::Second {
            config.supported_versions(vec![Version::V2, Version::V1]);
        }
        Ok::<_, Fail>(config)
    };
    // Where the system does not let us name the interface, its address has to do.
    let made = Endpoint::new(config()?, None, locals.iter().map(bind));
    let made = match made {
        Err(_) if locals.iter().any(|local| local.interface.is_some()) => {
            Endpoint::new(config()?, None, locals.iter().map(address))
        }
        made => made,
    };
    made.map_err(|error| Fail::running(error, "see --path"))
}

/// A first connection that only brings a session to resume.
async fn fetch_ticket(plan: &GetPlan, endpoint: &Endpoint, remote: SocketAddr, patience: Duration) -> Result<(), Fail> {
    let connection = handshake(plan, endpoint, remote, patience).await?;
    tokio::time::sleep(TICKET_TIME.max(connection.rtt() * 2)).await;
    connection.close(0, b"ticket");
    Ok(())
}

async fn handshake(
    plan: &GetPlan,
    endpoint: &Endpoint,
    remote: SocketAddr,
    patience: Duration,
) -> Result<Connection, Fail> {
    let connecting = endpoint.connect(remote, server_name(plan)).map_err(|error| cannot_begin(remote, &error))?;
    match tokio::time::timeout(patience, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(handshake_failure(&plan.host, remote, &error)),
        Err(_) => Err(no_answer(&plan.host, remote)),
    }
}

async fn shake_hands(
    plan: &GetPlan,
    endpoint: &Endpoint,
    remote: SocketAddr,
    (patience, meter): (Duration, &Arc<Meter>),
) -> Result<(Connection, Handshake), Fail> {
    if plan.early_data == EarlyData::Offer {
        let connecting = endpoint.connect(remote, server_name(plan)).map_err(|error| cannot_begin(remote, &error))?;
        match connecting.into_0rtt() {
            Ok((connection, accepted)) => {
                let meter = Arc::clone(meter);
                let task = tokio::spawn(async move {
                    let accepted = accepted.await;
                    meter.on_handshake();
                    accepted
                });
                return Ok((connection, Handshake::Early(task)));
            }
            Err(connecting) => drop(connecting),
        }
    }
    let connection = handshake(plan, endpoint, remote, patience).await?;
    meter.on_handshake();
    Ok((connection, Handshake::Done))
}

fn server_name(plan: &GetPlan) -> &str {
    plan.host.trim_start_matches('[').trim_end_matches(']')
}

/// Watches the further paths, which open by themselves: those that fail at first are named on standard error, the
/// download goes on without them.
pub(crate) fn open_further(connection: &Connection, further: Vec<IpAddr>, voice: Voice) {
    if further.is_empty() {
        return;
    }
    let (mut waited_for, mut opening) = (further, Vec::new());
    let mut events = connection.path_events();
    opening.extend(connection.stats().paths.iter().map(|path| (path.id, path.route.local.ip())));
    tokio::spawn(async move {
        while let (false, Some(event)) = (waited_for.is_empty(), events.next().await) {
            let from = |id| opening.iter().find(|(opened, _)| *opened == id).map(|(_, ip)| *ip);
            match event {
                PathEvent::Opened { id, route } => opening.push((id, route.local.ip())),
                PathEvent::Established { id } => waited_for.retain(|ip| Some(*ip) != from(id)),
                PathEvent::Abandoned { id, .. } => {
                    let Some(ip) = from(id).filter(|ip| waited_for.contains(ip)) else { continue };
                    waited_for.retain(|waited| *waited != ip);
                    if voice == Voice::Heard {
                        remark(&format!("plait: no path from {ip} yet: nothing answers there; going on without it"));
                    }
                }
                _ => {}
            }
        }
    });
}

/// Whether remarks are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// On standard error.
    Heard,
    /// Not.
    Silent,
}

/// Does what may wait for a file, such as a pipe without a writer, where it holds up nothing else.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fail> + Send + 'static,
) -> Result<T, Fail> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Fail::Running(format!("a thread stopped: {error}"))))
}

/// Waits for the end of `limit`; for ever when there is none.
pub(crate) async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn cannot_begin(remote: SocketAddr, error: &dyn std::fmt::Display) -> Fail {
    Fail::running(format!("cannot connect to {remote}: {error}"), "check the address and --path")
}

fn no_answer(host: &str, remote: SocketAddr) -> Fail {
    Fail::running(
        format!("no answer from {host} ({remote})"),
        "check that a server runs there and that UDP gets through, or allow more with --connect-timeout",
    )
}

/// TLS alerts (RFC 8446 6) that speak of the certificate.
const CERTIFICATE_ALERTS: [u64; 7] = [42, 43, 44, 45, 46, 48, 113];
const DECRYPT_ERROR: u64 = 51;
const NO_APPLICATION_PROTOCOL: u64 = 120;
/// Codes of TLS alerts in QUIC begin here (RFC 9001 4.8).
const CRYPTO_ERROR: u64 = 0x100;

/// A handshake that failed, in words that help.
pub(crate) fn handshake_failure(host: &str, remote: SocketAddr, error: &ConnectionError) -> Fail {
    match error {
        // A certificate of a trusted name that another key signed comes as decrypt_error.
        ConnectionError::TransportError(ours)
            if is_alert(ours.code.0, &CERTIFICATE_ALERTS)
                || is_alert(ours.code.0, &[DECRYPT_ERROR]) && ours.reason.contains("certificate") =>
        {
            Fail::running(
                format!("the certificate of {host} was refused ({})", ours.reason),
                "give its authority with --ca FILE, or accept any with --insecure",
            )
        }
        ConnectionError::TransportError(any) | ConnectionError::ConnectionClosed(any)
            if is_alert(any.code.0, &[NO_APPLICATION_PROTOCOL]) =>
        {
            Fail::running(
                format!("{host} ({remote}) does not speak hq-interop"),
                "ask a server that `plait serve` runs",
            )
        }
        ConnectionError::TimedOut => no_answer(host, remote),
        ConnectionError::VersionMismatch => {
            Fail::running(format!("{host} ({remote}) speaks neither QUIC v1 nor v2"), "ask another server")
        }
        other => Fail::running(format!("no connection to {host} ({remote}): {other}"), "look at the server's log"),
    }
}

/// A connection that stood and then broke off, after so many bytes.
pub(crate) fn connection_lost(host: &str, remote: SocketAddr, bytes: u64, error: &ConnectionError) -> Fail {
    let why = match error {
        ConnectionError::TimedOut => "nothing more came".to_owned(),
        other => other.to_string(),
    };
    Fail::running(
        format!("the connection to {host} ({remote}) was lost after {bytes} bytes: {why}"),
        "check that the server still runs, and try again",
    )
}

fn is_alert(code: u64, alerts: &[u64]) -> bool {
    code.checked_sub(CRYPTO_ERROR).is_some_and(|alert| alerts.contains(&alert))
}

#[cfg(test)]
mod tests {
    use plait::{CloseCode, TransportError};

    use super::*;

    #[test]
    fn failures_say_what_to_try() {
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let alert = |alert| TransportError::new(CloseCode::crypto(alert), "why");
        let text = |error: ConnectionError| handshake_failure("host", remote, &error).to_string();
        assert!(text(alert(48).into()).contains("--insecure"));
        assert!(text(alert(48).into()).contains("(why)"));
        let signature = TransportError::new(CloseCode::crypto(51), "invalid peer certificate: BadSignature");
        assert!(text(signature.into()).contains("--insecure"));
        assert!(text(alert(120).into()).contains("hq-interop"));
        assert!(text(ConnectionError::TimedOut).contains("no answer from host"));
        assert!(text(ConnectionError::Reset).contains("no connection to host"));
        let lost = connection_lost("host", remote, 12, &ConnectionError::TimedOut).to_string();
        assert!(lost.contains("lost after 12 bytes: nothing more came"), "{lost}");
    }
}
