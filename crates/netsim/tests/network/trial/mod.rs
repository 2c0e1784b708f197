//! Differential trials: two implementations, a random world, random faults, and every byte checked.
//!
//! A [`Trial`] is drawn whole from its [`Pairing`] and seed ([`draw`]), carried out in virtual time ([`run`]), many at a
//! time ([`campaign`]).

#![allow(dead_code, unreachable_pub, missing_docs)] // each binary uses its own part of this

pub mod campaign;
pub mod draw;
pub mod run;

use std::time::Duration;

use plait_netsim::Damage;
use plait_netsim::link::LinkConfig;

use crate::peers::{Kind, Order, PeerOptions, Request};

/// Who talks to whom, and over how many paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    pub name: &'static str,
    pub client: Kind,
    pub server: Kind,
    pub width: Width,
}

/// One path, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Single,
    Several,
}

impl Pairing {
    const fn new(name: &'static str, client: Kind, server: Kind, width: Width) -> Self {
        Self { name, client, server, width }
    }

    /// Every pairing that there is.
    pub const ALL: [Self; 11] = [
        Self::new("plait_plait", Kind::Plait, Kind::Plait, Width::Single),
        Self::new("plait_quinn", Kind::Plait, Kind::Quinn, Width::Single),
        Self::new("quinn_plait", Kind::Quinn, Kind::Plait, Width::Single),
        Self::new("plait_noq", Kind::Plait, Kind::Noq, Width::Single),
        Self::new("noq_plait", Kind::Noq, Kind::Plait, Width::Single),
        Self::new("plait_plait_paths", Kind::Plait, Kind::Plait, Width::Several),
        Self::new("plait_noq_paths", Kind::Plait, Kind::Noq, Width::Several),
        Self::new("noq_plait_paths", Kind::Noq, Kind::Plait, Width::Several),
        Self::new("lent_lent_paths", Kind::Lent, Kind::Lent, Width::Several),
        Self::new("lent_noq_paths", Kind::Lent, Kind::Noq, Width::Several),
        Self::new("noq_lent_paths", Kind::Noq, Kind::Lent, Width::Several),
    ];

    /// The pairing of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pairing| pairing.name == name)
    }
}

/// One path of the world.
#[derive(Clone, Debug)]
pub struct Leg {
    pub forward: LinkConfig,
    pub backward: LinkConfig,
}

/// Which end does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

/// What happens once both ends are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The client's NAT on this leg gives new ports.
    NewPort(usize),
    /// The client's NAT on this leg gets a new public address.
    NewAddress(usize),
    /// Nothing passes on this leg for a while.
    Outage(usize, Duration),
    /// Larger datagrams than this (with headers) no longer pass on this leg.
    Shrink(usize, u32),
    /// An application does this.
    Order(End, Order),
}

/// Everything about one run.
#[derive(Clone, Debug)]
pub struct Trial {
    pub pairing: Pairing,
    pub seed: u64,
    pub legs: Vec<Leg>,
    pub damage: Damage,
    pub options: PeerOptions,
    pub requests: Vec<Request>,
    /// Times count from when both ends are connected.
    pub faults: Vec<(Duration, Fault)>,
    pub closer: End,
    /// By when every byte must be there.
    pub limit: Duration,
}

/// How a trial went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub took: Duration,
    pub limit: Duration,
    pub datagrams: u64,
    /// Over the time, size and way of each datagram; not over its bytes, which TLS draws anew each time.
    pub digest: u64,
}
