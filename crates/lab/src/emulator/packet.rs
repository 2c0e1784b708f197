//! What the loop must know of an IP packet: its mark, its flow, its addresses, whether it is one of the transfer's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;

use plait_base::Ecn;

/// Bytes of the smallest IPv4 and of every IPv6 header.
const V4_HEADER_BYTES: usize = 20;
const V6_HEADER_BYTES: usize = 40;
/// Protocol numbers (IANA): TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;
/// Bytes in front of a datagram's payload in an IPv4 packet without options.
pub(crate) const V4_UDP_BYTES: usize = V4_HEADER_BYTES + UDP_HEADER_BYTES;
/// Hops that a packet may take.
const HOPS: u8 = 64;

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
            UDP => UDP_HEADER_BYTES,
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

/// Sets the ECN field of a packet (RFC 3168 5), and mends the checksum of an IPv4 header.
pub(super) fn set_ecn(packet: &mut [u8], mark: Option<Ecn>) {
    let bits = match mark {
        None => 0b00,
        Some(Ecn::Ect1) => 0b01,
        Some(Ecn::Ect0) => 0b10,
        Some(Ecn::Ce) => 0b11,
    };
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= V4_HEADER_BYTES => {
            packet[1] = packet[1] & !0b11 | bits;
            seal_v4_header(packet);
        }
        Some(6) if packet.len() >= V6_HEADER_BYTES => packet[1] = packet[1] & !(0b11 << 4) | bits << 4,
        _ => {}
    }
}

/// The checksum of an IPv4 header, anew.
fn seal_v4_header(packet: &mut [u8]) {
    let words = usize::from(packet[0] & 0xf) * 4;
    (packet[10], packet[11]) = (0, 0);
    let sum = checksum(packet.get(..words).unwrap_or_default());
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Lengths and checksums of a packet that [`Facts::read`] has read and whose payload was changed or cut.
pub(super) fn seal(packet: &mut [u8]) {
    let Some((ip, port)) = places(packet, Whose::Sender) else { return };
    let (transport, is_v4) = (port.start, packet[0] >> 4 == 4);
    let (protocol, length) = (if is_v4 { packet[9] } else { packet[6] }, packet.len() - transport);
    let sum_at = transport + if protocol == TCP { 16 } else { 6 };
    if packet.len() < sum_at + 2 {
        return;
    }
    if is_v4 {
        let total = packet.len() as u16;
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        seal_v4_header(packet);
    } else {
        packet[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    }
    if protocol == UDP {
        packet[transport + 4..transport + 6].copy_from_slice(&(length as u16).to_be_bytes());
        // RFC 768: a datagram of IPv4 without a checksum keeps none.
        if is_v4 && packet[sum_at..sum_at + 2] == [0, 0] {
            return;
        }
    }
    packet[sum_at..sum_at + 2].copy_from_slice(&[0, 0]);
    // Both addresses lie one behind the other, in front of the transport or of the options before it.
    let addresses = ip.start..ip.start + 2 * ip.len();
    let pseudo = packet[addresses].iter().copied().chain([0, protocol]).chain((length as u16).to_be_bytes());
    let text: Vec<u8> = pseudo.chain(packet[transport..].iter().copied()).collect();
    let sum = match checksum(&text) {
        // RFC 768: none is written as zero, and zero so.
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Which of a packet's two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Where it comes from.
    Sender,
    /// Where it goes to.
    Receiver,
}

/// An address and a port of a packet that [`Facts::read`] has read.
pub(crate) fn address(packet: &[u8], whose: Whose) -> Option<SocketAddr> {
    let (ip, port) = places(packet, whose)?;
    let ip = packet.get(ip)?;
    let ip = match <[u8; 4]>::try_from(ip) {
        Ok(v4) => IpAddr::from(Ipv4Addr::from(v4)),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?).into(),
    };
    let port: [u8; 2] = packet.get(port)?.try_into().ok()?;
    Some(SocketAddr::new(ip, u16::from_be_bytes(port)))
}

/// Where an address and a port of a packet lie: its bytes, and those of the port.
fn places(packet: &[u8], whose: Whose) -> Option<(Range<usize>, Range<usize>)> {
    let is_sender = whose == Whose::Sender;
    let (ip, transport) = match packet.first()? >> 4 {
        4 => (if is_sender { 12..16 } else { 16..20 }, usize::from(packet[0] & 0xf) * 4),
        6 => (if is_sender { 8..24 } else { 24..40 }, V6_HEADER_BYTES),
        _ => return None,
    };
    let port = if is_sender { transport } else { transport + 2 };
    Some((ip, port..port + 2))
}

/// Gives a packet another address and port of the same version, as a NAT does, and mends its checksums.
pub(super) fn readdress(packet: &mut [u8], whose: Whose, to: SocketAddr) {
    let octets = match to.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let Some((ip, port)) = places(packet, whose).filter(|(ip, _)| ip.len() == octets.len()) else { return };
    let transport = port.start & !0b11;
    let (is_v4, protocol) = (packet[0] >> 4 == 4, if packet[0] >> 4 == 4 { packet[9] } else { packet[6] });
    let sum_at = transport + if protocol == TCP { 16 } else { 6 };
    if packet.len() < sum_at + 2 || packet.len() < port.end {
        return;
    }
    let (old_ip, old_port) = (packet[ip.clone()].to_vec(), packet[port.clone()].to_vec());
    packet[ip].copy_from_slice(&octets);
    packet[port].copy_from_slice(&to.port().to_be_bytes());
    if is_v4 {
        mend(&mut packet[10..12], &old_ip, &octets);
    }
    // RFC 768: a datagram of IPv4 without a checksum keeps none.
    if protocol == UDP && packet[sum_at..sum_at + 2] == [0, 0] {
        return;
    }
    mend(&mut packet[sum_at..sum_at + 2], &old_ip, &octets);
    mend(&mut packet[sum_at..sum_at + 2], &old_port, &to.port().to_be_bytes());
}

/// Mends a checksum over a text that has changed (RFC 1624 3, equation 3).
fn mend(sum: &mut [u8], old: &[u8], new: &[u8]) {
    let words = |text: &[u8]| -> Vec<u32> {
        text.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).collect()
    };
    let mut folded = u32::from(!u16::from_be_bytes([sum[0], sum[1]]));
    folded += words(old).iter().map(|word| u32::from(!(*word as u16))).sum::<u32>() + words(new).iter().sum::<u32>();
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    sum.copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// Writes the headers of IPv4 and UDP in front of a payload that lies at [`V4_UDP_BYTES`], with the bits of ECN; gives
/// the packet's size. The datagram has no checksum (RFC 768): nobody reads it from this packet.
pub(crate) fn write_v4_udp(
    buffer: &mut [u8],
    (from, to): (SocketAddrV4, SocketAddrV4),
    ecn: u8,
    payload: usize,
) -> usize {
    let size = V4_UDP_BYTES + payload;
    let Some(head) = buffer.get_mut(..V4_UDP_BYTES) else { return 0 };
    head.fill(0);
    (head[0], head[1], head[8], head[9]) = (0x45, ecn & 0b11, HOPS, UDP);
    head[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    head[12..16].copy_from_slice(&from.ip().octets());
    head[16..20].copy_from_slice(&to.ip().octets());
    let sum = checksum(&head[..V4_HEADER_BYTES]);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    head[20..22].copy_from_slice(&from.port().to_be_bytes());
    head[22..24].copy_from_slice(&to.port().to_be_bytes());
    head[24..26].copy_from_slice(&((UDP_HEADER_BYTES + payload) as u16).to_be_bytes());
    size
}

/// The bits of ECN of an IPv4 packet.
pub(crate) fn v4_ecn(packet: &[u8]) -> u8 {
    packet.get(1).map_or(0, |class| class & 0b11)
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
    fn addresses_are_read_as_they_were_written() {
        let (from, to) = ("127.0.1.2:7".parse().unwrap(), "127.9.0.1:4433".parse().unwrap());
        let mut packet = vec![1; V4_UDP_BYTES + 5];
        assert_eq!(write_v4_udp(&mut packet, (from, to), 0b10, 5), packet.len());
        assert_eq!(address(&packet, Whose::Sender), Some(from.into()));
        assert_eq!(address(&packet, Whose::Receiver), Some(to.into()));
        let facts = Facts::read(&packet).unwrap();
        assert_eq!((facts.ecn, facts.payload_bytes, v4_ecn(&packet)), (Some(Ecn::Ect0), 5, 0b10));
        assert_eq!((checksum(&packet[..20]), &packet[28..]), (0, &[1; 5][..]));
        let mut v6 = vec![0x60, 0, 0, 0, 0, 8, UDP, 64];
        v6.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend([0, 7, 0, 9, 0, 8, 0, 0]);
        assert_eq!(address(&v6, Whose::Sender), Some("[fd00::1]:7".parse().unwrap()));
        assert_eq!(address(&v6, Whose::Receiver), Some("[fd00::2]:9".parse().unwrap()));
        assert_eq!((address(&v6[..20], Whose::Receiver), address(&[], Whose::Sender)), (None, None));
    }

    /// The checksum of an UDP datagram over IPv4, with its pseudo header (RFC 768).
    fn udp_sum(packet: &[u8]) -> u16 {
        let mut all = packet[12..20].to_vec();
        all.extend([0, UDP]);
        all.extend(&packet[24..26]);
        all.extend(&packet[20..]);
        checksum(&all)
    }

    #[test]
    fn a_new_address_leaves_the_checksums_right() {
        let mut packet = v4();
        let sum = udp_sum(&packet);
        packet[26..28].copy_from_slice(&sum.to_be_bytes());
        assert_eq!((udp_sum(&packet), checksum(&packet[..20])), (0, 0));
        for (whose, to) in [(Whose::Sender, "10.100.1.1:40000"), (Whose::Receiver, "192.0.2.255:65535")] {
            let to = to.parse().unwrap();
            readdress(&mut packet, whose, to);
            assert_eq!((address(&packet, whose), udp_sum(&packet), checksum(&packet[..20])), (Some(to), 0, 0));
        }
        // No checksum stays none, another version is no address for it, and pieces are left alone.
        (packet[26], packet[27]) = (0, 0);
        readdress(&mut packet, Whose::Sender, "10.0.1.2:7".parse().unwrap());
        assert_eq!((&packet[26..28], checksum(&packet[..20])), (&[0, 0][..], 0));
        let before = packet.clone();
        readdress(&mut packet, Whose::Sender, "[fd00::1]:7".parse().unwrap());
        readdress(&mut packet[..22], Whose::Sender, "10.0.9.9:9".parse().unwrap());
        assert_eq!(packet, before);
    }

    #[test]
    fn a_mark_leaves_the_checksum_right() {
        let mut packet = v4();
        for mark in [Some(Ecn::Ce), None, Some(Ecn::Ect1), Some(Ecn::Ect0)] {
            set_ecn(&mut packet, mark);
            assert_eq!((Facts::read(&packet).unwrap().ecn, checksum(&packet[..20])), (mark, 0));
        }
        let mut v6 = vec![0x60, 0, 0, 0, 0, 11, UDP, 64];
        v6.extend([0; 43]);
        set_ecn(&mut v6, Some(Ecn::Ce));
        assert_eq!(Facts::read(&v6).unwrap().ecn, Some(Ecn::Ce));
        set_ecn(&mut v6, None);
        assert_eq!((Facts::read(&v6).unwrap().ecn, v6[0]), (None, 0x60));
        set_ecn(&mut [], Some(Ecn::Ce));
        set_ecn(&mut [0x45; 3], None);
    }

    #[test]
    fn a_changed_payload_is_sealed_with_right_lengths_and_checksums() {
        // UDP over IPv4, with a checksum and without.
        let mut packet = v4();
        seal(&mut packet);
        assert_eq!((packet[26], packet[27], packet[25]), (0, 0, 11), "none stays none");
        packet[26] = 1;
        packet.pop();
        *packet.last_mut().unwrap() ^= 0x55;
        seal(&mut packet);
        assert_eq!((packet[3], packet[25], udp_sum(&packet), checksum(&packet[..20])), (30, 10, 0, 0));
        // The same over IPv6, and a TCP segment.
        for (protocol, header) in [(UDP, 8), (TCP, 20)] {
            let mut v6 = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
            v6.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
            v6.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
            v6.extend([0, 7, 0, 9]);
            v6.resize(40 + header, 0);
            if protocol == TCP {
                v6[52] = 5 << 4;
            }
            v6.extend([1, 2, 3, 4, 5]);
            seal(&mut v6);
            let length = header + 5;
            assert_eq!(usize::from(u16::from_be_bytes([v6[4], v6[5]])), length);
            let text: Vec<u8> =
                v6[8..40].iter().copied().chain([0, protocol, 0, length as u8]).chain(v6[40..].to_vec()).collect();
            assert_eq!((checksum(&text), Facts::read(&v6).unwrap().payload_bytes), (0, 5), "{protocol}");
        }
        seal(&mut []);
        seal(&mut v4()[..22]);
    }
}
