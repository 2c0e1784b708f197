//! What is done with a server.

use std::time::Duration;

use bytes::Bytes;

use super::HEAD_BYTES;

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// As much as there is time for.
    Time(Duration),
    /// So many bytes each way, requests or connections.
    Amount(u64),
}

/// Bytes without pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkLoad {
    /// Streams on which we send.
    pub(crate) up: u64,
    /// Streams on which the server sends.
    pub(crate) down: u64,
    pub(crate) extent: Extent,
}

/// Requests, each on a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLoad {
    /// How many are under way at once.
    pub(crate) lanes: u64,
    pub(crate) extent: Extent,
    /// Bytes of each request, head included.
    pub(crate) request_bytes: usize,
    pub(crate) response_bytes: u64,
    /// From the beginning of one to that of the next; none where one waits for the other's end.
    pub(crate) interval: Option<Duration>,
}

impl RequestLoad {
    /// What follows the head of a request.
    pub(crate) fn padding(&self) -> Bytes {
        Bytes::from(vec![0; self.request_bytes.saturating_sub(HEAD_BYTES)])
    }
}

/// Connections that end when they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLoad {
    /// How many are under way at once.
    pub(crate) lanes: u64,
    pub(crate) extent: Extent,
}

/// Datagrams at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DatagramLoad {
    pub(crate) rate_mbps: f64,
    pub(crate) size_bytes: u64,
    pub(crate) time: Duration,
}

/// What is done with a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Workload {
    Bulk(BulkLoad),
    Requests(RequestLoad),
    Connections(ConnectionLoad),
    Datagrams(DatagramLoad),
}

impl Workload {
    /// The name under which it is reported.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bulk(_) => "bulk",
            Self::Requests(_) => "requests",
            Self::Connections(_) => "connections",
            Self::Datagrams(_) => "datagrams",
        }
    }

    /// The time that ends it; none where an amount does.
    pub(crate) fn time(&self) -> Option<Duration> {
        let extent = match self {
            Self::Bulk(BulkLoad { extent, .. })
            | Self::Requests(RequestLoad { extent, .. })
            | Self::Connections(ConnectionLoad { extent, .. }) => *extent,
            Self::Datagrams(DatagramLoad { time, .. }) => Extent::Time(*time),
        };
        match extent {
            Extent::Time(time) => Some(time),
            Extent::Amount(_) => None,
        }
    }

    /// Bytes of both ways, where they are known.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        match self {
            Self::Bulk(BulkLoad { up, down, extent: Extent::Amount(bytes) }) => {
                Some(bytes.saturating_mul(u64::from(*up > 0) + u64::from(*down > 0)))
            }
            _ => None,
        }
    }

    /// True where the server must read nothing large to its end.
    pub(crate) fn suits_null_receiver(&self) -> bool {
        match self {
            Self::Bulk(BulkLoad { up, extent, .. }) => *up == 0 || matches!(extent, Extent::Time(_)),
            Self::Connections(_) => true,
            Self::Requests(_) | Self::Datagrams(_) => false,
        }
    }

    /// Which way the bytes of a bulk load go.
    pub(crate) fn direction(&self) -> Option<&'static str> {
        match self {
            Self::Bulk(BulkLoad { down: 0, .. }) | Self::Datagrams(_) => Some("up"),
            Self::Bulk(BulkLoad { up: 0, .. }) => Some("down"),
            Self::Bulk(_) => Some("both"),
            Self::Requests(_) | Self::Connections(_) => None,
        }
    }
}
