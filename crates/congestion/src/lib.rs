//! Congestion control: how many bytes each path may have in flight, and how fast they leave.
//!
//! A controller is told facts ([`Acked`], [`Congestion`]) and answers with [`CongestionController::window`]; it never
//! sees a packet, a path's addresses or a clock. Coupled controllers read their siblings' `PathMetrics`. Every controller is one
//! file and one line in `registry.rs`.
//!
//! ```
//! use plait_base::{Instant, PathId};
//! let controller = plait_congestion::by_name("cubic").unwrap().build(PathId::ZERO, Instant::ZERO, 1200);
//! assert_eq!(controller.window(), 12_000); // ten datagrams
//! ```

mod auto;
mod balia;
mod bbr;
mod controller;
mod coupled;
mod coupled_cubic;
mod cubic;
#[cfg(test)]
mod facts;
mod hystart;
mod hystart_linux;
mod lia;
mod linked_start;
mod math;
mod newreno;
mod olia;
mod onset;
mod pacer;
mod registry;
mod shared_queue;
mod window;

pub use auto::AutoFactory;
pub use controller::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, HomeSample, Limit, Lost, NO_THRESHOLD,
    RateSample, RttSample,
};
pub use cubic::{Cubic, CubicFactory};
pub use newreno::NewRenoFactory;
pub use pacer::{Company, Pace, Pacer};
pub use registry::{DEFAULT, MULTIPATH_DEFAULT, NAMES, by_name};
pub use window::{SlowStart, initial_window, minimum_window};
