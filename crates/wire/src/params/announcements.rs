//! Extensions by which ends tell each other of their addresses and paths: plait's own, noq's NAT traversal, and
//! draft-piraux-quic-additional-addresses.

use std::num::NonZeroU8;

/// What an end knows of such extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnouncementParameters {
    /// plait_announcements: what the sender wishes to tell and to be told.
    pub own: Announcements,
    /// noq's NAT traversal: addresses of the peer that the sender keeps; none without the extension. It needs
    /// multipath (RFC 10069).
    pub nat_traversal_addresses: Option<NonZeroU8>,
    /// additional_addresses; only from a client.
    pub additional_addresses: AdditionalAddressesUse,
}

/// What both ends tell each other once both wish it, in frames of plait's own: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announcements {
    /// Addresses: MPX_ADD_ADDRESS and MPX_REMOVE_ADDRESS.
    pub addresses: bool,
    /// How paths do: MPX_PATHS.
    pub paths: bool,
    /// No frame: on Multiflow connections, nonces with the uniflow id in their top bits, as its draft has them.
    pub uniflow_nonces: bool,
}

/// The additional_addresses parameter of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdditionalAddressesUse {
    /// A server must not send ADDITIONAL_ADDRESSES.
    #[default]
    Unsupported,
    /// The client reads ADDITIONAL_ADDRESSES.
    Supported,
}

/// The bit of [`Announcements::addresses`].
const ADDRESSES: u64 = 1;
/// The bit of [`Announcements::paths`].
const PATHS: u64 = 2;
/// The bit of [`Announcements::uniflow_nonces`].
const UNIFLOW_NONCES: u64 = 8;

impl Announcements {
    /// What this end and `peer` both wish: only this may be sent.
    pub fn common(self, peer: Self) -> Self {
        Self {
            addresses: self.addresses && peer.addresses,
            paths: self.paths && peer.paths,
            uniflow_nonces: self.uniflow_nonces && peer.uniflow_nonces,
        }
    }

    /// Bits that are not known are ignored.
    pub(super) fn from_bits(bits: u64) -> Self {
        let holds = |bit| bits & bit != 0;
        Self { addresses: holds(ADDRESSES), paths: holds(PATHS), uniflow_nonces: holds(UNIFLOW_NONCES) }
    }

    pub(super) fn bits(self) -> u64 {
        let bit = |holds, bit| if holds { bit } else { 0 };
        bit(self.addresses, ADDRESSES) | bit(self.paths, PATHS) | bit(self.uniflow_nonces, UNIFLOW_NONCES)
    }
}
