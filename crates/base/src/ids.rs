//! Identifiers that travel between floors: paths, connection ids, streams, spaces and addresses.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::limits::MAX_CID_LEN;

/// Which end of a connection this endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that sent the first Initial packet.
    Client,
    /// The end that answered it.
    Server,
}

impl Side {
    /// The other end.
    #[inline]
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// True on the client.
    #[inline]
    pub fn is_client(self) -> bool {
        self == Self::Client
    }

    /// True on the server.
    #[inline]
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

/// Whether a stream carries data both ways or one way (RFC 9000 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// Both ends send.
    Bi = 0,
    /// Only the initiator sends.
    Uni = 1,
}

impl Dir {
    /// Both directions, for iteration.
    pub const ALL: [Self; 2] = [Self::Bi, Self::Uni];
}

/// A 62-bit stream identifier; its low two bits name initiator and direction (RFC 9000 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The `index`-th stream that `initiator` opens in direction `dir`.
    #[inline]
    pub fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        Self(index << 2 | (dir as u64) << 1 | u64::from(initiator.is_server()))
    }

    /// Who opened the stream.
    #[inline]
    pub fn initiator(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Whether the stream is bidirectional.
    #[inline]
    pub fn dir(self) -> Dir {
        if self.0 & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// Position among the streams of the same initiator and direction, from 0.
    #[inline]
    pub fn index(self) -> u64 {
        self.0 >> 2
    }

    /// True where `side` sends on this stream.
    #[inline]
    pub fn sends(self, side: Side) -> bool {
        self.dir() == Dir::Bi || self.initiator() == side
    }

    /// True where `side` receives on this stream.
    #[inline]
    pub fn receives(self, side: Side) -> bool {
        self.dir() == Dir::Bi || self.initiator() != side
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names one path of a connection: one packet number space each way (RFC 10069 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

impl PathId {
    /// The path of the handshake.
    pub const ZERO: Self = Self(0);
    /// The largest id that the extension allows, 2^32 - 1.
    pub const MAX: Self = Self(u32::MAX);

    /// The next id, or none at the end of the space.
    #[inline]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// Its bit in a set of 64 paths. Ids that are 64 apart share a bit; a connection has far fewer paths at a time, with
    /// ids close to each other.
    #[inline]
    pub fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A connection id of 0 to 20 bytes, kept inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; MAX_CID_LEN],
}

impl ConnectionId {
    /// The zero-length id.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; MAX_CID_LEN] };

    /// Copies `bytes`; none when there are more than 20.
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_CID_LEN {
            return None;
        }
        let mut id = Self::EMPTY;
        id.len = bytes.len() as u8;
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// Length in bytes, 0 to 20.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// True for the zero-length id.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl std::ops::Deref for ConnectionId {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A stateless reset token (RFC 9000 10.3); compare with [`ResetToken::matches`].
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
pub struct ResetToken(pub [u8; 16]);

impl ResetToken {
    /// Compares in constant time (RFC 9000 10.3.1).
    #[inline]
    pub fn matches(&self, other: &[u8]) -> bool {
        other.len() == 16 && self.0.iter().zip(other).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
    }
}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

/// A packet number space (RFC 9000 12.3); 0-RTT and 1-RTT share `Data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// The space of Initial packets.
    Initial = 0,
    /// The space of Handshake packets.
    Handshake = 1,
    /// The space of 0-RTT and 1-RTT packets, one for each path.
    Data = 2,
}

impl Space {
    /// All spaces, in the order in which a connection uses them.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// The addresses at both ends of a datagram, as this endpoint sees them.
///
/// A local IP of `0.0.0.0` or `::` means that the operating system chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourTuple {
    /// The address of this endpoint.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl FourTuple {
    /// True when a datagram that arrived on `other` belongs to this tuple: same remote, and the same
    /// local address unless ours is not known yet.
    // One comparison in the program for all its callers: it is long, and where caches are cold code costs more than a call.
    #[inline(never)]
    pub fn admits(&self, other: &Self) -> bool {
        self.remote == other.remote
            && self.local.port() == other.local.port()
            && (self.local.ip() == other.local.ip() || self.local.ip().is_unspecified())
    }

    /// True when both name the same hosts and only ports differ (RFC 9000 9.4).
    #[inline]
    pub fn same_hosts(&self, other: &Self) -> bool {
        let known = |ip: IpAddr| !ip.is_unspecified();
        self.remote.ip() == other.remote.ip()
            && (self.local.ip() == other.local.ip() || !known(self.local.ip()) || !known(other.local.ip()))
    }
}

impl fmt::Display for FourTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.local, self.remote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_id_bits() {
        // RFC 9000 2.1, table 1
        assert_eq!(StreamId::new(Side::Client, Dir::Bi, 0).0, 0);
        assert_eq!(StreamId::new(Side::Server, Dir::Bi, 0).0, 1);
        assert_eq!(StreamId::new(Side::Client, Dir::Uni, 0).0, 2);
        assert_eq!(StreamId::new(Side::Server, Dir::Uni, 3).0, 15);
        let id = StreamId(15);
        assert_eq!((id.initiator(), id.dir(), id.index()), (Side::Server, Dir::Uni, 3));
        assert!(id.sends(Side::Server) && id.receives(Side::Client) && !id.sends(Side::Client));
    }

    #[test]
    fn cid_bounds() {
        // RFC 9000 17.2-2, 17.2-4
        assert!(ConnectionId::new(&[0; 21]).is_none());
        assert_eq!(&*ConnectionId::new(&[1, 2]).unwrap(), &[1, 2]);
    }

    #[test]
    fn four_tuple_admits_learned_local() {
        let a = FourTuple { local: "0.0.0.0:1".parse().unwrap(), remote: "9.9.9.9:2".parse().unwrap() };
        let b = FourTuple { local: "1.1.1.1:1".parse().unwrap(), ..a };
        assert!(a.admits(&b) && !b.admits(&a));
    }
}
