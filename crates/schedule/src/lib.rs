//! Packet scheduling: which path carries the next packet.
//!
//! A scheduler sees read-only [`PathView`]s and a [`Demand`] and gives one [`Decision`]; it never sees packets, streams
//! or clocks. Every scheduler is one file and one line in [`registry`].

pub mod backup;
pub mod blest;
pub mod candidates;
mod choice;
pub mod decision;
pub mod ecf;
pub mod minrtt;
pub mod peekaboo;
mod quota;
pub mod redundant;
pub mod registry;
pub mod round_robin;
pub mod scheduler;
pub mod view;
pub mod weighted;
pub mod why_idle;

pub use candidates::{Tier, candidates, eligible, fastest, fastest_open};
pub use decision::{Copies, Decision, WaitReason};
pub use registry::{NAMES, by_name};
pub use scheduler::{Delivery, Scheduler, SchedulerFactory};
pub use view::{Demand, DemandKind, PathView, PeerAdvice, Room};
pub use why_idle::{WhyIdle, why_idle};
