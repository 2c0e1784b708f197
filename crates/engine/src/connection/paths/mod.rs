//! The paths of a connection, and what happens to them: opened, validated, moved, failed, abandoned, closed.
//!
//! ```text
//!        open_path, or the peer's first packet on it
//!                          |
//!                          v
//!                   +------------+  nothing answers: back to the addresses before, or closing
//!        +--------->| validating |-----------------------------------------------------------+
//!        |          +------------+                                                           |
//!        | moved to       | PATH_RESPONSE, or another path proved the address                |
//!        | addresses      v                                                                  |
//!        | not proven +--------+  PATH_STATUS of either side  +--------+                     |
//!        +------------| active |<---------------------------->| backup |-----+               |
//!        |            +--------+                              +--------+     |               |
//!        |              |    ^  an ack of a packet on it           ^         |               |
//!        |  a probe     |    +-----------------+   (to either)     |         |               |
//!        |  time-out,   |                      +-------------------+         |               |
//!        |  own address |                      |                             |               |
//!        |  gone        |            +--------+    the same                  |               |
//!        |              +----------->| failed |<-----------------------------+               |
//!        +---------------------------+--------+                                              |
//!                                        | too many probe time-outs in a row                 |
//!                                        v                                                   |
//!    any state: PATH_ABANDON,       +---------+                                              |
//!    sent or received ------------->| closing |<---------------------------------------------+
//!                                   +---------+
//!                                        | three probe time-outs after the peer's PATH_ABANDON,
//!                                        | or six where it never comes and ours was acked
//!                                        v
//!                                     closed
//! ```
//!
//! The state is read from the path's slot ([`Slot::state`](plait_path::table::Slot::state)); nobody stores it. Without
//! multipath there is path 0 alone: it never fails or closes. A client whose path falls silent probes the peer from its
//! other addresses; where nothing answers, the idle timeout ends the connection.
//!
//! [`PathControl`] acts on the table of paths. It knows of the connection what it was told (`on_peer_params`,
//! `on_handshake_complete`, `on_handshake_confirmed`); what others must hear comes out of it as [`PathNews`].

pub(crate) mod arrival;
pub(crate) mod cids;
mod close;
mod failure;
mod mobility;
mod mtu;
pub(crate) mod news;
mod open;
mod outage;
pub(crate) mod policy;
mod proven;
mod reset_tokens;
pub(crate) mod settings;
mod status;
mod timers;
mod uniflows;
mod validation;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{ConnectionId, Instant, PathId, Random, Side};
use plait_path::table::OpenError;
use plait_path::{Feedback, HandshakeState, Path, Paths, PeerLimits};
use plait_wire::params::{ActiveMigration, PreferredAddress, TransportParameters, UnconfirmedPaths};

use crate::connection::events::PathEvent;
use crate::connection::handshake::Stage;
use crate::connection::receive::acked::AckNote;
use cids::OwnCids;
pub(crate) use close::NoPath;
pub(crate) use news::PathNews;
use outage::Outage;
use policy::PathPlan;
use reset_tokens::ResetTokens;
use settings::PathSettings;
use uniflows::FirstHeard;

/// The peer's max_ack_delay before its parameters are known (RFC 9000 18.2).
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Why a call about a path could not be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path could not be opened now; the reason says whether trying later helps.
    #[error("the path cannot be opened: {0}")]
    Open(OpenError),
    /// There is no such open path.
    #[error("there is no such open path")]
    NoPath,
    /// Multipath is not in effect on this connection.
    #[error("multipath is not in effect on this connection")]
    NotMultipath,
    /// The server takes clients only at the address of the handshake (disable_active_migration).
    #[error("the server allows no further path to this address of it")]
    MigrationDisabled,
    /// The handshake is not confirmed yet; later it may be tried again.
    #[error("the handshake is not confirmed yet")]
    Unconfirmed,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// The connection's paths, and who acts on them.
pub(crate) struct PathControl {
    /// The paths themselves.
    pub(crate) table: Paths,
    /// The path policy and the addresses that it knows.
    plan: PathPlan,
    settings: PathSettings,
    own_cids: OwnCids,
    side: Side,
    /// How far the handshake is, as it was told here last.
    stage: Stage,
    peer: Option<PeerPathParams>,
    /// What coupled congestion controllers read of each other.
    pub(crate) shared_metrics: SharedPathMetrics,
    /// Stateless reset tokens of the peer's ids in use.
    reset_tokens: ResetTokens,
    /// Set once the last path ended, until another opens or the connection closes.
    pub(crate) no_path: Option<NoPath>,
    /// What is tried while no path works.
    outage: Option<Outage>,
    /// Paths that owe a PING: keep-alive, or a question whether they still work.
    pub(crate) pings: Vec<PathId>,
    /// What the last ack or timer said of packets; empty between calls.
    pub(crate) feedback: Feedback,
    news: VecDeque<PathNews>,
    /// Acks that came for paths which somebody else serves.
    pub(crate) acks_of_lent: VecDeque<AckNote>,
    /// The newest datagram of a uniflow from addresses that it had not before.
    first_heard: Option<Box<FirstHeard>>,
}

/// What the peer's transport parameters say of paths.
#[derive(Clone, Debug)]
struct PeerPathParams {
    max_udp_payload_bytes: u64,
    max_ack_delay: Duration,
    /// None where it cannot be asked for other acks.
    min_ack_delay: Option<Duration>,
    active_migration: ActiveMigration,
    unconfirmed_paths: UnconfirmedPaths,
    preferred_address: Option<Box<PreferredAddress>>,
}

impl PathControl {
    pub(crate) fn new(table: Paths, plan: PathPlan, settings: PathSettings, own_cids: OwnCids, side: Side) -> Self {
        Self {
            table,
            plan,
            settings,
            own_cids,
            side,
            stage: Stage::Negotiating,
            peer: None,
            shared_metrics: SharedPathMetrics::default(),
            reset_tokens: ResetTokens::default(),
            no_path: None,
            outage: None,
            pings: Vec::new(),
            feedback: Feedback::default(),
            news: VecDeque::new(),
            acks_of_lent: VecDeque::new(),
            first_heard: None,
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.feedback.shrink_to_fit();
        self.shared_metrics.shrink_to_fit();
        self.table.shrink_to_fit();
        self.pings.shrink_to_fit();
        self.news.shrink_to_fit();
    }

    /// True where others must hear something.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// What others must hear next.
    pub(crate) fn poll_news(&mut self) -> Option<PathNews> {
        self.news.pop_front()
    }

    fn tell(&mut self, news: PathNews) {
        self.news.push_back(news);
    }

    fn tell_application(&mut self, event: PathEvent) {
        self.tell(PathNews::Application(event));
    }

    /// What was found out of packets; nothing is left here.
    pub(crate) fn take_feedback(&mut self) -> Feedback {
        std::mem::take(&mut self.feedback)
    }

    /// The memory of a report that was read, to be used again.
    pub(crate) fn give_back(&mut self, cleared: Feedback) {
        debug_assert!(self.feedback.lost.is_empty() && self.feedback.acked.is_empty(), "a report is not read yet");
        self.feedback = cleared;
    }

    /// What `feedback` says of packets of the path goes to the homes of their frames.
    fn tell_undelivered(&mut self, id: PathId) {
        let feedback = self.take_feedback();
        self.tell(PathNews::Undelivered { id, feedback });
    }

    /// Coupled controllers and observers learn in which state the path is.
    fn tell_state(&mut self, id: PathId) {
        let Some(state) = self.table.share_metrics(id, &mut self.shared_metrics) else { return };
        if let Some(tuple) = self.table.path(id).map(Path::tuple) {
            self.tell(PathNews::State { id, tuple, state });
        }
    }
}

/// The handshake goes on.
impl PathControl {
    /// The peer's parameters are authenticated; `remote` is its connection id of the handshake.
    pub(crate) fn on_peer_params(&mut self, params: &TransportParameters, remote: ConnectionId) {
        let max_ack_delay = Duration::from_millis(params.acks.max_delay_ms);
        self.peer = Some(PeerPathParams {
            max_udp_payload_bytes: params.max_udp_payload_bytes,
            max_ack_delay,
            min_ack_delay: params.acks.min_delay_us.map(Duration::from_micros),
            active_migration: params.active_migration,
            unconfirmed_paths: params.unconfirmed_paths,
            preferred_address: params.preferred_address.map(Box::new),
        });
        self.table.set_peer_limits(PeerLimits {
            cid_limit: params.active_cid_limit,
            initial_max_path_id: params.initial_max_path_id.map(|id| id.0),
            max_sending_uniflow_id: params.max_sending_uniflow_id.map(|id| id.0),
            announcements: params.announcements,
        });
        if let Some(token) = params.stateless_reset_token {
            self.table.set_remote_initial(remote, Some(token));
        }
        if let Some(path) = self.table.path_mut(PathId::ZERO) {
            path.on_peer_params(params.max_udp_payload_bytes, max_ack_delay);
        }
        self.table.on_pto_changed();
        // Those queued for 0-RTT went by the limits of the last connection.
        self.tell(PathNews::RoomShrank);
        self.process_table_events();
    }

    /// TLS is done on our side; true when multipath is in effect from now on.
    pub(crate) fn on_handshake_complete(&mut self, now: Instant) -> bool {
        self.stage = Stage::Complete;
        let multipath = self.table.on_handshake_complete();
        if multipath {
            // Also with bytes in flight: a server has its first 1-RTT packets under way by now.
            let controller = self.controller().build(PathId::ZERO, now, 1200);
            if let Some(path) = self.table.path_mut(PathId::ZERO) {
                path.succeed_controller(now, controller, &self.shared_metrics);
            }
            self.begin_uniflows();
            self.announce_addresses();
        }
        if let Some(peer) = &self.peer
            && let Some((wish, shortest)) = self.settings.ack_wish().zip(peer.min_ack_delay)
        {
            self.table.ask_for_acks(now, wish, shortest, peer.max_ack_delay);
        }
        self.tell_state(PathId::ZERO);
        multipath
    }

    /// Both sides know that the handshake is done (RFC 9001 4.1.2).
    pub(crate) fn on_handshake_confirmed(&mut self, now: Instant, random: &mut Random) {
        self.stage = Stage::Confirmed;
        // RFC 9002 6.2.1: from now on the data of every path has a probe timer
        let paths = self.table.slots_mut().filter_map(|slot| slot.path.as_deref_mut());
        paths.for_each(|path| path.set_handshake(now, HandshakeState::Confirmed));
        self.issue_cids(random);
        self.plan.touch();
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.stage == Stage::Confirmed
    }

    /// True while the datagrams that open a client's paths wait. On another way than the Finished they may overtake it,
    /// and some servers never recover from that; RFC 9001 5.7 has them keep or drop such packets. Ours say that they do.
    pub(crate) fn holds_openings(&self) -> bool {
        self.side.is_client()
            && !self.is_confirmed()
            && !self.peer.as_ref().is_some_and(|peer| peer.unconfirmed_paths == UnconfirmedPaths::Welcome)
    }

    /// True when the peer wants nothing from other addresses of ours at this one of its (RFC 9000 18.2, RFC 10069 2.2:
    /// the parameter speaks of the address of the handshake, not of others of the server).
    fn is_bound_to(&self, remote: SocketAddr) -> bool {
        let disabled = self.peer.as_ref().is_some_and(|peer| peer.active_migration == ActiveMigration::Disabled);
        disabled && Some(remote) == self.plan.first_peer()
    }
}

#[cfg(test)]
mod tests;
