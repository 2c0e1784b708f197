//! A UDP socket between a quiche connection and the network.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::net::UdpSocket;

/// Bytes of the largest datagram taken.
pub(crate) const DATAGRAM_ROOM: usize = 1500;

/// A bound socket.
pub(crate) struct Link {
    socket: UdpSocket,
    pub(crate) local: SocketAddr,
}

impl Link {
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address).await?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local })
    }

    /// Waits for a datagram, no longer than this.
    pub(crate) async fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let Some(timeout) = timeout else { return Ok(self.socket.readable().await?) };
        if let Ok(ready) = tokio::time::timeout(timeout, self.socket.readable()).await {
            ready?;
        }
        Ok(())
    }

    /// The next datagram that is here, and from where.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
        match self.socket.try_recv_from(buffer) {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn send(&self, datagram: &[u8], to: SocketAddr) -> Result<()> {
        self.socket.send_to(datagram, to).await?;
        Ok(())
    }

    /// Sends all that the connection has to send.
    pub(crate) async fn flush(&self, connection: &mut quiche::Connection) -> Result<()> {
        let mut packet = [0; DATAGRAM_ROOM];
        loop {
            match connection.send(&mut packet) {
                Ok((len, info)) => self.send(&packet[..len], info.to).await?,
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
