//! The world: hosts and the network between them, driven from event to event.

use std::any::Any;
use std::collections::VecDeque;
use std::net::IpAddr;

use plait_base::{Instant, Random};

use crate::capture::{Capture, Record, Totals};
use crate::digest::Depth;
use crate::host::{Datagram, Host, HostId, InterfaceState};
use crate::network::{Interface, Network};
use crate::queue::What;
use crate::table::AddressKey;

/// Time-outs of one host at one instant after which it is said to spin.
const SPINS_MAX: u32 = 10_000;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The condition holds.
    Condition,
    /// The time limit is reached.
    TimeLimit,
    /// Nothing will ever happen again.
    Idle,
    /// This host asks for time-outs at one instant without end: a fault of the host.
    Spinning(HostId),
}

struct HostSlot {
    host: Box<dyn Host>,
    /// The earliest timer event that waits for this host.
    armed: Option<Instant>,
    spins: u32,
    last_timeout: Instant,
}

type Action = Box<dyn FnOnce(&mut World)>;

/// Hosts, a network and the time.
pub struct World {
    /// What lies between the hosts.
    pub net: Network,
    hosts: Vec<HostSlot>,
    actions: Vec<Option<Action>>,
    outbox: VecDeque<Datagram>,
    random: Random,
    spinning: Option<HostId>,
    events: u64,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("hosts", &self.hosts.len()).field("net", &self.net).finish_non_exhaustive()
    }
}

impl World {
    /// An empty world; all its randomness comes from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::from_u64(seed);
        Self {
            net: Network::new(random.fork()),
            hosts: Vec::new(),
            actions: Vec::new(),
            outbox: VecDeque::new(),
            random,
            spinning: None,
            events: 0,
        }
    }

    /// Randomness for a host, independent of the network's.
    pub fn fork_random(&mut self) -> Random {
        self.random.fork()
    }

    /// Adds a host that has `addresses`.
    pub fn add_host(&mut self, host: impl Host, addresses: &[IpAddr]) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        self.hosts.push(HostSlot { host: Box::new(host), armed: None, spins: 0, last_timeout: Instant::ZERO });
        addresses.iter().for_each(|address| self.add_address(id, *address));
        // Its first datagrams leave when the world runs.
        self.net.events.push(self.net.now, What::Timer(id.0));
        if let Some(slot) = self.hosts.last_mut() {
            slot.armed = Some(self.net.now);
        }
        id
    }

    /// Gives one more address to a host, or moves an address to it.
    fn add_address(&mut self, host: HostId, address: IpAddr) {
        self.net.interfaces.insert(AddressKey(address), Interface { host, state: InterfaceState::Up });
    }

    /// Brings an interface up or down now and tells its host.
    pub fn set_interface(&mut self, address: IpAddr, state: InterfaceState) {
        let Some(interface) = self.net.interfaces.get_mut(&AddressKey(address)) else { return };
        interface.state = state;
        let id = interface.host;
        if let Some(slot) = self.hosts.get_mut(id.0 as usize) {
            slot.host.on_interface(self.net.now, address, state);
        }
        self.settle(id.0);
    }

    /// The time that the world has come to.
    pub fn now(&self) -> Instant {
        self.net.now
    }

    /// Does `action` at `at`, or at once in the running of the world when that is past.
    pub fn at(&mut self, at: Instant, action: impl FnOnce(&mut Self) + 'static) {
        self.actions.push(Some(Box::new(action)));
        self.net.events.push(at.max(self.net.now), What::Action(self.actions.len() as u32 - 1));
    }

    /// A host of a known type, to read it.
    pub fn host<T: Host>(&self, id: HostId) -> Option<&T> {
        let host: &dyn Any = self.hosts.get(id.0 as usize)?.host.as_ref();
        host.downcast_ref()
    }

    /// Calls a host of a known type; what it then wants to send leaves at once. None when its type is another.
    pub fn act<T: Host, R>(&mut self, id: HostId, call: impl FnOnce(&mut T, Instant) -> R) -> Option<R> {
        let now = self.net.now;
        let host: &mut dyn Any = self.hosts.get_mut(id.0 as usize)?.host.as_mut();
        let answer = call(host.downcast_mut::<T>()?, now);
        self.settle(id.0);
        Some(answer)
    }

    /// Runs until `limit`, inclusive; the time is `limit` then.
    pub fn run_until(&mut self, limit: Instant) -> RunEnd {
        self.run_until_done(limit, |_| false)
    }

    /// Runs until `done` holds after an event, or until `limit`, inclusive.
    pub fn run_until_done(&mut self, limit: Instant, mut done: impl FnMut(&Self) -> bool) -> RunEnd {
        while let Some((at, what)) = self.net.events.pop_until(limit) {
            self.net.now = at;
            self.events += 1;
            self.dispatch_event(what);
            if let Some(host) = self.spinning {
                return RunEnd::Spinning(host);
            }
            if done(self) {
                return RunEnd::Condition;
            }
        }
        self.net.now = self.net.now.max(limit);
        if self.net.events.is_empty() { RunEnd::Idle } else { RunEnd::TimeLimit }
    }

    /// A hash over every datagram sent, arrived or lost so far.
    pub fn digest(&self) -> u64 {
        self.net.log.digest.value()
    }

    /// What the digest covers from now on.
    pub fn set_digest_depth(&mut self, depth: Depth) {
        self.net.log.depth = depth;
    }

    /// What is recorded from now on.
    pub fn set_capture(&mut self, capture: Capture) {
        self.net.log.capture = capture;
    }

    /// The records so far.
    pub fn records(&self) -> &[Record] {
        &self.net.log.records
    }

    /// Datagrams counted so far.
    pub fn totals(&self) -> Totals {
        self.net.log.totals
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn dispatch_event(&mut self, what: What) {
        match what {
            What::Arrive(flight) => {
                if let Some(host) = self.net.arrive(flight) {
                    let slot = self.hosts.get_mut(host.0 as usize);
                    if let Some((slot, datagram)) = slot.zip(self.net.deliver(flight)) {
                        slot.host.on_datagram(self.net.now, datagram);
                    }
                    self.settle(host.0);
                }
            }
            What::Link(link) => self.net.on_link_event(link),
            What::Timer(host) => self.on_timer(host),
            What::Action(index) => {
                if let Some(action) = self.actions.get_mut(index as usize).and_then(Option::take) {
                    action(self);
                }
            }
        }
    }

    fn on_timer(&mut self, host: u32) {
        let now = self.net.now;
        let Some(slot) = self.hosts.get_mut(host as usize) else { return };
        if slot.armed != Some(now) {
            return; // an earlier event took its place
        }
        slot.armed = None;
        if slot.host.deadline().is_some_and(|deadline| deadline <= now) {
            slot.spins = if slot.last_timeout == now { slot.spins + 1 } else { 0 };
            slot.last_timeout = now;
            if slot.spins > SPINS_MAX {
                self.spinning = Some(HostId(host));
            }
            slot.host.on_timeout(now);
        }
        self.settle(host);
    }

    /// After a call to a host: its datagrams leave, and its deadline is noted.
    fn settle(&mut self, host: u32) {
        let now = self.net.now;
        let Some(slot) = self.hosts.get_mut(host as usize) else { return };
        slot.host.poll_transmit(now, &mut self.outbox);
        self.outbox.iter_mut().for_each(|datagram| self.net.send(datagram));
        self.outbox.clear();
        let due = slot.host.deadline().map(|at| at.max(now));
        // A later deadline needs no new event: the one that waits will look again.
        if let Some(at) = due.filter(|at| slot.armed.is_none_or(|armed| *at < armed)) {
            slot.armed = Some(at);
            self.net.events.push(at, What::Timer(host));
        }
    }
}
