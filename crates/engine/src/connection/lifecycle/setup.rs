//! How a connection comes to be, and how its first path is made.

use plait_base::observe::TraceEvent;
use plait_base::{ConnectionId, Instant, PathId, Random, Side, TransportError};
use plait_path::{HandshakeState, PathAddresses, Paths, TableConfig, Validation};
use plait_stream::{Datagrams, Streams};
use plait_wire::params::PreferredAddress;

use crate::config::MigrationPolicy;
use crate::connection::Connection;
use crate::connection::events::Events;
use crate::connection::handshake::{Beginning, Handshake, parameters, session};
use crate::connection::lifecycle::Lifecycle;
use crate::connection::paths::PathControl;
use crate::connection::paths::cids::OwnCids;
use crate::connection::paths::policy::PathPlan;
use crate::connection::paths::settings::PathSettings;
use crate::connection::receive::Receive;
use crate::connection::send::scheduling::Scheduling;
use crate::connection::settings::{ClientSettings, RoleSettings, Settings};
use crate::endpoint::parts::{ConnectionParts, Role};
use crate::io::EndpointEvent;

impl Connection {
    /// A connection from what the endpoint prepared; a client's has its first flight ready to be polled.
    ///
    /// # Errors
    /// TLS refuses the configuration or the server name.
    pub(crate) fn new(now: Instant, parts: ConnectionParts) -> Result<Self, TransportError> {
        let side = parts.side();
        let mut random = parts.random.clone();
        let mut paths = Paths::new(table_config(&parts));
        let mut events = Events::default();
        if let Some(factory) = &parts.transport.observers {
            events.install(factory.observer());
        }
        paths.set_local_initial(parts.ids.local, parts.endpoint.reset_key.token(&parts.ids.local));
        let preferred = preferred_address(&parts, &mut paths, &mut random, &mut events);
        paths.set_remote_initial(parts.ids.remote, None);
        let tls = session::session(&parts, preferred, &mut random)?;
        let versions = session::versions(&parts);
        let transport = parts.transport.clone();
        let (validation, beginning, role, migration) = match parts.role {
            Role::Client(client) => {
                let role = RoleSettings::Client(Box::new(ClientSettings {
                    tls: client.tls,
                    server_name: client.server_name,
                    token_store: client.token_store,
                }));
                (None, Beginning::Client { token: client.token }, role, MigrationPolicy::Allowed)
            }
            Role::Server(server) => {
                let proven = if server.proof.is_validated() { Validation::Validated } else { Validation::Unvalidated };
                let migration = server.config.migration;
                let beginning = Beginning::Server { initial_keys: server.initial_keys };
                (Some(proven), beginning, RoleSettings::Server(server.config), migration)
            }
        };
        let tuple = parts.tuple;
        let addresses = match validation {
            None => PathAddresses::opened(tuple),
            Some(validation) => PathAddresses::new(tuple, validation),
        };
        let handshake_state = match side {
            Side::Client => HandshakeState::AwaitingServer,
            Side::Server => HandshakeState::Unconfirmed,
        };
        let mut plan = PathPlan::new(transport.paths.policy.build());
        plan.add_peer(tuple.remote);
        let own_cids = OwnCids::new(parts.ids.local.len(), parts.endpoint.clone(), parts.receiver);
        let mut connection = Self {
            handshake: Handshake::new(beginning, versions, tls, parts.ids),
            keys: None,
            paths: PathControl::new(paths, plan, PathSettings::new(transport.clone()), own_cids, side),
            streams: Streams::new(side, parameters::streams_config(&transport)),
            datagrams: Datagrams::new(parameters::datagrams_config(&transport)),
            scheduling: Scheduling::new(&transport, random.fork()),
            receive: Receive::default(),
            lifecycle: Lifecycle::new(now, &transport.timing),
            events,
            settings: Settings { transport, endpoint: parts.endpoint, role, migration },
            random,
        };
        let (version, original_dcid) =
            (connection.handshake.versions.original.0, connection.handshake.ids.original_dcid);
        connection.events.observe(now, || TraceEvent::Started { side, version, original_dcid, tuple });
        connection.begin(now, addresses, handshake_state)?;
        Ok(connection)
    }

    /// The first path is there; a client produces its first flight, both prepare for 0-RTT.
    fn begin(&mut self, now: Instant, addresses: PathAddresses, state: HandshakeState) -> Result<(), TransportError> {
        self.paths.open_first(now, addresses, state, &mut self.random);
        self.on_path_news(now);
        let progress = self.handshake.advance()?;
        self.on_progress(now, progress);
        if self.side().is_client()
            && let Some(remembered) = self.handshake.zero_rtt.seal_keys().and(self.handshake.remembered())
        {
            self.streams.set_peer_limits(&parameters::peer_limits(&remembered));
            self.datagrams.set_peer_frame_max(remembered.max_datagram_frame_bytes);
        }
        Ok(())
    }
}

fn table_config(parts: &ConnectionParts) -> TableConfig {
    let tuning = &parts.transport.paths;
    let has_ids = !parts.ids.local.is_empty() && !parts.ids.remote.is_empty();
    TableConfig {
        side: parts.side(),
        cid_limit: tuning.cid_limit,
        initial_max_path_id: tuning.initial_max_path_id().filter(|_| has_ids).map(|id| id.0),
        max_sending_uniflow_id: tuning.max_sending_uniflow_id().filter(|_| has_ids).map(|id| id.0),
        announcements: tuning.announcements(),
        address_scope: tuning.address_scope,
        max_validations: tuning.max_validations,
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
    let cid: ConnectionId = parts.endpoint.draw_cid(parts.endpoint.cid_len, parts.receiver, random);
    let token = parts.endpoint.reset_key.token(&cid);
    paths.set_local_initial(cid, token);
    events.tell_endpoint(EndpointEvent::Register { cid, path: PathId::ZERO });
    Some(PreferredAddress { v4, v6, cid, token })
}
