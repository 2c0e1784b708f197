//! Paths: addresses and their validation, largest datagrams, connection ids, advice, life and death of path
//! ids, and the policies about them.
//!
//! `path` knows no stream, no scheduler and no connection. A [`Path`] is a send flow and a receive flow of one
//! id on one route; the [`PathTable`] holds every id, used or not, and speaks the frames of RFC 10069.

pub mod ack_route;
pub mod cids;
mod delivery;
pub mod mtu;
pub mod path;
pub mod policy;
pub mod route;
pub mod spin;
pub mod stats;
pub mod status;
pub mod table;

pub use ack_route::{AckCarrier, AckRoute, AckRouteFactory};
pub use cids::{CidSource, IssuedCid, LocalCids, RemoteCids};
pub use mtu::{Mtu, MtuConfig, MtuSearch};
pub use path::{Health, Path};
pub use policy::{PathPolicy, PathPolicyFactory};
pub use route::{LegName, Pad, Route, RouteEvent, Validation, ValidationTimes};
pub use spin::Spin;
pub use stats::{PathCounters, PathStats, PathTotals};
pub use status::{PathStatus, Status};
pub use table::{PathTable, PeerLimits, TableConfig, TableEvent};
