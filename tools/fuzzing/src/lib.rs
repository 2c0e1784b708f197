//! Bodies of the fuzz targets: bytes in, a panic where a promise is broken.
//!
//! Each target is a function of its input alone: virtual time, seeded randomness, no threads. The fuzzer under
//! `fuzz/` and the plain tests of this crate run the very same functions, so that a crash found by one is a test of
//! the other.

pub mod connection;
pub mod crypto_stream;
pub mod decoders;
pub mod endpoint;
pub mod input;
pub mod path_table;
pub mod puppet;
pub mod range_set;
pub mod reassembly;
pub mod targets;
pub mod watch;

pub use input::ArbitraryInput;
pub use targets::{TARGETS, Target};
