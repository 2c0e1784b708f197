//! IP addresses and ports, as frames have them.

use std::net::{IpAddr, SocketAddr};

use plait_base::Violation;

use crate::varint::Reader;

pub(super) fn read_ip(r: &mut Reader<'_>, version: u8) -> Result<IpAddr, Violation> {
    match version {
        4 => Ok(IpAddr::from(r.array::<4>()?)),
        6 => Ok(IpAddr::from(r.array::<16>()?)),
        _ => Err(Violation::AddressIpVersion),
    }
}

pub(super) fn read_addr(r: &mut Reader<'_>, version: u8) -> Result<SocketAddr, Violation> {
    Ok(SocketAddr::new(read_ip(r, version)?, r.u16()?))
}

pub(super) fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
    }
}

pub(super) fn put_addr(out: &mut Vec<u8>, addr: SocketAddr) {
    put_ip(out, addr.ip());
    out.extend_from_slice(&addr.port().to_be_bytes());
}

pub(super) fn ip_size(ip: IpAddr) -> usize {
    if ip.is_ipv6() { 16 } else { 4 }
}

pub(super) fn version(ip: IpAddr) -> u8 {
    if ip.is_ipv6() { 6 } else { 4 }
}
