//! The engine against peers that break rules, lie, flood and vanish.

#![allow(unreachable_pub)] // modules of one test binary

#[path = "../puppet/mod.rs"]
mod puppet;

mod ack_frequency;
mod ack_routes;
mod amplification;
mod attempts;
mod bindings;
mod datagrams;
mod endings;
mod figures;
mod floods;
mod flow_endings;
mod flow_handshake;
mod flow_ids;
mod full_sockets;
mod gains;
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
mod split;
mod spoofed;
mod suspects;
mod trains;
mod versions;
mod violations;
mod withdrawn;
