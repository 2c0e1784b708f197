//! The client's way to a server: its addresses, our sockets, the handshake, further paths.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plait::{
    Attempt, AttemptOutcome, Bind, ClientConfig, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig,
    Extension, FourTuple, PathEvent, Unreachable, Version,
};
use plait_base::limits::MAX_PATHS;
use tokio::task::JoinHandle;

use crate::args::ExtensionName;
use crate::error::CliError;
use crate::local::{self, Local};
use crate::meter::Meter;
use crate::options::{BeginOver, ConnectPlan, EarlyData, Locals, PreferredVersion};
use crate::output::eprint_line;
use crate::service::Service;
use crate::transport;
use crate::zone::{self, ZonedAddress};

/// How long a closing connection may take to say goodbye.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Least time that a server gets to send a session ticket after the handshake.
const TICKET_TIME: Duration = Duration::from_millis(100);

/// Time between two remarks that no answer came yet.
const REMARK_PERIOD: Duration = Duration::from_secs(1);

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
    /// It is complete.
    Done,
    /// Early data was offered: becomes whether it was taken, once the handshake is done.
    Early(JoinHandle<bool>),
}

/// All that is needed to connect, any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) endpoint: Endpoint,
    config: ClientConfig,
    locals: Vec<Local>,
    /// Our addresses and the server's, in the order in which they are tried.
    pairs: Vec<FourTuple>,
    name: String,
}

impl Caller {
    /// Begins to connect, over whichever pair of addresses works first.
    pub(crate) fn begin(&self) -> Result<Connecting, CliError> {
        let begun = self.endpoint.connect_over(self.config.clone(), &self.pairs, &self.name);
        begun.map_err(|error| {
            let remote = self.pairs.first().map_or_else(|| self.name.clone(), |pair| pair.remote.to_string());
            CliError::running(format!("cannot connect to {remote}: {error}"), "check the address and --path")
        })
    }
}

/// Finds the addresses of the plan and opens its sockets.
pub(crate) async fn caller(plan: &ConnectPlan) -> Result<Caller, CliError> {
    let remotes = addresses(plan).await?;
    let others = match &plan.locals {
        Locals::Named(names) if plan.is_told_addresses() => local::of_other_version(Some(names), &remotes).await,
        Locals::All if plan.is_told_addresses() => local::of_other_version(None, &remotes).await,
        Locals::Named(_) | Locals::Single | Locals::All => Vec::new(),
    };
    let mut locals = locals(plan, &remotes, &others)?;
    locals.extend(others);
    let endpoint = endpoint(&enough(&locals, plan), plan)?;
    if plan.locals == Locals::All && remotes.iter().any(|remote| !remote.ip().is_loopback()) {
        endpoint.follow_interfaces();
    }
    let tls = plan.tls.clone();
    let mut config = off_thread(move || {
        crate::tls::draw_randomness()?;
        transport::client_config(&tls)
    })
    .await?;
    let mut carriage = transport::config(&plan.transport);
    carriage.extension(plan.extension);
    plan.hosts.apply(&mut carriage);
    transport::open_paths_by(&mut carriage, plan.path_policy);
    transport::log_to(&mut carriage, plan.interop.qlog.as_ref())?;
    config.transport_config(Arc::new(carriage));
    if let Some(version) = plan.interop.version {
        config.version(Version(version));
    }
    let mut pairs = plait::pairs(&endpoint.local_addrs(), &remotes);
    if let (BeginOver::First, Some(first)) = (plan.begin, pairs.first().map(|pair| pair.local)) {
        pairs.retain(|pair| pair.local == first);
    }
    Ok(Caller { endpoint, config, locals, pairs, name: server_name(plan).to_owned() })
}

/// Connects as planned. `attempts` gets those that were made, well or badly as it ends.
pub(crate) async fn connect(
    plan: &ConnectPlan,
    verbosity: Verbosity,
    attempts: &mut Vec<Attempt>,
) -> Result<Connected, CliError> {
    let mut call = Call { plan, caller: caller(plan).await?, verbosity, attempts };
    if plan.early_data != EarlyData::No {
        call.fetch_ticket().await?;
    }
    let meter = Arc::new(Meter::start());
    let (connection, handshake) = call.handshake_or_0rtt(&meter).await?;
    let remote = connection.remote_address();
    let first =
        connection.attempts().iter().find(|a| a.outcome == AttemptOutcome::Connected).map(|a| a.tuple.local.ip());
    let suits = |local: &&Local| Some(local.ip) != first && local.ip.is_ipv4() == remote.is_ipv4();
    let further = call.caller.locals.iter().filter(suits).map(|local| local.ip).collect();
    Ok(Connected { connection, endpoint: call.caller.endpoint, remote, further, meter, handshake })
}

/// The addresses of a host as it was typed: a name, or an address, perhaps in brackets and with a zone.
pub(crate) async fn lookup(host: &str, port: u16) -> Result<Vec<SocketAddr>, CliError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Some(zoned) = ZonedAddress::parse(host) {
        return zoned.map(|address| vec![address.with_port(port)]).map_err(CliError::usage);
    }
    if let Some(ip) = host.parse().ok().filter(|ip| zone::needs_zone(*ip)) {
        return Err(CliError::usage(zone::missing(ip)));
    }
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        CliError::running(format!("cannot find the address of {host} ({error})"), "check the name and your connection")
    })?;
    Ok(found.collect())
}

/// The host's addresses; those that suit the first named path come first.
async fn addresses(plan: &ConnectPlan) -> Result<Vec<SocketAddr>, CliError> {
    let mut found = lookup(&plan.host, plan.port).await?;
    if let Locals::Named(names) = &plan.locals
        && let Some(ip) = names.first().and_then(|name| local::address(name))
    {
        found.sort_by_key(|remote| remote.is_ipv4() != ip.is_ipv4());
    }
    found.dedup();
    if found.is_empty() {
        return Err(CliError::running(format!("{} has no address", plan.host), "check the name"));
    }
    Ok(found)
}

/// Our addresses towards those of the server: of each IP version that it has, where we have it too. What is named may also
/// be among `others`, which wait for addresses that the server tells.
fn locals(plan: &ConnectPlan, remotes: &[SocketAddr], others: &[Local]) -> Result<Vec<Local>, CliError> {
    let mut families: Vec<SocketAddr> = Vec::with_capacity(2);
    for remote in remotes {
        if families.iter().all(|family| family.is_ipv4() != remote.is_ipv4()) {
            families.push(*remote);
        }
    }
    let of_system = |towards: fn(SocketAddr) -> Result<Vec<Local>, CliError>| {
        let (found, failed): (Vec<_>, Vec<_>) = families.iter().map(|remote| towards(*remote)).partition(Result::is_ok);
        let found: Vec<Local> = found.into_iter().flatten().flatten().collect();
        match failed.into_iter().find_map(Result::err) {
            Some(fail) if found.is_empty() => Err(fail),
            _ => Ok(found),
        }
    };
    let names = match &plan.locals {
        Locals::Single => return of_system(|remote| local::anywhere(remote).map(|local| vec![local])),
        Locals::All => return of_system(local::all),
        Locals::Named(names) => names,
    };
    let mut locals: Vec<Local> = Vec::with_capacity(names.len());
    for name in names {
        let (found, failed): (Vec<_>, Vec<_>) =
            families.iter().map(|remote| local::resolve(name, *remote)).partition(Result::is_ok);
        if let (true, Some(fail)) = (found.is_empty(), failed.into_iter().find_map(Result::err))
            && (locals.is_empty() || !others.iter().any(|other| other.is_named(name)))
        {
            return Err(fail);
        }
        for local in found.into_iter().flatten() {
            if locals.iter().any(|other| other.ip == local.ip) {
                return Err(CliError::usage(format!("--path {name}: {} is used by another --path already", local.ip)));
            }
            locals.push(local);
        }
    }
    Ok(locals)
}

/// An address for each thread that serves paths: where there are fewer, several paths begin at one, on ports of their own.
fn enough(locals: &[Local], plan: &ConnectPlan) -> Vec<Local> {
    let can_have_several = plan.locals != Locals::Single && plan.extension == Extension::Multipath;
    let wanted = if can_have_several { plan.threads.min(MAX_PATHS).max(locals.len()) } else { locals.len() };
    locals.iter().cycle().take(wanted).cloned().collect()
}

/// An endpoint with a socket for each local address.
fn endpoint(locals: &[Local], plan: &ConnectPlan) -> Result<Endpoint, CliError> {
    let bind = |local: &Local| match &local.interface {
        Some(name) => Bind::address(local.any_port()).interface(name),
        None => Bind::address(local.any_port()),
    };
    let config = || {
        let mut config =
            EndpointConfig::fresh().map_err(|error| CliError::running(error, "the system must provide randomness"))?;
        config.workers(plan.threads);
        if plan.interop.preferred_version == PreferredVersion::Second {
            config.supported_versions(vec![Version::V2, Version::V1]);
        }
        Ok::<_, CliError>(config)
    };
    // Where the system does not let us name the interface, its address has to do.
    let made = Endpoint::new(config()?, None, locals.iter().map(bind));
    let made = match made {
        Err(_) if locals.iter().any(|local| local.interface.is_some()) => {
            Endpoint::new(config()?, None, locals.iter().map(Local::any_port))
        }
        made => made,
    };
    made.map_err(|error| CliError::running(error, "see --path"))
}

/// A connection that is made, and before it perhaps one for a ticket.
struct Call<'a> {
    plan: &'a ConnectPlan,
    caller: Caller,
    verbosity: Verbosity,
    attempts: &'a mut Vec<Attempt>,
}

impl Call<'_> {
    /// A first connection that only brings a session to resume. The pair that worked for it is the next one's first.
    async fn fetch_ticket(&mut self) -> Result<(), CliError> {
        let connection = self.handshake().await?;
        tokio::time::sleep(TICKET_TIME.max(connection.rtt() * 2)).await;
        connection.close(0, b"ticket");
        let won = self.attempts.iter().find(|attempt| attempt.outcome == AttemptOutcome::Connected);
        if let Some(won) = won.map(|attempt| attempt.tuple) {
            self.caller.pairs.sort_by_key(|pair| *pair != won);
        }
        Ok(())
    }

    async fn handshake(&mut self) -> Result<Connection, CliError> {
        let connecting = self.caller.begin()?;
        self.finish(connecting).await
    }

    /// Waits for the handshake, and says so when it takes long.
    async fn finish(&mut self, mut connecting: Connecting) -> Result<Connection, CliError> {
        let deadline = tokio::time::sleep(self.plan.timeout);
        let mut deadline = pin!(deadline);
        let mut remarks = tokio::time::interval(REMARK_PERIOD);
        remarks.reset();
        let error = loop {
            tokio::select! {
                biased;
                result = &mut connecting => match result {
                    Ok(connection) => {
                        *self.attempts = connection.attempts();
                        return Ok(connection);
                    }
                    Err(error) => break error,
                },
                () = &mut deadline => break ConnectionError::TimedOut,
                _ = remarks.tick() => {
                    if self.verbosity == Verbosity::Normal {
                        eprint_line(&format!("plait: no answer yet: {}", tried(&connecting.attempts())));
                    }
                }
            }
        };
        *self.attempts = connecting.attempts();
        let failed = |attempt: &&Attempt| attempt.outcome == AttemptOutcome::Failed(error.clone());
        let at_fault = self.attempts.iter().find(failed).or_else(|| self.attempts.first());
        let remote = at_fault.map_or(connecting.remote_address(), |attempt| attempt.tuple.remote);
        Err(handshake_failure(&self.plan.host, self.plan.tls.service, remote, &error))
    }

    async fn handshake_or_0rtt(&mut self, meter: &Arc<Meter>) -> Result<(Connection, Handshake), CliError> {
        let mut connecting = self.caller.begin()?;
        if self.plan.early_data == EarlyData::Offer {
            match connecting.into_0rtt() {
                Ok((connection, accepted)) => {
                    *self.attempts = connection.attempts();
                    let (meter, watched) = (Arc::clone(meter), connection.clone());
                    let task = tokio::spawn(async move {
                        let accepted = accepted.await;
                        // A handshake that fails refuses what went early as well.
                        if accepted || watched.close_reason().is_none() {
                            meter.on_handshake();
                        }
                        accepted
                    });
                    return Ok((connection, Handshake::Early(task)));
                }
                Err(given_back) => connecting = given_back,
            }
        }
        let connection = self.finish(connecting).await?;
        meter.on_handshake();
        Ok((connection, Handshake::Done))
    }
}

/// The attempts under way, in words.
fn tried(attempts: &[Attempt]) -> String {
    let one = |attempt: &Attempt| {
        let what = match &attempt.outcome {
            AttemptOutcome::Failed(error) => format!(" ({error})"),
            AttemptOutcome::Open | AttemptOutcome::Connected => String::new(),
        };
        format!("{} from {}{what}", attempt.tuple.remote, attempt.tuple.local.ip())
    };
    attempts.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn server_name(plan: &ConnectPlan) -> &str {
    zone::bare_host(&plan.host)
}

/// Watches the further paths, which open by themselves: those that fail at first are named on standard error, the
/// download goes on without them.
pub(crate) fn open_further(connection: &Connection, further: Vec<IpAddr>, verbosity: Verbosity) {
    if further.is_empty() {
        return;
    }
    let (mut waited_for, mut opening) = (further, Vec::new());
    let mut events = connection.path_events();
    opening.extend(connection.stats().paths.iter().map(|path| (path.id, path.tuple.local.ip())));
    tokio::spawn(async move {
        while let (false, Some(event)) = (waited_for.is_empty(), events.next().await) {
            let from = |id| opening.iter().find(|(opened, _)| *opened == id).map(|(_, ip)| *ip);
            match event {
                PathEvent::Opened { id, tuple } => opening.push((id, tuple.local.ip())),
                PathEvent::Established { id } => waited_for.retain(|ip| Some(*ip) != from(id)),
                PathEvent::Abandoned { id, .. } => {
                    let Some(ip) = from(id).filter(|ip| waited_for.contains(ip)) else { continue };
                    waited_for.retain(|waited| *waited != ip);
                    if verbosity == Verbosity::Normal {
                        eprint_line(&format!(
                            "plait: no path from {ip} yet: nothing answers there; going on without it"
                        ));
                    }
                }
                _ => {}
            }
        }
    });
}

/// The extension that both sides of a connection speak, as reported; none before the handshake, which took so long, tells.
pub(crate) fn extension_name(connection: Option<&Connection>, handshake_s: Option<f64>) -> Option<&'static str> {
    let spoken = match (connection?, handshake_s?) {
        (connection, _) if connection.is_multiflow() => ExtensionName::Multiflow,
        (connection, _) if connection.is_multipath() => ExtensionName::Multipath,
        _ => ExtensionName::None,
    };
    Some(spoken.name())
}

/// Whether remarks are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// On standard error.
    Normal,
    /// Nothing is printed.
    Quiet,
}

/// Does what may wait for a file, such as a pipe without a writer, where it holds up nothing else.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CliError::Running(format!("a thread stopped: {error}"))))
}

/// Waits for the end of `limit`; for ever when there is none.
pub(crate) async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn no_answer(host: &str, remote: SocketAddr) -> CliError {
    CliError::running(
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

/// A server that is not trusted.
pub(crate) fn certificate_refused(host: &str, why: &impl std::fmt::Display) -> CliError {
    CliError::running(
        format!("the certificate of {host} was refused ({why})"),
        "give its authority with --ca FILE, or accept any with --insecure",
    )
}

/// A handshake that failed, in words that help.
pub(crate) fn handshake_failure(host: &str, service: Service, remote: SocketAddr, error: &ConnectionError) -> CliError {
    match error {
        // A certificate of a trusted name that another key signed comes as decrypt_error.
        ConnectionError::TransportError(ours)
            if is_alert(ours.code.0, &CERTIFICATE_ALERTS)
                || is_alert(ours.code.0, &[DECRYPT_ERROR]) && ours.reason.contains("certificate") =>
        {
            certificate_refused(host, &ours.reason)
        }
        ConnectionError::TransportError(any) | ConnectionError::ConnectionClosed(any)
            if is_alert(any.code.0, &[NO_APPLICATION_PROTOCOL]) =>
        {
            CliError::running(
                format!("{host} ({remote}) does not speak {}", service.protocols.join(" or ")),
                format!("ask a server that `{}` runs", service.server),
            )
        }
        ConnectionError::TimedOut => no_answer(host, remote),
        ConnectionError::Unreachable(Unreachable::Port) => CliError::running(
            format!("nobody listens at {remote} ({host}): connection refused"),
            "check the port, and that a server runs there",
        ),
        ConnectionError::Unreachable(Unreachable::Host) => CliError::running(
            format!("the network has no way to {remote} ({host})"),
            "check the address, your connection and --path",
        ),
        ConnectionError::VersionMismatch => {
            CliError::running(format!("{host} ({remote}) speaks neither QUIC v1 nor v2"), "ask another server")
        }
        other => CliError::running(format!("no connection to {host} ({remote}): {other}"), "look at the server's log"),
    }
}

/// A connection that stood and then broke off, after so many bytes.
pub(crate) fn connection_lost(host: &str, remote: SocketAddr, bytes: u64, error: &ConnectionError) -> CliError {
    let why = match error {
        ConnectionError::TimedOut => "nothing more came".to_owned(),
        other => other.to_string(),
    };
    CliError::running(
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
    use crate::http::FILES;

    #[test]
    fn failures_say_what_to_try() {
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let alert = |alert| TransportError::new(CloseCode::crypto(alert), "why");
        let text = |error: ConnectionError| handshake_failure("host", FILES, remote, &error).to_string();
        assert!(text(alert(48).into()).contains("--insecure"));
        assert!(text(alert(48).into()).contains("(why)"));
        let signature = TransportError::new(CloseCode::crypto(51), "invalid peer certificate: BadSignature");
        assert!(text(signature.into()).contains("--insecure"));
        assert!(text(alert(120).into()).contains("hq-interop"));
        assert!(text(ConnectionError::TimedOut).contains("no answer from host"));
        assert!(text(ConnectionError::Reset).contains("no connection to host"));
        assert!(text(Unreachable::Port.into()).contains("connection refused; check the port"));
        assert!(text(Unreachable::Host.into()).contains("no way to 127.0.0.1:1"));
        let lost = connection_lost("host", remote, 12, &ConnectionError::TimedOut).to_string();
        assert!(lost.contains("lost after 12 bytes: nothing more came"), "{lost}");
    }
}
