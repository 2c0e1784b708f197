//! Ends of a connection on strings: settings for tests, and a peer that says whatever the input wants.

pub mod frames;
pub mod peer;
pub mod settings;

pub use peer::{EngineUnderTest, Peer, meet};
