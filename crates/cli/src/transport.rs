//! From plans to the settings of the library.

use plait::{ClientConfig, ClientTlsConfig, Identity, ServerConfig, ServerTlsConfig, TransportConfig};

use crate::fail::Fail;
use crate::http::ALPN;
use crate::meant::{TransportPlan, Trust};
use crate::tls::{self, Shown};

/// Bytes that may be on their way on a stream and on a connection.
const WINDOW_BYTES: u64 = 32 << 20;

/// The transport of connections.
pub(crate) fn config(plan: &TransportPlan) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.max_stream_receive_window(WINDOW_BYTES).max_receive_window(WINDOW_BYTES).send_window(WINDOW_BYTES);
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
    config
}

/// A server that shows this certificate.
pub(crate) fn server_config(shown: Shown) -> Result<ServerConfig, Fail> {
    let hint = "check that --key belongs to --cert";
    let failed = |error: &dyn std::fmt::Display| Fail::running(format!("TLS cannot begin: {error}"), hint);
    let identity = Identity::new(shown.chain, shown.key);
    let tls = ServerTlsConfig::builder(identity).alpn([ALPN]).early_data().key_log_file().build();
    ServerConfig::new(tls.map_err(|error| failed(&error))?).map_err(|error| failed(&error))
}

/// A client with this trust. `SSLKEYLOGFILE` is honoured.
pub(crate) fn client_config(trust: &Trust) -> Result<ClientConfig, Fail> {
    let builder = ClientTlsConfig::builder().alpn([ALPN]).key_log_file();
    let builder = match trust {
        Trust::Anybody => builder.accept_any_certificate(),
        Trust::File(file) => builder.roots(tls::roots(file)?),
        Trust::System => builder.verifier(tls::system_verifier()?),
    };
    let tls = builder
        .build()
        .map_err(|error| Fail::running(format!("TLS cannot begin: {error}"), "check the file given with --ca"))?;
    Ok(ClientConfig::new(tls))
}
