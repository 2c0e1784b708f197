//! What a socket is made from.

use std::net::SocketAddr;

use crate::net::{BindError, Socket, SocketOptions, Wildcard};

/// A socket to be: an address, perhaps with the interface that has it, or a socket that the application made.
///
/// ```
/// let by_address = plait::Bind::from("127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap());
/// let by_interface = plait::Bind::address("10.0.1.2:0".parse().unwrap()).interface("wlan0");
/// ```
#[derive(Debug)]
pub struct Bind {
    what: What,
    options: SocketOptions,
}

#[derive(Debug)]
enum What {
    Address(SocketAddr),
    Socket(std::net::UdpSocket),
}

impl Bind {
    /// Binds this address; port 0 lets the system choose one.
    pub fn address(address: SocketAddr) -> Self {
        Self { what: What::Address(address), options: SocketOptions::default() }
    }

    /// Takes over a bound socket.
    pub fn socket(socket: std::net::UdpSocket) -> Self {
        Self { what: What::Socket(socket), options: SocketOptions::default() }
    }

    /// Binds to the interface as well, where the system permits it: its packets leave by that interface whatever the
    /// routing table prefers.
    #[must_use]
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.options.interface = Some(name.into());
        self
    }

    /// Takes IPv6 alone where the address is `[::]`, so that another socket may have the port for IPv4.
    #[must_use]
    pub fn only_v6(mut self) -> Self {
        self.options.wildcard = Wildcard::OnlyV6;
        self
    }

    /// Kernel buffers to ask for, bytes; the system may give less.
    #[must_use]
    pub fn buffers(mut self, send_bytes: usize, receive_bytes: usize) -> Self {
        self.options.send_buffer_bytes = send_bytes;
        self.options.receive_buffer_bytes = receive_bytes;
        self
    }

    pub(crate) fn open(self) -> Result<Socket, BindError> {
        match self.what {
            What::Address(address) => Socket::bind(address, &self.options),
            What::Socket(socket) => adopted(socket, &self.options),
        }
    }

    /// So many sockets of this address where the system deals what comes for it to all of them, each made within the runtime that
    /// `enter` enters for its number. One where it does not, and where the application made the socket.
    pub(crate) fn open_group<Entered>(
        self,
        count: usize,
        enter: impl Fn(usize) -> Entered,
    ) -> Result<Vec<Socket>, BindError> {
        let group = match self.what {
            What::Address(address) => Socket::bind_group(address, &self.options, count)?,
            What::Socket(socket) => vec![socket],
        };
        let adopt = |(place, socket)| {
            let _runtime = enter(place);
            adopted(socket, &self.options)
        };
        group.into_iter().enumerate().map(adopt).collect()
    }
}

fn adopted(socket: std::net::UdpSocket, options: &SocketOptions) -> Result<Socket, BindError> {
    let address = socket.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
    Socket::from_std(socket, options).map_err(|e| BindError::Other(address, e))
}

impl From<SocketAddr> for Bind {
    fn from(address: SocketAddr) -> Self {
        Self::address(address)
    }
}

impl From<std::net::UdpSocket> for Bind {
    fn from(socket: std::net::UdpSocket) -> Self {
        Self::socket(socket)
    }
}
