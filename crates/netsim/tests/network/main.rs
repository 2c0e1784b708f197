//! Links, worlds, and QUIC implementations in them. One program, because each links three of those.

mod aggregation;
mod differential;
mod link_live;
mod link_planned;
mod link_theory;
mod peers;
mod transfers;
mod trial;
mod world;
