//! Addresses as keys of tables: hashed in a step or two, for every datagram is looked up by its own.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use rustc_hash::FxHashMap;

/// What is known by an address.
pub(crate) type ByAddress<T> = FxHashMap<AddressKey, T>;
/// What is known by the two ends of a way.
pub(crate) type ByEnds<T> = FxHashMap<WayKey, T>;

/// An address as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressKey(pub(crate) IpAddr);

/// A source, or any, and a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayKey {
    pub(crate) src: Option<IpAddr>,
    pub(crate) dst: IpAddr,
}

impl Hash for AddressKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            IpAddr::V4(ip) => state.write_u32(ip.to_bits()),
            IpAddr::V6(ip) => state.write_u128(ip.to_bits()),
        }
    }
}

impl Hash for WayKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.src.map(AddressKey).into_iter().for_each(|src| src.hash(state));
        AddressKey(self.dst).hash(state);
    }
}
