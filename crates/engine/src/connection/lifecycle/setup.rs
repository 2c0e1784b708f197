//! How a connection comes to be, and how its first path is made.

use std::sync::Arc;
use std::time::Duration;

use plait_base::probe::TraceEvent;
use plait_base::{ConnectionId, Instant, PathId, Random, Side, TransportError};
use plait_congestion::ControllerFactory;
use plait_path::{
    AckPolicy, EcnMode, HandshakeState, MtuConfig, MtuSearch, Pacing, Path, PathAddresses, Paths, ReceiveFlow,
    SendConfig, SendFlow, SpinBit, TableConfig, Validation,
};
use plait_stream::{Datagrams, Streams};
use plait_wire::params::PreferredAddress;

use crate::config::{MigrationPolicy, Switch, TransportConfig};
use crate::connection::Connection;
use crate::connection::events::Events;
use crate::connection::handshake::Handshake;
use crate::connection::handshake::{parameters, session};
use crate::connection::lifecycle::Lifecycle;
use crate::connection::paths::PathControl;
use crate::connection::paths::policy::PathPlan;
use crate::connection::receive::Receive;
use crate::connection::send::scheduling::Scheduling;
use crate::connection::settings::{RoleSettings, Settings};
use crate::endpoint::parts::{ConnectionParts, Role};
use crate::io::EndpointEvent;

impl Connection {
    /// A connection from what the endpoint prepared; a client's has its first flight ready to be polled.
    ///
    /// # Errors
    /// TLS refuses the configuration or the server name.
    pub fn new(now: Instant, parts: ConnectionParts) -> Result<Self, TransportError> {
        let side = parts.side();
        let mut random = parts.random.clone();
        let mut paths = Paths::new(table_config(&parts));
        let mut events = Events::default();
        if let Some(factory) = &parts.transport.probes {
            events.install(factory.probe());
        }
        paths.set_local_initial(parts.ids.local, parts.endpoint.reset_key.token(&parts.ids.local));
        let preferred = preferred_address(&parts, &mut paths, &mut random, &mut events);
        paths.set_remote_initial(parts.ids.remote, None);
        let tls = session::session(&parts, preferred, &mut random)?;
        let versions = session::versions(&parts);
        let transport = parts.transport.clone();
        let (validation, token, role, migration) = match parts.role {
            Role::Client(client) => {
                let role = RoleSettings::Client {
                    tls: client.tls,
                    server_name: client.server_name,
                    token_store: client.token_store,
                };
                (None, client.token, role, MigrationPolicy::Allowed)
            }
            Role::Server(server) => {
                let proven = if server.proof.is_validated() { Validation::Validated } else { Validation::Unvalidated };
                let migration = server.config.migration;
                (Some(proven), bytes::Bytes::new(), RoleSettings::Server(server.config), migration)
            }
        };
        let route = match validation {
            None => PathAddresses::opened(parts.route),
            Some(validation) => PathAddresses::new(parts.route, validation),
        };
        let handshake_state = match side {
            Side::Client => HandshakeState::AwaitingServer,
            Side::Server => HandshakeState::Unconfirmed,
        };
        let mut plan = PathPlan::new(transport.paths.policy.build());
        plan.add_peer(parts.route.remote);
        let mut connection = Self {
            handshake: Handshake::new(side, versions, tls, parts.ids, token),
            keys: None,
            paths: PathControl::new(paths, plan),
            streams: Streams::new(side, parameters::streams_config(&transport)),
            datagrams: Datagrams::new(parameters::datagrams_config(&transport)),
            scheduling: Scheduling::new(&transport, random.fork()),
            receive: Receive::default(),
            lifecycle: Lifecycle::new(now, &transport.timing),
            events,
            settings: Settings { transport, endpoint: parts.endpoint, role, migration, mtu_search: Switch::On },
            random,
        };
        connection.make_first_path(now, route, handshake_state);
        connection.begin(now)?;
        Ok(connection)
    }

    fn make_first_path(&mut self, now: Instant, route: PathAddresses, state: HandshakeState) {
        let tuple = route.tuple();
        let (side, original_dcid) = (self.side(), self.handshake.ids.original_dcid);
        let version = self.handshake.versions.original.0;
        self.events.observe(now, || TraceEvent::Started { side, version, original_dcid, route: tuple });
        let path = self.make_path(now, PathId::ZERO, route, state);
        // The slot of path 0 is there from the start and unused.
        let opened = self.paths.table.open(Box::new(path));
        debug_assert!(opened.is_ok());
        self.drain_table_events();
    }

    /// A client produces its first flight; both prepare for 0-RTT.
    fn begin(&mut self, now: Instant) -> Result<(), TransportError> {
        let progress = self.handshake.advance()?;
        self.on_progress(now, progress);
        if self.side().is_client()
            && let Some(remembered) = self.handshake.early_seal_keys().and(self.handshake.remembered())
        {
            self.streams.set_peer_limits(&parameters::peer_limits(&remembered));
            self.datagrams.set_peer_frame_max(remembered.max_datagram_frame_bytes);
        }
        Ok(())
    }

    /// A path with fresh flows, set up from the configuration and what is known of the peer.
    pub(crate) fn make_path(&mut self, now: Instant, id: PathId, route: PathAddresses, state: HandshakeState) -> Path {
        let transport = &self.settings.transport;
        let mtu = mtu_config(transport);
        let config = SendConfig {
            initial_rtt: transport.recovery.initial_rtt,
            mss: mtu.initial,
            ecn: if transport.wire.ecn == Switch::On { EcnMode::Ect0 } else { EcnMode::Off },
            packet_threshold: u64::from(transport.recovery.packet_threshold),
            time_threshold: ((transport.recovery.time_threshold * 8.0).round() as u32, 8),
            max_ack_delay: self.peer_max_ack_delay(),
            pacing: if transport.recovery.pacing == Switch::On { Pacing::On } else { Pacing::Off },
            max_burst_bytes: transport.recovery.max_burst_bytes.map(u64::from),
            handshake: state,
            skip: Some(self.random.fork()),
        };
        let controller = self.controller().build(id, now, u64::from(mtu.initial));
        let policy = AckPolicy {
            eliciting_threshold: u64::from(transport.ack.eliciting_threshold.saturating_sub(1)),
            ..AckPolicy::delayed(transport.ack.max_delay)
        };
        let send = SendFlow::new(id, now, controller, config);
        let mut receive = ReceiveFlow::new(id, plait_base::Space::Data, policy);
        if id != PathId::ZERO {
            // Path 0 has the handshake's samples.
            receive.on_new_way();
        }
        let spins = transport.wire.spin == Switch::On;
        let mut path = Path::new(id, route, mtu, send, receive);
        if self.settings.mtu_search == Switch::Off {
            path.stop_mtu_search();
        }
        let (side, random) = (self.handshake.side, &mut self.random);
        path.spin = if spins { SpinBit::chosen(side, random) } else { SpinBit::still(random) };
        if let Some(params) = &self.handshake.peer_params {
            path.set_peer_max_datagram(params.max_udp_payload_bytes);
        }
        path
    }

    /// The factory of the controller that a path gets now.
    pub(crate) fn controller(&self) -> Arc<dyn ControllerFactory> {
        let transport = &self.settings.transport;
        match &transport.multipath_controller {
            Some(coupled) if self.paths.table.is_multipath() => coupled.clone(),
            _ => transport.controller.clone(),
        }
    }

    pub(crate) fn peer_max_ack_delay(&self) -> Duration {
        Duration::from_millis(self.handshake.peer_params.as_ref().map_or(25, |p| p.acks.max_delay_ms))
    }
}

fn table_config(parts: &ConnectionParts) -> TableConfig {
    let tuning = &parts.transport.paths;
    let has_ids = !parts.ids.local.is_empty() && !parts.ids.remote.is_empty();
    TableConfig {
        side: parts.side(),
        cid_limit: tuning.cid_limit,
        initial_max_path_id: tuning.initial_max_path_id().filter(|_| has_ids).map(|id| id.0),
        max_validations: tuning.max_validations,
    }
}

fn mtu_config(transport: &TransportConfig) -> MtuConfig {
    let (base, initial) = (transport.mtu.min, transport.mtu.first());
    match &transport.mtu.discovery {
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

/// A server's preferred address comes with connection id 1 of path 0 (RFC 9000 9.6).
fn preferred_address(
    parts: &ConnectionParts,
    paths: &mut Paths,
    random: &mut Random,
    events: &mut Events,
) -> Option<PreferredAddress> {
    let Role::Server(server) = &parts.role else { return None };
    let (v4, v6) = (server.config.preferred_v4, server.config.preferred_v6);
    if (v4.is_none() && v6.is_none()) || parts.ids.local.is_empty() {
        return None;
    }
    let cid: ConnectionId = random.connection_id(parts.endpoint.cid_len);
    let token = parts.endpoint.reset_key.token(&cid);
    paths.set_local_initial(cid, token);
    events.tell_endpoint(EndpointEvent::Register { cid, path: PathId::ZERO });
    Some(PreferredAddress { v4, v6, cid, token })
}
