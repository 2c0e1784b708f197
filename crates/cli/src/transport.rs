//! From plans to the settings of the library.

use std::path::PathBuf;
use std::sync::Arc;

use plait::tls::CipherSuite;
use plait::{
    AckFrequencyConfig, ClientConfig, ClientTlsConfig, Identity, MtuDiscoveryConfig, ServerConfig, ServerTlsConfig,
    TransportConfig,
};
use plait_qlog::QlogFolder;

use crate::error::CliError;
use crate::names::PathPolicyName;
use crate::options::{ClientTls, Sessions, Suites, TransportPlan, Trust};
use crate::output::eprint_line;
use crate::perf::null_receiver;
use crate::service::{Receiver, Service};
use crate::tls::{self, Shown};

/// The transport of connections.
pub(crate) fn config(plan: &TransportPlan) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = plan.window_bytes;
    config.max_stream_receive_window(window).max_receive_window(window).send_window(window);
    if let Some(mtu) = plan.mtu {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu);
        config.mtu_discovery_config(Some(discovery));
    }
    if let Some(packets) = plan.ack_frequency {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(Some(u64::from(packets) - 1));
        config.ack_frequency_config(Some(frequency));
    }
    config.stream_placement(plan.placement);
    config.max_concurrent_multipath_paths(plan.paths_max.map_or(1, |max| max.get()));
    if let Some(scheduler) = plait::scheduler(plan.scheduler.name()) {
        config.scheduler(scheduler);
    }
    if let Some(controller) = plan.congestion.and_then(|name| plait::congestion_controller(name.name())) {
        config.congestion_controller_factory(controller).multipath_controller(None);
    }
    if let Some(ack_route) = plait::ack_route(plan.ack_path.name()) {
        config.ack_route(ack_route);
    }
    if let Some(reinjection) = plait::reinjection(plan.reinjection.name()) {
        config.reinjection(reinjection);
    }
    config
}

/// Lets peers send without end: what is not read needs no room.
pub(crate) fn lift_windows(config: &mut TransportConfig) {
    config.max_stream_receive_window(u64::MAX).max_receive_window(u64::MAX);
    config.stream_receive_window(u64::MAX).receive_window(u64::MAX);
}

/// Lets a path policy open a client's paths, from sockets that come with an interface later too.
pub(crate) fn open_paths_by(config: &mut TransportConfig, policy: PathPolicyName) {
    if let Some(policy) = plait::path_policy(policy.name()) {
        config.path_policy(policy);
    }
}

/// Lets each connection write a qlog file into this folder.
pub(crate) fn log_to(config: &mut TransportConfig, folder: Option<&PathBuf>) -> Result<(), CliError> {
    let Some(folder) = folder else { return Ok(()) };
    let made = QlogFolder::new(folder).map_err(|error| {
        CliError::running(format!("--qlog {}: {error}", folder.display()), "choose a folder that may be written")
    })?;
    let shown = folder.display().to_string();
    let made = made.on_failure(move |error| {
        eprint_line(&format!("plait: --qlog {shown}: {error}; the log of this connection ends here"));
    });
    config.observer_factory(Some(Arc::new(made)));
    Ok(())
}

/// The suites of a choice; an empty list is all.
fn wanted(suites: Suites) -> Vec<CipherSuite> {
    match suites {
        Suites::All => Vec::new(),
        Suites::ChaCha20 => vec![CipherSuite::ChaCha20Poly1305],
    }
}

/// A server of this service, with its certificate.
pub(crate) fn server_config(service: Service, shown: Shown, suites: Suites) -> Result<ServerConfig, CliError> {
    let hint = "check that --key belongs to --cert";
    let failed = |error: &dyn std::fmt::Display| CliError::running(format!("TLS cannot begin: {error}"), hint);
    let identity = Identity::new(shown.chain, shown.key);
    let mut builder = ServerTlsConfig::builder(identity).alpn(service.protocols.iter().copied());
    if service.receiver == Receiver::Counts {
        builder = builder.provider(null_receiver::provider());
    }
    let tls = builder.suites(wanted(suites)).early_data().key_log_file().build();
    ServerConfig::new(tls.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
}

/// A client of this service. `SSLKEYLOGFILE` is honoured.
pub(crate) fn client_config(plan: &ClientTls) -> Result<ClientConfig, CliError> {
    let protocols = plan.service.protocols.iter().copied();
    let builder = ClientTlsConfig::builder().alpn(protocols).suites(wanted(plan.suites)).key_log_file();
    let builder = match plan.sessions {
        Sessions::Kept => builder,
        Sessions::Forgotten => builder.no_resumption(),
    };
    let builder = match &plan.trust {
        Trust::Anybody => builder.accept_any_certificate(),
        Trust::File(file) => builder.roots(tls::roots(file)?),
        Trust::System => builder.verifier(tls::system_verifier()?),
    };
    let tls = builder
        .build()
        .map_err(|error| CliError::running(format!("TLS cannot begin: {error}"), "check the file given with --ca"))?;
    Ok(ClientConfig::new(tls))
}
