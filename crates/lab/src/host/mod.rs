//! The two hosts of a run: network namespaces, each with a device for every path, and what is set in them.
//!
//! ```text
//!   client                          emulator                         server
//!   10.0.1.2 on c0 ===TUN=== link 0, both directions ===TUN=== s0
//!   10.0.2.2 on c1 ===TUN=== link 1, both directions ===TUN=== s1    10.9.0.1 on lo
//! ```
//!
//! The namespaces have no names: each is a file in the run's folder, bound there in the laboratory's own mount namespace
//! (see [`crate::sandbox`]), so that nothing of them is seen outside, and nothing outlives this process.

mod namespace;
mod switch;
mod topology;

pub(crate) use namespace::Namespace;
pub use topology::Family;
pub(crate) use topology::{HostPair, Hosts, Layout, PathEnds};
