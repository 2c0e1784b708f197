//! The IP packet that a datagram of the simulation would be.

use std::net::{IpAddr, Ipv6Addr};

use plait_netsim::Datagram;

const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;
const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;

/// A datagram with its headers: IPv4 where both addresses are, else IPv6.
pub(super) fn ip_packet(datagram: &Datagram) -> Vec<u8> {
    let payload = &datagram.payload[..];
    let udp_bytes = (UDP_HEADER_BYTES + payload.len()) as u16;
    let mark = datagram.ecn.map_or(0, |ecn| ecn as u8);
    let (mut packet, mut sum) = match (datagram.src.ip(), datagram.dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let addresses = [src.octets(), dst.octets()].concat();
            let sum = words(&addresses);
            (ipv4(mark, udp_bytes, &addresses), sum)
        }
        (src, dst) => {
            let addresses = [src, dst].map(|ip| v6(ip).octets()).concat();
            let sum = words(&addresses);
            (ipv6(mark, udp_bytes, &addresses), sum)
        }
    };
    let ports = [datagram.src.port(), datagram.dst.port(), udp_bytes];
    let header: Vec<u8> = ports.iter().flat_map(|word| word.to_be_bytes()).collect();
    sum += words(&header) + words(payload) + u64::from(UDP) + u64::from(udp_bytes);
    // RFC 768: a sum of zero is sent as ones.
    let check = match folded(sum) {
        0 => u16::MAX,
        check => check,
    };
    packet.extend(header);
    packet.extend(check.to_be_bytes());
    packet.extend(payload);
    packet
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn ipv4(mark: u8, udp_bytes: u16, addresses: &[u8]) -> Vec<u8> {
    let mut header = vec![0x45, mark];
    header.extend((20 + udp_bytes).to_be_bytes());
    header.extend([0, 0]);
    header.extend(DONT_FRAGMENT.to_be_bytes());
    header.extend([TIME_TO_LIVE, UDP]);
    let check = folded(words(&header) + words(addresses));
    header.extend(check.to_be_bytes());
    header.extend(addresses);
    header
}

fn ipv6(mark: u8, udp_bytes: u16, addresses: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, mark << 4, 0, 0];
    header.extend(udp_bytes.to_be_bytes());
    header.extend([UDP, TIME_TO_LIVE]);
    header.extend(addresses);
    header
}

/// The sum of 16-bit words; a last odd byte is the higher half of one.
fn words(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks();
    let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum + rest.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// RFC 1071: the complement of the sum with its carries added in.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}
