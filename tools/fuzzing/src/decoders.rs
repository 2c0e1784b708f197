//! Targets for everything that reads bytes of a peer without a connection.

pub mod ack_ranges;
pub mod frames;
pub mod header;
pub mod params;
pub mod tokens;
