//! Local addresses of paths: what `--path` names, and which there are when it is not given.
//!
//! A UDP socket that is connected tells which source address the system would use towards a server; no datagram leaves.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plait::LocalAddress;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::CliError;
use crate::output::eprint_line;
use crate::zone::{self, ZonedAddress};

/// Paths opened when none are named, at most.
const MAX_DEFAULT_PATHS: usize = 4;

/// Where a path begins: an address of ours and, where it was named or must be kept to, its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub(crate) ip: IpAddr,
    pub(crate) interface: Option<String>,
}

impl Local {
    fn address(ip: IpAddr) -> Self {
        Self { ip, interface: None }
    }

    fn on(name: &str, ip: IpAddr) -> Self {
        Self { ip, interface: Some(name.to_owned()) }
    }

    /// Of those that each interface has for itself, together with it.
    fn towards(ip: IpAddr, remote: SocketAddr) -> Self {
        let interface = match remote {
            SocketAddr::V6(v6) if zone::needs_zone(ip) => zone::name_of(v6.scope_id()),
            _ => None,
        };
        Self { ip, interface }
    }

    /// Any port of it, as sockets take it.
    pub(crate) fn any_port(&self) -> SocketAddr {
        let zoned = self.interface.as_deref().filter(|_| zone::needs_zone(self.ip));
        let zoned = zoned.and_then(|name| ZonedAddress::parse(&format!("{}%{name}", self.ip))?.ok());
        zoned.map_or(SocketAddr::new(self.ip, 0), |address| address.with_port(0))
    }

    /// Whether `--path` with this name asks for it.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.interface.as_deref() == Some(name) || address(name) == Some(self.ip)
    }
}

impl From<LocalAddress> for Local {
    fn from(address: LocalAddress) -> Self {
        Self { ip: address.ip, interface: address.interface }
    }
}

/// The address that `name` is, with a zone or without; none for an interface.
pub(crate) fn address(name: &str) -> Option<IpAddr> {
    match ZonedAddress::parse(name) {
        Some(zoned) => zoned.ok().map(|address| address.ip.into()),
        None => name.parse().ok(),
    }
}

/// The address that `name`, an address or an interface, gives towards `remote`.
pub(crate) fn resolve(name: &str, remote: SocketAddr) -> Result<Local, CliError> {
    if let Some(zoned) = ZonedAddress::parse(name) {
        let ZonedAddress { ip, interface, .. } =
            zoned.map_err(|wrong| CliError::running("--path cannot be taken", wrong))?;
        return usable(ip.into(), Some(&interface), remote).map(|ip| Local::on(&interface, ip));
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        let owner = if zone::needs_zone(address) { LocalAddress::locate(address).interface } else { None };
        return match owner {
            Some(name) => usable(address, Some(&name), remote).map(|ip| Local::on(&name, ip)),
            None => usable(address, None, remote).map(|ip| bound_to_owner(ip, remote)),
        };
    }
    if !cfg!(target_os = "linux") {
        return Err(CliError::running(
            format!("--path {name}: interfaces by name work on Linux only"),
            "give one of its addresses",
        ));
    }
    match source_address(Some(name), remote) {
        Ok(ip) => Ok(Local::on(name, ip)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(CliError::running(
            format!("--path {name}: this system does not let you name an interface"),
            "give one of its addresses",
        )),
        Err(_)
            if name.len() < 16
                && !name.contains('/')
                && std::path::Path::new("/sys/class/net").join(name).exists()
                && !interfaces().iter().any(|known| known == name) =>
        {
            Err(CliError::running(format!("--path {name}: this interface is down"), "set it up, or name another"))
        }
        Err(_) if !interfaces().iter().any(|known| known == name) => Err(CliError::running(
            format!("--path {name}: there is no interface of that name and it is no address"),
            format!("try one of: {}", interfaces().join(", ")),
        )),
        Err(error) => Err(CliError::running(
            format!("--path {name}: no way to {remote} from this interface ({error})"),
            "check that it is up and has an address of the server's family",
        )),
    }
}

/// `address`, if a socket can be bound to it, on `interface` where one is named, and it suits `remote`.
fn usable(address: IpAddr, interface: Option<&str>, remote: SocketAddr) -> Result<IpAddr, CliError> {
    if address.is_ipv4() != remote.is_ipv4() {
        return Err(CliError::running(
            format!("--path {address}: the server's address {} is of the other IP version", remote.ip()),
            "give a local address of the same version",
        ));
    }
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if address.is_multicast() || is_broadcast {
        return Err(CliError::running(
            format!("--path {address}: not an address of one machine"),
            "`ip address` lists those of this machine",
        ));
    }
    let bound = datagram_socket(remote).and_then(|socket| {
        interface.map_or(Ok(()), |name| bind_to(&socket, name))?;
        socket.bind(&SocketAddr::new(address, 0).into())
    });
    match bound {
        Ok(()) => Ok(address),
        Err(error) => Err(CliError::running(
            format!("--path {address}: not an address of this machine ({error})"),
            "`ip address` lists those there are",
        )),
    }
}

/// An address together with the interface that has it: else the routing table would choose where its packets leave.
fn bound_to_owner(ip: IpAddr, remote: SocketAddr) -> Local {
    let owner = LocalAddress::locate(ip).interface.filter(|name| leads_out(name));
    let Some(name) = owner else { return Local::address(ip) };
    match datagram_socket(remote).and_then(|socket| bind_to(&socket, &name)) {
        Ok(()) => Local::on(&name, ip),
        Err(error) => {
            eprint_line(&format!(
                "plait: --path {ip} cannot be bound to {name} ({error}): its packets leave where the routing table says; \
                 `ip rule add from {ip} table ...` mends that"
            ));
            Local::address(ip)
        }
    }
}

/// True for interfaces that lead to other machines: neither loopback nor those that only hold addresses.
fn leads_out(interface: &str) -> bool {
    const LOOPBACK: u32 = 0x8;
    const POINT_TO_POINT: u32 = 0x10;
    const NO_ARP: u32 = 0x80;
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap_or(LOOPBACK);
    flags & LOOPBACK == 0 && (flags & NO_ARP == 0 || flags & POINT_TO_POINT != 0)
}

/// Whatever address the system chooses towards `remote`, now and later.
pub(crate) fn anywhere(remote: SocketAddr) -> Result<Local, CliError> {
    system_choice(remote)?;
    Ok(Local::address(if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }))
}

/// The address of the system's own choice towards `remote`.
pub(crate) fn system_choice(remote: SocketAddr) -> Result<Local, CliError> {
    let hint = "check that this machine is connected, or name a path with --path";
    source_address(None, remote)
        .map(|ip| Local::towards(ip, remote))
        .map_err(|error| CliError::running(format!("there is no route to {} ({error})", remote.ip()), hint))
}

/// One local address for each interface that leads to `remote`, the system's own choice first.
pub(crate) fn all(remote: SocketAddr) -> Result<Vec<Local>, CliError> {
    let mut found = vec![system_choice(remote)?];
    if remote.ip().is_loopback() {
        return Ok(found);
    }
    for name in interfaces().iter().filter(|name| routes_to(name, remote)) {
        let Ok(ip) = source_address(Some(name), remote) else { continue };
        if found.iter().all(|local| local.ip != ip) && !ip.is_loopback() && found.len() < MAX_DEFAULT_PATHS {
            found.push(Local::on(name, ip));
        }
    }
    Ok(found)
}

/// Our addresses of an IP version that no address in `remotes` has: from there a server can be reached that tells of such
/// an address. `names` are those that were asked for, none asks for all. None where the server is this machine.
pub(crate) async fn of_other_version(names: Option<&[String]>, remotes: &[SocketAddr]) -> Vec<Local> {
    let is_other = |ip: IpAddr| remotes.iter().all(|remote| remote.is_ipv4() != ip.is_ipv4());
    if remotes.iter().all(|remote| remote.ip().is_loopback()) {
        return Vec::new();
    }
    let usable = plait::usable_addresses().await.unwrap_or_default();
    let usable: Vec<Local> = usable.into_iter().map(Local::from).filter(|local| is_other(local.ip)).collect();
    let named = |name: &String| match address(name) {
        Some(ip) if is_other(ip) => resolve(name, SocketAddr::new(ip, 0)).ok(),
        _ => usable.iter().find(|local| local.is_named(name)).cloned(),
    };
    let mut found: Vec<Local> = names.map_or_else(|| usable.clone(), |names| names.iter().filter_map(named).collect());
    found.truncate(MAX_DEFAULT_PATHS);
    found
}

fn datagram_socket(remote: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(remote), Type::DGRAM, Some(Protocol::UDP))
}

/// The address that datagrams to `remote` would bear, through `interface` if one is given.
fn source_address(interface: Option<&str>, remote: SocketAddr) -> io::Result<IpAddr> {
    let socket = datagram_socket(remote)?;
    if let Some(name) = interface {
        bind_to(&socket, name)?;
    }
    socket.connect(&remote.into())?;
    let local = socket.local_addr()?.as_socket().map(|local| local.ip());
    local.filter(|ip| !ip.is_unspecified()).ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

#[cfg(target_os = "linux")]
fn bind_to(socket: &Socket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_socket: &Socket, _name: &str) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Names of the interfaces that are not down, where the system lists them as files.
fn interfaces() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else { return Vec::new() };
    let up = |name: &String| {
        let state = std::fs::read_to_string(format!("/sys/class/net/{name}/operstate")).unwrap_or_default();
        state.trim() != "down"
    };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names.retain(up);
    names
}

/// Whether the routing tables lead to `remote` through `interface`; a bound socket alone would assume they do.
fn routes_to(interface: &str, remote: SocketAddr) -> bool {
    match remote.ip() {
        IpAddr::V4(to) => std::fs::read_to_string("/proc/net/route")
            .is_ok_and(|table| table.lines().skip(1).any(|line| route_v4(line, interface, to.to_bits()))),
        IpAddr::V6(to) => std::fs::read_to_string("/proc/net/ipv6_route")
            .is_ok_and(|table| table.lines().any(|line| route_v6(line, interface, to.to_bits()))),
    }
}

/// `eth0 00000000 0102A8C0 0003 0 0 0 00000000 ...`: name, destination, gateway, flags, ..., mask; hexadecimal in the
/// byte order of the network.
fn route_v4(line: &str, interface: &str, to: u32) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |at: usize| words.get(at).and_then(|word| u32::from_str_radix(word, 16).ok());
    let (Some(destination), Some(mask)) = (hex(1), hex(7)) else { return false };
    words.first() == Some(&interface) && to & u32::from_be(mask) == u32::from_be(destination)
}

/// `<destination> <length> <source> <length> <gateway> <metric> <count> <use> <flags> <name>`.
fn route_v6(line: &str, interface: &str, to: u128) -> bool {
    const REJECT: u32 = 0x0200;
    let words: Vec<&str> = line.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("");
    let Ok(destination) = u128::from_str_radix(word(0), 16) else { return false };
    let (Ok(length), Ok(flags)) = (u32::from_str_radix(word(1), 16), u32::from_str_radix(word(8), 16)) else {
        return false;
    };
    let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
    word(9) == interface && flags & REJECT == 0 && to & mask == destination & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 4433))
    }

    #[test]
    fn addresses() {
        assert_eq!(resolve("127.0.0.1", remote()), Ok(Local::address([127, 0, 0, 1].into())));
        assert!(resolve("::1", remote()).unwrap_err().to_string().contains("IP version"));
        assert!(resolve("192.0.2.77", remote()).unwrap_err().to_string().contains("not an address of this machine"));
        for many in ["224.0.0.1", "255.255.255.255"] {
            assert!(resolve(many, remote()).unwrap_err().to_string().contains("not an address of one machine"));
        }
        assert_eq!(all(remote()), Ok(vec![Local::address([127, 0, 0, 1].into())]));
    }

    #[tokio::test]
    async fn addresses_for_what_a_server_may_tell() {
        let far = [SocketAddr::from(([192, 0, 2, 1], 4433))];
        let named = |name: &str| vec![name.to_owned()];
        assert_eq!(of_other_version(None, &[remote()]).await, [], "the server is here");
        assert_eq!(of_other_version(Some(&named("127.0.0.1")), &far).await, [], "of the server's own version");
        let all = of_other_version(None, &far).await;
        assert!(all.iter().all(|local| local.ip.is_ipv6()), "{all:?}");
        for local in &all {
            let again = of_other_version(Some(&named(&local.ip.to_string())), &far).await;
            assert_eq!(again.iter().map(|local| local.ip).collect::<Vec<_>>(), [local.ip]);
            assert!(again[0].is_named(&local.ip.to_string()) && !again[0].is_named("192.0.2.1"));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn interfaces_by_name() {
        assert_eq!(resolve("lo", remote()), Ok(Local::on("lo", [127, 0, 0, 1].into())));
        let error = resolve("eth99", remote()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("no interface of that name"), "{error}");
    }

    #[test]
    fn routing_tables() {
        let to = u32::from_be_bytes([10, 1, 2, 3]);
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_be_bytes(bytes).to_be());
        let line = |dest, mask| format!("eth0\t{}\t0\t0003\t0\t0\t0\t{}\t0\t0\t0", word(dest), word(mask));
        assert!(route_v4(&line([10, 1, 0, 0], [255, 255, 0, 0]), "eth0", to));
        assert!(route_v4(&line([0; 4], [0; 4]), "eth0", to));
        assert!(!route_v4(&line([10, 2, 0, 0], [255, 255, 0, 0]), "eth0", to));
        assert!(!route_v4(&line([0; 4], [0; 4]), "eth1", to));
        assert!(!route_v4("garbage", "eth0", to));
        let zeros = "0".repeat(32);
        let line = |dest: u128, len: u32, flags: &str| {
            format!("{dest:032x} {len:02x} {zeros} 00 {zeros} 00000400 00000001 00000000 {flags} eth0")
        };
        let (to, net) = (0x2001_0db8_u128 << 96 | 7, 0x2001_0db8_u128 << 96);
        assert!(route_v6(&line(net, 64, "00000001"), "eth0", to));
        assert!(route_v6(&line(0, 0, "00000003"), "eth0", to));
        assert!(!route_v6(&line(0, 0, "00200200"), "eth0", to));
        assert!(!route_v6(&line(net, 128, "00000001"), "eth0", to));
    }
}
