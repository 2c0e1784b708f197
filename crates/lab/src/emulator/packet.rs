//! What the loop must know of an IP packet: its mark, its flow, whether it is one of the transfer's.

use plait_base::Ecn;

/// Bytes of the smallest IPv4 and of every IPv6 header.
const V4_HEADER_BYTES: usize = 20;
const V6_HEADER_BYTES: usize = 40;
/// Protocol numbers (IANA): TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// An IP packet that was read from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its ECN field; none for a packet that is not ECN-capable.
    pub(super) ecn: Option<Ecn>,
    /// A hash of what tells its flow from others.
    pub(super) flow: u64,
    /// Bytes behind the headers of IP and of TCP or UDP.
    pub(super) payload_bytes: usize,
}

impl Facts {
    /// Reads a packet; none for what is no TCP or UDP between two hosts: what a kernel says of its own accord.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let version = packet.first()? >> 4;
        let (class, protocol, addresses, transport) = match version {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                let fixed = packet.get(..V4_HEADER_BYTES)?;
                (fixed[1], fixed[9], &fixed[12..20], packet.get(header..)?)
            }
            6 => {
                let fixed = packet.get(..V6_HEADER_BYTES)?;
                ((fixed[0] << 4) | (fixed[1] >> 4), fixed[6], &fixed[8..40], &packet[V6_HEADER_BYTES..])
            }
            _ => return None,
        };
        let header = match protocol {
            TCP => usize::from(transport.get(12)? >> 4) * 4,
            UDP => 8,
            _ => return None,
        };
        let ports = transport.get(..4)?;
        let ecn = match class & 0b11 {
            0b01 => Some(Ecn::Ect1),
            0b10 => Some(Ecn::Ect0),
            0b11 => Some(Ecn::Ce),
            _ => None,
        };
        // FNV-1a: few flows, none of them hostile.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let flow = addresses.iter().chain(ports).chain([&protocol]).fold(0xcbf2_9ce4_8422_2325, mix);
        Some(Self { ecn, flow, payload_bytes: transport.len().saturating_sub(header) })
    }
}

/// Marks a packet as having met congestion (RFC 3168 5), and mends the checksum of an IPv4 header.
pub(super) fn mark_ce(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER_BYTES => {
            packet[1] |= 0b11;
            let words = usize::from(packet[0] & 0xf) * 4;
            (packet[10], packet[11]) = (0, 0);
            let sum = checksum(packet.get(..words).unwrap_or_default());
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if packet.len() >= V6_HEADER_BYTES => packet[1] |= 0b11 << 4,
        _ => {}
    }
}

/// The sum of RFC 1071 over a header.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram of three bytes from 10.0.1.2:7 to 10.9.0.1:9, ECT(0), with a right checksum.
    fn v4() -> Vec<u8> {
        let mut packet = vec![0x45, 0b10, 0, 31, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 1, 2, 10, 9, 0, 1];
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0, 7, 0, 9, 0, 11, 0, 0, 1, 2, 3]);
        packet
    }

    #[test]
    fn marks_flows_and_payloads() {
        let facts = Facts::read(&v4()).unwrap();
        assert_eq!((facts.ecn, facts.payload_bytes), (Some(Ecn::Ect0), 3));
        let mut other = v4();
        other[21] = 8;
        assert_ne!(Facts::read(&other).unwrap().flow, facts.flow);
        let mut v6 = vec![0x60, 0, 0, 0, 0, 11, UDP, 64];
        v6.extend([0; 32]);
        v6.extend([0, 7, 0, 9, 0, 11, 0, 0, 1, 2, 3]);
        let facts = Facts::read(&v6).unwrap();
        assert_eq!((facts.ecn, facts.payload_bytes), (None, 3));
        // A TCP segment with options and nothing else; an ICMP message; pieces.
        let mut segment = v4();
        segment[9] = TCP;
        segment.truncate(20);
        segment.extend([0; 12]);
        segment.push(8 << 4);
        segment.extend([0; 19]);
        assert_eq!(Facts::read(&segment).unwrap().payload_bytes, 0);
        let mut icmp = v4();
        icmp[9] = 1;
        assert_eq!(Facts::read(&icmp), None);
        (0..24).for_each(|cut| assert_eq!(Facts::read(&v4()[..cut]), None, "{cut}"));
    }

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        let mut packet = v4();
        mark_ce(&mut packet);
        assert_eq!(Facts::read(&packet).unwrap().ecn, Some(Ecn::Ce));
        assert_eq!(checksum(&packet[..20]), 0);
        let mut v6 = vec![0x60, 0, 0, 0, 0, 11, UDP, 64];
        v6.extend([0; 43]);
        mark_ce(&mut v6);
        assert_eq!(Facts::read(&v6).unwrap().ecn, Some(Ecn::Ce));
        mark_ce(&mut []);
        mark_ce(&mut [0x45; 3]);
    }
}
