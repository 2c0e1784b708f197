//! One UDP socket, bound to one local address and, where permitted, to its interface.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use super::batch::{MAX_SLOTS, ReceiveBatch};
use super::polled::{Left, Polled};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

/// How a socket is made.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Interface to bind to (`SO_BINDTODEVICE`); where the system forbids it the address alone decides.
    pub interface: Option<String>,
    /// Whether a wildcard address of IPv6 takes IPv4 as well, where the system can.
    pub wildcard: Wildcard,
    /// Kernel send buffer asked for, bytes.
    pub send_buffer_bytes: usize,
    /// Kernel receive buffer asked for, bytes.
    pub receive_buffer_bytes: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            interface: None,
            wildcard: Wildcard::BothVersions,
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 4 << 20,
        }
    }
}

/// The IP versions of a socket on the wildcard address of IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wildcard {
    /// IPv4 as well, where the system can.
    #[default]
    BothVersions,
    /// IPv6 alone: another socket may have the port for IPv4.
    OnlyV6,
}

/// Why a socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program uses the address and port.
    #[error("{0} is in use; choose another port or stop the program that holds it")]
    InUse(SocketAddr),
    /// No interface has the address.
    #[error("no interface has the address {0}; `ip addr` lists those of this machine")]
    NoSuchAddress(SocketAddr),
    /// No interface has the name.
    #[error("there is no interface {0}; `ip link` lists those of this machine")]
    NoSuchInterface(String),
    /// Ports below 1024 and some interfaces need privileges.
    #[error("no permission to bind {0}; choose a port above 1023")]
    Denied(SocketAddr),
    /// Anything else that the system says.
    #[error("cannot bind {0}: {1}")]
    Other(SocketAddr, #[source] io::Error),
}

/// A datagram, or a GSO batch of equal datagrams, to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing<'a> {
    /// Where it goes.
    pub(crate) remote: SocketAddr,
    /// Source address for sockets that are bound to the wildcard address.
    pub(crate) source: Option<IpAddr>,
    /// The ECN mark of each datagram.
    pub(crate) ecn: Option<EcnCodepoint>,
    /// One payload, or several back to back.
    pub(crate) bytes: &'a [u8],
    /// Size of each payload but the last; none for a single datagram.
    pub(crate) segment_bytes: Option<usize>,
}

/// What became of a datagram that was handed to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The system took it.
    Sent,
    /// It is larger than the interface's MTU.
    TooLarge,
    /// No route, interface down, or a filter: as if lost on the way.
    Unreachable,
}

/// A UDP socket driven by tokio.
#[derive(Debug)]
pub(crate) struct Socket {
    io: Polled,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// Binds `address`; must be called within a tokio runtime. An IPv6 wildcard address also takes IPv4 where the
    /// system allows it.
    ///
    /// # Errors
    /// Names the address or interface at fault and what to try.
    pub(crate) fn bind(address: SocketAddr, options: &SocketOptions) -> Result<Self, BindError> {
        let socket = bind_std(address, options, Port::Own)?;
        Self::from_std(socket, options).map_err(|e| BindError::Other(address, e))
    }

    /// So many sockets of one address, among which the system deals what comes for it by the addresses of its sender; one where it
    /// does not do that.
    ///
    /// # Errors
    /// As [`Self::bind`], also where another program has the address: it would lose a part of what comes for it.
    pub(crate) fn bind_group(
        address: SocketAddr,
        options: &SocketOptions,
        count: usize,
    ) -> Result<Vec<std::net::UdpSocket>, BindError> {
        let alone = bind_std(address, options, Port::Own)?;
        if !cfg!(target_os = "linux") || count < 2 {
            return Ok(vec![alone]);
        }
        let address = alone.local_addr().map_err(|e| BindError::Other(address, e))?;
        drop(alone);
        (0..count).map(|_| bind_std(address, options, Port::Shared)).collect()
    }

    /// From now on a program of classic BPF says which of the sockets of this one's address gets a datagram, by their order; where it
    /// names none, the system goes by the addresses as before. It reads the UDP payload.
    ///
    /// # Errors
    /// What the system says: it knows no such program, or does not take this one.
    #[cfg(target_os = "linux")]
    pub(crate) fn deal_by(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
        nix::sys::socket::setsockopt(self.io.socket(), nix::sys::socket::sockopt::AttachReusePortCbpf, &program)?;
        Ok(())
    }

    /// For tests that receive by themselves.
    #[cfg(test)]
    pub(crate) fn bare(&self) -> &std::net::UdpSocket {
        self.io.socket()
    }

    /// Takes over a bound socket.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn from_std(socket: std::net::UdpSocket, options: &SocketOptions) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        // Buffers are a wish: the system may cap them.
        let _ = state.set_send_buffer_size((&socket).into(), options.send_buffer_bytes);
        let _ = state.set_recv_buffer_size((&socket).into(), options.receive_buffer_bytes);
        let local = socket.local_addr()?;
        Ok(Self { io: Polled::new(socket)?, state, local })
    }

    /// The bound address.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The interface that it is bound to (`SO_BINDTODEVICE`), where it is, and the system tells.
    pub(crate) fn interface(&self) -> Option<String> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return String::from_utf8(socket2::SockRef::from(self.io.socket()).device().ok()??).ok();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return None;
    }

    /// What it speaks where it has the wildcard address of IPv6.
    pub(crate) fn wildcard(&self) -> Wildcard {
        match socket2::SockRef::from(self.io.socket()).only_v6() {
            Ok(true) => Wildcard::OnlyV6,
            Ok(false) | Err(_) => Wildcard::BothVersions,
        }
    }

    pub(super) fn io(&self) -> &Polled {
        &self.io
    }

    /// Datagrams that one GSO batch may hold.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// True when the system may fragment datagrams, so that MTU probes prove nothing.
    pub(crate) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Sends a datagram or a GSO batch; pending while the socket's buffer is full.
    ///
    /// # Errors
    /// Only those that end the socket; what a network may do to a datagram is a [`SendOutcome`].
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, out: &Outgoing<'_>) -> Poll<io::Result<SendOutcome>> {
        let transmit = Transmit {
            destination: out.remote,
            ecn: out.ecn,
            contents: out.bytes,
            segment_size: out.segment_bytes,
            src_ip: out.source,
        };
        let mut again = Again::Once;
        loop {
            return match ready!(self.io.poll_send(cx, |socket| self.state.try_send(socket.into(), &transmit))) {
                Ok(()) => Poll::Ready(Ok(SendOutcome::Sent)),
                Err(e) => match not_taken(&e, again) {
                    NotTaken::Fatal => Poll::Ready(Err(e)),
                    NotTaken::Unsure => {
                        again = Again::No;
                        continue;
                    }
                    NotTaken::Final(outcome) => {
                        tracing::debug!(error = %e, remote = %out.remote, "datagram not sent");
                        Poll::Ready(Ok(outcome))
                    }
                },
            };
        }
    }

    /// Receives what waits into `batch`; pending while nothing does.
    ///
    /// # Errors
    /// Only those that end the socket; errors that a peer's ICMP causes are passed over.
    pub(crate) fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut ReceiveBatch) -> Poll<io::Result<()>> {
        let mut metas = [RecvMeta::default(); MAX_SLOTS];
        loop {
            let received = ready!(self.io.poll_receive(cx, |socket| {
                let mut slots: [IoSliceMut<'_>; MAX_SLOTS] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
                let mut count = 0;
                for (slot, bytes) in slots.iter_mut().zip(batch.slots()) {
                    *slot = IoSliceMut::new(bytes);
                    count += 1;
                }
                let filled = self.state.recv(socket.into(), &mut slots[..count], &mut metas)?;
                // A call that left slots empty left nothing behind.
                Ok((filled, if filled < count.min(BATCH_SIZE) { Left::Nothing } else { Left::Possible }))
            }));
            match received {
                Ok(count) => {
                    batch.filled(&metas[..count]);
                    return Poll::Ready(Ok(()));
                }
                Err(e) if is_fatal(&e) => return Poll::Ready(Err(e)),
                // ICMP errors of earlier sends surface here; they concern one peer, not the socket.
                Err(e) => tracing::debug!(error = %e, "receive error passed over"),
            }
        }
    }
}

/// Whether other sockets may have the same address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Port {
    Own,
    /// Those of the same user that say so too.
    Shared,
}

fn bind_std(address: SocketAddr, options: &SocketOptions, port: Port) -> Result<std::net::UdpSocket, BindError> {
    let other = |e| BindError::Other(address, e);
    let socket =
        socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None).map_err(other)?;
    if address.is_ipv6() {
        // Not every system can; then IPv6 alone is served.
        let takes_both = address.ip().is_unspecified() && options.wildcard == Wildcard::BothVersions;
        let _ = socket.set_only_v6(!takes_both);
    }
    if let Some(name) = &options.interface {
        bind_device(&socket, name)?;
    }
    if port == Port::Shared {
        share_port(&socket).map_err(other)?;
    }
    socket.bind(&address.into()).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::AddrNotAvailable => BindError::NoSuchAddress(address),
        io::ErrorKind::PermissionDenied => BindError::Denied(address),
        _ => BindError::Other(address, e),
    })?;
    Ok(socket.into())
}

/// Whether a datagram that was not taken is offered again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Once,
    No,
}

/// What an error of a send call says of the datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotTaken {
    /// The socket is of no use any more.
    Fatal,
    /// It may be the error of an earlier datagram, to whomever.
    Unsure,
    Final(SendOutcome),
}

/// What `e` says of a datagram that may be offered `again`. A socket that keeps reports answers a send call with what an ICMP
/// message said of another datagram (ip(7), IP_RECVERR), once; also with EMSGSIZE, where a router asks for smaller ones.
fn not_taken(e: &io::Error, again: Again) -> NotTaken {
    match (again, e.raw_os_error()) {
        _ if is_fatal(e) => NotTaken::Fatal,
        (Again::Once, _) => NotTaken::Unsure,
        (Again::No, Some(libc::EMSGSIZE)) => NotTaken::Final(SendOutcome::TooLarge),
        (Again::No, _) => NotTaken::Final(SendOutcome::Unreachable),
    }
}

fn is_fatal(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::ENOMEM))
}

#[cfg(target_os = "linux")]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(target_os = "linux"))]
fn share_port(_: &socket2::Socket) -> io::Result<()> {
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_device(socket: &socket2::Socket, name: &str) -> Result<(), BindError> {
    match socket.bind_device(Some(name.as_bytes())) {
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Err(BindError::NoSuchInterface(name.into())),
        Err(e) => {
            tracing::debug!(error = %e, interface = name, "not bound to the interface; its address decides");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_device(_: &socket2::Socket, _: &str) -> Result<(), BindError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_for_a_datagram_that_is_refused_twice() {
        let of = |code, again| not_taken(&io::Error::from_raw_os_error(code), again);
        for (code, outcome) in [(libc::EMSGSIZE, SendOutcome::TooLarge), (libc::EHOSTUNREACH, SendOutcome::Unreachable)]
        {
            assert_eq!(of(code, Again::Once), NotTaken::Unsure);
            assert_eq!(of(code, Again::No), NotTaken::Final(outcome));
        }
        assert_eq!(of(libc::EBADF, Again::Once), NotTaken::Fatal);
    }
}
