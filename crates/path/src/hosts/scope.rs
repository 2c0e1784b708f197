//! Which of the addresses that a peer names may be asked at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How far an address that a peer names must reach. Whoever is told to send to an address may be used against whoever
/// lives there; what lies behind our own router is none of the peer's business (RFC 9000 21.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressScope {
    /// Public unicast addresses alone.
    #[default]
    Global,
    /// Private, link-local and loopback addresses too: for networks of one's own, and for tests.
    Any,
}

/// Shared by providers' NATs: 100.64.0.0/10 (RFC 6598).
fn is_shared(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    a == 100 && b & 0xc0 == 64
}

/// What RFC 6890 keeps off the internet beside what one network uses inside: addresses that protocols use among
/// themselves (192.0.0.0/24), measurements of devices (198.18.0.0/15), and the reserved class E. Addresses for
/// documentation lead nowhere and do no harm.
fn is_special(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    a >= 240 || (a, b, c) == (192, 0, 0) || (a, b & 0xfe) == (198, 18)
}

fn is_global_v4(ip: Ipv4Addr) -> bool {
    !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared(ip) || is_special(ip))
}

fn is_unicast_v4(ip: Ipv4Addr) -> bool {
    !ip.is_multicast() && !ip.is_broadcast() && ip.octets()[0] != 0
}

fn is_global_v6(ip: Ipv6Addr) -> bool {
    // fec0::/10 was for sites (RFC 3879), 100::/64 is discarded (RFC 6666), 64:ff9b:1::/48 is of a network's own
    // translators (RFC 8215), whose way to embed addresses nobody outside knows.
    let kept_inside = match ip.segments() {
        [first, ..] if first & 0xffc0 == 0xfec0 => true,
        [0x100, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => true,
        _ => false,
    };
    !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unique_local() || kept_inside)
}

/// The IPv4 addresses to which translators and tunnels hand on what is sent to an IPv6 address.
fn embedded(ip: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let join = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    let found = match ip.segments() {
        // These two would be read as 0.0.0.0 and 0.0.0.1 below.
        _ if ip.is_unspecified() || ip.is_loopback() => [None, None],
        // RFC 4291 2.5.5.1, RFC 6052 2.1, RFC 2765 2.1
        [0, 0, 0, 0, 0, 0, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0, 0, 0, 0, 0xffff, 0, a, b] => {
            [join(a, b), None]
        }
        // RFC 3056 2: 6to4
        [0x2002, a, b, ..] => [join(a, b), None],
        // RFC 4380 4: the server of Teredo, and its client with all bits turned over
        [0x2001, 0, a, b, _, _, c, d] => [join(a, b), join(!c, !d)],
        _ => [None, None],
    };
    found.into_iter().flatten()
}

impl AddressScope {
    /// True for an address that may be asked. Multicast, broadcast and unspecified ones and port 0 never are, nor are IPv6
    /// addresses that embed such an IPv4 address.
    pub fn admits(self, address: &SocketAddr) -> bool {
        let (is_unicast, is_global) = match address.ip().to_canonical() {
            IpAddr::V4(ip) => (is_unicast_v4(ip), is_global_v4(ip)),
            IpAddr::V6(ip) => (
                !ip.is_multicast() && !ip.is_unspecified() && embedded(ip).all(is_unicast_v4),
                is_global_v6(ip) && embedded(ip).all(is_global_v4),
            ),
        };
        address.port() != 0 && is_unicast && (self == Self::Any || is_global)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_may_name() {
        let admitted = |scope: AddressScope, text: &str| scope.admits(&text.parse().unwrap());
        let outside = [
            "8.8.8.8:443",
            "[2606:4700::1]:443",
            "192.0.2.1:1",
            "[::ffff:8.8.8.8]:443",
            "192.0.1.1:443",
            "198.17.255.255:443",
            "198.20.0.1:443",
            "[64:ff9b::8.8.8.8]:443",
            "[2002:808:808::1]:443",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]:443",
            "[2001:1::1]:443",
            "[100:0:0:1::1]:443",
        ];
        for text in outside {
            assert!(admitted(AddressScope::Global, text), "{text}");
        }
        let inside = [
            "127.0.0.1:443",
            "10.1.2.3:443",
            "172.16.0.1:443",
            "192.168.1.1:443",
            "169.254.1.1:443",
            "100.64.0.1:443",
            "[::1]:443",
            "[fe80::1]:443",
            "[fd00::1]:443",
            "[::ffff:127.0.0.1]:443",
            "[::ffff:10.0.0.1]:443",
            "240.0.0.1:443",
            "255.255.255.254:443",
            "192.0.0.8:443",
            "198.18.0.1:443",
            "198.19.255.255:443",
            "[64:ff9b::127.0.0.1]:443",
            "[64:ff9b::10.0.0.1]:443",
            "[64:ff9b:1::8.8.8.8]:443",
            "[2002:7f00:1::1]:443",
            "[2002:c0a8:101::1]:443",
            "[2001:0:a00:1::f7f7:f7f7]:443",   // the server is 10.0.0.1
            "[2001:0:808:808::80ff:fffe]:443", // the client is 127.0.0.1
            "[::127.0.0.1]:443",
            "[::10.0.0.1]:443",
            "[::ffff:0:10.0.0.1]:443",
            "[fec0::1]:443",
            "[feff::1]:443",
            "[100::1]:443",
        ];
        for text in inside {
            assert!(!admitted(AddressScope::Global, text), "{text}");
            assert!(admitted(AddressScope::Any, text), "{text}");
        }
        let never = ["0.0.0.0:443", "0.1.2.3:443", "224.0.0.1:443", "255.255.255.255:443", "[::]:443", "[ff02::1]:443"];
        let embedding = [
            "[::ffff:224.0.0.1]:443",
            "[64:ff9b::224.0.0.1]:443",
            "[64:ff9b::255.255.255.255]:443",
            "[64:ff9b::]:443",
            "[2002:e000:1::1]:443",
            "[2002:ffff:ffff::1]:443",
            "[2002::1]:443",
            "[2001:0:808:808::1fff:fffe]:443", // the client is 224.0.0.1
            "[2001:0:808:808::]:443",          // 255.255.255.255
            "[2001:0:e000:1::f7f7:f7f7]:443",  // the server is 224.0.0.1
            "[::224.0.0.1]:443",
            "[::0.0.0.2]:443",
            "[::ffff:0:224.0.0.1]:443",
        ];
        for text in never.into_iter().chain(embedding).chain(["8.8.8.8:0"]) {
            assert!(!admitted(AddressScope::Any, text) && !admitted(AddressScope::Global, text), "{text}");
        }
    }
}
