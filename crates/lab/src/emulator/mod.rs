//! The links in real time: one thread that reads what both hosts send, asks the link model and hands over when it says.
//!
//! What is decided is in `fabric`, which has no clock; `rhythm` is the loop with the clock, and `gates` where it reads and
//! writes: devices of two hosts, or the sockets of a relay ([`crate::relay`]). Time counts
//! from the first packet of the transfer, so that events, variation and traces begin with the connection, as in the
//! simulator, and not with the start of a process.

mod boxes;
mod cross;
mod fabric;
mod gates;
mod lateness;
pub(crate) mod packet;
mod parcel;
mod rhythm;
mod way;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use nix::sys::prctl;
use nix::unistd::gettid;
use plait_sim::run::network::Traffic;
use plait_sim::scenario::Scenario;

use crate::clock::ClockPoint;
use crate::error::LabError;
use crate::tool;

pub(crate) use cross::CrossCount;
use fabric::Fabric;
pub(crate) use gates::{Entry, Gates};
pub(crate) use lateness::Histogram;

/// The priority of the loop among real-time threads: above ordinary ones, and those that measure it.
pub(crate) const PRIORITY: u8 = 10;

/// What the loop saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkRecord {
    /// When the first packet of the transfer came from the client, the origin of the scenario's time.
    pub(crate) first: Option<ClockPoint>,
    /// When the client was handed the last packet with more than a few bytes of payload.
    pub(crate) last_payload: Option<ClockPoint>,
    /// Counters of every link, in the order of places.
    pub(crate) traffic: Vec<Traffic>,
    /// What each stream of cross traffic did, in the order of the scenario.
    pub(crate) crossed: Vec<CrossCount>,
    /// How late packets were handed over.
    pub(crate) lateness: Histogram,
    /// Packets that are none of the transfer's, and were not carried.
    pub(crate) strays: u64,
    /// Packets that never came to the loop, or that the other host's kernel did not take.
    pub(crate) refused: u64,
    /// Whether the loop had real-time priority.
    pub(crate) real_time: bool,
}

/// A running loop; it stops when dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<LinkRecord>>,
    first: Arc<OnceLock<ClockPoint>>,
    real_time: bool,
}

impl Emulator {
    /// Starts the loop between these ends of the scenario's paths, which go with it.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start(scenario: &Scenario, seed: u64, gates: impl Gates + Send + 'static) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let fabric = Fabric::new(scenario, seed, gates.public_addresses());
        let first = Arc::new(OnceLock::new());
        let (told, seen, (say, hear)) = (Arc::clone(&stop), Arc::clone(&first), mpsc::channel());
        let work = move || {
            // As exact as the kernel's timers are; where it may not be set they are 50 µs late.
            let _ = prctl::set_timerslack(1);
            let _ = say.send(gettid());
            rhythm::run(fabric, gates, &seen, &told)
        };
        let thread = std::thread::Builder::new().name("lab-links".to_owned()).spawn(work);
        let thread = thread.map_err(LabError::io("a thread for the links"))?;
        let real_time = hear.recv().is_ok_and(|id| tool::raise(id, PRIORITY));
        Ok(Self { stop, thread: Some(thread), first, real_time })
    }

    /// When the first packet of the transfer came, if it has.
    pub(crate) fn first(&self) -> Option<ClockPoint> {
        self.first.get().copied()
    }

    /// Stops it; gives what it saw.
    pub(crate) fn stop(mut self) -> LinkRecord {
        self.stop.store(true, Ordering::Relaxed);
        let record = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        LinkRecord { real_time: self.real_time, ..record }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has nothing left to give back.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use nix::poll::PollFd;
    use plait_netsim::InterfaceState;
    use plait_sim::scenario::{Direction, Traces, Tree};

    use super::*;

    /// Ends by which nothing comes; whoever shares the value knows when they are gone.
    struct Silent(#[allow(dead_code, reason = "counted where it is shared")] Arc<()>);

    impl Gates for Silent {
        fn waits(&self) -> Vec<PollFd<'_>> {
            Vec::new()
        }

        fn sources(&self) -> usize {
            0
        }

        fn receive(&mut self, _source: usize, _buffer: &mut [u8]) -> Option<Entry> {
            None
        }

        fn deliver(&mut self, _path: usize, _direction: Direction, _packet: &[u8]) -> bool {
            false
        }

        fn interface(&mut self, _path: usize, _state: InterfaceState) {}

        fn public_addresses(&self) -> fn(usize, u8) -> IpAddr {
            |_, _| IpAddr::V4(Ipv4Addr::LOCALHOST)
        }

        fn lost(&self) -> u64 {
            0
        }
    }

    #[test]
    fn the_ends_of_paths_go_with_the_loop() {
        let text = "[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"download\"\n";
        let scenario = Scenario::read(&Tree::parse("t", text).unwrap(), &Traces::default()).unwrap();
        let ends = Arc::new(());
        // Devices that stay until the process ends take the kernel longer each than a whole run takes to stop.
        drop(Emulator::start(&scenario, 1, Silent(Arc::clone(&ends))).unwrap());
        assert_eq!(Arc::strong_count(&ends), 1);
        let record = Emulator::start(&scenario, 1, Silent(Arc::clone(&ends))).unwrap().stop();
        assert_eq!((Arc::strong_count(&ends), record.first), (1, None));
    }
}
