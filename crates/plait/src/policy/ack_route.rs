//! Ack routes: which path carries the acks of a path (RFC 10069 3.1: any open path may).
//!
//! An [`AckRoute`] sees one [`AckCarrier`] for each path that could carry an ack now, and chooses any number of them; a path
//! that it does not see counts as not chosen. None chosen means that the ack waits for a path that will do. It does not see
//! paths that were silent for a probe time-out longer than the one whose acks are to go, unless no other path could carry them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use plait::policy::Instant;
//! use plait::policy::ack_route::{AckCarrier, AckPaths, AckRoute, AckRouteFactory};
//! use plait::{PathId, PathState};
//!
//! /// Sends all acks on the path with the lowest id that works: the path that the connection began on, while it lives.
//! #[derive(Debug)]
//! struct Eldest;
//!
//! impl AckRoute for Eldest {
//!     fn name(&self) -> &'static str {
//!         "eldest"
//!     }
//!
//!     fn choose(&mut self, _now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
//!         let works = |carrier: &&AckCarrier| matches!(carrier.state, PathState::Active | PathState::Backup);
//!         let eldest = carriers.iter().filter(works).map(|carrier| carrier.id).min();
//!         // Where no path is known to work, the one that brought the data is as good as any, if it can carry acks now.
//!         let own = || carriers.iter().map(|carrier| carrier.id).find(|id| *id == of);
//!         eldest.or_else(own).into_iter().collect()
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct EldestFactory;
//!
//! impl AckRouteFactory for EldestFactory {
//!     fn name(&self) -> &'static str {
//!         "eldest"
//!     }
//!
//!     fn build(&self) -> Box<dyn AckRoute> {
//!         Box::new(Eldest)
//!     }
//! }
//!
//! let mut transport = plait::TransportConfig::default();
//! transport.ack_route(Arc::new(EldestFactory));
//!
//! // What it is asked, and what it answers:
//! let carrier = |id, state| AckCarrier {
//!     id: PathId(id),
//!     state,
//!     is_paired: true,
//!     rtt: None,
//!     rtt_least: None,
//!     rtt_latest: None,
//!     rtt_at: None,
//!     rtt_via: None,
//!     heard_at: None,
//!     asked_at: None,
//!     sent_bytes: 0,
//!     received_bytes: 0,
//! };
//! let carriers = [carrier(0, PathState::Failed), carrier(1, PathState::Active), carrier(2, PathState::Active)];
//! assert_eq!(EldestFactory.build().choose(Instant::ZERO, PathId(2), &carriers)[..], [PathId(1)]);
//! assert!(EldestFactory.build().choose(Instant::ZERO, PathId(2), &carriers[..1]).is_empty());
//! ```

pub use plait_path::policy::ack_route::{AckCarrier, AckPaths, AckRoute, AckRouteFactory};
