//! What both ends of a simulated connection are set to, with their observers.

use std::sync::Arc;
use std::time::Duration;

use plait_base::Instant;
use plait_base::observe::{Observer, ObserverFactory, TraceEvent};
use plait_engine::TransportConfig;
use plait_engine::config::AckFrequencyConfig;
use plait_engine::path::{AddressScope, ack_route, policy};
use plait_engine::schedule::reinject;

use crate::host::ledger::{LedgerObserver, SharedLedger};
use crate::host::watched::Watched;
use crate::policies::Chosen;
use crate::scenario::{AckFrequency, Endpoints, Extension};

/// Silence after which a connection is given up, far beyond any path's.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Both observers of one connection.
struct Both(LedgerObserver, Box<dyn Observer>);

impl Observer for Both {
    fn on_event(&mut self, now: Instant, event: &TraceEvent) {
        self.0.on_event(now, event);
        self.1.on_event(now, event);
    }
}

/// Gives the connections of one end their observers.
#[derive(Debug)]
struct Observing {
    ledger: SharedLedger,
    more: Option<Arc<dyn ObserverFactory>>,
}

impl ObserverFactory for Observing {
    fn observer(&self) -> Box<dyn Observer> {
        match &self.more {
            Some(more) => Box::new(Both(self.ledger.observer(), more.observer())),
            None => Box::new(self.ledger.observer()),
        }
    }
}

/// The engine's word for it.
fn asked_acks(asked: AckFrequency) -> AckFrequencyConfig {
    let mut config = AckFrequencyConfig::default();
    config.ack_eliciting_threshold(Some(u64::from(asked.packets) - 1)).max_ack_delay(asked.delay);
    config
}

/// The transport of one end; the decisions of its scheduler are counted.
pub(super) fn transport(
    endpoints: &Endpoints,
    paths: usize,
    ledger: &SharedLedger,
    more: Option<Arc<dyn ObserverFactory>>,
) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let several = endpoints.extension != Extension::None && paths > 1;
    // Room for paths that are tried again while the old ones drain.
    config.max_concurrent_multipath_paths(if several { paths as u32 + 2 } else { 1 });
    if endpoints.extension == Extension::Multiflow {
        config.extension(plait_engine::config::Extension::Multiflow).address_scope(AddressScope::Any);
    }
    config.max_idle_timeout(Some(IDLE_TIMEOUT)).handshake_timeout(Some(IDLE_TIMEOUT));
    config.keep_alive_interval(endpoints.keep_alive);
    let window = endpoints.receive_window_bytes;
    config.max_stream_receive_window(window).max_receive_window(window);
    config.duplicate_until_rtt(endpoints.duplicate_until_rtt);
    config.tell_paths(endpoints.wishes.tell_paths).uniflow_nonces(endpoints.wishes.uniflow_nonces);
    if let Some(asked) = endpoints.wishes.ack_frequency {
        config.ack_frequency_config(Some(asked_acks(asked)));
    }
    config.stream_placement(endpoints.placement);
    config.max_burst_bytes(endpoints.max_burst_bytes);
    config.scheduler(Arc::new(Watched::new(endpoints.scheduler.factory(), ledger.clone())));
    if let Some(factory) = endpoints.congestion.as_ref().map(Chosen::factory) {
        config.congestion_controller_factory(factory.clone()).multipath_controller(Some(factory));
    }
    if let Some(factory) = reinject::by_name(endpoints.reinjection) {
        config.reinjection(factory);
    }
    if let Some(factory) = ack_route::by_name(endpoints.ack_path) {
        config.ack_route(factory);
    }
    if let Some(factory) = policy::by_name(endpoints.path_policy) {
        config.path_policy(factory);
    }
    config.observer_factory(Some(Arc::new(Observing { ledger: ledger.clone(), more })));
    Arc::new(config)
}
