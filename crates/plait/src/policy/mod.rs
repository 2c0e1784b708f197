//! Policies of an application's own: what a connection asks, and the values in which it is asked and answers.
//!
//! Five decisions of a connection are policies. Each kind is a trait with a factory, the factory sits in
//! [`TransportConfig`](crate::TransportConfig), and a type of the application's own there is as good as one of ours. Each
//! module has its trait, the values that go in and come out, and an example that can be copied.
//!
//! | module | decides | set by |
//! |---|---|---|
//! | [`scheduler`] | which path carries the next packet | [`scheduler`](crate::TransportConfig::scheduler) |
//! | [`congestion_controller`] | how much a path has in flight, and how fast it leaves | [`congestion_controller_factory`](crate::TransportConfig::congestion_controller_factory), [`multipath_controller`](crate::TransportConfig::multipath_controller) |
//! | [`reinjection`] | what an idle path sends again | [`reinjection`](crate::TransportConfig::reinjection) |
//! | [`ack_route`] | which path carries the acks of a path | [`ack_route`](crate::TransportConfig::ack_route) |
//! | [`path_policy`] | which paths are opened and ended | [`path_policy`](crate::TransportConfig::path_policy) |
//!
//! A policy is asked while the connection is locked: it must not block. It gets the time as an argument and its own
//! [`Random`] where it may draw, so that the same type runs in the simulator (`plait_cli::sim_main`) and gives the same
//! result each time.

pub mod ack_route;
pub mod congestion_controller;
pub mod path_policy;
pub mod reinjection;
pub mod scheduler;

pub use plait_base::{Instant, Random};
