//! A socket in a runtime: it tells when something came, and of room to send only once it was full.
//!
//! The system says of a UDP socket that there is room each time that a datagram has left, and who listens for that is woken after
//! nearly every call that sends, though the socket was never full.

pub(super) use system::Polled;

/// Whether more may wait behind what a call received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Possible,
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::net::UdpSocket;
    use std::sync::OnceLock;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::runtime::Handle;

    use super::Left;

    #[derive(Debug)]
    pub(crate) struct Polled {
        socket: AsyncFd<UdpSocket>,
        /// A copy of the socket that is told of room, from when it was full first.
        room: OnceLock<AsyncFd<UdpSocket>>,
        runtime: Handle,
    }

    impl Polled {
        /// Takes over a socket that does not block; must be called within a tokio runtime.
        ///
        /// # Errors
        /// What the system says.
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            let socket = listening(socket, Interest::READABLE)?;
            Ok(Self { socket, room: OnceLock::new(), runtime: Handle::current() })
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            self.socket.get_ref()
        }

        /// Calls `receive` once something waits; pending while nothing does.
        ///
        /// # Errors
        /// What `receive` says, but that it would block.
        pub(crate) fn poll_receive<T>(
            &self,
            cx: &mut Context<'_>,
            mut receive: impl FnMut(&UdpSocket) -> io::Result<(T, Left)>,
        ) -> Poll<io::Result<T>> {
            loop {
                let mut ready = ready!(self.socket.poll_read_ready(cx))?;
                match receive(self.socket()) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    Err(e) => return Poll::Ready(Err(e)),
                    Ok((received, left)) => {
                        if left == Left::Nothing {
                            // Who asks next need not hear it from the system.
                            ready.clear_ready();
                        }
                        return Poll::Ready(Ok(received));
                    }
                }
            }
        }

        /// Calls `send` until there was room for it; pending while there is none.
        ///
        /// # Errors
        /// What `send` says, but that it would block.
        pub(crate) fn poll_send<T>(
            &self,
            cx: &mut Context<'_>,
            mut send: impl FnMut(&UdpSocket) -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            let room = match self.room.get() {
                Some(room) => room,
                None => match send(self.socket()) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.watch_room()?,
                    sent => return Poll::Ready(sent),
                },
            };
            loop {
                let mut ready = ready!(room.poll_write_ready(cx))?;
                match send(self.socket()) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    sent => return Poll::Ready(sent),
                }
            }
        }

        #[cfg(test)]
        pub(super) fn watches_room(&self) -> bool {
            self.room.get().is_some()
        }

        fn watch_room(&self) -> io::Result<&AsyncFd<UdpSocket>> {
            // Who sends need not run in the runtime that polls the socket.
            let _entered = self.runtime.enter();
            let room = listening(self.socket().try_clone()?, Interest::WRITABLE)?;
            Ok(self.room.get_or_init(|| room))
        }

        /// Calls `take` when the system has an error to tell, until it takes one.
        ///
        /// # Errors
        /// What `take` says, but that it would block.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        pub(crate) async fn error<T>(&self, take: impl FnMut(&UdpSocket) -> io::Result<T>) -> io::Result<T> {
            self.socket.async_io(Interest::ERROR, take).await
        }
    }

    #[allow(
        deprecated,
        reason = "asks its caller for what a socket of the standard library always is: one that stays open"
    )]
    fn listening(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket, interest)
    }
}

/// Where tokio listens for both or for nothing.
#[cfg(not(unix))]
mod system {
    use std::io;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use super::Left;

    #[derive(Debug)]
    pub(crate) struct Polled(UdpSocket);

    impl Polled {
        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            Ok(Self(UdpSocket::from_std(socket)?))
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            &self.0
        }

        pub(crate) fn poll_receive<T>(
            &self,
            cx: &mut Context<'_>,
            mut receive: impl FnMut(&UdpSocket) -> io::Result<(T, Left)>,
        ) -> Poll<io::Result<T>> {
            loop {
                ready!(self.0.poll_recv_ready(cx))?;
                match self.0.try_io(Interest::READABLE, || receive(&self.0)) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    received => return Poll::Ready(received.map(|(received, _)| received)),
                }
            }
        }

        pub(crate) fn poll_send<T>(
            &self,
            cx: &mut Context<'_>,
            mut send: impl FnMut(&UdpSocket) -> io::Result<T>,
        ) -> Poll<io::Result<T>> {
            loop {
                ready!(self.0.poll_send_ready(cx))?;
                match self.0.try_io(Interest::WRITABLE, || send(&self.0)) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    sent => return Poll::Ready(sent),
                }
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::future::poll_fn;
    use std::io;
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::Polled;

    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    #[tokio::test]
    async fn a_full_socket_sends_once_it_has_room() {
        let friend = bound();
        let remote = friend.local_addr().unwrap();
        let socket = Polled::new(bound()).unwrap();
        for refusals in [0, 2] {
            let mut left = refusals;
            let sent = poll_fn(|cx| {
                socket.poll_send(cx, |socket| {
                    if left == 0 {
                        return socket.send_to(b"last", remote);
                    }
                    left -= 1;
                    // When this one has left, the system says that there is room.
                    socket.send_to(b"other", remote)?;
                    Err(io::ErrorKind::WouldBlock.into())
                })
            });
            let sent = tokio::time::timeout(Duration::from_secs(10), sent).await.expect("it hears of room");
            assert_eq!(sent.unwrap(), 4);
            assert_eq!(socket.watches_room(), refusals > 0, "after {refusals} refusals");
        }
    }
}
