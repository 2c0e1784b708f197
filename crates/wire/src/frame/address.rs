//! Addresses that an end announces or takes back, one after the other: one value for the frames of Multiflow, of an
//! extension of plait's, and of noq's NAT traversal.

use std::net::IpAddr;

use plait_base::Violation;

use super::ip::{ip_size, put_ip, read_ip, version};
use super::{Encode, PathStatus, put_varints, types, varints_size};
use crate::varint::Reader;

/// Which extension's frame speaks of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressForm {
    /// ADD_ADDRESS, REMOVE_ADDRESS of Multiflow: either end; ids are at most 255.
    Multiflow,
    /// MPX_ADD_ADDRESS, MPX_REMOVE_ADDRESS, an extension of plait's: either end.
    Private,
    /// ADD_ADDRESS, REMOVE_ADDRESS of noq's NAT traversal: from a server. An id is used once, so nothing tells
    /// which of two frames is newer.
    NatTraversal,
}

/// What kind of network an address belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InterfaceType {
    /// A cable, or nothing is known.
    #[default]
    Fixed,
    /// A wireless LAN.
    Wlan,
    /// A mobile network.
    Cellular,
    /// A satellite; in Multiflow without a meaning.
    Satellite,
    /// A value without a meaning to us, 4 or above.
    Other(u8),
}

impl From<u8> for InterfaceType {
    fn from(value: u8) -> Self {
        match value {
            0 => Self::Fixed,
            1 => Self::Wlan,
            2 => Self::Cellular,
            3 => Self::Satellite,
            other => Self::Other(other),
        }
    }
}

impl From<InterfaceType> for u8 {
    fn from(interface: InterfaceType) -> Self {
        match interface {
            InterfaceType::Fixed => 0,
            InterfaceType::Wlan => 1,
            InterfaceType::Cellular => 2,
            InterfaceType::Satellite => 3,
            InterfaceType::Other(value) => value,
        }
    }
}

/// ADD_ADDRESS in one of its forms: the sender can be reached at this address too. A hint, until it is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddAddress {
    /// Whose frame it is.
    pub form: AddressForm,
    /// Names the address in later frames of its sender; 0 is the handshake's. In NAT traversal its sequence number.
    pub id: u64,
    /// Counts up with each frame of this id, over ADD_ADDRESS and REMOVE_ADDRESS; the newest counts. 0 in NAT traversal.
    pub sequence: u64,
    /// Where the sender can be reached.
    pub ip: IpAddr,
    /// Its port; none means that of the handshake's address. NAT traversal always has one.
    pub port: Option<u16>,
    /// Its network; fixed in NAT traversal.
    pub interface: InterfaceType,
    /// How the sender wishes the address to be used; only the private form can say backup.
    pub status: PathStatus,
    /// True when bytes cost the sender money there; only the private form can say so.
    pub metered: bool,
}

/// REMOVE_ADDRESS in one of its forms: the sender can no longer be reached there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoveAddress {
    /// Whose frame it is.
    pub form: AddressForm,
    /// Names the address; one that was never announced is ignored.
    pub id: u64,
    /// As in [`AddAddress`].
    pub sequence: u64,
}

/// Multiflow: P, a port follows.
const MULTIFLOW_PORT: u8 = 0x10;
/// Multiflow: the IP version.
const MULTIFLOW_VERSION: u8 = 0x0f;
/// Private: the address is of IPv6.
const PRIVATE_V6: u8 = 1;
/// Private: a port follows.
const PRIVATE_PORT: u8 = 2;
/// Private: to be used as a backup.
const PRIVATE_BACKUP: u8 = 4;
/// Private: bytes cost money.
const PRIVATE_METERED: u8 = 8;

impl AddAddress {
    pub(super) fn decode(r: &mut Reader<'_>, form: AddressForm, frame_type: u64) -> Result<Self, Violation> {
        match form {
            AddressForm::Multiflow => Self::decode_multiflow(r),
            AddressForm::Private => Self::decode_private(r),
            AddressForm::NatTraversal => {
                let version = if frame_type == types::NAT_ADD_ADDRESS_V6 { 6 } else { 4 };
                let (id, ip) = (r.varint()?, read_ip(r, version)?);
                Ok(Self { id, port: Some(r.u16()?), ..Self::plain(form, ip) })
            }
        }
    }

    fn decode_multiflow(r: &mut Reader<'_>) -> Result<Self, Violation> {
        let flags = r.u8()?;
        if flags & !(MULTIFLOW_PORT | MULTIFLOW_VERSION) != 0 {
            return Err(Violation::AddressReservedBits);
        }
        let (id, sequence, interface) = (r.u8()?.into(), r.varint()?, r.u8()?.into());
        let ip = read_ip(r, flags & MULTIFLOW_VERSION)?;
        let port = if flags & MULTIFLOW_PORT == 0 { None } else { Some(r.u16()?) };
        Ok(Self { id, sequence, port, interface, ..Self::plain(AddressForm::Multiflow, ip) })
    }

    fn decode_private(r: &mut Reader<'_>) -> Result<Self, Violation> {
        let (id, sequence, flags) = (r.varint()?, r.varint()?, r.u8()?);
        if flags & !(PRIVATE_V6 | PRIVATE_PORT | PRIVATE_BACKUP | PRIVATE_METERED) != 0 {
            return Err(Violation::AddressReservedBits);
        }
        let interface = r.u8()?.into();
        let ip = read_ip(r, if flags & PRIVATE_V6 == 0 { 4 } else { 6 })?;
        let port = if flags & PRIVATE_PORT == 0 { None } else { Some(r.u16()?) };
        let status = if flags & PRIVATE_BACKUP == 0 { PathStatus::Available } else { PathStatus::Backup };
        let metered = flags & PRIVATE_METERED != 0;
        Ok(Self { id, sequence, port, interface, status, metered, ..Self::plain(AddressForm::Private, ip) })
    }

    /// What a form that says nothing but the address means.
    fn plain(form: AddressForm, ip: IpAddr) -> Self {
        let (interface, status) = (InterfaceType::Fixed, PathStatus::Available);
        Self { form, id: 0, sequence: 0, ip, port: None, interface, status, metered: false }
    }

    /// The type of its form.
    pub(crate) fn frame_type(&self) -> u64 {
        match (self.form, self.ip) {
            (AddressForm::Multiflow, _) => types::ADD_ADDRESS,
            (AddressForm::Private, _) => types::MPX_ADD_ADDRESS,
            (AddressForm::NatTraversal, IpAddr::V4(_)) => types::NAT_ADD_ADDRESS_V4,
            (AddressForm::NatTraversal, IpAddr::V6(_)) => types::NAT_ADD_ADDRESS_V6,
        }
    }

    fn private_flags(&self) -> u8 {
        let mut flags = 0;
        for (bit, holds) in [
            (PRIVATE_V6, self.ip.is_ipv6()),
            (PRIVATE_PORT, self.port.is_some()),
            (PRIVATE_BACKUP, self.status == PathStatus::Backup),
            (PRIVATE_METERED, self.metered),
        ] {
            flags |= if holds { bit } else { 0 };
        }
        flags
    }

    fn port_field(&self) -> Option<u16> {
        match self.form {
            AddressForm::NatTraversal => Some(self.port.unwrap_or(0)),
            AddressForm::Multiflow | AddressForm::Private => self.port,
        }
    }
}

impl Encode for AddAddress {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &[self.frame_type()]);
        match self.form {
            AddressForm::Multiflow => {
                debug_assert!(self.id <= u8::MAX.into(), "ids of Multiflow are bytes");
                let port = if self.port.is_some() { MULTIFLOW_PORT } else { 0 };
                out.extend_from_slice(&[port | version(self.ip), self.id as u8]);
                put_varints(out, &[self.sequence]);
                out.push(self.interface.into());
            }
            AddressForm::Private => {
                put_varints(out, &[self.id, self.sequence]);
                out.extend_from_slice(&[self.private_flags(), self.interface.into()]);
            }
            AddressForm::NatTraversal => put_varints(out, &[self.id]),
        }
        put_ip(out, self.ip);
        if let Some(port) = self.port_field() {
            out.extend_from_slice(&port.to_be_bytes());
        }
    }

    fn size(&self) -> usize {
        let fields = match self.form {
            AddressForm::Multiflow => 3 + varints_size(&[self.sequence]),
            AddressForm::Private => 2 + varints_size(&[self.id, self.sequence]),
            AddressForm::NatTraversal => varints_size(&[self.id]),
        };
        varints_size(&[self.frame_type()]) + fields + ip_size(self.ip) + self.port_field().map_or(0, |_| 2)
    }
}

impl RemoveAddress {
    pub(super) fn decode(r: &mut Reader<'_>, form: AddressForm) -> Result<Self, Violation> {
        let (id, sequence) = match form {
            AddressForm::Multiflow => (r.u8()?.into(), r.varint()?),
            AddressForm::Private => (r.varint()?, r.varint()?),
            AddressForm::NatTraversal => (r.varint()?, 0),
        };
        Ok(Self { form, id, sequence })
    }

    /// The type of its form.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.form {
            AddressForm::Multiflow => types::REMOVE_ADDRESS,
            AddressForm::Private => types::MPX_REMOVE_ADDRESS,
            AddressForm::NatTraversal => types::NAT_REMOVE_ADDRESS,
        }
    }
}

impl Encode for RemoveAddress {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &[self.frame_type()]);
        match self.form {
            AddressForm::Multiflow => {
                debug_assert!(self.id <= u8::MAX.into(), "ids of Multiflow are bytes");
                out.push(self.id as u8);
                put_varints(out, &[self.sequence]);
            }
            AddressForm::Private => put_varints(out, &[self.id, self.sequence]),
            AddressForm::NatTraversal => put_varints(out, &[self.id]),
        }
    }

    fn size(&self) -> usize {
        let fields = match self.form {
            AddressForm::Multiflow => 1 + varints_size(&[self.sequence]),
            AddressForm::Private => varints_size(&[self.id, self.sequence]),
            AddressForm::NatTraversal => varints_size(&[self.id]),
        };
        varints_size(&[self.frame_type()]) + fields
    }
}
