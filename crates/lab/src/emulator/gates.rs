//! Where packets come into the loop and leave it.

use std::net::IpAddr;

use nix::poll::PollFd;
use plait_netsim::InterfaceState;
use plait_sim::scenario::Direction;

/// A packet that a host has sent: it lies at the start of the loop's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The path that it takes.
    pub(crate) path: usize,
    /// To which of both hosts.
    pub(crate) direction: Direction,
    /// Its bytes, from the IP header up.
    pub(crate) size: usize,
}

/// The ends of all paths, at the client's host and at the server's. None of its calls waits.
pub(crate) trait Gates {
    /// What becomes readable when a packet comes in.
    fn waits(&self) -> Vec<PollFd<'_>>;

    /// How many places there are to read from.
    fn sources(&self) -> usize;

    /// The next packet at one of these places, from the IP header up.
    fn receive(&mut self, source: usize, buffer: &mut [u8]) -> Option<Entry>;

    /// Hands a packet to the host at the other end; false where that did not take it.
    fn deliver(&mut self, path: usize, direction: Direction, packet: &[u8]) -> bool;

    /// The client's interface of a path goes up or down.
    fn interface(&mut self, path: usize, state: InterfaceState);

    /// Addresses that the NAT of a path may have, by path and number: those to which the server's packets come back here.
    fn public_addresses(&self) -> fn(usize, u8) -> IpAddr;

    /// Packets that were sent and never came to the loop.
    fn lost(&self) -> u64;
}
