//! The puppet against an engine whose paths are lent: every message arrives at once.

use std::time::Duration;

use bytes::BytesMut;
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, PathId};
use plait_engine::connection::split::{Coordinator, LentPath, ReturnReason};
use plait_engine::{Received, Transmit};

use crate::puppet::{Packet, Rig, tuple};

/// A rig whose connection is lent path by path.
pub struct LentRig {
    /// The endpoint, the puppet, and what was seen; its connection is here.
    pub rig: Rig,
    pub coordinator: Coordinator,
    #[expect(clippy::vec_box, reason = "they come and go boxed")]
    pub lent: Vec<Box<LentPath>>,
    pub returns: Vec<ReturnReason>,
    /// Messages that passed, both ways.
    pub messages: u64,
}

impl LentRig {
    /// Lends whatever may be lent.
    pub fn new(mut rig: Rig) -> Self {
        let coordinator = Coordinator::new(rig.conn.take().expect("a connection"));
        let mut lent = Self { rig, coordinator, lent: Vec::new(), returns: Vec::new(), messages: 0 };
        lent.lend();
        lent
    }

    /// Lends every path that may be lent now; how many are out then.
    pub fn lend(&mut self) -> usize {
        let ids = self.coordinator.connection().paths().ids();
        let now = self.rig.now;
        self.lent.extend(ids.into_iter().filter_map(|id| self.coordinator.lend(now, id)));
        self.pump();
        self.lent.len()
    }

    /// The puppet's frames in a packet on a path, from the address of that path.
    pub fn frames_on(&mut self, path: u32, remote: &str, payload: impl Into<Vec<u8>>) {
        self.send(remote, Packet::one_rtt(payload).on(path));
    }

    pub fn send(&mut self, remote: &str, packet: Packet) {
        let datagram = self.sealed(packet);
        self.deliver(tuple(remote), &datagram);
    }

    pub fn sealed(&mut self, packet: Packet) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.rig.peer.seal(&packet, &mut datagram);
        datagram
    }

    pub fn deliver(&mut self, tuple: FourTuple, data: &[u8]) {
        let (now, mut reply) = (self.rig.now, Vec::new());
        if let Received::Connection(_, input) =
            self.rig.endpoint.receive(now, tuple, None, BytesMut::from(data), &mut reply)
        {
            match self.lent.iter_mut().find(|lent| lent.id() == input.path()) {
                Some(lent) => lent.handle_datagram(now, input),
                None => self.coordinator.handle_datagram(now, input),
            };
        }
        self.pump();
    }

    /// Everybody does what there is to do, until nothing is left.
    pub fn pump(&mut self) {
        let now = self.rig.now;
        for round in 0.. {
            assert!(round < 200, "no end of messages and timers");
            if !self.step(now) {
                break;
            }
        }
        while let Some(event) = self.coordinator.poll() {
            self.rig.events.push(event);
        }
    }

    /// One turn of everybody; false where nobody had anything to do.
    fn step(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some((id, message)) = self.coordinator.poll_message(now) {
            (moved, self.messages) = (true, self.messages + 1);
            match self.lent.iter_mut().find(|lent| lent.id() == id) {
                Some(lent) => lent.handle_message(now, message),
                None => self.coordinator.handle_undelivered(now, id, message),
            }
        }
        let mut buf = Vec::new();
        for at in 0..self.lent.len() {
            if self.lent[at].deadline().is_some_and(|at| at <= now) {
                self.lent[at].on_timeout(now);
                moved = true;
            }
            let id = self.lent[at].id();
            while let Some(message) = self.lent[at].poll_message(now) {
                (moved, self.messages) = (true, self.messages + 1);
                self.coordinator.handle_message(now, id, message);
            }
            if self.coordinator.is_halted() {
                continue;
            }
            while let Some(transmit) = self.lent[at].poll_transmit(now, 10, &mut buf) {
                moved = true;
                self.hear(now, &transmit, &buf);
            }
        }
        while let Some(at) = self.lent.iter().position(|lent| lent.wants_back().is_some()) {
            let lent = self.lent.remove(at);
            self.returns.extend(lent.wants_back().cloned());
            self.coordinator.take_back(now, lent);
            moved = true;
        }
        if self.coordinator.deadline().is_some_and(|at| at <= now) {
            self.coordinator.on_timeout(now);
            moved = true;
        }
        while let Some(transmit) = self.coordinator.poll_transmit(now, 10, &mut buf) {
            moved = true;
            self.hear(now, &transmit, &buf);
        }
        while let Some(event) = self.coordinator.poll_endpoint_event() {
            if let Some(handle) = self.rig.handle {
                self.rig.endpoint.on_connection_event(handle, event);
            }
        }
        moved
    }

    fn hear(&mut self, now: Instant, transmit: &Transmit, buf: &[u8]) {
        for datagram in buf[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
            self.rig.wire.push((transmit.tuple, transmit.ecn, datagram.to_vec()));
            let seen = self.rig.peer.open(now, transmit.tuple, datagram);
            self.rig.seen.extend(seen);
        }
    }

    /// Lets time pass, timers included.
    pub fn pass(&mut self, time: Duration) {
        let end = self.rig.now + time;
        loop {
            let held = self.lent.iter().filter_map(|lent| lent.deadline()).min();
            let Some(at) = earliest(self.coordinator.deadline(), held).filter(|at| *at <= end) else { break };
            self.rig.now = self.rig.now.max(at);
            self.pump();
        }
        self.rig.now = end;
        self.pump();
    }

    /// Lends the paths anew once they may be.
    pub fn lend_again(&mut self) -> usize {
        for _ in 0..150 {
            if self.lend() == self.coordinator.connection().paths().ids().len() {
                break;
            }
            self.pass(Duration::from_millis(10));
            self.ack_all();
        }
        self.lent.len()
    }

    /// Acknowledges everything that the puppet received, each path on path 0.
    pub fn ack_all(&mut self) {
        let numbers: Vec<PathId> = self.rig.peer.received.keys().map(|(_, path)| *path).collect();
        let form = plait_wire::frame::AckForm::Path;
        let acks = |path: &PathId| self.rig.peer.ack(plait_base::Space::Data, path.0, form).unwrap_or_default();
        let payload: Vec<u8> = numbers.iter().flat_map(acks).collect();
        if !payload.is_empty() {
            self.frames_on(0, crate::puppet::PUPPET, payload);
        }
    }
}
