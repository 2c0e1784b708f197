//! Words every floor above shares: identifiers, time, randomness, ranges, errors and limits.
//!
//! `base` knows no packet, no stream and no path; it only names them.

mod errors;
mod ids;
pub mod limits;
pub mod observe;
mod policies;
mod random;
mod ranges;
pub mod shared_metrics;
pub mod time;
pub mod units;

pub use errors::{CloseCode, TransportError, Violation};
pub use ids::{ConnectionId, Dir, FourTuple, PathId, ResetToken, Side, Space, StreamId};
pub use random::Random;
pub use ranges::RangeSet;
pub use time::Instant;
pub use units::{Ecn, EcnCounts};
