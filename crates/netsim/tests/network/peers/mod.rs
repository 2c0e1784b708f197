//! Other QUIC implementations, and later our own, as hosts of a world, all speaking one tiny application.
//!
//! To add an implementation, write one file with a [`Stack`] and a line in [`Kind`].

#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses its own part of this

pub mod app;
pub mod noq;
pub mod pattern;
pub mod plait;
pub mod quinn;
pub mod tls;

use std::any::Any;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plait_base::Instant;
use plait_engine::Version;
use plait_netsim::{Datagram, Host, HostId, InterfaceState, World};

#[allow(unused_imports)] // not every binary asks which way
pub use app::{Progress, Request, Way};

/// A QUIC implementation with the test application on top. Time passes through [`Host`].
pub trait Stack: Host {
    /// Its name, for people.
    fn label(&self) -> &'static str;
    /// Client: begins a request, as soon as the connection allows.
    fn request(&mut self, request: Request);
    /// How far the requests are (client), or what has been served (server).
    fn progress(&self) -> Progress;
    /// Client: opens one more path, as soon as the connection allows.
    fn open_path(&mut self, local: IpAddr, remote: SocketAddr);
    /// Bytes sent and received on each path of the first connection.
    fn paths(&mut self) -> Vec<PathBytes>;
    /// Closes every connection.
    fn close(&mut self, now: Instant);
    /// Does something to the first connection in mid-transfer, where it can.
    fn obey(&mut self, now: Instant, order: Order);
    /// What is still kept though every connection should be gone; empty when clean.
    fn leftovers(&self) -> String;
}

/// Something done to a connection in mid-transfer. Paths are counted among the open ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Gives a path up, unless it is the last.
    ClosePath(usize),
    /// Advises the peer not to use a path.
    Backup(usize),
    /// Takes the advice back.
    Available(usize),
    /// Updates the keys.
    UpdateKeys,
}

/// How a server meets a first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Welcome {
    #[default]
    Direct,
    Retry,
}

/// What differs from connection to connection.
#[derive(Clone, Copy, Debug)]
pub struct PeerOptions {
    pub welcome: Welcome,
    /// Of the client's first packet; only plait knows another than v1.
    pub version: Version,
    /// Where a server of plait moves its clients; other implementations stay.
    pub prefers: Option<Version>,
    pub keep_alive: Option<Duration>,
    /// Packets for which the peer is asked for an ack.
    pub ack_frequency: Option<u32>,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self { welcome: Welcome::Direct, version: Version::V1, prefers: None, keep_alive: None, ack_frequency: None }
    }
}

/// Traffic of one path, UDP payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBytes {
    pub id: u64,
    pub sent: u64,
    pub received: u64,
}

/// What an endpoint is to be.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub local: SocketAddr,
    /// The server to connect to; none for a server.
    pub remote: Option<SocketAddr>,
    /// Paths to allow; 1 switches multipath off.
    pub paths: u32,
    pub seed: u64,
}

/// The implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plait,
    /// plait, whose paths are served by others wherever they may be.
    Lent,
    Quinn,
    Noq,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Plait, Self::Quinn, Self::Noq];

    pub fn is_plait(self) -> bool {
        matches!(self, Self::Plait | Self::Lent)
    }

    pub fn build(self, setup: Setup) -> Peer {
        self.build_with(setup, PeerOptions::default())
    }

    pub fn build_with(self, setup: Setup, options: PeerOptions) -> Peer {
        match self {
            Self::Plait => Peer(Box::new(plait::PlaitHost::with_habits(setup, options))),
            Self::Lent => Peer(Box::new(plait::PlaitHost::with_habits(setup, options).lending())),
            Self::Quinn => Peer(Box::new(quinn::QuinnHost::new(setup, options))),
            Self::Noq => Peer(Box::new(noq::NoqHost::new(setup, options))),
        }
    }
}

/// Any stack as a host of one known type.
pub struct Peer(pub Box<dyn Stack>);

impl Peer {
    pub fn plait(&mut self) -> Option<&mut plait::PlaitHost> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }

    pub fn noq(&mut self) -> Option<&mut noq::NoqHost> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }
}

impl Host for Peer {
    fn on_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.0.on_datagram(now, datagram);
    }

    fn on_timeout(&mut self, now: Instant) {
        self.0.on_timeout(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        self.0.poll_transmit(now, out);
    }

    fn on_interface(&mut self, now: Instant, address: IpAddr, state: InterfaceState) {
        self.0.on_interface(now, address, state);
    }
}

/// The progress of a peer in a world.
pub fn progress(world: &World, id: HostId) -> Progress {
    world.host::<Peer>(id).map(|peer| peer.0.progress()).unwrap_or_default()
}

/// Maps virtual time to the clock type of the other implementations.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    #[allow(clippy::disallowed_methods)] // the origin of virtual time, read once
    pub fn new() -> Self {
        Self(std::time::Instant::now())
    }

    pub fn to_std(self, now: Instant) -> std::time::Instant {
        self.0 + now.since_origin()
    }

    pub fn to_virtual(self, at: std::time::Instant) -> Instant {
        Instant::ZERO + at.saturating_duration_since(self.0)
    }
}
