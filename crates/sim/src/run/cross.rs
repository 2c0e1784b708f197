//! Cross traffic of a run: hosts of their own whose packets go through links of the scenario.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait_base::{Instant, Random};
use plait_engine::crypto::Protection;
use plait_netsim::link::{Jitter, LinkConfig};
use plait_netsim::{Hop, HostId, OnOff, Sink, Source, World};
use rustls::KeyLog;

use super::ends::transport;
use super::network::Wires;
use super::oracle::{self, Fault};
use super::series::CrossSample;
use crate::host::app::{Client, Load, Server};
use crate::host::ledger::SharedLedger;
use crate::host::{HostError, HostSetup, PlaitHost};
use crate::policies::Policies;
use crate::scenario::link::OVERHEAD_BYTES;
use crate::scenario::{CrossLoad, CrossPlan, Direction, Endpoints, Extension, Packets, Scenario};

/// Bytes of a flow that never ends.
const ENDLESS_BYTES: u64 = 1 << 50;

/// What a source of cross traffic did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrossOutcome {
    /// What the scenario calls it.
    pub label: String,
    /// Payload bytes that arrived; of a flow: at their place.
    pub bytes: u64,
    /// How long it was there.
    pub lasted: Duration,
    /// Datagrams or packets sent.
    pub packets_sent: u64,
    /// Packets that a flow declared lost.
    pub packets_lost: u64,
    /// Smoothed RTT of a flow, the latest.
    pub rtt: Option<Duration>,
    /// Rules that were broken.
    pub faults: Vec<Fault>,
}

impl CrossOutcome {
    /// Mean rate of payload that arrived, bit/s.
    pub fn goodput_bps(&self) -> f64 {
        let seconds = self.lasted.as_secs_f64();
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// One source of cross traffic.
struct CrossSource {
    plan: CrossPlan,
    protection: Protection,
    turn: Duration,
    /// Towards the client of the scenario, and towards its server.
    near: SocketAddr,
    far: SocketAddr,
    random: Random,
    /// Who receives and who sends, once they are there.
    hosts: Option<(HostId, HostId)>,
    /// Of the receiver and of the sender.
    ledgers: [SharedLedger; 2],
}

/// All sources of a run.
pub(crate) struct CrossTraffic {
    lanes: Vec<CrossSource>,
    key_log: Option<Arc<dyn KeyLog>>,
}

impl CrossTraffic {
    /// Prepares the sources of a scenario; they start when their time comes.
    pub(crate) fn new(scenario: &Scenario, wires: &Wires, world: &mut World, key_log: Option<Arc<dyn KeyLog>>) -> Self {
        let lane = |(index, plan): (usize, &CrossPlan)| {
            let near = SocketAddr::from((Ipv4Addr::new(10, 1, index as u8 + 1, 2), 5000));
            let far = SocketAddr::from((Ipv4Addr::new(10, 2, index as u8 + 1, 2), 4433));
            let (mut there, mut back) = wires.hops(&plan.via);
            if let CrossLoad::Flow { rtt, jitter, .. } = plan.load
                && !(rtt.is_zero() && jitter.is_zero())
            {
                let jitter = if jitter.is_zero() { Jitter::None } else { Jitter::Uniform(jitter) };
                let delay = rtt / 2;
                let access = LinkConfig { delay, jitter, overhead_bytes: OVERHEAD_BYTES, ..LinkConfig::default() };
                there.push(Hop::Link(world.net.add_link(access.clone())));
                back.insert(0, Hop::Link(world.net.add_link(access)));
            }
            world.net.route(near.ip(), far.ip(), &there);
            world.net.route(far.ip(), near.ip(), &back);
            let random = world.fork_random();
            let Endpoints { protection, turn, .. } = scenario.endpoints;
            CrossSource {
                plan: plan.clone(),
                protection,
                turn,
                near,
                far,
                random,
                hosts: None,
                ledgers: Default::default(),
            }
        };
        Self { lanes: scenario.cross.iter().enumerate().map(lane).collect(), key_log }
    }

    /// When the next source starts.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let waiting = self.lanes.iter().filter(|lane| lane.hosts.is_none());
        waiting.map(|lane| Instant::ZERO + lane.plan.start).min()
    }

    /// Starts what is due.
    pub(crate) fn advance(&mut self, now: Instant, world: &mut World) -> Result<(), HostError> {
        for lane in &mut self.lanes {
            if lane.hosts.is_none() && Instant::ZERO + lane.plan.start <= now {
                lane.hosts = Some(lane.start(now, world, self.key_log.clone())?);
            }
        }
        Ok(())
    }

    /// What columns and curves call them.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.lanes.iter().map(|lane| lane.plan.label.clone()).collect()
    }

    /// How each does now.
    pub(crate) fn samples(&self, world: &World) -> Vec<CrossSample> {
        self.lanes.iter().map(|lane| lane.sample(world)).collect()
    }

    /// What each has done.
    pub(crate) fn outcomes(&self, world: &World) -> Vec<CrossOutcome> {
        self.lanes.iter().map(|lane| lane.outcome(world)).collect()
    }
}

impl CrossSource {
    fn start(
        &mut self,
        now: Instant,
        world: &mut World,
        key_log: Option<Arc<dyn KeyLog>>,
    ) -> Result<(HostId, HostId), HostError> {
        let (receiver, sender) = match self.plan.direction {
            Direction::Down => (self.near, self.far),
            Direction::Up => (self.far, self.near),
        };
        let end = self.plan.stop.map_or(Instant::from_nanos(u64::MAX), |stop| Instant::ZERO + stop);
        match self.plan.load {
            CrossLoad::Packets(packets) => {
                let source = source(&packets, (sender, receiver), (now, end), self.random.fork());
                let sink = world.add_host(Sink::default(), &[receiver.ip()]);
                Ok((sink, world.add_host(source, &[sender.ip()])))
            }
            CrossLoad::Flow { congestion, bytes, .. } => {
                let congestion = Policies::new().controller(congestion);
                let endpoints = Endpoints { extension: Extension::None, congestion, ..Endpoints::default() };
                let load = match (bytes, self.plan.stop) {
                    (Some(bytes), _) => Load::Download { bytes },
                    (None, Some(stop)) => Load::DownloadFor { duration: stop },
                    (None, None) => Load::Download { bytes: ENDLESS_BYTES },
                };
                let (protection, turn) = (self.protection, self.turn);
                let setup = |random, ledger: &SharedLedger| {
                    let transport = transport(&endpoints, 1, ledger, None);
                    let (start, key_log) = (now, key_log.clone());
                    HostSetup {
                        transport,
                        protection,
                        random,
                        start,
                        first_path_only: true,
                        key_log,
                        workers: None,
                        turn,
                    }
                };
                let client = setup(self.random.fork(), &self.ledgers[0]);
                let client = PlaitHost::client(client, &[receiver], sender, Client::new(load))?;
                let server = setup(self.random.fork(), &self.ledgers[1]);
                let server = PlaitHost::server(server, Box::new(|| Box::new(Server::default())))?;
                let server = world.add_host(server, &[sender.ip()]);
                Ok((world.add_host(client, &[receiver.ip()]), server))
            }
        }
    }

    /// Payload bytes that have arrived.
    fn bytes(&self, world: &World) -> u64 {
        let Some((receiver, _)) = self.hosts else { return 0 };
        let sunk = world.host::<Sink>(receiver).map(Sink::bytes);
        sunk.or_else(|| Some(world.host::<PlaitHost>(receiver)?.progress().verified_bytes)).unwrap_or(0)
    }

    fn sample(&self, world: &World) -> CrossSample {
        let ledger = self.ledgers[1].lock();
        let flow = ledger.paths.values().next_back();
        CrossSample {
            bytes: self.bytes(world),
            window_bytes: flow.map_or(0, |figures| figures.window_bytes),
            in_flight_bytes: flow.map_or(0, |figures| figures.in_flight_bytes),
            rtt_ms: flow.and_then(|figures| figures.rtt).map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3),
        }
    }

    fn outcome(&self, world: &World) -> CrossOutcome {
        let label = self.plan.label.clone();
        let Some((receiver, sender)) = self.hosts else { return CrossOutcome { label, ..CrossOutcome::default() } };
        let end = self.plan.stop.map_or(world.now(), |stop| world.now().min(Instant::ZERO + stop));
        let mut outcome = CrossOutcome {
            label,
            lasted: end.since(Instant::ZERO + self.plan.start),
            packets_sent: world.host::<Source>(sender).map_or(0, Source::sent),
            ..CrossOutcome::default()
        };
        outcome.bytes = self.bytes(world);
        let Some(client) = world.host::<PlaitHost>(receiver) else { return outcome };
        let (progress, ledger) = (client.progress(), self.ledgers[1].lock().clone());
        if let Some(finished) = progress.finished {
            outcome.lasted = finished.since(Instant::ZERO + self.plan.start);
        }
        for figures in ledger.paths.values() {
            outcome.packets_sent += figures.packets_sent;
            outcome.packets_lost += figures.packets_lost;
            outcome.rtt = figures.rtt.or(outcome.rtt);
        }
        outcome.faults.extend(progress.failure.clone().filter(|f| f.contains("byte")).map(Fault::Bytes));
        outcome.faults.extend(oracle::idle_sender(&ledger));
        outcome.faults.extend(oracle::bounds(&ledger));
        outcome.faults.extend(oracle::acks(&self.ledgers));
        outcome
    }
}

/// A source of packets that heed nobody, from the first address to the second, between these times.
pub fn source(
    packets: &Packets,
    route: (SocketAddr, SocketAddr),
    (start, end): (Instant, Instant),
    random: Random,
) -> Source {
    let bits = (packets.packet_bytes + u64::from(OVERHEAD_BYTES)) * 8;
    let interval = Duration::from_secs_f64(bits as f64 / packets.rate_bps.max(1) as f64);
    let source = Source::new(route, packets.packet_bytes as usize, interval).between(start, end);
    let span = |(low, high): (f64, f64)| (Duration::from_secs_f64(low), Duration::from_secs_f64(high));
    match packets.on_off {
        Some((on, off)) => source.on_off(OnOff { on: span(on), off: span(off) }, random),
        None => source,
    }
}
