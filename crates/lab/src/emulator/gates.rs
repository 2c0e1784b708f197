//! Where packets come into the loop and leave it.

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags};
use plait_sim::scenario::Direction;
use tappers::linux::Tun;

use crate::host::Ends;

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

    /// Packets that were sent and never came to the loop.
    fn lost(&self) -> u64;
}

/// Two devices a path, each on a host of its own.
impl Gates for Vec<Ends> {
    fn waits(&self) -> Vec<PollFd<'_>> {
        let devices = self.iter().flat_map(|pair| [&pair.client, &pair.server]);
        devices.map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect()
    }

    fn sources(&self) -> usize {
        2 * self.len()
    }

    fn receive(&mut self, source: usize, buffer: &mut [u8]) -> Option<Entry> {
        let (path, direction) = (source / 2, if source.is_multiple_of(2) { Direction::Up } else { Direction::Down });
        let pair = self.get(path)?;
        let device: &Tun = if direction == Direction::Up { &pair.client } else { &pair.server };
        let size = device.recv(buffer).ok()?;
        Some(Entry { path, direction, size })
    }

    fn deliver(&mut self, path: usize, direction: Direction, packet: &[u8]) -> bool {
        let device = self.get(path).map(|pair| match direction {
            Direction::Up => &pair.server,
            Direction::Down => &pair.client,
        });
        device.is_some_and(|device| device.send(packet).is_ok())
    }

    fn lost(&self) -> u64 {
        0
    }
}
