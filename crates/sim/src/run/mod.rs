//! x
pub mod network;
