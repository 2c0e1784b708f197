//! Packet scheduling: which path carries the next packet.
//!
//! A scheduler sees read-only [`PathView`]s and a [`Demand`] and gives one [`Decision`]; it never sees packets, streams
//! or clocks. Every scheduler is one file and one line in `registry.rs`.
//!
//! ```
//! use plait_base::{Instant, PathId, Random};
//! use plait_schedule::{Backlog, Decision, Demand, DemandKind, PathView, by_name};
//! let mut scheduler = by_name("minrtt").unwrap().build(Random::from_u64(1));
//! let demand = Demand {
//!     now: Instant::ZERO,
//!     kind: DemandKind::Stream,
//!     unsent_bytes: 1000,
//!     send_credit_bytes: 9000,
//!     backlog: Backlog::Growing,
//! };
//! assert_eq!(scheduler.pick(&[PathView::new(PathId(3))], &demand), Decision::Send(PathId(3)));
//! ```

mod backup;
mod blest;
mod candidates;
mod choice;
mod decision;
mod ecf;
mod minrtt;
mod patience;
mod peekaboo;
mod quota;
mod redundant;
mod registry;
pub mod reinject;
mod round_robin;
mod scarce;
mod scheduler;
mod view;
mod weighted;
mod why_idle;

pub use candidates::{Tier, candidates, eligible, fastest, fastest_with_room};
pub use decision::{Copies, Decision, WaitReason};
pub use minrtt::{MinRtt, MinRttFactory};
pub use registry::{DEFAULT, NAMES, by_name};
pub use scheduler::{Delivery, Scheduler, SchedulerFactory};
pub use view::{Backlog, Demand, DemandKind, PathView, PeerAdvice, RecentRtt, Room};
pub use weighted::{Weight, WeightedFactory};
pub use why_idle::{WhyIdle, why_idle};
