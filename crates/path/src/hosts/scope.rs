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

fn is_global_v4(ip: Ipv4Addr) -> bool {
    !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared(ip))
}

fn is_global_v6(ip: Ipv6Addr) -> bool {
    !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unique_local())
}

impl AddressScope {
    /// True for an address that may be asked. Multicast, broadcast and unspecified ones and port 0 never are.
    pub fn admits(self, address: &SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let (is_unicast, is_global) = match ip {
            IpAddr::V4(ip) => (!ip.is_multicast() && !ip.is_broadcast() && ip.octets()[0] != 0, is_global_v4(ip)),
            IpAddr::V6(ip) => (!ip.is_multicast() && !ip.is_unspecified(), is_global_v6(ip)),
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
        for text in ["8.8.8.8:443", "[2606:4700::1]:443", "192.0.2.1:1", "[::ffff:8.8.8.8]:443"] {
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
        ];
        for text in inside {
            assert!(!admitted(AddressScope::Global, text), "{text}");
            assert!(admitted(AddressScope::Any, text), "{text}");
        }
        let never = ["0.0.0.0:443", "0.1.2.3:443", "224.0.0.1:443", "255.255.255.255:443", "[::]:443", "[ff02::1]:443"];
        for text in never.into_iter().chain(["8.8.8.8:0", "[::ffff:224.0.0.1]:443"]) {
            assert!(!admitted(AddressScope::Any, text), "{text}");
        }
    }
}
