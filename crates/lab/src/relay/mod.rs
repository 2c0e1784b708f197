//! Links without hosts of their own: client and server are programs on this machine's loopback, and the loop's sockets lie
//! between them.
//!
//! ```text
//!   client                             the loop                              server
//!   127.0.1.2:any ---\                                    /--- 127.0.1.2:any ---\
//!                     127.9.0.1:P === links, paths' way ===                      127.9.0.2:Q
//!   127.0.2.2:any ---/                                    \--- 127.0.2.2:any ---/
//! ```
//!
//! The path of a datagram is known by the client's address; what comes from another one takes the initial path. For each
//! address and port that a client's datagrams come from, a socket of the relay's own speaks to the server, which so sees
//! as many addresses. Inside, datagrams are IPv4 packets with their headers, so that links count them as they do packets
//! between namespaces. Linux lets everybody bind to any address of 127.0.0.0/8.

mod port;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use nix::poll::PollFd;
use plait_netsim::InterfaceState;
use plait_sim::scenario::Direction;

use crate::emulator::packet::{self, V4_UDP_BYTES, Whose};
use crate::emulator::{Entry, Gates};
use crate::error::LabError;
use crate::host::PathEnds;
use port::Port;

/// Where clients send to, and where servers listen.
const RELAY: Ipv4Addr = Ipv4Addr::new(127, 9, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(127, 9, 0, 2);
/// The second byte of public addresses of NATs.
const NAT: u8 = 100;
/// The device of every path.
const DEVICE: &str = "lo";
/// Addresses of clients that are served; datagrams of further ones are dropped.
const CLIENTS_MAX: usize = 256;

/// The client's address on a path.
fn client(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, path as u8 + 1, 2)
}

/// What one address of a client has towards the server.
#[derive(Debug)]
struct Upstream {
    client: SocketAddrV4,
    path: usize,
    port: Port,
}

/// The sockets between a client and a server.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Clients send here, and hear from here.
    near: Port,
    near_address: SocketAddrV4,
    server: SocketAddrV4,
    paths: usize,
    initial_path: usize,
    upstreams: Vec<Upstream>,
}

impl Relay {
    /// Opens it for so many paths, with free ports for itself and for the server.
    ///
    /// # Errors
    /// There are no sockets on loopback.
    pub(crate) fn open(paths: usize, initial_path: usize) -> Result<Self, LabError> {
        let failed = || LabError::io("the relay needs UDP on 127.0.0.0/8");
        let near = Port::bind(RELAY).map_err(failed())?;
        let near_address = near.address().map_err(failed())?;
        // Free again until the server takes it: nobody else is given a port at this address.
        let server = UdpSocket::bind((SERVER, 0)).and_then(|socket| socket.local_addr()).map_err(failed())?;
        let server = SocketAddrV4::new(SERVER, server.port());
        Ok(Self { near, near_address, server, paths, initial_path, upstreams: Vec::new() })
    }

    /// The ends of each path as clients see them.
    pub(crate) fn ways(&self) -> Vec<PathEnds> {
        let way = |path| PathEnds {
            client: IpAddr::V4(client(path)),
            device: DEVICE.to_owned(),
            server: self.near_address.into(),
        };
        (0..self.paths).map(way).collect()
    }

    /// Where the server has to listen.
    pub(crate) fn server(&self) -> SocketAddr {
        self.server.into()
    }

    /// The path of what comes from this address.
    fn path_of(&self, from: Ipv4Addr) -> usize {
        // A client with one socket for all addresses has none of them at first.
        (0..self.paths).find(|path| client(*path) == from).unwrap_or(self.initial_path)
    }

    fn upstream(&mut self, from: SocketAddrV4, path: usize) -> io::Result<&Port> {
        let known = self.upstreams.iter().position(|upstream| upstream.client == from);
        let at = match known {
            Some(at) => at,
            None if self.upstreams.len() >= CLIENTS_MAX => return Err(io::ErrorKind::QuotaExceeded.into()),
            None => {
                let port = Port::bind(*from.ip())?;
                port.connect(self.server)?;
                self.upstreams.push(Upstream { client: from, path, port });
                self.upstreams.len() - 1
            }
        };
        Ok(&self.upstreams[at].port)
    }
}

/// The IPv4 address of a packet that the relay has made.
fn v4(packet: &[u8], whose: Whose) -> io::Result<SocketAddrV4> {
    match packet::address(packet, whose) {
        Some(SocketAddr::V4(address)) => Ok(address),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl Gates for Relay {
    fn waits(&self) -> Vec<PollFd<'_>> {
        let upstreams = self.upstreams.iter().map(|upstream| upstream.port.wait());
        std::iter::once(self.near.wait()).chain(upstreams).collect()
    }

    fn sources(&self) -> usize {
        1 + self.upstreams.len()
    }

    fn receive(&mut self, source: usize, buffer: &mut [u8]) -> Option<Entry> {
        let payload = buffer.get_mut(V4_UDP_BYTES..)?;
        let (heard, addresses, path, direction) = match source.checked_sub(1) {
            None => {
                let heard = self.near.receive(payload)?;
                let path = self.path_of(*heard.from.ip());
                (heard, (heard.from, self.near_address), path, Direction::Up)
            }
            Some(at) => {
                let upstream = self.upstreams.get_mut(at)?;
                let heard = upstream.port.receive(payload)?;
                (heard, (self.near_address, upstream.client), upstream.path, Direction::Down)
            }
        };
        let size = packet::write_v4_udp(buffer, addresses, heard.ecn, heard.bytes);
        Some(Entry { path, direction, size })
    }

    fn deliver(&mut self, path: usize, direction: Direction, packet: &[u8]) -> bool {
        let (payload, ecn) = (packet.get(V4_UDP_BYTES..).unwrap_or_default(), packet::v4_ecn(packet));
        let sent = match direction {
            Direction::Up => v4(packet, Whose::Sender)
                .and_then(|from| self.upstream(from, path))
                .and_then(|port| port.send(payload, ecn, None)),
            Direction::Down => v4(packet, Whose::Receiver).and_then(|to| self.near.send(payload, ecn, Some(to))),
        };
        match sent {
            Ok(()) => true,
            // Nobody listens any more: a server or a client that has ended, as on any network.
            Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        }
    }

    fn interface(&mut self, _path: usize, _state: InterfaceState) {
        // Refused before: loopback stays up.
    }

    fn public_addresses(&self) -> fn(usize, u8) -> IpAddr {
        |path, change| Ipv4Addr::new(127, NAT, path as u8 + 1, change).into()
    }

    fn lost(&self) -> u64 {
        let upstreams = self.upstreams.iter().map(|upstream| upstream.port.lost());
        self.near.lost() + upstreams.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::pause;

    fn heard(relay: &mut Relay, source: usize) -> (Entry, Vec<u8>) {
        let mut buffer = vec![0; 2000];
        for _ in 0..2000 {
            if let Some(entry) = relay.receive(source, &mut buffer) {
                buffer.truncate(entry.size);
                return (entry, buffer);
            }
            pause(Duration::from_millis(5));
        }
        panic!("nothing came");
    }

    #[test]
    fn datagrams_keep_their_path_and_answers_find_back() {
        let mut relay = Relay::open(2, 1).unwrap();
        let (server, ways) = (UdpSocket::bind(relay.server()).unwrap(), relay.ways());
        let mut seen = Vec::new();
        // A client with an address for each path, and one with none: that is the initial path's.
        for (ip, path) in [(ways[0].client, 0), (ways[1].client, 1), (Ipv4Addr::LOCALHOST.into(), 1)] {
            let client = UdpSocket::bind((ip, 0)).unwrap();
            client.send_to(b"question", ways[0].server).unwrap();
            let (entry, packet) = heard(&mut relay, 0);
            assert_eq!(entry, Entry { path, direction: Direction::Up, size: V4_UDP_BYTES + 8 });
            assert!(relay.deliver(entry.path, entry.direction, &packet));
            let mut buffer = [0; 100];
            let (size, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..size], from.ip()), (&b"question"[..], ip));
            server.send_to(b"answer", from).unwrap();
            let (entry, packet) = heard(&mut relay, 1 + seen.len());
            assert_eq!(entry, Entry { path, direction: Direction::Down, size: V4_UDP_BYTES + 6 });
            assert!(relay.deliver(entry.path, entry.direction, &packet));
            assert_eq!(client.recv_from(&mut buffer).unwrap(), (6, ways[0].server));
            seen.push(from);
        }
        assert_eq!((seen.len(), relay.sources(), relay.waits().len(), relay.lost()), (3, 4, 4, 0));
        drop(server);
    }

    #[test]
    fn strange_packets_go_nowhere() {
        let mut relay = Relay::open(1, 0).unwrap();
        assert!(!relay.deliver(0, Direction::Up, &[]) && !relay.deliver(0, Direction::Down, &[0x60; 48]));
        assert_eq!(relay.receive(7, &mut [0; 100]), None);
    }
}
