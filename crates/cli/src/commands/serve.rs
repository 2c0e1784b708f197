//! `plait serve`: files and synthetic bodies for anyone who asks, until stopped.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{Bind, Endpoint, EndpointConfig, Extension, RetryPolicy, ServerConfig, Version};
use plait_sim::files::write_whole;

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::http::policies::Terms;
use crate::http::root::Root;
use crate::http::server::FileServer;
use crate::identity::{Home, addresses};
use crate::names::PathPolicyName;
use crate::options::{InteropOptions, PreferredVersion, TransportPlan};
use crate::output::print_json;
use crate::output::summary::Listening;
use crate::tls::Shown;
use crate::{stop, transport};

/// Where we listen when nothing else is said.
const DEFAULT_PORT: u16 = 4433;
/// Connections at once, beyond which new ones are refused: idle ones, the usual sort, take some tens of kB each.
const MAX_CONNECTIONS: usize = 10_000;
/// How long connections may take to say goodbye.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until stopped.
pub(crate) async fn run(args: ServeArgs) -> Result<(), CliError> {
    let root = match &args.root {
        None => None,
        Some(path) => Some(Root::new(path).map_err(|error| {
            CliError::running(format!("--root {}: {error}", path.display()), "name a folder that exists")
        })?),
    };
    let shown = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Shown::read(cert, key)?,
        _ => Shown::self_signed(&Home::new(args.identity.as_ref()).key()?, &args.name, addresses(&args.listen).await)?,
    };
    let made_pem = shown.made_pem.clone();
    let interop = InteropOptions::new(&args.interop, args.qlog.as_ref());
    let mut config = transport::server_config(shown, interop.suites)?;
    let mut carriage = transport::config(&TransportPlan::new(&args.transport, args.max_paths));
    args.hosts.apply(&mut carriage);
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
    if interop.preferred_version == PreferredVersion::Second {
        config.preferred_versions(vec![Version::V2, Version::V1]);
    }
    if args.interop.interop_v1 {
        endpoint_config.supported_versions(vec![Version::V1]);
    }
    let endpoint = bind(endpoint_config, config, &args.listen)?;
    // Only now: where the port is taken, the file may be that of the server which holds it.
    if let (Some(file), Some(pem)) = (&args.cert_out, made_pem) {
        write_whole(file, pem.as_bytes()).map_err(|error| {
            CliError::running(format!("--cert-out {}: {error}", file.display()), "choose a folder that may be written")
        })?;
    }
    // Whoever reads the ready line may stop us at once.
    let asked_to_stop = stop::asked();
    let addresses = endpoint.local_addrs().iter().map(SocketAddr::to_string).collect();
    print_json(&Listening { event: "listening", addresses })?;

    let terms = if args.fixed_policies { Terms::Fixed } else { Terms::Negotiable };
    let site = Arc::new(FileServer::new(root, terms).patience(Duration::from_secs(args.patience.into())));
    tokio::select! {
        () = accept(&endpoint, &site) => {}
        () = asked_to_stop => {}
    }
    endpoint.close(0, b"the server stops");
    // Clients that do not hear it time out by themselves.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    Ok(())
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

/// Takes every connection that comes.
pub(crate) async fn accept(endpoint: &Endpoint, site: &Arc<FileServer>) {
    while let Some(incoming) = endpoint.accept().await {
        let site = Arc::clone(site);
        tokio::spawn(async move {
            let remote = incoming.remote_address();
            match incoming.await {
                Ok(connection) => {
                    tracing::info!(%remote, multipath = connection.is_multipath(), "connected");
                    let watched = connection.clone();
                    site.serve(connection).await;
                    tracing::info!(%remote, "ended: {}", watched.closed().await);
                }
                Err(error) => tracing::info!(%remote, "handshake failed: {error}"),
            }
        });
    }
}
