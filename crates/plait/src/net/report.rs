//! What the network says of datagrams that it did not deliver: ICMP messages that came back.
//!
//! Linux keeps them for sockets that ask (IP_RECVERR, ip(7)), each with the address that the datagram was for. Elsewhere
//! nothing is ever reported.

use std::io;
use std::net::SocketAddr;

use super::polled::Polled;
use super::socket::Socket;

/// A datagram that did not arrive. Anybody who guesses our port can forge this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Undelivered {
    /// Where it was to go, as the socket's family writes addresses.
    pub(crate) remote: SocketAddr,
    /// Why it did not get there.
    pub(crate) why: Obstacle,
}

/// What stood in the way of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Nobody listens at the port.
    Port,
    /// The host or its network is out of reach, or somebody on the way forbids.
    Host,
}

/// Whether a socket keeps reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// It keeps them until they are read: [`Socket::undelivered`] must be awaited as long.
    Kept,
    /// It keeps none, and forgets those that it has.
    Ignored,
}

impl Socket {
    /// Says whether the system shall keep reports of datagrams that were not delivered. Default ignored.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn set_reports(&self, reports: Reports) -> io::Result<()> {
        system::set(self.io(), reports)
    }

    /// The next report. May be cancelled without loss; where several wait, each report goes to one of them.
    ///
    /// # Errors
    /// Those that end the socket.
    pub(crate) async fn undelivered(&self) -> io::Result<Undelivered> {
        system::next(self.io()).await
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};

    use super::{Obstacle, Polled, Reports, Undelivered};

    /// Room for the control messages of a report: what went wrong, and what the socket asked for besides, bytes.
    const CONTROL_BYTES: usize = 512;
    /// Reports about ICMP and ICMPv6 messages, as against errors of this machine (linux/errqueue.h).
    const ORIGIN_ICMP: [u8; 2] = [2, 3];

    pub(super) fn set(io: &Polled, reports: Reports) -> io::Result<()> {
        let (io, kept) = (io.socket(), reports == Reports::Kept);
        if io.local_addr()?.is_ipv6() {
            setsockopt(io, sockopt::Ipv6RecvErr, &kept)?;
            // For IPv4 on a socket of both; not every one is.
            let _ = setsockopt(io, sockopt::Ipv4RecvErr, &kept);
            return Ok(());
        }
        Ok(setsockopt(io, sockopt::Ipv4RecvErr, &kept)?)
    }

    pub(super) async fn next(io: &Polled) -> io::Result<Undelivered> {
        loop {
            if let Some(report) = io.error(read).await? {
                return Ok(report);
            }
        }
    }

    /// Takes one report off the queue; none where it is about something else.
    fn read(io: &UdpSocket) -> io::Result<Option<Undelivered>> {
        let mut payload = [0; 64];
        let mut parts = [IoSliceMut::new(&mut payload)];
        // On the heap, where it is aligned for the headers in it.
        let mut control = vec![0; CONTROL_BYTES];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(io.as_raw_fd(), &mut parts, Some(&mut control[..]), flags)?;
        let why = message.cmsgs()?.find_map(|part| match part {
            ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                obstacle(error.ee_origin, error.ee_errno)
            }
            _ => None,
        });
        let Some((address, why)) = message.address.zip(why) else { return Ok(None) };
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(SocketAddrV4::from(*v4)));
        let remote = v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from(SocketAddrV6::from(*v6))));
        Ok(remote.map(|remote| Undelivered { remote, why }))
    }

    fn obstacle(origin: u8, errno: u32) -> Option<Obstacle> {
        if !ORIGIN_ICMP.contains(&origin) {
            return None;
        }
        match i32::try_from(errno).ok()? {
            libc::ECONNREFUSED => Some(Obstacle::Port),
            libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EACCES | libc::EHOSTDOWN | libc::ENONET => {
                Some(Obstacle::Host)
            }
            _ => None,
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use std::io;

    use super::{Polled, Reports, Undelivered};

    pub(super) fn set(_: &Polled, _: Reports) -> io::Result<()> {
        Ok(())
    }

    pub(super) async fn next(_: &Polled) -> io::Result<Undelivered> {
        std::future::pending().await
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::net::{Outgoing, ReceiveBatch, SocketOptions};

    async fn send(from: &Socket, remote: SocketAddr) {
        let out = Outgoing { remote, source: None, ecn: None, bytes: b"anybody?", segment_bytes: None };
        poll_fn(|cx| from.poll_send(cx, &out)).await.unwrap();
    }

    fn bound(address: &str) -> Socket {
        Socket::bind(address.parse().unwrap(), &SocketOptions::default()).unwrap()
    }

    /// A port of `ip` at which nobody listens.
    fn closed(ip: &str) -> SocketAddr {
        let socket = std::net::UdpSocket::bind((ip, 0)).unwrap();
        socket.local_addr().unwrap()
    }

    async fn within<T>(work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(Duration::from_secs(10), work).await.ok()
    }

    #[tokio::test]
    async fn a_closed_port_is_reported_with_its_address() {
        for (local, ip) in [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let Ok(socket) = Socket::bind(local.parse().unwrap(), &SocketOptions::default()) else { continue };
            socket.set_reports(Reports::Kept).unwrap();
            let remote = closed(ip);
            send(&socket, remote).await;
            let report = within(socket.undelivered()).await.expect("a report").unwrap();
            assert_eq!(report, Undelivered { remote, why: Obstacle::Port }, "from {local}");
        }
    }

    #[tokio::test]
    async fn reports_harm_neither_what_is_sent_nor_what_comes() {
        let (socket, friend) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        socket.set_reports(Reports::Kept).unwrap();
        for _ in 0..20 {
            send(&socket, closed("127.0.0.1")).await;
            // The error that waits on the socket must not be taken for this datagram's.
            send(&socket, friend.local_addr()).await;
            send(&friend, socket.local_addr()).await;
        }
        let mut batch = ReceiveBatch::new(std::sync::Arc::default());
        for (receiver, mut expected) in [(&friend, 20), (&socket, 20)] {
            while expected > 0 {
                within(poll_fn(|cx| receiver.poll_receive(cx, &mut batch))).await.expect("datagrams").unwrap();
                expected -= batch.by_ref().count();
            }
        }
        // Twenty datagrams to closed ports are twenty reports at most: the system may limit its ICMP.
        assert!(within(socket.undelivered()).await.is_some());
    }

    #[tokio::test]
    async fn who_asks_for_nothing_hears_nothing() {
        let socket = bound("127.0.0.1:0");
        socket.set_reports(Reports::Kept).unwrap();
        socket.set_reports(Reports::Ignored).unwrap();
        send(&socket, closed("127.0.0.1")).await;
        assert!(tokio::time::timeout(Duration::from_millis(50), socket.undelivered()).await.is_err());
    }
}
