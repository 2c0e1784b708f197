//! One direction of a relay: datagrams wait here until their link lets them out.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plait_base::{Instant, Random};
use plait_netsim::link::{Conveyor, Integrity, LinkConfig, LinkStats};

use crate::clock::Clock;

/// Where a datagram leaves the relay.
#[derive(Clone, Debug)]
pub(super) enum Exit {
    /// On a socket that is connected.
    Connected(Arc<UdpSocket>),
    /// On this socket, to this address.
    To(Arc<UdpSocket>, SocketAddr),
}

impl Exit {
    fn send(&self, datagram: &[u8]) {
        // A datagram that the operating system does not take is lost, as on any link.
        let _ = match self {
            Self::Connected(socket) => socket.send(datagram),
            Self::To(socket, to) => socket.send_to(datagram, to),
        };
    }
}

/// A datagram and its way out.
#[derive(Clone, Debug)]
struct Parcel {
    exit: Exit,
    bytes: Vec<u8>,
}

/// Whether the lane's thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningLane {
    Yes,
    No,
}

/// Moves what leaves by `now` into `out`.
fn take_due(queue: &mut Conveyor<Parcel>, now: Instant, out: &mut Vec<Parcel>) {
    while let Some(conveyed) = queue.pop(now) {
        let mut parcel = conveyed.payload;
        if conveyed.integrity == Integrity::Corrupted
            && let Some(last) = parcel.bytes.last_mut()
        {
            *last ^= 1;
        }
        out.push(parcel);
    }
}

/// A queue with the thread that empties it.
#[derive(Debug)]
pub(super) struct Lane {
    clock: Clock,
    state: Mutex<(Conveyor<Parcel>, RunningLane)>,
    changed: Condvar,
}

impl Lane {
    pub(super) fn new(config: LinkConfig, random: Random, clock: Clock) -> Self {
        Self { clock, state: Mutex::new((Conveyor::new(config, random), RunningLane::Yes)), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, (Conveyor<Parcel>, RunningLane)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram enters now.
    pub(super) fn offer(&self, datagram: &[u8], exit: impl FnOnce() -> Exit) {
        let mut state = self.lock();
        let before = state.0.deadline();
        // Read under the lock, so that the link sees time go forward only.
        let parcel = Parcel { exit: exit(), bytes: datagram.to_vec() };
        // What the link drops is gone.
        let _ = state.0.offer(self.clock.now(), datagram.len(), (None, 0), parcel);
        let earlier = match (before, state.0.deadline()) {
            (Some(before), Some(after)) => after < before,
            (None, after) => after.is_some(),
            (Some(_), None) => false,
        };
        drop(state);
        if earlier {
            self.changed.notify_one();
        }
    }

    /// Changes the link.
    pub(super) fn change(&self, edit: impl FnOnce(&mut LinkConfig)) {
        self.lock().0.change(self.clock.now(), edit);
        self.changed.notify_one();
    }

    /// The link's counters.
    pub(super) fn stats(&self) -> LinkStats {
        *self.lock().0.link().stats()
    }

    /// Makes [`Lane::run`] return.
    pub(super) fn stop(&self) {
        self.lock().1 = RunningLane::No;
        self.changed.notify_all();
    }

    /// Sends what is due, until stopped.
    pub(super) fn run(&self) {
        let mut out = Vec::new();
        let mut state = self.lock();
        while state.1 == RunningLane::Yes {
            let now = self.clock.now();
            take_due(&mut state.0, now, &mut out);
            if !out.is_empty() {
                drop(state);
                out.drain(..).for_each(|parcel| parcel.exit.send(&parcel.bytes));
                state = self.lock();
                continue;
            }
            state = match state.0.deadline() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => self.changed.wait_timeout(state, at.since(now)).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}
