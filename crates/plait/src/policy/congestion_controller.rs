//! Congestion controllers: how many bytes each path has in flight, and how fast they leave.
//!
//! A [`CongestionController`] belongs to one path. It is told of acks and losses in sums and answers with a window, and with
//! a pacing rate if it has one. One that is coupled reads what the other paths of its connection publish in
//! [`SharedPathMetrics`]. The connection keeps the recovery period (RFC 9002 7.3.2): the controller hears of one loss in
//! each.
//!
//! ```
//! # mod support { include!("../../doc/pair.in"); }
//! # use support::*;
//! use std::sync::Arc;
//!
//! use plait::PathId;
//! use plait::policy::Instant;
//! use plait::policy::congestion_controller::{
//!     Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, Limit, NO_THRESHOLD, SharedPathMetrics,
//!     initial_window, minimum_window,
//! };
//!
//! /// Adds a datagram each round trip and halves at a loss, as RFC 5681 does. Sizes are bytes.
//! #[derive(Debug)]
//! struct Aimd {
//!     window: u64,
//!     ssthresh: u64,
//!     mss: u64,
//! }
//!
//! impl CongestionController for Aimd {
//!     fn name(&self) -> &'static str {
//!         "aimd"
//!     }
//!
//!     fn window(&self) -> u64 {
//!         self.window
//!     }
//!
//!     fn ssthresh(&self) -> u64 {
//!         self.ssthresh
//!     }
//!
//!     fn on_acked(&mut self, ack: &Acked, _shared: &SharedPathMetrics) {
//!         // RFC 9002 7.8: a window that was not used does not grow.
//!         if ack.limit == Limit::Window {
//!             let slow_start = self.window < self.ssthresh;
//!             self.window += if slow_start { ack.bytes } else { self.mss * ack.bytes / self.window };
//!         }
//!     }
//!
//!     fn on_congestion(&mut self, event: &Congestion, _shared: &SharedPathMetrics) {
//!         let least = minimum_window(self.mss);
//!         match event.kind {
//!             CongestionKind::Loss | CongestionKind::Ecn => {
//!                 self.window = (self.window / 2).max(least);
//!                 self.ssthresh = self.window;
//!             }
//!             CongestionKind::Persistent => self.window = least,
//!         }
//!     }
//!
//!     fn on_max_datagram_bytes(&mut self, mss: u64) {
//!         self.mss = mss;
//!         self.window = self.window.max(minimum_window(mss));
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct AimdFactory;
//!
//! impl ControllerFactory for AimdFactory {
//!     fn name(&self) -> &'static str {
//!         "aimd"
//!     }
//!
//!     fn build(&self, _path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
//!         Box::new(Aimd { window: initial_window(mss), ssthresh: NO_THRESHOLD, mss })
//!     }
//! }
//!
//! # run(async {
//! let (server_config, mut client_config) = configs();
//! let mut transport = plait::TransportConfig::default();
//! // The second setting is the controller where the peer speaks multipath; none keeps the first.
//! transport.congestion_controller_factory(Arc::new(AimdFactory)).multipath_controller(None);
//! client_config.transport_config(Arc::new(transport));
//!
//! let (client, server) = pair_of(server_config, client_config).await;
//! assert_eq!(client.policies().congestion, "aimd");
//! let mut send = client.open_uni().await?;
//! send.write_all(&[7; 300_000]).await?;
//! send.finish()?;
//! assert_eq!(server.accept_uni().await?.read_to_end(300_000).await?.len(), 300_000);
//! # Ok(())
//! # });
//! ```

pub use plait_base::shared_metrics::{Cut, PathMetrics, SharedPathMetrics};
pub use plait_congestion::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, HomeSample, Limit, Lost, NO_THRESHOLD,
    RateSample, RttSample, initial_window, minimum_window,
};
