//! One connection: its parts side by side, and the public calls that a runtime makes.
//!
//! In: `receive` opens packets, `dispatch` hands each frame to its home. Out: `send` chooses path and packet,
//! `fill` asks the parts for frames. Time: `timers`. The parts never see this struct; they talk in values.

mod application;
mod events;
mod handshake;
mod lifecycle;
mod paths;
mod receive;
mod send;
mod settings;
pub mod split;

use plait_base::observe::Observer;
use plait_base::{ConnectionId, Instant, PathId, Random, Side, Space};
use plait_crypto::OneRttKeys;
use plait_stream::{Datagrams, Streams};

use crate::io::EndpointEvent;

pub use application::{
    ApplicationDatagrams, ConnectionPaths, HandshakeSummary, OpenStreams, PathStatistics, Policies, RecvStream,
    SendStream, Session,
};
pub use events::{Event, PathEvent};
pub use lifecycle::{ApplicationClose, ConnectionError, Unreachable};
pub use paths::PathError;

use events::Events;
use handshake::Handshake;
use lifecycle::{CloseFrame, Lifecycle};
use paths::PathControl;
use receive::Receive;
use send::scheduling::Scheduling;
use settings::Settings;

/// A QUIC connection of either side, over one path or many. It does no IO and reads no clock.
///
/// A runtime gives it datagrams ([`Self::handle_datagram`]), the time ([`Self::on_timeout`] at [`Self::deadline`]), takes
/// datagrams ([`Self::poll_transmit`]), and news for the application ([`Self::poll`]) and the endpoint
/// ([`Self::poll_endpoint_event`]).
pub struct Connection {
    settings: Settings,
    random: Random,
    handshake: Handshake,
    /// 1-RTT keys, once TLS has them.
    keys: Option<Box<OneRttKeys>>,
    paths: PathControl,
    streams: Streams,
    datagrams: Datagrams,
    scheduling: Scheduling,
    receive: Receive,
    lifecycle: Lifecycle,
    events: Events,
}

impl Connection {
    /// Which end of the connection we are.
    pub fn side(&self) -> Side {
        self.handshake.side
    }

    /// True once an extension is in effect by which there may be several paths: RFC 10069 or Multiflow.
    pub fn is_multipath(&self) -> bool {
        self.paths.table.is_multipath()
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
        self.lifecycle.close_to_send().is_some()
    }

    /// True once nothing will ever come from it again.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// Shows every event to an observer from now on.
    pub fn observe_with(&mut self, observer: Box<dyn Observer>) {
        self.events.install(observer);
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
        self.handshake.shrink_to_fit();
        self.keys.iter_mut().for_each(|keys| keys.rest());
        self.events.shrink_to_fit();
        self.scheduling.shrink_to_fit();
        self.streams.shrink_to_fit();
        self.paths.shrink_to_fit();
        self.receive.shrink_to_fit();
    }

    /// True once the server's first packet was opened, or a Retry or Version Negotiation of its was followed.
    pub fn is_heard(&self) -> bool {
        self.handshake.is_heard()
    }

    /// Gives up an attempt of a client that is not wanted any more, in favour of one to which `successor` leads, an id of the
    /// server's ([`Session::peer_cid`]). The server is told in a Handshake packet, which is short and proves our address (RFC 9000 8.1):
    /// now, or else once its answer brings the keys. Where it never answers nothing more is sent.
    pub fn withdraw(&mut self, now: Instant, successor: Option<ConnectionId>) {
        if !self.lifecycle.is_open() {
            return;
        }
        let patience = self.paths.validation_times(PathId::ZERO).give_up;
        self.begin_closing(now, CloseFrame::withdrawn(successor), ConnectionError::LocallyClosed);
        self.lifecycle.await_keys(now, patience);
        if self.handshake.has_keys(Space::Handshake) || self.handshake.is_complete() {
            self.lifecycle.on_keys(now, patience);
        }
    }

    /// The network says that datagrams do not reach the peer. Anybody can forge that, so it counts for nothing once the
    /// peer was heard.
    pub fn on_unreachable(&mut self, now: Instant, why: Unreachable) {
        if self.side().is_client() && self.lifecycle.is_open() && !self.is_heard() {
            self.abort(now, ConnectionError::Unreachable(why));
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side())
            .field("stage", &self.handshake.stage)
            .field("paths", &self.paths.table.open_slots().count())
            .finish_non_exhaustive()
    }
}
