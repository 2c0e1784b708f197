//! A network in virtual time: hosts, links, NATs and faults, replayable byte for byte from a seed.
//!
//! A [`World`] holds [`Host`]s and a [`Network`] of [`link::Link`]s. It counts time up from event to event and
//! reads no clock, so an hour passes in as long as its events take. The same seed and the same calls give the same
//! [`World::digest`].
//!
//! ```
//! use std::time::Duration;
//! use plait_base::Instant;
//! use plait_netsim::link::LinkConfig;
//! use plait_netsim::{Echo, World};
//!
//! let mut world = World::new(1);
//! let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
//! let echo = world.add_host(Echo::default(), &[a]);
//! world.add_host(Echo::default(), &[b]);
//! world.net.connect(a, b, LinkConfig::new(10_000_000, Duration::from_millis(5)));
//! world.act::<Echo, _>(echo, |host, _| host.send((a, 1).into(), (b, 2).into(), b"hello"));
//! world.run_until(Instant::ZERO + Duration::from_secs(1));
//! assert!(world.totals().arrived > 10);
//! ```

mod capture;
mod digest;
mod echo;
mod flights;
mod host;
mod ids;
pub mod link;
mod middlebox;
mod nat;
mod network;
mod queue;
mod source;
mod spec;
mod table;
mod tap;
mod transit;
mod world;

pub use capture::{Capture, Fate, Lost, Record, Totals};
pub use digest::{Depth, Digest};
pub use echo::Echo;
pub use host::{Datagram, Host, HostId, InterfaceState};
pub use ids::{BoxId, LinkId, NatId};
pub use middlebox::{Header, Middlebox, Pass, Rule, Treat, When};
pub use nat::{Filtering, Mapping, Nat, NatConfig, Rebinding};
pub use network::{Damage, Duplex, Hop, Network};
pub use source::{OnOff, Sink, Source};
pub use spec::PathSpec;
pub use tap::Tapped;
pub use world::{RunEnd, World};
