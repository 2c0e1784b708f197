//! One direction of a network link as a pure model of rate, delay, queue, loss and disorder.
//!
//! A [`Link`] holds no clock, no socket and no payload: the caller says when a datagram of how many bytes
//! enters, and the link says when and how it leaves. The same model therefore serves a simulator in virtual
//! time and a relay in real time. It knows nothing of QUIC.
//!
//! ```
//! use std::time::Duration;
//! use plait_base::{Instant, Random};
//! use plait_netsim::link::{Link, LinkConfig, QueueLimit, Verdict};
//!
//! let config = LinkConfig::new(12_000_000, Duration::from_millis(10)).queue(QueueLimit::time(Duration::from_millis(50)));
//! let mut link = Link::new(config, Random::from_u64(1));
//! let Verdict::Forward(delivery) = link.offer(Instant::ZERO, 1500, None) else { panic!("dropped") };
//! assert_eq!(delivery.departure, Instant::from_nanos(1_000_000)); // 12,000 bits at 12 Mbit/s
//! assert_eq!(delivery.first.at, Instant::from_nanos(11_000_000));
//! ```

mod aqm;
mod config;
mod conveyor;
mod live;
mod loss;
mod one_way;
mod pipe;
mod planned;
mod queued;
mod rate;
mod stats;
mod trace;
mod verdict;

pub use aqm::{CoDelConfig, FqCoDelConfig, RedConfig};
pub use config::{Aqm, ConfigError, Jitter, LinkConfig, LinkState, LossPlace, Order, QueueLimit, Reorder, Service};
pub use conveyor::{Conveyed, Conveyor};
pub use loss::Loss;
pub use one_way::Link;
pub use rate::Rate;
pub use stats::LinkStats;
pub use trace::{Trace, TraceError};
pub use verdict::{Arrival, Delivery, DropCause, Integrity, Outcome, Release, Ticket, Verdict};
