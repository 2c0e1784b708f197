//! One connection: its parts side by side, and the public calls that a runtime makes.
//!
//! In: `receive` opens packets, `dispatch` hands each frame to its home. Out: `send` chooses path and packet,
//! `fill` asks the parts for frames. Time: `timers`. The parts never see this struct; they talk in values.

mod application;
mod assemble;
mod close;
mod dispatch;
mod events;
mod fill;
mod handshake;
mod lifecycle;
mod mobility;
mod mtu;
mod parameters;
mod path_policy;
mod paths;
mod pending_copies;
mod policies;
mod purpose;
mod receive;
mod reinject;
mod reset_tokens;
mod scheduling;
mod send;
mod settle;
mod setup;
mod sockets;
mod timers;
mod tokens;
mod versions;

use std::sync::Arc;

use bytes::Bytes;
use plait_base::probe::Probe;
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{CloseCode, FourTuple, Instant, PathId, Random, Side};
use plait_crypto::{ClientTlsConfig, OneRttKeys};
use plait_path::{Feedback, PathTotals, Paths};
use plait_stream::{Datagrams, Streams};
use plait_wire::SentFrame;

use crate::config::{EndpointConfig, MigrationPolicy, ServerConfig, Switch, TokenStore, TransportConfig};
use crate::shared::EndpointEvent;

pub use application::{HandshakeSummary, PathStatistics};
pub use events::{Event, PathEvent};
pub use lifecycle::{ApplicationClose, ConnectionError, Unreachable};
pub use paths::PathError;
pub use policies::Policies;

use events::Events;
use handshake::Handshake;
use lifecycle::Lifecycle;
use path_policy::PathPlan;
use receive::SavedPacket;
use reset_tokens::ResetTokens;
use scheduling::Scheduling;
use tokens::Tokens;

/// A QUIC connection of either side, over one path or many. It does no IO and reads no clock.
///
/// A runtime gives it datagrams ([`Self::absorb`]), the time ([`Self::on_timeout`] at [`Self::deadline`]), takes
/// datagrams ([`Self::poll_transmit`]), and news for the application ([`Self::poll`]) and the endpoint
/// ([`Self::poll_endpoint_event`]).
pub struct Connection {
    settings: Settings,
    random: Random,
    handshake: Handshake,
    /// 1-RTT keys, once TLS has them.
    keys: Option<Box<OneRttKeys>>,
    paths: Paths,
    streams: Streams,
    datagrams: Datagrams,
    scheduling: Scheduling,
    plan: PathPlan,
    shared_metrics: SharedPathMetrics,
    lifecycle: Lifecycle,
    events: Events,
    registry: Registry,
    /// Packets that arrived before their keys; bounded.
    saved_packets: Vec<SavedPacket>,
    scratch: Scratch,
}

/// What was decided before the first packet.
struct Settings {
    transport: Arc<TransportConfig>,
    endpoint: Arc<EndpointConfig>,
    role: RoleSettings,
    migration: MigrationPolicy,
    /// Whether larger datagrams are tried at all; the transport's settings say how.
    mtu_search: Switch,
}

/// What only one side needs after the handshake began.
enum RoleSettings {
    Client { tls: ClientTlsConfig, server_name: String, token_store: Arc<dyn TokenStore> },
    Server(Arc<ServerConfig>),
}

/// What the endpoint and the peer must keep for us.
#[derive(Default)]
struct Registry {
    resets: ResetTokens,
    tokens: Tokens,
    /// When 0-RTT keys are dropped.
    discard_early_at: Option<Instant>,
    /// When unread data is copied out of the receive buffers.
    settle_at: Option<Instant>,
    /// Since when the present keys are in use; none before the handshake is confirmed.
    keys_since: Option<Instant>,
    /// Paths on which the present round of our close is still to be sent.
    closes_due: Vec<PathId>,
    no_path: Option<NoPath>,
    /// A server's preferred address, to be probed once the handshake is confirmed.
    preferred: Option<FourTuple>,
    /// What is tried while no path works.
    outage: Option<mobility::Outage>,
    /// What paths did that are gone.
    past: PathTotals,
}

/// A connection whose last path ended, until it closes or another opens.
struct NoPath {
    /// Until when it waits for a path.
    until: Instant,
    /// The path that ended last, while its PATH_ABANDON did not leave.
    abandon_unsent: Option<PathId>,
}

/// Memory that is used again for each packet.
#[derive(Default)]
struct Scratch {
    feedback: Feedback,
    carried: Vec<SentFrame>,
    updates: Vec<SentFrame>,
}

impl Scratch {
    fn shrink_to_fit(&mut self) {
        self.feedback.shrink_to_fit();
        // Nothing in these outlives a call.
        self.carried = Vec::new();
        self.updates = Vec::new();
    }
}

impl Connection {
    /// Our end.
    pub fn side(&self) -> Side {
        self.handshake.side
    }

    /// True once RFC 10069 is in effect.
    pub fn is_multipath(&self) -> bool {
        self.paths.is_multipath()
    }

    /// True until the handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        !self.handshake.is_complete()
    }

    /// True once it was closed by either side or lost; it may still have packets to send.
    pub fn is_closed(&self) -> bool {
        !self.lifecycle.is_open()
    }

    /// True while our close still has to leave; what follows are answers to packets that come all the same.
    pub fn owes_close(&self) -> bool {
        self.lifecycle.due_close().is_some()
    }

    /// True once nothing will ever come from it again.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// Shows every event to an observer from now on.
    pub fn observe_with(&mut self, probe: Box<dyn Probe>) {
        self.events.install(probe);
    }

    /// The next news for the application.
    pub fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.streams.poll_event() {
            return Some(Event::Stream(event));
        }
        if self.datagrams.poll_unblocked() {
            return Some(Event::DatagramsUnblocked);
        }
        self.events.poll()
    }

    /// The next news for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.events.poll_endpoint()
    }

    /// Gives back the memory that waits for packets to come. For a connection that has been silent for a while: nothing
    /// else changes, and the next packets allocate it again.
    pub fn shrink_to_fit(&mut self) {
        self.random.rest();
        self.scratch.shrink_to_fit();
        self.events.shrink_to_fit();
        self.scheduling.shrink_to_fit();
        self.shared_metrics.shrink_to_fit();
        self.streams.shrink_to_fit();
        self.paths.shrink_to_fit();
        self.paths.slots_mut().filter_map(|slot| slot.path.as_mut()).for_each(|path| path.send.shrink_to_fit());
        self.saved_packets.shrink_to_fit();
    }

    /// Length of our connection ids, bytes.
    fn cid_len(&self) -> usize {
        self.handshake.ids.local.len()
    }

    /// Closes with a transport error of the peer's making, or of ours (RFC 9000 5.2, 11.1).
    fn close_with(&mut self, now: Instant, error: plait_base::TransportError) {
        let frame = lifecycle::CloseFrame::Transport(error.clone());
        self.begin_closing(now, frame, ConnectionError::TransportError(error));
    }

    /// True once the server's first packet was opened, or a Retry or Version Negotiation of its was followed.
    pub fn is_heard(&self) -> bool {
        let versions = &self.handshake.versions;
        self.handshake.peer_scid.is_some() || self.handshake.ids.retry_scid.is_some() || versions.was_negotiated()
    }

    /// Gives up an attempt that is not wanted any more. A peer of which nothing was heard is not told: where it answers
    /// later, it learns by then, and where nobody is nothing is sent.
    pub fn withdraw(&mut self, now: Instant) {
        let frame = lifecycle::CloseFrame::Transport(plait_base::TransportError::new(CloseCode::NO_ERROR, ""));
        self.begin_closing(now, frame, ConnectionError::LocallyClosed);
        if !self.is_heard() {
            self.lifecycle.on_close_sent();
        }
    }

    /// The network says that datagrams do not reach the peer. Anybody can forge that, so it counts for nothing once the
    /// peer was heard.
    pub fn on_unreachable(&mut self, why: Unreachable) {
        if self.side().is_client() && self.lifecycle.is_open() && !self.is_heard() {
            self.abort(ConnectionError::Unreachable(why));
        }
    }

    /// Closes the connection. `code` is the application's, at most 2^62 - 1; `reason` is cut to 512 bytes.
    pub fn close(&mut self, now: Instant, code: u64, reason: Bytes) {
        let code = code.min(plait_base::units::VARINT_MAX);
        let reason = reason.slice(..reason.len().min(plait_base::limits::MAX_REASON_BYTES));
        let frame = lifecycle::CloseFrame::Application(ApplicationClose { code, reason });
        self.begin_closing(now, frame, ConnectionError::LocallyClosed);
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side())
            .field("stage", &self.handshake.stage)
            .field("paths", &self.paths.open_slots().count())
            .finish_non_exhaustive()
    }
}
