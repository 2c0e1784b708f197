//! Network address translation: mappings that time out, and rebinding.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plait_base::Instant;
use rustc_hash::FxHashMap;

/// Remote ends remembered for each mapping.
const REMOTES_PER_MAPPING: usize = 4096;
/// The first public port given out.
const FIRST_PORT: u16 = 40_000;

/// When two flows share a public port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// One public port for each inner address and port, whatever the remote.
    #[default]
    PerSource,
    /// One for each inner address and port and remote address and port ("symmetric").
    PerRemote,
}

/// Who may send to a public port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filtering {
    /// Datagrams from anyone are let in.
    Open,
    /// Addresses that were sent to.
    Address,
    /// Addresses and ports that were sent to.
    #[default]
    AddressAndPort,
}

/// Settings of a NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatConfig {
    /// Its public address.
    pub public: IpAddr,
    /// A mapping ends when nothing leaves through it for this long.
    pub timeout: Duration,
    /// How ports are given out.
    pub mapping: Mapping,
    /// Whom it lets in.
    pub filtering: Filtering,
}

impl NatConfig {
    /// A common home router: five minutes, one port a source, strict filtering.
    pub fn new(public: IpAddr) -> Self {
        Self {
            public,
            timeout: Duration::from_secs(300),
            mapping: Mapping::PerSource,
            filtering: Filtering::AddressAndPort,
        }
    }
}

/// What changes when mappings are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebinding {
    /// New flows get new ports.
    Port,
    /// New flows get new ports at this new address; routes to it are the caller's affair.
    Address(IpAddr),
}

#[derive(Clone, Debug)]
struct Translation {
    inner: SocketAddr,
    remote: Option<SocketAddr>,
    remotes: BTreeSet<SocketAddr>,
    used: Instant,
}

/// A NAT and its mappings; who asks it carries the datagrams.
#[derive(Clone, Debug)]
pub struct Nat {
    config: NatConfig,
    ports: FxHashMap<(SocketAddr, Option<SocketAddr>), u16>,
    entries: FxHashMap<u16, Translation>,
    next_port: u16,
}

impl Nat {
    /// One without mappings.
    pub fn new(config: NatConfig) -> Self {
        Self { config, ports: FxHashMap::default(), entries: FxHashMap::default(), next_port: FIRST_PORT }
    }

    /// The public source of a datagram that leaves; none when every port is taken.
    pub fn outbound(&mut self, now: Instant, src: SocketAddr, dst: SocketAddr) -> Option<SocketAddr> {
        let remote = (self.config.mapping == Mapping::PerRemote).then_some(dst);
        let port = match self.ports.get(&(src, remote)) {
            Some(port) if self.is_fresh(*port, now) => *port,
            _ => self.open(now, src, remote)?,
        };
        let entry = self.entries.get_mut(&port)?;
        entry.used = now;
        if entry.remotes.len() < REMOTES_PER_MAPPING {
            entry.remotes.insert(dst);
        }
        Some(SocketAddr::new(self.config.public, port))
    }

    /// The inner destination of a datagram that comes in; none when it is not let in.
    pub fn inbound(&mut self, now: Instant, src: SocketAddr, dst: SocketAddr) -> Option<SocketAddr> {
        if dst.ip() != self.config.public || !self.is_fresh(dst.port(), now) {
            return None;
        }
        let entry = self.entries.get(&dst.port())?;
        let welcome = match self.config.filtering {
            Filtering::Open => true,
            Filtering::Address => entry.remotes.iter().any(|remote| remote.ip() == src.ip()),
            Filtering::AddressAndPort => entry.remotes.contains(&src),
        };
        welcome.then_some(entry.inner)
    }

    /// Forgets every mapping.
    pub fn rebind(&mut self, rebinding: Rebinding) {
        if let Rebinding::Address(public) = rebinding {
            self.config.public = public;
        }
        self.ports.clear();
        self.entries.clear();
    }

    fn is_fresh(&self, port: u16, now: Instant) -> bool {
        self.entries.get(&port).is_some_and(|entry| now.since(entry.used) < self.config.timeout)
    }

    fn open(&mut self, now: Instant, inner: SocketAddr, remote: Option<SocketAddr>) -> Option<u16> {
        for _ in 0..=u16::MAX - FIRST_PORT {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if self.is_fresh(port, now) {
                continue;
            }
            if let Some(old) =
                self.entries.insert(port, Translation { inner, remote, remotes: BTreeSet::new(), used: now })
            {
                // The port may have been given out again to the very flow that had it.
                self.ports.remove(&(old.inner, old.remote));
            }
            self.ports.insert((inner, remote), port);
            return Some(port);
        }
        None
    }
}
