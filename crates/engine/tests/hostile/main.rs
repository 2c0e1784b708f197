//! The engine against peers that break rules, lie, flood and vanish.

#![allow(unreachable_pub)] // modules of one test binary

#[path = "../puppet/mod.rs"]
mod puppet;

mod ack_routes;
mod amplification;
mod attempts;
mod bindings;
mod datagrams;
mod endings;
mod figures;
mod floods;
mod full_sockets;
mod handshake;
mod hoards;
mod hosts;
mod multiflow;
mod multipath;
mod outage;
mod pairs;
mod random;
mod reports;
mod rules;
mod schedulers;
mod settings;
mod sizes;
mod smoke;
mod versions;
mod violations;
