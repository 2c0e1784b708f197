//! Schedulers: which path carries the next packet.
//!
//! A [`Scheduler`] sees one [`PathView`] for each path and the [`Demand`], what waits to be sent, and gives one
//! [`Decision`]. It decides for a packet at a time; what goes into the packet is not its business.
//! [`eligible`] and [`candidates()`] leave out the paths that must not carry data now: closed ones, those without a validated
//! address, and backups while a better path works.
//!
//! ```
//! # mod support { include!("../../doc/pair.in"); }
//! # use support::*;
//! use std::sync::Arc;
//!
//! use plait::policy::Random;
//! use plait::policy::scheduler::{
//!     Decision, Demand, PathView, Scheduler, SchedulerFactory, WaitReason, candidates, eligible,
//! };
//!
//! /// Sends each packet on the path with the most room in its congestion window.
//! #[derive(Debug)]
//! struct Roomiest;
//!
//! impl Scheduler for Roomiest {
//!     fn name(&self) -> &'static str {
//!         "roomiest"
//!     }
//!
//!     fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
//!         let room = |path: &&PathView| path.window_bytes.saturating_sub(path.in_flight_bytes);
//!         match candidates(paths).max_by_key(room) {
//!             Some(path) => Decision::Send(path.id),
//!             None if eligible(paths).next().is_some() => Decision::Wait(WaitReason::Busy),
//!             None => Decision::Wait(WaitReason::NoPath),
//!         }
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct RoomiestFactory;
//!
//! impl SchedulerFactory for RoomiestFactory {
//!     fn name(&self) -> &'static str {
//!         "roomiest"
//!     }
//!
//!     fn build(&self, _random: Random) -> Box<dyn Scheduler> {
//!         Box::new(Roomiest)
//!     }
//! }
//!
//! # run(async {
//! let (server_config, mut client_config) = configs();
//! let mut transport = plait::TransportConfig::default();
//! transport.scheduler(Arc::new(RoomiestFactory));
//! client_config.transport_config(Arc::new(transport));
//!
//! let (client, server) = pair_of(server_config, client_config).await;
//! assert_eq!(client.policies().scheduler, "roomiest");
//! let second: std::net::IpAddr = "127.0.0.2".parse()?;
//! client.open_path((second, client.remote_address())).await?;
//! let mut send = client.open_uni().await?;
//! send.write_all(&[7; 300_000]).await?;
//! send.finish()?;
//! assert_eq!(server.accept_uni().await?.read_to_end(300_000).await?.len(), 300_000);
//! # Ok(())
//! # });
//! ```

pub use plait_schedule::{
    Copies, Decision, Delivery, Demand, DemandKind, PathView, PeerAdvice, RecentRtt, Room, Scheduler, SchedulerFactory,
    WaitReason, candidates, eligible, fastest, fastest_with_room,
};
