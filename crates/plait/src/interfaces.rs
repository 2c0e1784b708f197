//! The machine's addresses: which can be used, and what becomes of them.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use if_watch::IfEvent;
use if_watch::tokio::IfWatcher;

use crate::config::{EndpointConfig, ServerConfig};
use crate::endpoint::{Endpoint, EndpointError, EndpointShared};
use crate::sockets::{Bind, SharedSocket};

/// How long the system may take to list its addresses.
const LIST_PATIENCE: Duration = Duration::from_millis(500);
/// The list is complete when nothing came for so long.
const LIST_QUIET: Duration = Duration::from_millis(20);

/// An address of this machine, and the interface that has it, where known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalAddress {
    /// The address.
    pub ip: IpAddr,
    /// The interface's name.
    pub interface: Option<String>,
}

impl LocalAddress {
    /// A socket on any free port of this address, bound to its interface where permitted.
    pub fn bind(&self) -> Bind {
        let bind = Bind::address(SocketAddr::new(self.ip, 0));
        match &self.interface {
            Some(name) => bind.interface(name),
            None => bind,
        }
    }
}

/// The addresses from which other machines can be reached, in a stable order, IPv4 first: neither loopback nor
/// link-local ones, and one of each family for each interface.
///
/// # Errors
/// The system does not list its addresses.
pub async fn usable_addresses() -> io::Result<Vec<LocalAddress>> {
    let mut watcher = IfWatcher::new()?;
    let mut found = all_addresses(&mut watcher).await?;
    found.retain(|ip| is_usable(*ip));
    Ok(one_of_each(found))
}

/// The usable addresses of one interface.
///
/// # Errors
/// The system does not list its addresses.
pub async fn addresses_of(interface: &str) -> io::Result<Vec<LocalAddress>> {
    let mut watcher = IfWatcher::new()?;
    let found = all_addresses(&mut watcher).await?;
    let named = found.into_iter().map(locate).filter(|address| address.interface.as_deref() == Some(interface));
    let mut all: Vec<_> = named.filter(|address| is_usable(address.ip) || address.ip.is_loopback()).collect();
    all.sort();
    Ok(all)
}

async fn all_addresses(watcher: &mut IfWatcher) -> io::Result<Vec<IpAddr>> {
    let mut patience = LIST_PATIENCE;
    let mut found = Vec::new();
    while let Ok(event) = tokio::time::timeout(patience, poll_fn(|cx| watcher.poll_if_event(cx))).await {
        match event? {
            IfEvent::Up(net) => found.push(net.addr()),
            IfEvent::Down(net) => found.retain(|ip| *ip != net.addr()),
        }
        patience = LIST_QUIET;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// One address of each family for each interface whose name is known: several would lead the same way.
fn one_of_each(addresses: Vec<IpAddr>) -> Vec<LocalAddress> {
    let mut kept: Vec<LocalAddress> = Vec::new();
    for address in addresses.into_iter().map(locate) {
        let twin = |k: &LocalAddress| k.interface == address.interface && k.ip.is_ipv4() == address.ip.is_ipv4();
        if address.interface.is_none() || !kept.iter().any(twin) {
            kept.push(address);
        }
    }
    kept
}

/// True for addresses from which other machines can be reached.
fn is_usable(ip: IpAddr) -> bool {
    if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() {
        return false;
    }
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 != 0xfe80,
    }
}

fn locate(ip: IpAddr) -> LocalAddress {
    LocalAddress { ip, interface: interface_of(ip) }
}

#[cfg(target_os = "linux")]
fn interface_of(ip: IpAddr) -> Option<String> {
    match ip {
        IpAddr::V6(ip) => {
            // Lines of: address in hex, index, prefix length, scope, flags, name.
            let wanted: String = ip.octets().iter().map(|byte| format!("{byte:02x}")).collect();
            let table = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
            let line = table.lines().find(|line| line.starts_with(&wanted))?;
            line.split_whitespace().last().map(str::to_owned)
        }
        IpAddr::V4(ip) if ip.is_loopback() => Some("lo".to_owned()),
        IpAddr::V4(ip) => {
            let names = std::fs::read_dir("/sys/class/net").ok()?;
            let mut claims: Vec<String> = names
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|name| name != "lo" && v4_of(name) == Some(ip))
                .collect();
            // An interface without an address of its own borrows another's; the routing table tells whose it is.
            let table = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
            let owner = claims.iter().position(|name| is_on_link(&table, name, ip)).unwrap_or(0);
            (owner < claims.len()).then(|| claims.swap_remove(owner))
        }
    }
}

/// True when the routing table has the network of `ip` on this interface without a gateway. Its lines begin with name,
/// destination, gateway, and have the mask in the eighth place; numbers are in hex, in the machine's byte order.
#[cfg(target_os = "linux")]
fn is_on_link(table: &str, interface: &str, ip: Ipv4Addr) -> bool {
    let ip = u32::from_ne_bytes(ip.octets());
    table.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|text| u32::from_str_radix(text, 16).ok());
        let (Some(destination), Some(gateway), Some(mask)) = (number(1), number(2), number(7)) else { return false };
        fields.first() == Some(&interface) && gateway == 0 && mask != 0 && ip & mask == destination
    })
}

#[cfg(not(target_os = "linux"))]
fn interface_of(_: IpAddr) -> Option<String> {
    None
}

/// The interface's own IPv4 address: that from which the system would send by it.
#[cfg(target_os = "linux")]
fn v4_of(interface: &str) -> Option<Ipv4Addr> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).ok()?;
    socket.bind_device(Some(interface.as_bytes())).ok()?;
    // Connecting a UDP socket sends nothing. The address is one for documentation (RFC 5737).
    socket.connect(&SocketAddr::from(([192, 0, 2, 1], 9)).into()).ok()?;
    match socket.local_addr().ok()?.as_socket()?.ip() {
        IpAddr::V4(ip) if !ip.is_unspecified() => Some(ip),
        _ => None,
    }
}

impl Endpoint {
    /// An endpoint with a socket on every usable address of the machine, each on a port of its own. Addresses that come
    /// and go while it runs are followed: connections of a client whose path policy is `fullmesh` open and close paths
    /// with them.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = plait::Endpoint::over_interfaces(plait::EndpointConfig::fresh()?, None).await?;
    /// println!("sockets on {:?}", endpoint.local_addrs());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// There is no usable address, or none can be bound.
    pub async fn over_interfaces(config: EndpointConfig, server: Option<ServerConfig>) -> Result<Self, EndpointError> {
        let mut watcher = IfWatcher::new().map_err(EndpointError::Interfaces)?;
        let mut found = all_addresses(&mut watcher).await.map_err(EndpointError::Interfaces)?;
        found.retain(|ip| is_usable(*ip));
        let addresses = one_of_each(found);
        if addresses.is_empty() {
            return Err(EndpointError::NoAddress);
        }
        let endpoint = Self::new(config, server, addresses.iter().map(LocalAddress::bind))?;
        tokio::spawn(follow(watcher, Arc::downgrade(endpoint.shared())));
        Ok(endpoint)
    }

    /// Adds a socket on each usable address of an interface; gives their addresses.
    ///
    /// # Errors
    /// There is no such interface, it has no address, or a socket cannot be bound.
    pub async fn add_interface(&self, interface: &str) -> Result<Vec<SocketAddr>, EndpointError> {
        let addresses = addresses_of(interface).await.map_err(EndpointError::Interfaces)?;
        if addresses.is_empty() {
            return Err(EndpointError::NoAddress);
        }
        addresses.iter().map(|address| self.add_socket(address.bind()).map_err(Into::into)).collect()
    }
}

/// Keeps the endpoint's sockets in step with the machine's addresses, as long as the endpoint lives.
async fn follow(mut watcher: IfWatcher, endpoint: Weak<EndpointShared>) {
    loop {
        let event = poll_fn(|cx| watcher.poll_if_event(cx)).await;
        let Some(endpoint) = endpoint.upgrade() else { return };
        match event {
            Ok(IfEvent::Up(net)) if is_usable(net.addr()) => add(&endpoint, locate(net.addr())),
            Ok(IfEvent::Down(net)) => remove(&endpoint, net.addr()),
            Ok(IfEvent::Up(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "changes of network interfaces are no longer noticed");
                return;
            }
        }
    }
}

fn add(endpoint: &EndpointShared, address: LocalAddress) {
    if endpoint.lock().sockets.iter().any(|socket| socket.local().ip() == address.ip) {
        return;
    }
    match address.bind().open() {
        Ok(socket) => {
            tracing::info!(ip = %address.ip, interface = ?address.interface, "address came up");
            endpoint.change_sockets(|list| list.with(SharedSocket::new(socket)));
        }
        // A new IPv6 address cannot be bound before it is known to be nobody else's; it is told again then.
        Err(error) => tracing::debug!(%error, "address not used"),
    }
}

fn remove(endpoint: &EndpointShared, ip: IpAddr) {
    let gone: Vec<_> = endpoint.lock().sockets.iter().map(|s| s.local()).filter(|local| local.ip() == ip).collect();
    for local in gone {
        tracing::info!(%ip, "address went down");
        endpoint.change_sockets(|list| list.without(local));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_link_local_are_of_no_use() {
        for ip in ["127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "ff02::1"] {
            assert!(!is_usable(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["10.0.0.1", "192.0.2.1", "2001:db8::1", "fd00::1"] {
            assert!(is_usable(ip.parse().unwrap()), "{ip}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn networks_are_found_in_the_routing_table() {
        let table = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n\
            eth0 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        if cfg!(target_endian = "little") {
            assert!(is_on_link(table, "eth0", "10.0.0.7".parse().unwrap()));
            assert!(!is_on_link(table, "eth0", "10.0.1.7".parse().unwrap()));
            assert!(!is_on_link(table, "eth1", "10.0.0.7".parse().unwrap()));
        }
    }

    #[tokio::test]
    async fn the_machine_lists_loopback_by_name() {
        let Ok(found) = addresses_of("lo").await else { return };
        assert!(found.iter().all(|address| address.ip.is_loopback()), "{found:?}");
    }
}
