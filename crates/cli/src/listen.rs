//! The server's way to its clients: certificate, sockets, the ready line, the end.

use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{Bind, Endpoint, EndpointConfig, Extension, RetryPolicy, ServerConfig, Version};
use plait_sim::files::write_whole;

use crate::args::ListenArgs;
use crate::error::CliError;
use crate::identity::{Home, addresses};
use crate::names::PathPolicyName;
use crate::options::{InteropOptions, PreferredVersion, TransportPlan, room_for_paths};
use crate::output::print_json;
use crate::output::summary::{Listening, Stopped, WorkerSummary};
use crate::service::{Receiver, Service};
use crate::tls::Shown;
use crate::{stop, tls, transport};

/// Where we listen when nothing else is said.
pub(crate) const DEFAULT_PORT: u16 = 4433;
/// Connections at once, beyond which new ones are refused: idle ones, the usual sort, take some tens of kB each.
const MAX_CONNECTIONS: usize = 10_000;
/// How long connections may take to say goodbye.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that is about to serve.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) endpoint: Endpoint,
    /// What it shows.
    pub(crate) shown: Shown,
}

/// Opens the sockets; nobody is told yet.
pub(crate) async fn open(args: &ListenArgs, service: Service) -> Result<Opened, CliError> {
    let shown = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Shown::read(cert, key)?,
        _ => Shown::self_signed(&Home::new(args.identity.as_ref()).key()?, &args.name, addresses(&args.listen).await)?,
    };
    tls::draw_randomness()?;
    let endpoint = endpoint(args, service, shown.clone())?;
    // Only now: where the port is taken, the file may be that of the server which holds it.
    if let (Some(file), Some(pem)) = (&args.cert_out, &shown.made_pem) {
        write_whole(file, pem.as_bytes()).map_err(|error| {
            CliError::running(format!("--cert-out {}: {error}", file.display()), "choose a folder that may be written")
        })?;
    }
    Ok(Opened { endpoint, shown })
}

/// Says that we listen, and lets `serving` take the clients of `endpoint` until the user stops it.
pub(crate) async fn until_stopped(endpoint: Endpoint, serving: impl Future<Output = ()>) -> Result<(), CliError> {
    // Whoever reads the ready line may stop us at once.
    let asked_to_stop = stop::asked();
    let addresses = endpoint.local_addrs().iter().map(SocketAddr::to_string).collect();
    print_json(&Listening { event: "listening", addresses })?;
    tokio::select! {
        () = serving => {}
        () = asked_to_stop => {}
    }
    endpoint.close(0, b"the server stops");
    // Clients that do not hear it time out by themselves.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    let workers: Vec<WorkerSummary> = endpoint.workers().into_iter().map(WorkerSummary::from).collect();
    if !workers.is_empty() {
        print_json(&Stopped { event: "stopped", workers })?;
    }
    Ok(())
}

/// An endpoint that takes connections as the flags say.
fn endpoint(args: &ListenArgs, service: Service, shown: Shown) -> Result<Endpoint, CliError> {
    let interop = InteropOptions::new(&args.interop, args.qlog.as_ref());
    let mut config = transport::server_config(service, shown, interop.suites)?;
    let threads = args.threads.unwrap_or(1);
    let paths = args.max_paths.unwrap_or_else(|| room_for_paths(threads));
    let mut carriage = transport::config(&TransportPlan::new(&args.transport, paths));
    args.hosts.apply(&mut carriage);
    if service.receiver == Receiver::Counts {
        transport::lift_windows(&mut carriage);
    }
    if args.multiflow {
        // Its flows lead wherever the client says that it is.
        carriage.extension(Extension::Either);
        transport::open_paths_by(&mut carriage, PathPolicyName::OPENING);
    }
    transport::log_to(&mut carriage, interop.qlog.as_ref())?;
    config.transport_config(Arc::new(carriage));
    if args.retry {
        config.retry_policy(RetryPolicy::Always);
    }
    let mut endpoint_config =
        EndpointConfig::fresh().map_err(|error| CliError::running(error, "the system must provide randomness"))?;
    endpoint_config.max_connections(MAX_CONNECTIONS);
    endpoint_config.workers(threads);
    if interop.preferred_version == PreferredVersion::Second {
        config.preferred_versions(vec![Version::V2, Version::V1]);
    }
    if args.interop.interop_v1 {
        endpoint_config.supported_versions(vec![Version::V1]);
    }
    bind(endpoint_config, config, &args.listen)
}

fn bind(settings: EndpointConfig, config: ServerConfig, listen: &[SocketAddr]) -> Result<Endpoint, CliError> {
    let fail = |at: usize, error: &dyn std::fmt::Display| match listen
        .get(at)
        .and_then(|address| taken(*address, &listen[..at]))
    {
        Some(other) => CliError::running(
            format!("cannot listen: --listen {} is within --listen {other}", listen[at]),
            "name one of the two, or another port",
        ),
        None => CliError::running(format!("cannot listen: {error}"), "see --listen"),
    };
    let open = |address: SocketAddr| match versions(address, listen) {
        Versions::Own => Bind::address(address).only_v6(),
        Versions::Both => Bind::address(address),
    };
    let (first, rest) = match listen.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT)), listen),
    };
    let endpoint = match Endpoint::new(settings.clone(), Some(config.clone()), [open(first)]) {
        // No IPv6 on this machine.
        Err(_) if listen.is_empty() => {
            Endpoint::new(settings, Some(config), [SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT))])
        }
        result => result,
    };
    let endpoint = endpoint.map_err(|error| fail(0, &error))?;
    for (at, address) in rest.iter().enumerate() {
        endpoint.add_socket(open(*address)).map_err(|error| fail(at + 1, &error))?;
    }
    Ok(endpoint)
}

/// What a socket takes that listens on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// The IP version of the address.
    Own,
    /// IPv4 as well, on the wildcard address of IPv6 where the system can.
    Both,
}

/// What `address` takes among `all` that are listened on: `[::]` leaves IPv4 to another one of its port.
pub(crate) fn versions(address: SocketAddr, all: &[SocketAddr]) -> Versions {
    let is_v4_of_port = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
    let is_shared = address.port() != 0 && all.iter().any(is_v4_of_port);
    if address.is_ipv6() && address.ip().is_unspecified() && !is_shared { Versions::Both } else { Versions::Own }
}

/// The one of `before` that has what `address` asks for.
fn taken(address: SocketAddr, before: &[SocketAddr]) -> Option<SocketAddr> {
    let overlaps = |other: &&SocketAddr| {
        let is_wild = other.ip().is_unspecified() || address.ip().is_unspecified();
        other.port() == address.port()
            && (other.ip() == address.ip() || is_wild && other.is_ipv4() == address.is_ipv4())
    };
    before.iter().filter(|_| address.port() != 0).find(overlaps).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_left_to_whoever_has_the_port() {
        let of = |text: &str| text.parse::<SocketAddr>().unwrap();
        let both = [of("0.0.0.0:5"), of("[::]:5")];
        assert_eq!(both.map(|address| versions(address, &both)), [Versions::Own, Versions::Own]);
        for other in ["0.0.0.0:6", "[::1]:5", "127.0.0.1:0"] {
            assert_eq!(versions(of("[::]:5"), &[of("[::]:5"), of(other)]), Versions::Both, "{other}");
        }
        assert_eq!(versions(of("[::]:0"), &[of("0.0.0.0:0"), of("[::]:0")]), Versions::Both, "on ports of their own");
    }

    #[test]
    fn what_is_asked_for_twice_is_found() {
        let of = |text: &str| text.parse::<SocketAddr>().unwrap();
        let before = [of("127.0.0.1:5"), of("[::]:6")];
        assert_eq!(taken(of("0.0.0.0:5"), &before), Some(before[0]));
        assert_eq!(taken(of("[::1]:6"), &before), Some(before[1]));
        for free in ["127.0.0.2:5", "127.0.0.1:7", "127.0.0.1:0", "0.0.0.0:6"] {
            assert_eq!(taken(of(free), &before), None, "{free}");
        }
    }
}
