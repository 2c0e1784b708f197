//! The sockets in use, and which of them serves a pair of addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use plait_base::{FourTuple, Instant};
use plait_engine::Transmit;

use super::socket::{SharedSocket, ecn_to_socket};
use crate::net::Outgoing;

/// All sockets of an endpoint, in the order in which they were added, and what is known of the network around them. A
/// change makes a new list.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketList {
    sockets: Vec<Arc<SharedSocket>>,
    /// Further sockets of the same addresses, one for each further thread of a server.
    mates: Vec<Arc<SharedSocket>>,
    /// Sockets that were taken out while a client's handshake went on, which may not leave them before it is confirmed. They are
    /// no addresses of ours to anybody else.
    leaving: Vec<Arc<SharedSocket>>,
    /// The machine's addresses; none as long as nobody watches them.
    machine: Option<Arc<[IpAddr]>>,
    /// How often the network around us changed, as far as we know.
    network_changes: u64,
}

/// The socket for a datagram.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) socket: Arc<SharedSocket>,
    /// The source address to write, on wildcard sockets.
    pub(crate) source: Option<IpAddr>,
}

impl SocketList {
    pub(crate) fn new(sockets: Vec<Arc<SharedSocket>>) -> Self {
        Self { sockets, ..Self::default() }
    }

    /// With further sockets of the same addresses, which threads read and send by.
    pub(crate) fn with_mates(self, mates: Vec<Arc<SharedSocket>>) -> Self {
        Self { mates, ..self }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<SharedSocket>> {
        self.sockets.iter()
    }

    pub(crate) fn with(&self, socket: SharedSocket) -> Self {
        let mut sockets = self.sockets.clone();
        sockets.push(Arc::new(socket));
        Self { sockets, ..self.clone() }
    }

    pub(crate) fn without(&self, local: SocketAddr) -> Self {
        let others = |sockets: &[Arc<SharedSocket>]| sockets.iter().filter(|s| s.local() != local).cloned().collect();
        let (sockets, mates, leaving) = (others(&self.sockets), others(&self.mates), others(&self.leaving));
        Self { sockets, mates, leaving, ..self.clone() }
    }

    /// The same, with those of `before` that are none of these any more, for handshakes that go on there.
    pub(crate) fn leaving(self, before: &Self) -> Self {
        let is_gone = |socket: &&Arc<SharedSocket>| !self.sockets.iter().any(|s| Arc::ptr_eq(s, socket));
        let leaving = before.all().filter(is_gone).cloned().collect();
        Self { leaving, ..self }
    }

    /// The same after the last such handshake; none where nothing was kept for any.
    pub(crate) fn all_left(&self) -> Option<Self> {
        (!self.leaving.is_empty()).then(|| Self { leaving: Vec::new(), ..self.clone() })
    }

    /// All sockets that bring datagrams.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<SharedSocket>> {
        self.sockets.iter().chain(&self.leaving)
    }

    /// The same sockets on a machine with these addresses.
    pub(crate) fn on_machine(&self, addresses: &[IpAddr]) -> Self {
        Self { machine: Some(addresses.into()), ..self.clone() }
    }

    /// The same sockets after a change of the network around them.
    pub(crate) fn after_network_change(&self) -> Self {
        Self { network_changes: self.network_changes + 1, ..self.clone() }
    }

    /// The machine's addresses, where they are known.
    pub(crate) fn machine(&self) -> Option<&[IpAddr]> {
        self.machine.as_deref()
    }

    /// How often the network around us changed, as far as we know.
    pub(crate) fn network_changes(&self) -> u64 {
        self.network_changes
    }

    /// Tells a connection our addresses, and those of the machine where they are known.
    pub(crate) fn tell(&self, connection: &mut plait_engine::Connection, now: Instant) {
        connection.set_local_addresses(now, &self.addresses());
        if let Some(machine) = self.machine() {
            connection.set_machine_addresses(now, machine);
        }
    }

    pub(crate) fn has(&self, local: SocketAddr) -> bool {
        self.sockets.iter().any(|s| s.local() == local)
    }

    /// Our addresses as the path policy wants them; an IPv6 wildcard socket counts for IPv4 as well.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = Vec::with_capacity(self.sockets.len());
        for local in self.sockets.iter().map(|s| s.local()) {
            all.push(local);
            if local.is_ipv6() && local.ip().is_unspecified() {
                all.push(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), local.port()));
            }
        }
        all
    }

    /// The socket by which datagrams on `tuple` leave: bound to its very address, else a wildcard one on its port.
    pub(crate) fn exit(&self, tuple: &FourTuple) -> Option<Exit> {
        let local = tuple.local;
        if let Some(socket) = self.all().find(|s| s.local() == local) {
            return Some(Exit { socket: socket.clone(), source: None });
        }
        let on_port = || {
            let wildcard = |s: &&Arc<SharedSocket>| s.is_wildcard() && s.local().port() == local.port();
            self.all().filter(wildcard).filter(|s| s.speaks_to(&tuple.remote))
        };
        let socket = on_port().find(|s| s.local().is_ipv4() == local.is_ipv4()).or_else(|| on_port().next())?;
        let source = Some(local.ip()).filter(|ip| !ip.is_unspecified());
        Some(Exit { socket: socket.clone(), source })
    }

    /// The same on a thread: by its own socket of the address, where it has one.
    pub(crate) fn exit_of(&self, thread: Option<usize>, tuple: &FourTuple) -> Option<Exit> {
        let exit = self.exit(tuple)?;
        if thread.is_none() || exit.socket.worker() == thread {
            return Some(exit);
        }
        let is_own = |mate: &&Arc<SharedSocket>| mate.worker() == thread && mate.local() == exit.socket.local();
        let socket = self.mates.iter().find(is_own).cloned().unwrap_or(exit.socket);
        Some(Exit { socket, source: exit.source })
    }

    /// True when this very socket is one of them.
    pub(crate) fn holds(&self, socket: &Arc<SharedSocket>) -> bool {
        self.all().chain(&self.mates).any(|s| Arc::ptr_eq(s, socket))
    }

    /// Datagrams that a GSO batch may hold, whichever socket it leaves by.
    pub(crate) fn max_segments(&self) -> usize {
        self.sockets.iter().map(|s| s.max_segments()).min().unwrap_or(1)
    }

    /// True when the system may fragment what some socket sends, so that probes of larger datagrams prove nothing.
    pub(crate) fn may_fragment(&self) -> bool {
        self.sockets.iter().any(|s| s.may_fragment())
    }

    /// Sends an answer that belongs to no connection, if there is room for it now.
    pub(crate) fn send_or_drop(&self, transmit: &Transmit, bytes: &[u8]) {
        let (Some(exit), Some(bytes)) = (self.exit(&transmit.tuple), bytes.get(..transmit.size)) else { return };
        exit.socket.send_or_drop(&outgoing(transmit, exit.source, bytes));
    }
}

/// `bytes` of a transmit as the socket takes them.
pub(crate) fn outgoing<'a>(transmit: &Transmit, source: Option<IpAddr>, bytes: &'a [u8]) -> Outgoing<'a> {
    Outgoing {
        remote: transmit.tuple.remote,
        source,
        ecn: transmit.ecn.map(ecn_to_socket),
        bytes,
        segment_bytes: transmit.segment_size.filter(|size| *size < bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bind;

    fn list(addresses: &[&str]) -> SocketList {
        let bound = |a: &&str| SharedSocket::new(Bind::address(a.parse().unwrap()).open().unwrap());
        SocketList::new(addresses.iter().map(bound).map(Arc::new).collect())
    }

    fn tuple(local: SocketAddr, remote: &str) -> FourTuple {
        FourTuple { local, remote: remote.parse().unwrap() }
    }

    #[tokio::test]
    async fn the_exact_address_comes_before_the_wildcard() {
        let list = list(&["0.0.0.0:0", "127.0.0.1:0"]);
        let (any, exact) = (list.sockets[0].local(), list.sockets[1].local());
        let exit = list.exit(&tuple(exact, "127.0.0.1:9")).unwrap();
        assert_eq!((exit.socket.local(), exit.source), (exact, None));
        let from_any = SocketAddr::new([127, 0, 0, 3].into(), any.port());
        let exit = list.exit(&tuple(from_any, "127.0.0.1:9")).unwrap();
        assert_eq!((exit.socket.local(), exit.source), (any, Some(from_any.ip())));
        let unknown = SocketAddr::new([127, 0, 0, 3].into(), exact.port());
        assert!(list.exit(&tuple(unknown, "127.0.0.1:9")).is_none() || exact.port() == any.port());
    }

    #[tokio::test]
    async fn a_thread_sends_by_its_own_socket_of_an_address() {
        let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let group = |count| Bind::address(address(0)).open_group(count, |_| ()).unwrap().into_iter().enumerate();
        let of_worker = |(index, socket)| Arc::new(SharedSocket::of_worker(socket, index));
        let mut sockets: Vec<_> = group(3).map(of_worker).collect();
        let first = sockets.remove(0);
        let list = SocketList::new(vec![first.clone()]).with_mates(sockets.clone());
        let tuple = tuple(first.local(), "127.0.0.1:9");
        let by = |thread| list.exit_of(thread, &tuple).unwrap().socket;
        assert!(Arc::ptr_eq(&by(None), &first) && Arc::ptr_eq(&by(Some(0)), &first));
        if !sockets.is_empty() {
            assert!(Arc::ptr_eq(&by(Some(2)), &sockets[1]) && list.holds(&sockets[1]));
        }
        assert!(Arc::ptr_eq(&by(Some(3)), &first), "no such thread");
        let without = list.without(first.local());
        assert!(without.sockets.is_empty() && without.mates.is_empty());
    }

    #[tokio::test]
    async fn connections_begin_at_the_first_socket_of_the_family() {
        let list = list(&["127.0.0.2:0", "127.0.0.1:0"]);
        let pairs = plait_engine::endpoint::pairs(&list.addresses(), &["127.0.0.1:1".parse().unwrap()]);
        assert_eq!(pairs[0].local, list.sockets[0].local());
        assert_eq!(list.without(list.sockets[0].local()).addresses(), [list.sockets[1].local()]);
    }
}
