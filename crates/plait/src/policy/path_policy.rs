//! Path policies: which paths a connection opens and ends by itself.
//!
//! A [`PathPolicy`] is shown all [`Facts`] whenever one changes: addresses of both ends, paths that are open, and what the
//! limits allow. It answers with a list of [`Wish`]es. A wish that cannot be granted is reported by
//! [`PathPolicy::on_ended`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use plait::policy::Instant;
//! use plait::policy::path_policy::{Facts, Opener, PathPolicy, PathPolicyFactory, Wish};
//! use plait::{FourTuple, PathStatus};
//!
//! /// Opens a backup path from each further address of ours to the address that the peer began with.
//! #[derive(Debug)]
//! struct Spares;
//!
//! impl PathPolicy for Spares {
//!     fn name(&self) -> &'static str {
//!         "spares"
//!     }
//!
//!     fn decide(&mut self, facts: &Facts<'_>, wishes: &mut Vec<Wish>) {
//!         // RFC 10069 3.1: the client opens paths.
//!         let (Opener::Us, Some(&remote)) = (facts.opener, facts.peer.first()) else { return };
//!         let is_new = |local| facts.paths.iter().all(|path| path.tuple.local != local);
//!         let further = facts.local.iter().filter(|local| is_new(**local) && local.is_ipv4() == remote.is_ipv4());
//!         for &local in further.take(facts.room.min(facts.validations)) {
//!             wishes.push(Wish::Open { tuple: FourTuple { local, remote }, status: PathStatus::Backup });
//!         }
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct SparesFactory;
//!
//! impl PathPolicyFactory for SparesFactory {
//!     fn name(&self) -> &'static str {
//!         "spares"
//!     }
//!
//!     fn build(&self) -> Box<dyn PathPolicy> {
//!         Box::new(Spares)
//!     }
//! }
//!
//! let mut transport = plait::TransportConfig::default();
//! transport.path_policy(Arc::new(SparesFactory));
//!
//! // What it is asked, and what it answers:
//! let local = ["192.0.2.1:1000".parse().unwrap(), "198.51.100.1:1000".parse().unwrap()];
//! let peer = ["203.0.113.1:443".parse().unwrap()];
//! let (now, paths, opener) = (Instant::ZERO, &[][..], Opener::Us);
//! let facts = Facts { now, opener, local: &local, peer: &peer, paths, room: 7, validations: 1 };
//! let mut wishes = Vec::new();
//! SparesFactory.build().decide(&facts, &mut wishes);
//! let tuple = FourTuple { local: local[0], remote: peer[0] };
//! assert_eq!(wishes, [Wish::Open { tuple, status: PathStatus::Backup }]);
//! ```

pub use plait_path::policy::{AddressUse, Facts, Opener, PathFact, PathPolicy, PathPolicyFactory, Wish};
