//! Reinjection: whether data on its way on one path is sent again on another that has nothing better to carry.
//!
//! A [`Reinjection`] is asked only when a path stands open and no new data may leave, so a copy never takes the place of
//! new data. It sees the idle path, the busy one and a packet that is [`Outstanding`] there, and gives a [`Verdict`]. Every
//! packet is copied at most once, and copies are not copied again.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use plait::PathId;
//! use plait::policy::Instant;
//! use plait::policy::reinjection::{Occasion, Outstanding, PathView, Reinjection, ReinjectionFactory, Verdict};
//!
//! /// Sends again what has been under way for twice the round trip of the idle path.
//! #[derive(Debug)]
//! struct Impatient;
//!
//! impl Reinjection for Impatient {
//!     fn name(&self) -> &'static str {
//!         "impatient"
//!     }
//!
//!     fn judge(
//!         &mut self,
//!         idle: &PathView,
//!         _busy: &PathView,
//!         packet: &Outstanding,
//!         _occasion: Occasion,
//!         now: Instant,
//!     ) -> Verdict {
//!         let Some(rtt) = idle.rtt else { return Verdict::No };
//!         let due = packet.sent_at + rtt * 2;
//!         if now >= due { Verdict::Copy } else { Verdict::Later(due) }
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct ImpatientFactory;
//!
//! impl ReinjectionFactory for ImpatientFactory {
//!     fn name(&self) -> &'static str {
//!         "impatient"
//!     }
//!
//!     fn build(&self) -> Box<dyn Reinjection> {
//!         Box::new(Impatient)
//!     }
//! }
//!
//! let mut transport = plait::TransportConfig::default();
//! transport.reinjection(Arc::new(ImpatientFactory));
//!
//! // What it is asked, and what it answers:
//! let idle = PathView { rtt: Some(Duration::from_millis(10)), ..PathView::new(PathId(0)) };
//! let busy = PathView::new(PathId(1));
//! let packet = Outstanding { sent_at: Instant::ZERO, bytes: 1200, ahead_bytes: 1200 };
//! let at = |ms| Instant::ZERO + Duration::from_millis(ms);
//! let mut policy = ImpatientFactory.build();
//! assert_eq!(policy.judge(&idle, &busy, &packet, Occasion::Drained, at(5)), Verdict::Later(at(20)));
//! assert_eq!(policy.judge(&idle, &busy, &packet, Occasion::Drained, at(20)), Verdict::Copy);
//! ```

pub use plait_schedule::PathView;
pub use plait_schedule::reinject::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict, next_round_trip};
