//! The machine's addresses: which can be used, and what becomes of them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use if_watch::IfEvent;
use if_watch::tokio::IfWatcher;
use tokio::sync::oneshot;

use crate::config::{EndpointConfig, ServerConfig};
use crate::endpoint::{Endpoint, EndpointError, EndpointShared, Reach};
use crate::sockets::{Bind, SharedSocket, SocketList};

/// How long the system may take to list its addresses.
const LIST_PATIENCE: Duration = Duration::from_millis(500);
/// The list is complete when nothing came for so long.
const LIST_QUIET: Duration = Duration::from_millis(20);

/// An address of this machine, and the interface that has it, where known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalAddress {
    /// The address itself, without a port.
    pub ip: IpAddr,
    /// The interface's name.
    pub interface: Option<String>,
}

impl LocalAddress {
    /// An address of this machine, with the interface that has it.
    pub fn locate(ip: IpAddr) -> Self {
        locate(ip)
    }

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
            if claims.is_empty() {
                // An address beside an interface's first one is told by its network alone.
                let names = std::fs::read_dir("/sys/class/net").ok()?;
                let mut names = names.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                return names.find(|name| is_on_link(&table, name, ip));
            }
            let owner = claims.iter().position(|name| is_on_link(&table, name, ip)).unwrap_or(0);
            Some(claims.swap_remove(owner))
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
        let machine = all_addresses(&mut watcher).await.map_err(EndpointError::Interfaces)?;
        let addresses = one_of_each(machine.iter().copied().filter(|ip| is_usable(*ip)).collect());
        if addresses.is_empty() {
            return Err(EndpointError::NoAddress);
        }
        let endpoint = Self::new(config, server, addresses.iter().map(LocalAddress::bind))?;
        if let Some(ended) = endpoint.shared().lock().watch() {
            endpoint.follow_interfaces();
            let follower = Follower::new(watcher, machine);
            tokio::spawn(follower.run(Arc::downgrade(endpoint.shared()), ended));
        }
        Ok(endpoint)
    }

    /// From now on adds a socket for every usable address that the machine gets, one of each family for each interface,
    /// as [`Self::over_interfaces`] does. It takes effect once the endpoint connects as a client.
    pub fn follow_interfaces(&self) {
        self.shared().lock().reach = Reach::All;
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

/// Follows the machine's addresses for an endpoint that has its sockets already.
pub(crate) async fn follow_own(endpoint: Weak<EndpointShared>, ended: oneshot::Receiver<Infallible>) {
    let watched = async {
        let mut watcher = IfWatcher::new()?;
        let machine = all_addresses(&mut watcher).await?;
        Ok::<_, io::Error>((watcher, machine))
    };
    match watched.await {
        Ok((watcher, machine)) => Follower::new(watcher, machine).run(endpoint, ended).await,
        Err(error) => tracing::debug!(%error, "changes of network interfaces are not noticed"),
    }
}

/// A socket that was given up because its address went.
#[derive(Clone, Debug)]
struct Missing {
    local: SocketAddr,
    /// The interface that had its address, where that is known.
    home: Option<String>,
    /// The interface that it was bound to.
    bound: Option<String>,
}

impl Missing {
    /// What would take its place at `ip`: on the same port where that is free.
    fn bind(&self, ip: IpAddr) -> Option<SharedSocket> {
        let open = |port| {
            let bind = Bind::address(SocketAddr::new(ip, port));
            let bind = if let Some(name) = &self.bound { bind.interface(name) } else { bind };
            bind.open()
        };
        // A new IPv6 address cannot be bound before it is known to be nobody else's; the system tells of it again then.
        open(self.local.port()).or_else(|_| open(0)).map(SharedSocket::new).ok()
    }
}

/// Keeps an endpoint's sockets in step with the machine's addresses.
struct Follower {
    watcher: IfWatcher,
    machine: Vec<IpAddr>,
    /// The interfaces of addresses that sockets are bound to: once an address is gone, nobody tells whose it was.
    homes: Vec<LocalAddress>,
    missing: Vec<Missing>,
}

impl Follower {
    fn new(watcher: IfWatcher, machine: Vec<IpAddr>) -> Self {
        Self { watcher, machine, homes: Vec::new(), missing: Vec::new() }
    }

    /// As long as the endpoint lives.
    async fn run(mut self, endpoint: Weak<EndpointShared>, mut ended: oneshot::Receiver<Infallible>) {
        if let Some(endpoint) = endpoint.upgrade() {
            endpoint.change_sockets(|list| list.on_machine(&self.machine));
        }
        loop {
            match endpoint.upgrade() {
                Some(endpoint) => self.learn_homes(&endpoint),
                None => return,
            }
            let news = tokio::select! {
                news = self.news() => news,
                _ = &mut ended => return,
            };
            let Some(endpoint) = endpoint.upgrade() else { return };
            match news {
                Ok(gone) => {
                    let reach = endpoint.lock().reach;
                    endpoint.change_sockets(|list| self.settle(list, &gone, reach));
                }
                Err(error) => {
                    tracing::warn!(%error, "changes of network interfaces are no longer noticed");
                    return;
                }
            }
        }
    }

    /// Waits for a change and what belongs to it: an address that is replaced goes and comes in two steps. Gives the
    /// addresses that went, be it that they came back.
    async fn news(&mut self) -> io::Result<Vec<IpAddr>> {
        let mut gone = Vec::new();
        let mut event = poll_fn(|cx| self.watcher.poll_if_event(cx)).await?;
        loop {
            match event {
                IfEvent::Up(net) if !self.machine.contains(&net.addr()) => self.machine.push(net.addr()),
                IfEvent::Up(_) => {}
                IfEvent::Down(net) => {
                    self.machine.retain(|ip| *ip != net.addr());
                    gone.push(net.addr());
                }
            }
            match tokio::time::timeout(LIST_QUIET, poll_fn(|cx| self.watcher.poll_if_event(cx))).await {
                Ok(next) => event = next?,
                Err(_) => return Ok(gone),
            }
        }
    }

    fn learn_homes(&mut self, endpoint: &EndpointShared) {
        let sockets = endpoint.lock().sockets.clone();
        for ip in sockets.iter().map(|socket| socket.local().ip()) {
            if self.machine.contains(&ip) && !self.homes.iter().any(|home| home.ip == ip) {
                self.homes.push(locate(ip));
            }
        }
    }

    /// True when a socket has an address of the same family on the same interface: another would lead the same way.
    fn has_twin(&self, address: &LocalAddress) -> bool {
        let twin =
            |home: &LocalAddress| home.interface == address.interface && home.ip.is_ipv4() == address.ip.is_ipv4();
        address.interface.is_some() && self.homes.iter().any(twin)
    }

    /// The endpoint's sockets after a change of addresses.
    fn settle(&mut self, list: &SocketList, gone: &[IpAddr], reach: Reach) -> SocketList {
        let mut list = list.on_machine(&self.machine);
        if reach == Reach::Fixed {
            return list;
        }
        list = list.after_network_change();
        let lost: Vec<_> = list.iter().filter(|socket| gone.contains(&socket.local().ip())).cloned().collect();
        for socket in lost {
            let local = socket.local();
            tracing::info!(%local, "address went down");
            let home = self.homes.iter().find(|home| home.ip == local.ip()).and_then(|home| home.interface.clone());
            self.homes.retain(|home| home.ip != local.ip());
            self.missing.push(Missing { local, home, bound: socket.interface().map(str::to_owned) });
            list = list.without(local);
        }
        let mut fresh: Vec<LocalAddress> = Vec::new();
        if reach == Reach::All || !self.missing.is_empty() {
            let is_served = |ip: &IpAddr| list.iter().any(|socket| socket.local().ip() == *ip);
            let unserved = self.machine.iter().filter(|ip| is_usable(**ip) && !is_served(ip));
            fresh.extend(unserved.map(|ip| locate(*ip)));
        }
        for address in fresh {
            let replaces = |missing: &Missing| {
                let same_home = missing.home.is_some() && missing.home == address.interface;
                missing.local.ip() == address.ip || (same_home && missing.local.is_ipv4() == address.ip.is_ipv4())
            };
            let place = self.missing.iter().position(replaces);
            let socket = match place {
                Some(place) => self.missing[place].bind(address.ip),
                None if reach == Reach::All && !self.has_twin(&address) => {
                    address.bind().open().map(SharedSocket::new).ok()
                }
                None => None,
            };
            let Some(socket) = socket else { continue };
            self.homes.push(address.clone());
            tracing::info!(local = %socket.local(), interface = ?address.interface, "address came up");
            list = list.with(socket);
            place.map(|place| self.missing.remove(place));
        }
        list
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
