//! What goes into the engine and comes out of it: datagrams, and what a connection tells its endpoint.

use std::net::SocketAddr;

use bytes::BytesMut;
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, PathId, ResetToken};

/// Names a connection at its endpoint. Given out again after the connection has drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub u32);

impl ConnectionHandle {
    /// Its place in a list of the endpoint's connections.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One datagram, or a train of datagrams of one size, to be sent; its bytes lie in the buffer that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// From where to where. An unspecified local IP leaves the choice to the operating system.
    pub tuple: FourTuple,
    /// The mark of the IP header.
    pub ecn: Option<Ecn>,
    /// Bytes in the buffer.
    pub size: usize,
    /// Bytes of each datagram of a train but the last, which may be shorter; none for a single datagram.
    pub segment_size: Option<usize>,
    /// Whether another may follow at the same moment.
    pub more: More,
}

/// Whether anything may follow a datagram at the moment at which it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Only the next poll shows.
    Possible,
    /// The next poll would give nothing, unless something else happens before it.
    Nothing,
}

impl Transmit {
    /// A single unmarked datagram.
    pub fn single(tuple: FourTuple, size: usize) -> Self {
        Self { tuple, ecn: None, size, segment_size: None, more: More::Possible }
    }
}

/// What a datagram is to the connection that gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Packets with a connection id of ours.
    Packets,
    /// No packet: this connection's client proved the address that it came from, by an attempt that it gave up in its favour.
    AddressProven,
    /// No packet of ours, but its end is a stateless reset token of this connection's peer (RFC 9000 10.3.1).
    StatelessReset,
}

/// A received datagram on its way to its connection, or several that came together with one connection id.
#[derive(Debug)]
pub struct Input {
    pub(crate) kind: InputKind,
    /// Path of the first packet's connection id; path 0 for packets without one of ours and for resets.
    pub(crate) path: PathId,
    pub(crate) tuple: FourTuple,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) arrived: Instant,
    pub(crate) data: BytesMut,
    /// Bytes of each datagram but the last, which may be shorter.
    pub(crate) segment_bytes: usize,
}

impl Input {
    /// Word for a connection that its client is proven to receive at `tuple.remote`.
    pub(crate) fn address_proven(at: Instant, tuple: FourTuple) -> Self {
        let (kind, data) = (InputKind::AddressProven, BytesMut::new());
        Self { kind, path: PathId::ZERO, tuple, ecn: None, arrived: at, data, segment_bytes: 0 }
    }

    /// The path that its packets are for, as far as their connection id says: whoever serves that may take it.
    pub fn path(&self) -> PathId {
        self.path
    }

    /// UDP payload of all its datagrams, bytes.
    pub fn size(&self) -> usize {
        self.data.len()
    }

    /// How many datagrams it is, at least 1.
    pub fn datagrams(&self) -> usize {
        self.data.len().div_ceil(self.segment_bytes.max(1)).max(1)
    }
}

/// What a connection tells its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The peer may use this connection id from now on; its packets belong to this path.
    Register {
        /// The id, of the endpoint's length.
        cid: ConnectionId,
        /// The path id that its packets belong to.
        path: PathId,
    },
    /// Packets with this id are no longer ours.
    Retire {
        /// The id to forget.
        cid: ConnectionId,
    },
    /// The peer at `remote` would end the connection with this token.
    ResetToken {
        /// Address from which the reset would come.
        remote: SocketAddr,
        /// The stateless reset token of the id in use there (RFC 9000 10.3).
        token: ResetToken,
    },
    /// The id of this token is no longer used towards `remote`.
    ForgetToken {
        /// As in `ResetToken`.
        remote: SocketAddr,
        /// As in `ResetToken`.
        token: ResetToken,
    },
    /// A client that is proven to receive at `tuple.remote` closed in favour of another connection of this endpoint, if it is one.
    AddressProven {
        /// A connection id of ours that leads to that one.
        successor: ConnectionId,
        /// Between which addresses the client proved its own.
        tuple: FourTuple,
        /// When it closed.
        at: Instant,
    },
    /// The handshake is complete and the peer's address validated: the connection no longer counts as pressure that
    /// makes a server ask others for a Retry. To be sent once by every server connection.
    Established,
    /// The peer closed: nothing leaves any more, and packets of the peer may come until then. A runtime may drop the connection
    /// at once, if it tells the endpoint so by [`let_go`](crate::Endpoint::let_go); else it waits for `Drained`.
    Draining {
        /// When the last packet of the peer must have come.
        until: Instant,
    },
    /// The connection is over; the endpoint forgets it and may give its handle away.
    Drained,
}
