//! What lives at an address: anything that takes datagrams and time, and gives datagrams.

use std::any::Any;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use plait_base::{Ecn, Instant};

/// A UDP datagram between two addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The sender's address and port.
    pub src: SocketAddr,
    /// The receiver's address and port.
    pub dst: SocketAddr,
    /// ECN mark of the IP header.
    pub ecn: Option<Ecn>,
    /// The UDP payload.
    pub payload: BytesMut,
}

/// Names a host of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// Whether an interface carries anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterfaceState {
    /// It sends and receives.
    #[default]
    Up,
    /// Nothing enters or leaves.
    Down,
}

/// An end of the network, without IO and without a clock. After every call the world asks for
/// [`Host::poll_transmit`] and [`Host::deadline`].
pub trait Host: Any {
    /// A datagram has arrived.
    fn on_datagram(&mut self, now: Instant, datagram: Datagram);

    /// The deadline has come.
    fn on_timeout(&mut self, now: Instant);

    /// When [`Host::on_timeout`] is wanted.
    fn deadline(&self) -> Option<Instant>;

    /// Appends every datagram that is to leave now.
    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>);

    /// An interface of this host went up or down.
    fn on_interface(&mut self, now: Instant, address: IpAddr, state: InterfaceState) {
        let _ = (now, address, state);
    }
}
