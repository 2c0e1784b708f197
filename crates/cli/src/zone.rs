//! Zones of IPv6 addresses (RFC 4007 11): `fe80::1%eth0` is the link-local address of that interface's network.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A link-local address of IPv6 and the interface whose network has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZonedAddress {
    pub(crate) ip: Ipv6Addr,
    /// The interface's name, or its number where it has none.
    pub(crate) interface: String,
    /// The interface's number.
    index: u32,
}

impl ZonedAddress {
    /// Reads `fe80::1%eth0` or `fe80::1%2`; none where there is no `%`.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (ip, zone) = text.split_once('%')?;
        Some(Self::of(ip, zone))
    }

    fn of(ip: &str, zone: &str) -> Result<Self, String> {
        let ip: Ipv6Addr = ip.parse().map_err(|_| {
            format!("`{ip}%{zone}` is no IPv6 address with an interface; write it as fe80::1%eth0 or fe80::1%2")
        })?;
        if !needs_zone(ip.into()) {
            return Err(format!("`{ip}%{zone}`: only link-local addresses (fe80::...) have an interface; write {ip}"));
        }
        let (interface, index) = interface(zone).ok_or_else(|| {
            format!("`{ip}%{zone}`: there is no interface `{zone}`; `ip link` lists those of this machine")
        })?;
        Ok(Self { ip, interface, index })
    }

    /// With a port, as sockets take it.
    pub(crate) fn with_port(&self, port: u16) -> SocketAddr {
        SocketAddrV6::new(self.ip, port, 0, self.index).into()
    }
}

/// True for addresses that each interface has networks of its own for.
pub(crate) fn needs_zone(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// What to write in place of a link-local address without an interface.
pub(crate) fn missing(ip: IpAddr) -> String {
    format!("{ip} is a link-local address, and each interface may lead to another; write it with yours, as {ip}%eth0")
}

/// Reads `ADDR:PORT`, as `[fe80::1%eth0]:4433` too.
pub(crate) fn socket_address(text: &str) -> Option<Result<SocketAddr, String>> {
    if let Ok(address) = text.parse() {
        return Some(Ok(address));
    }
    let (host, port) = text.strip_prefix('[')?.rsplit_once("]:")?;
    let port = port.parse().ok()?;
    Some(ZonedAddress::parse(host)?.map(|address| address.with_port(port)))
}

/// Takes the zone out of a URL, where it has one: `https://[fe80::1%25eth0]/` (RFC 6874 2), or with a mere `%`.
pub(crate) fn of_url(text: &str) -> (String, Option<String>) {
    let plain = || (text.to_owned(), None);
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    let Some((before, bracketed)) = text[..end].split_once('[') else { return plain() };
    let Some((host, after)) = bracketed.split_once(']') else { return plain() };
    let Some((ip, zone)) = host.split_once('%') else { return plain() };
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    (format!("{before}[{ip}]{after}{}", &text[end..]), Some(zone.to_owned()))
}

/// The host of a certificate and of TLS: without brackets and zone, which say something here alone (RFC 6874 4).
pub(crate) fn bare_host(host: &str) -> &str {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.split_once('%').map_or(host, |(ip, _)| ip)
}

/// Name and number of an interface by the one or the other.
#[cfg(unix)]
fn interface(zone: &str) -> Option<(String, u32)> {
    if let Ok(index) = nix::net::if_::if_nametoindex(zone) {
        return Some((zone.to_owned(), index));
    }
    let index = zone.parse().ok()?;
    Some((name_of(index)?, index))
}

/// The name of an interface.
#[cfg(unix)]
pub(crate) fn name_of(index: u32) -> Option<String> {
    nix::net::if_::if_indextoname(index).ok()?.into_string().ok()
}

#[cfg(not(unix))]
pub(crate) fn name_of(_: u32) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn interface(zone: &str) -> Option<(String, u32)> {
    let index = zone.parse().ok().filter(|index| *index > 0)?;
    Some((zone.to_owned(), index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn zones_are_interfaces_by_name_or_number() {
        let of = |text: &str| ZonedAddress::parse(text).unwrap();
        let lo = of("fe80::1%lo").unwrap();
        assert_eq!((lo.interface.as_str(), lo.ip), ("lo", "fe80::1".parse().unwrap()));
        assert_eq!(of(&format!("fe80::1%{}", lo.index)), Ok(lo.clone()));
        assert_eq!(lo.with_port(5), format!("[fe80::1%{}]:5", lo.index).parse().unwrap());
        assert_eq!(socket_address("[fe80::1%lo]:5"), Some(Ok(lo.with_port(5))));
        assert!(of("fe80::1%none").unwrap_err().contains("there is no interface `none`; `ip link` lists"));
        assert!(of("2001:db8::1%lo").unwrap_err().contains("write 2001:db8::1"));
        assert!(of("10.0.0.1%lo").unwrap_err().contains("write it as fe80::1%eth0"));
        assert_eq!((ZonedAddress::parse("fe80::1"), socket_address("[fe80::1]")), (None, None));
    }

    #[test]
    fn urls_give_their_zone() {
        let of = |text: &str| of_url(text);
        let told = |text: &str, zone: &str| (text.to_owned(), Some(zone.to_owned()));
        for typed in ["https://[fe80::1%25eth0]:5/a%20b", "https://[fe80::1%eth0]:5/a%20b"] {
            assert_eq!(of(typed), told("https://[fe80::1]:5/a%20b", "eth0"));
        }
        assert_eq!(of("[fe80::1%2]/"), told("[fe80::1]/", "2"));
        for other in ["https://host/a[%25]", "https://[::1]/", "host"] {
            assert_eq!(of(other), (other.to_owned(), None));
        }
        assert_eq!(["[fe80::1%eth0]", "fe80::1%2", "[::1]", "h"].map(bare_host), ["fe80::1", "fe80::1", "::1", "h"]);
    }
}
