//! How new paths are set up: the transport's settings, as far as they speak of paths.

use std::sync::Arc;
use std::time::Duration;

use plait_base::{Random, Side};
use plait_congestion::ControllerFactory;
use plait_path::{
    AckPolicy, AckWish, EcnMode, HandshakeState, MtuConfig, MtuSearch, Pacing, SendConfig, SpinBit, ValidationTimes,
};

use crate::config::{Switch, TransportConfig};

/// The settings of paths, and the controllers that they get.
pub(crate) struct PathSettings {
    transport: Arc<TransportConfig>,
    /// Makes the controllers of connections with one path.
    controller: Arc<dyn ControllerFactory>,
    /// Makes those of connections with several; none where the other serves both.
    multipath_controller: Option<Arc<dyn ControllerFactory>>,
    /// Whether larger datagrams are tried at all; the transport's settings say how.
    pub(super) mtu_search: Switch,
}

impl PathSettings {
    pub(crate) fn new(transport: Arc<TransportConfig>) -> Self {
        Self {
            controller: transport.controller.clone(),
            multipath_controller: transport.multipath_controller.clone(),
            mtu_search: Switch::On,
            transport,
        }
    }

    pub(super) fn max_paths(&self) -> usize {
        self.transport.paths.max_concurrent.map_or(1, |n| n.get() as usize)
    }

    pub(super) fn max_validations(&self) -> usize {
        self.transport.paths.max_validations
    }

    pub(super) fn keep_alive_interval(&self) -> Option<Duration> {
        self.transport.timing.keep_alive_interval
    }

    /// Whether a path may count as potentially failed.
    pub(super) fn potentially_failed(&self) -> Switch {
        self.transport.paths.potentially_failed
    }

    /// Probe time-outs in a row after which a failed path is given up.
    pub(super) fn abandon_after_ptos(&self) -> u32 {
        self.transport.paths.abandon_after_ptos
    }

    /// The probe time-out that the initial RTT gives.
    pub(super) fn initial_pto(&self) -> Duration {
        self.transport.recovery.initial_rtt * 3
    }

    /// Times for a path of which nothing is known: its challenges are as rare as Initial packets (RFC 9000 8.2.1), since
    /// a slow one would choke on more.
    pub(super) fn first_validation_times(&self) -> ValidationTimes {
        ValidationTimes::new(self.initial_pto(), self.initial_pto())
    }

    pub(super) fn controller(&self) -> &Arc<dyn ControllerFactory> {
        &self.controller
    }

    pub(super) fn multipath_controller(&self) -> &Arc<dyn ControllerFactory> {
        self.multipath_controller.as_ref().unwrap_or(&self.controller)
    }

    /// Paths get this kind of controller from now on, alone and beside others.
    pub(super) fn set_controller(&mut self, factory: Arc<dyn ControllerFactory>) {
        self.controller = factory;
        self.multipath_controller = None;
    }

    pub(super) fn mtu(&self) -> MtuConfig {
        let tuning = &self.transport.mtu;
        let (base, initial) = (tuning.min, tuning.first());
        match &tuning.discovery {
            None => MtuConfig { base, initial, max: initial, ..MtuConfig::default() },
            Some(discovery) => {
                let (upper, interval, cooldown) = discovery.values();
                MtuConfig {
                    base,
                    initial,
                    max: upper.max(initial),
                    search: MtuSearch::Binary,
                    raise_after: interval,
                    black_hole_pause: cooldown,
                }
            }
        }
    }

    pub(super) fn send(&self, handshake: HandshakeState, max_ack_delay: Duration, random: &mut Random) -> SendConfig {
        let recovery = &self.transport.recovery;
        SendConfig {
            initial_rtt: recovery.initial_rtt,
            max_datagram_bytes: self.mtu().initial,
            ecn: if self.transport.wire.ecn == Switch::On { EcnMode::Ect0 } else { EcnMode::Off },
            packet_threshold: u64::from(recovery.packet_threshold),
            time_threshold: ((recovery.time_threshold * 8.0).round() as u32, 8),
            max_ack_delay,
            pacing: if recovery.pacing == Switch::On { Pacing::On } else { Pacing::Off },
            max_burst_bytes: recovery.max_burst_bytes.map(u64::from),
            handshake,
            skip: Some(random.fork().into()),
            ..SendConfig::default()
        }
    }

    /// When what arrives is acknowledged.
    pub(super) fn acks(&self) -> AckPolicy {
        let ack = &self.transport.ack;
        AckPolicy::delayed(ack.max_delay).with_eliciting_threshold(u64::from(ack.eliciting_threshold.saturating_sub(1)))
    }

    /// What we ask of the peer's acks, where it lets us.
    pub(super) fn ack_wish(&self) -> Option<AckWish> {
        self.transport.ack.wish
    }

    pub(super) fn spin(&self, side: Side, random: &mut Random) -> SpinBit {
        match self.transport.wire.spin {
            Switch::On => SpinBit::chosen(side, random),
            Switch::Off => SpinBit::still(random),
        }
    }
}
