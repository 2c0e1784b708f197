//! A socket that never waits, with the bits of ECN of what comes and goes.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};

/// Asked of the system for what waits in either direction; it may give less.
const BUFFER_BYTES: usize = 8 << 20;

/// A datagram that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) from: SocketAddrV4,
    pub(super) bytes: usize,
    /// The bits of ECN.
    pub(super) ecn: u8,
}

/// A UDP socket of the relay.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    /// Bits of ECN that it sends with now.
    ecn: Cell<u8>,
    /// Datagrams that the system had no room for.
    lost: u32,
    control: Vec<u8>,
}

impl Port {
    /// A new one at this address, at a port that is free.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn bind(ip: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((ip, 0))?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::IpRecvTos, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        // With less than was asked for, a burst may lose datagrams, and then they are counted.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES);
        let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER_BYTES);
        Ok(Self { socket, ecn: Cell::new(0), lost: 0, control: cmsg_space!(u8, u32) })
    }

    /// Sends to one address alone from now on, and hears it alone.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn connect(&self, to: SocketAddrV4) -> io::Result<()> {
        self.socket.connect(to)
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// The system does not say.
    pub(super) fn address(&self) -> io::Result<SocketAddrV4> {
        match self.socket.local_addr()? {
            SocketAddr::V4(address) => Ok(address),
            SocketAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Becomes readable when something comes.
    pub(super) fn wait(&self) -> PollFd<'_> {
        PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)
    }

    /// The next datagram, its payload in `buffer`.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Option<Heard> {
        let mut pieces = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<SockaddrIn>(fd, &mut pieces, Some(&mut self.control), flags).ok()?;
        let mut ecn = 0;
        for control in message.cmsgs().into_iter().flatten() {
            match control {
                ControlMessageOwned::Ipv4Tos(class) => ecn = class & 0b11,
                ControlMessageOwned::RxqOvfl(lost) => self.lost = lost,
                _ => {}
            }
        }
        Some(Heard { from: message.address?.into(), bytes: message.bytes, ecn })
    }

    /// Sends a datagram with these bits of ECN: to an address, or to the one it is connected to.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn send(&self, payload: &[u8], ecn: u8, to: Option<SocketAddrV4>) -> io::Result<()> {
        if self.ecn.replace(ecn) != ecn {
            setsockopt(&self.socket, sockopt::Ipv4Tos, &i32::from(ecn))?;
        }
        match to {
            Some(to) => self.socket.send_to(payload, to),
            None => self.socket.send(payload),
        }
        .map(|_| ())
    }

    /// Datagrams that were lost before they were received, as far as the latest that came knows.
    pub(super) fn lost(&self) -> u64 {
        self.lost.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes to a socket, within some seconds.
    fn next(port: &mut Port, buffer: &mut [u8]) -> Heard {
        for _ in 0..2000 {
            if let Some(heard) = port.receive(buffer) {
                return heard;
            }
            crate::clock::pause(std::time::Duration::from_millis(5));
        }
        panic!("nothing came");
    }

    #[test]
    fn marks_go_with_each_datagram() {
        let (mut near, mut far) = (Port::bind(Ipv4Addr::LOCALHOST).unwrap(), Port::bind(Ipv4Addr::LOCALHOST).unwrap());
        let (here, there) = (near.address().unwrap(), far.address().unwrap());
        let mut buffer = [0; 100];
        assert_eq!(near.receive(&mut buffer), None);
        for ecn in [0b10, 0b10, 0, 0b11, 0b01] {
            near.send(b"abc", ecn, Some(there)).unwrap();
            assert_eq!(next(&mut far, &mut buffer), Heard { from: here, bytes: 3, ecn });
            assert_eq!(&buffer[..3], b"abc");
        }
        far.connect(here).unwrap();
        far.send(b"", 0b10, None).unwrap();
        assert_eq!(next(&mut near, &mut buffer), Heard { from: there, bytes: 0, ecn: 0b10 });
    }

    #[test]
    fn what_the_system_had_no_room_for_is_counted() {
        let (near, mut far) = (Port::bind(Ipv4Addr::LOCALHOST).unwrap(), Port::bind(Ipv4Addr::LOCALHOST).unwrap());
        setsockopt(&far.socket, sockopt::RcvBuf, &2048).unwrap();
        let (to, mut buffer) = (far.address().unwrap(), [0; 2000]);
        (0..50).for_each(|_| near.send(&[0; 1000], 0, Some(to)).unwrap());
        while far.receive(&mut buffer).is_some() {}
        // The next that fits brings the count.
        near.send(b"x", 0, Some(to)).unwrap();
        assert_eq!(next(&mut far, &mut buffer).bytes, 1);
        assert!(far.lost() > 0 && far.lost() < 50, "{}", far.lost());
    }
}
