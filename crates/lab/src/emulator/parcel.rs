//! A packet on its way, and how far it is.

use super::packet::Facts;

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    /// Its way: that of the path that it belongs to, or of a stream of cross traffic behind all paths.
    pub(super) path: usize,
    /// Stops that lie behind it, the one it is at among them.
    pub(super) passed: usize,
    pub(super) facts: Facts,
    pub(super) bytes: Vec<u8>,
}
