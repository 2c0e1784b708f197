//! One socket that many connections send by.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use plait_base::{Ecn, FourTuple};

use super::claims::Claims;
use super::gathered::Gathered;
use super::listeners::Listeners;
use super::test_fault::TestFault;
use crate::net::{EcnCodepoint, Outgoing, ReceiveBatch, ReceivedMessage, SendOutcome, Socket, Wildcard};

/// A socket, and the connections that wait until it can send again.
///
/// tokio remembers one waiting sender for each socket. That one is `WaitingTasks`, which wakes all.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    socket: Socket,
    local: SocketAddr,
    /// What it speaks on the wildcard address of IPv6.
    wildcard: Wildcard,
    interface: Option<String>,
    waiting: Arc<WaitingTasks>,
    pub(super) relay: Waker,
    pub(super) fault: TestFault,
    pub(super) listeners: Listeners,
    pub(super) claims: Claims,
    gathered: Gathered,
    /// The thread that serves paths and polls this socket; none where the runtime of its endpoint does.
    worker: Option<usize>,
}

#[derive(Debug, Default)]
struct WaitingTasks(Mutex<Vec<Waker>>);

impl WaitingTasks {
    fn add(&self, waker: &Waker) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.iter().any(|k| k.will_wake(waker)) {
            kept.push(waker.clone());
        }
    }
}

impl Wake for WaitingTasks {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl SharedSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        let waiting = Arc::new(WaitingTasks::default());
        let relay = Waker::from(waiting.clone());
        let (local, interface) = (plain(socket.local_addr()), socket.interface());
        let (fault, listeners, claims) = (TestFault::default(), Listeners::default(), Claims::default());
        let (gathered, wildcard) = (Gathered::default(), socket.wildcard());
        Self { socket, local, wildcard, interface, waiting, relay, fault, listeners, claims, gathered, worker: None }
    }

    /// A socket that was made within the runtime of one of the threads that serve paths.
    pub(crate) fn of_worker(socket: Socket, worker: usize) -> Self {
        Self { worker: Some(worker), ..Self::new(socket) }
    }

    /// The thread that serves paths and polls this socket.
    pub(crate) fn worker(&self) -> Option<usize> {
        self.worker
    }

    pub(super) fn inner(&self) -> &Socket {
        &self.socket
    }

    /// The bound address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The interface that it is bound to, if to any.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// True when it takes datagrams for any address of its family.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// True when datagrams from or to `address` can use this socket. An IPv6 wildcard socket may speak IPv4 too.
    pub(crate) fn speaks_to(&self, address: &SocketAddr) -> bool {
        let speaks_both = self.local.is_ipv6() && self.is_wildcard() && self.wildcard == Wildcard::BothVersions;
        self.local.is_ipv4() == address.is_ipv4() || speaks_both
    }

    pub(crate) fn max_segments(&self) -> usize {
        self.socket.max_segments()
    }

    pub(crate) fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }

    /// Addresses as this socket's family writes them.
    fn native(&self, remote: SocketAddr) -> SocketAddr {
        match remote {
            SocketAddr::V4(v4) if self.local.is_ipv6() => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            other => other,
        }
    }

    fn attempt(&self, out: &Outgoing<'_>) -> Poll<io::Result<SendOutcome>> {
        if self.fault.refuses() {
            return Poll::Pending;
        }
        ready!(self.gathered.flush(|kept| self.send_kept(kept)));
        self.send_now(out)
    }

    fn send_now(&self, out: &Outgoing<'_>) -> Poll<io::Result<SendOutcome>> {
        let out = Outgoing { remote: self.native(out.remote), ..*out };
        self.socket.poll_send(&mut Context::from_waker(&self.relay), &out)
    }

    /// Sends small datagrams that waited for each other. They belong to nobody any more: what the network does not take is lost.
    fn send_kept(&self, kept: &Outgoing<'_>) -> Poll<()> {
        if self.fault.refuses() {
            return Poll::Pending;
        }
        self.send_now(kept).map(|sent| {
            if let Err(error) = sent {
                tracing::warn!(%error, local = %self.local, "socket cannot send");
            }
        })
    }

    /// From now on small datagrams of several connections wait, and leave together when `sender`, woken by the first of them, calls
    /// [`Self::poll_end_turn`].
    pub(crate) fn begin_turn(&self, sender: &Waker) {
        self.gathered.begin_turn(sender);
    }

    /// True while small datagrams wait.
    pub(crate) fn has_gathered(&self) -> bool {
        self.gathered.has_any()
    }

    /// Sends the small datagrams that wait; pending while the system's buffer is full.
    pub(crate) fn poll_end_turn(&self, cx: &Context<'_>) -> Poll<()> {
        if self.gathered.end_turn(|kept| self.send_kept(kept)).is_ready() {
            return Poll::Ready(());
        }
        self.waiting.add(cx.waker());
        self.gathered.end_turn(|kept| self.send_kept(kept))
    }

    /// Sends a datagram or GSO batch; pending while the system's buffer is full, and any number of tasks may wait.
    pub(crate) fn poll_send(&self, cx: &Context<'_>, out: &Outgoing<'_>) -> Poll<io::Result<SendOutcome>> {
        if self.gathered.keep(out, self.max_segments(), |kept| self.send_kept(kept)) {
            return Poll::Ready(Ok(SendOutcome::Sent));
        }
        if let Poll::Ready(done) = self.attempt(out) {
            return Poll::Ready(done);
        }
        self.waiting.add(cx.waker());
        // Room that came before we were on the list would wake nobody.
        self.attempt(out)
    }

    /// Sends if there is room; what finds none is lost.
    pub(crate) fn send_or_drop(&self, out: &Outgoing<'_>) {
        if let Poll::Ready(Err(error)) = self.attempt(out) {
            tracing::warn!(%error, local = %self.local, "socket cannot send");
        }
    }

    /// Receives for the endpoint; pending while nothing waits, and while another reads.
    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut ReceiveBatch) -> Poll<io::Result<()>> {
        self.claims.read_unclaimed(|| self.socket.poll_receive(cx, batch))
    }

    /// Takes the reading over from the endpoint, until [`Self::unclaim`]; false where another has it. Who has it, and no other, calls
    /// [`Self::poll_receive_claimed`].
    pub(crate) fn claim(&self) -> bool {
        !self.claims.set(true)
    }

    /// The endpoint reads again; its task must be woken.
    pub(crate) fn unclaim(&self) {
        self.claims.set(false);
    }

    /// Receives for whoever claimed it; pending while nothing waits.
    pub(crate) fn poll_receive_claimed(&self, cx: &mut Context<'_>, batch: &mut ReceiveBatch) -> Poll<io::Result<()>> {
        self.socket.poll_receive(cx, batch)
    }

    /// Lets a program of classic BPF say to which socket of its group a datagram goes.
    #[cfg(target_os = "linux")]
    pub(crate) fn deal_by(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        self.socket.deal_by(program)
    }

    /// For tests that receive by themselves.
    #[cfg(test)]
    pub(crate) fn bare(&self) -> &std::net::UdpSocket {
        self.socket.bare()
    }

    /// The addresses of a received message, with our own where the socket or the system knows it.
    pub(crate) fn tuple_of(&self, incoming: &ReceivedMessage) -> FourTuple {
        let remote = plain(incoming.remote);
        let ip = match incoming.destination {
            Some(ip) if self.is_wildcard() => ip.to_canonical(),
            None if self.is_wildcard() && remote.is_ipv4() => IpAddr::from([0, 0, 0, 0]),
            // As it is bound, with the scope of a link-local address.
            _ => return FourTuple { local: self.local, remote },
        };
        FourTuple { local: SocketAddr::new(ip, self.local.port()), remote }
    }
}

/// IPv4 in its own form, and IPv6 without a flow label; only link-local addresses keep their scope.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match IpAddr::V6(*v6.ip()).to_canonical() {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), v6.port()),
            IpAddr::V6(ip) => {
                let scope = if is_link_local(&ip) { v6.scope_id() } else { 0 };
                SocketAddrV6::new(ip, v6.port(), 0, scope).into()
            }
        },
    }
}

fn is_link_local(ip: &Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// The mark as the engine names it.
pub(crate) fn ecn_from_socket(mark: EcnCodepoint) -> Ecn {
    match mark {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}

/// The mark as the socket names it.
pub(crate) fn ecn_to_socket(mark: Ecn) -> EcnCodepoint {
    match mark {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bind, BindError};

    fn sends(socket: &SharedSocket, remote: SocketAddr, bytes: &[u8]) -> bool {
        let out = Outgoing { remote, source: None, ecn: None, bytes, segment_bytes: None };
        socket.poll_send(&Context::from_waker(Waker::noop()), &out).is_ready()
    }

    #[tokio::test]
    async fn small_datagrams_of_a_turn_wait_and_nothing_overtakes_them() {
        let friend = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        friend.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        let remote = friend.local_addr().unwrap();
        let socket = SharedSocket::new(Bind::address("127.0.0.1:0".parse().unwrap()).open().unwrap());
        let receive = || {
            let mut buffer = [0; 2_000];
            friend.recv(&mut buffer).map(|len| (buffer[0], len)).unwrap()
        };
        socket.begin_turn(Waker::noop());
        assert!(sends(&socket, remote, &[1; 50]) && sends(&socket, remote, &[2; 50]));
        assert!(socket.has_gathered());
        // Without room they stay, and so does what would leave after them.
        socket.jam();
        assert!(!sends(&socket, remote, &[3; 1_200]));
        assert!(socket.poll_end_turn(&Context::from_waker(Waker::noop())).is_pending());
        socket.free();
        assert!(sends(&socket, remote, &[3; 1_200]) && !socket.has_gathered());
        assert_eq!([receive(), receive(), receive()], [(1, 50), (2, 50), (3, 1_200)]);
        // Nothing waits without a turn.
        assert!(sends(&socket, remote, &[4; 50]) && !socket.has_gathered());
        socket.begin_turn(Waker::noop());
        assert!(sends(&socket, remote, &[5; 50]) && socket.has_gathered());
        assert!(socket.poll_end_turn(&Context::from_waker(Waker::noop())).is_ready());
        assert!(sends(&socket, remote, &[6; 50]) && !socket.has_gathered());
        assert_eq!([receive(), receive(), receive()], [(4, 50), (5, 50), (6, 50)]);
    }

    #[tokio::test]
    async fn what_comes_to_a_link_local_address_came_to_it_with_its_scope() {
        let mut socket = SharedSocket::new(Bind::address("127.0.0.1:0".parse().unwrap()).open().unwrap());
        socket.local = "[fe80::1%2]:5".parse().unwrap();
        let remote = "[fe80::2%2]:6".parse().unwrap();
        let destination = Some("fe80::1".parse().unwrap());
        let message =
            ReceivedMessage { remote, destination, ecn: None, bytes: bytes::BytesMut::new(), segment_bytes: 1 };
        assert_eq!(socket.tuple_of(&message), FourTuple { local: socket.local, remote });
    }

    #[tokio::test]
    async fn two_wildcards_share_a_port_where_one_takes_ipv6_alone() {
        let of = |bind: Bind| bind.open().map(SharedSocket::new);
        let both = of(Bind::address("[::]:0".parse().unwrap()));
        let (Ok(both), Ok(v4)) = (both, of(Bind::address("0.0.0.0:0".parse().unwrap()))) else { return };
        let v6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), v4.local().port());
        assert!(matches!(of(Bind::address(v6)), Err(BindError::InUse(_))));
        let v6 = of(Bind::address(v6).only_v6()).unwrap();
        let (friend_v4, friend_v6): (SocketAddr, SocketAddr) =
            ("127.0.0.1:9".parse().unwrap(), "[::1]:9".parse().unwrap());
        assert_eq!([&v4, &v6].map(|socket| socket.speaks_to(&friend_v4)), [true, false]);
        assert_eq!([&v4, &v6].map(|socket| socket.speaks_to(&friend_v6)), [false, true]);
        assert!(both.speaks_to(&friend_v4) && both.speaks_to(&friend_v6));
    }
}
