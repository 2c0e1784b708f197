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
    let fail = |error: &dyn std::fmt::Display| CliError::running(format!("cannot listen: {error}"), "see --listen");
    let (first, rest) = match listen.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT)), listen),
    };
    let endpoint = match Endpoint::new(settings.clone(), Some(config.clone()), [first]) {
        // No IPv6 on this machine.
        Err(_) if listen.is_empty() => {
            Endpoint::new(settings, Some(config), [SocketAddr::from((Ipv4Addr::UNSPECIFIED, DEFAULT_PORT))])
        }
        result => result,
    };
    let endpoint = endpoint.map_err(|error| fail(&error))?;
    for address in rest {
        endpoint.add_socket(Bind::from(*address)).map_err(|error| fail(&error))?;
    }
    Ok(endpoint)
}
