//! One run: a scenario and a seed make a world, the world makes an outcome.

pub mod cross;
mod ends;
pub mod network;
pub mod oracle;
pub mod outcome;
pub mod series;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plait_base::observe::ObserverFactory;
use plait_base::{FourTuple, Instant, Random};
use plait_netsim::{Depth, Duplex, HostId, LinkId, Network, RunEnd, World};

use crate::host::app::{Client, Load, Progress, Server};
use crate::host::ledger::{Ledger, PathFigures, SharedLedger};
use crate::host::{HostError, HostSetup, PlaitHost};
use crate::pcap::Captures;
use crate::scenario::changes::Changes;
use crate::scenario::{Ends, Extension, Place, Scenario, WorkerFault};

use cross::CrossTraffic;
use ends::transport;
use network::{Timeline, Wires, client_address, server_address};
use oracle::Fault;
use outcome::{Around, End, LinkOutcome, Outcome, PathOutcome};
use series::{Sample, Series};

/// Silence that counts as a stall: so many of the longest RTTs seen, and at least this long.
const STALL_RTTS: u32 = 3;
const STALL_MIN: Duration = Duration::from_millis(500);
/// How often the run looks whether bytes arrive.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(50);
/// First interval of time series.
const SERIES_INTERVAL: Duration = Duration::from_millis(20);

/// What to write down besides the outcome.
#[derive(Default)]
pub struct Watch<'a> {
    /// Whether to keep time series.
    pub series: bool,
    /// Who makes further observers of the client's connections and of the server's: several race where a handshake may take each
    /// path.
    pub observers: Option<(Arc<dyn ObserverFactory>, Arc<dyn ObserverFactory>)>,
    /// Captures of links.
    pub captures: Option<&'a mut Captures>,
    /// Set from outside to end the run early.
    pub stop: Option<&'a AtomicBool>,
    /// Hears how far the run is, many times a second of its own.
    pub headway: Option<&'a dyn Fn(Headway)>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headway {
    /// Virtual time since its start.
    pub elapsed: Duration,
    /// Bytes that the receiver has.
    pub verified_bytes: u64,
    /// Share of the load that is done, from 0 to 1: by bytes, else by the time that it takes at least.
    pub share: f64,
}

impl Headway {
    fn new(load: &Load, elapsed: Duration, verified_bytes: u64) -> Self {
        let (done, whole) = match *load {
            Load::Download { bytes } | Load::Upload { bytes } => (verified_bytes as f64, bytes as f64),
            Load::Requests { interval, count, .. } => (elapsed.as_secs_f64(), interval.as_secs_f64() * count as f64),
            Load::DownloadFor { duration } => (elapsed.as_secs_f64(), duration.as_secs_f64()),
        };
        Self { elapsed, verified_bytes, share: if whole > 0.0 { (done / whole).min(1.0) } else { 1.0 } }
    }
}

/// Runs a scenario with a seed.
///
/// # Errors
/// The hosts cannot be made: the cryptographic library refuses.
pub fn run(scenario: &Scenario, seed: u64, watch: Watch<'_>) -> Result<Outcome, HostError> {
    Running::new(scenario, seed, watch)?.finish()
}

/// Gaps between bytes that arrive in order.
#[derive(Debug, Default)]
struct Stalls {
    seen_bytes: u64,
    since: Instant,
    longest: Duration,
    count: u32,
}

impl Stalls {
    fn observe(&mut self, now: Instant, progress: &Progress, bytes: u64, rtt: Duration) {
        let moves = bytes > self.seen_bytes || progress.first_byte.is_none();
        let gap = now.since(self.since);
        if moves {
            self.count += u32::from(gap > STALL_MIN.max(rtt * STALL_RTTS));
            self.since = now;
            self.seen_bytes = bytes;
        } else {
            self.longest = self.longest.max(gap);
        }
    }
}

/// The links that are captured.
struct Taps<'a> {
    captures: &'a mut Captures,
    links: Vec<LinkId>,
}

impl<'a> Taps<'a> {
    fn new(captures: &'a mut Captures, wires: &Wires, net: &mut Network) -> Self {
        let links: Vec<LinkId> =
            captures.ways().iter().filter_map(|way| wires.link(way.place, way.direction)).collect();
        links.iter().for_each(|link| net.tap(*link));
        Self { captures, links }
    }

    fn take(&mut self, net: &mut Network) {
        let of = |(index, link): (usize, &LinkId)| net.take_tapped(*link).into_iter().map(move |one| (index, one));
        self.captures.note(self.links.iter().enumerate().flat_map(of).collect());
    }
}

struct Running<'a> {
    scenario: &'a Scenario,
    world: World,
    wires: Wires,
    timeline: Timeline,
    client: HostId,
    server: HostId,
    ledgers: [SharedLedger; 2],
    series: Option<Series>,
    stalls: Stalls,
    cross: CrossTraffic,
    /// The first bound that was seen passed while it ran.
    passed: Option<Fault>,
    stop: Option<&'a AtomicBool>,
    headway: Option<&'a dyn Fn(Headway)>,
    taps: Option<Taps<'a>>,
}

fn is_set(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
}

impl<'a> Running<'a> {
    fn new(scenario: &'a Scenario, seed: u64, watch: Watch<'a>) -> Result<Self, HostError> {
        let mut world = World::new(seed);
        // TLS draws from the operating system: payloads differ between runs, their times and sizes never do.
        world.set_digest_depth(Depth::Timing);
        let course = Changes::new(scenario, world.fork_random());
        let wires = Wires::build(&mut world.net, scenario, &course);
        let taps = watch.captures.map(|captures| Taps::new(captures, &wires, &mut world.net));
        let key_log = taps.as_ref().map(|taps| taps.captures.key_log());
        let endpoints = &scenario.endpoints;
        let ledgers = [SharedLedger::default(), SharedLedger::default()];
        let (client_observer, server_observer) = watch.observers.unzip();
        let setup = |random: Random, ledger: &SharedLedger, more| HostSetup {
            transport: transport(endpoints, scenario.paths.len(), ledger, more),
            protection: endpoints.protection,
            random,
            start: Instant::ZERO,
            // Without an extension there is one path, and the scenario says which.
            first_path_only: endpoints.handshake.first_path_only || endpoints.extension == Extension::None,
            key_log: key_log.clone(),
            workers: endpoints.workers,
            turn: endpoints.turn,
        };
        let first = endpoints.handshake.initial_path;
        let others = (0..scenario.paths.len()).filter(|path| *path != first);
        let locals: Vec<_> = std::iter::once(first).chain(others).map(client_address).collect();
        let app = Client::new(scenario.load);
        let client_setup = setup(world.fork_random(), &ledgers[0], client_observer);
        let client = PlaitHost::client(client_setup, &locals, server_address(), app)?;
        let server_setup = setup(world.fork_random(), &ledgers[1], server_observer);
        let server = PlaitHost::server(server_setup, Box::new(|| Box::new(Server::default())))?;
        let addresses: Vec<_> = locals.iter().map(|local| local.ip()).collect();
        let client = world.add_host(client, &addresses);
        let server = world.add_host(server, &[server_address().ip()]);
        let timeline = Timeline::new(wires.clone(), course);
        if watch.series {
            ledgers.iter().for_each(|ledger| ledger.lock().decisions.record = Some(Box::default()));
        }
        let cross = CrossTraffic::new(scenario, &wires, &mut world, key_log);
        let series = watch.series.then(|| Series::new(SERIES_INTERVAL, cross.labels()));
        let (stalls, stop, headway) = (Stalls::default(), watch.stop, watch.headway);
        Ok(Self {
            scenario,
            world,
            wires,
            timeline,
            client,
            server,
            ledgers,
            series,
            stalls,
            cross,
            passed: None,
            stop,
            headway,
            taps,
        })
    }

    /// The ledger of the end that sends the bulk.
    fn sender(&self) -> &SharedLedger {
        match self.scenario.load {
            Load::Upload { .. } => &self.ledgers[0],
            _ => &self.ledgers[1],
        }
    }

    fn progress(&self, host: HostId) -> Progress {
        self.world.host::<PlaitHost>(host).map(|host| host.progress().clone()).unwrap_or_default()
    }

    /// Bytes at the receiver of the bulk.
    fn verified_bytes(&self) -> u64 {
        let receiver = if matches!(self.scenario.load, Load::Upload { .. }) { self.server } else { self.client };
        self.world.host::<PlaitHost>(receiver).map_or(0, |host| host.progress().verified_bytes)
    }

    fn finish(mut self) -> Result<Outcome, HostError> {
        let limit = Instant::ZERO + self.scenario.time_limit;
        let (client, stop) = (self.client, self.stop);
        let done = move |world: &World| {
            if is_set(stop) {
                return true;
            }
            world.host::<PlaitHost>(client).is_none_or(PlaitHost::is_over)
        };
        let end = loop {
            let now = self.world.now();
            let ends = [self.client, self.server];
            self.timeline.advance(now, self.scenario, &mut self.world, |world, path, fault| {
                strike(world, ends, path, fault);
            });
            self.cross.advance(now, &mut self.world)?;
            self.observe(now);
            let next = now + OBSERVE_INTERVAL;
            let next = self.cross.next_at().map_or(next, |at| at.min(next));
            let next = self.timeline.next_at(self.scenario).map_or(next, |at| at.min(next));
            let next = self.series.as_ref().map_or(next, |series| series.next_at().min(next));
            let end = self.world.run_until_done(next.max(now + Duration::from_nanos(1)).min(limit), done);
            if end != RunEnd::TimeLimit || self.world.now() >= limit {
                break end;
            }
        };
        self.observe(self.world.now());
        Ok(self.outcome(end))
    }

    /// Between events: samples, and whether bytes still arrive.
    fn observe(&mut self, now: Instant) {
        if let Some(taps) = &mut self.taps {
            taps.take(&mut self.world.net);
        }
        let bytes = self.verified_bytes();
        if let Some(tell) = self.headway {
            tell(Headway::new(&self.scenario.load, now.since_origin(), bytes));
        }
        let hosts = [self.client, self.server].into_iter().filter_map(|host| self.world.host::<PlaitHost>(host));
        let passed = hosts.filter_map(|host| oracle::census(host.path_counts())).next();
        self.passed = self.passed.take().or(passed);
        let rtt = self.sender().lock().paths.values().filter_map(|figures| figures.rtt).max().unwrap_or_default();
        let quiet = matches!(self.scenario.load, Load::Requests { .. });
        if let Some(host) = self.world.host::<PlaitHost>(self.client).filter(|_| !quiet) {
            self.stalls.observe(now, host.progress(), bytes, rtt);
        }
        if self.series.as_ref().is_some_and(|series| series.next_at() <= now) {
            let sample = self.sample(now, bytes);
            if let Some(series) = &mut self.series {
                series.push(sample);
            }
        }
    }

    fn sample(&self, now: Instant, verified_bytes: u64) -> Sample {
        let ledger = self.sender().lock();
        let upload = matches!(self.scenario.load, Load::Upload { .. });
        let side = |duplex: &Duplex| if upload { duplex.forward } else { duplex.backward };
        let wait = |duplex: &Duplex| {
            let link = self.world.net.link(side(duplex));
            link.map_or(0.0, |link| link.queue_time(now).as_secs_f64().min(3600.0) * 1e3)
        };
        let of = |path: usize| {
            let mut sample = series::of_ledger(&ledger, path);
            let own = self.wires.links.get(path).map(|own| self.world.net.link_stats(side(own)));
            sample.carried_bytes = own.map_or(0, |own| own.forwarded_bytes);
            sample.queue_ms = self.wires.way(self.scenario, path).map(wait).sum();
            sample
        };
        let paths = (0..self.scenario.paths.len()).map(of).collect();
        Sample { at: now, verified_bytes, paths, cross: self.cross.samples(&self.world) }
    }

    /// Paths on loan come back at both ends, and what was said on the way arrives; what was wrong about them.
    fn join(&mut self) -> Option<Fault> {
        self.scenario.endpoints.workers?;
        let Self { world, client, server, ledgers, .. } = self;
        let ends = [*client, *server].into_iter().zip(ledgers);
        let wrong: Vec<String> = ends
            .filter_map(|(host, ledger)| world.act::<PlaitHost, _>(host, |host, now| host.join(now, ledger))?)
            .collect();
        wrong.into_iter().next().map(Fault::Loans)
    }

    fn outcome(mut self, run_end: RunEnd) -> Outcome {
        let loans = self.join();
        let (client, server) = (self.progress(self.client), self.progress(self.server));
        let lost = self.world.host::<PlaitHost>(self.client).and_then(|host| host.failure().map(str::to_owned));
        let failure = client.failure.clone().or(server.failure.clone());
        let end = match (&failure, &lost, client.finished) {
            (Some(failure), _, _) => End::Failed(failure.clone()),
            (None, _, Some(_)) => End::Complete,
            (None, Some(lost), None) => End::Failed(lost.clone()),
            (None, None, None) if is_set(self.stop) => End::Unfinished(outcome::STOPPED),
            (None, None, None) if run_end == RunEnd::Idle => End::Unfinished("idle"),
            (None, None, None) => End::Unfinished("time limit"),
        };
        let ledger = self.sender().lock().clone();
        let traffic = network::traffic(&self.world.net, &self.wires.links);
        let totals = self.world.totals();
        let cross = self.cross.outcomes(&self.world);
        let mut faults: Vec<Fault> = failure.filter(|f| f.contains("byte")).map(Fault::Bytes).into_iter().collect();
        faults.extend(oracle::idle_sender(&ledger));
        faults.extend(oracle::conservation(&totals, self.world.net.in_flight()));
        faults.extend(self.ledgers.iter().find_map(|ledger| oracle::bounds(&ledger.lock())));
        faults.extend(oracle::acks(&self.ledgers));
        faults.extend(loans);
        faults.extend(self.passed.clone());
        faults.extend(matches!(run_end, RunEnd::Spinning(_)).then_some(Fault::Spinning));
        faults.extend(oracle::links(&self.world.net, &self.wires.links));
        faults.extend(cross.iter().flat_map(|one| one.faults.clone()));
        let count = self.scenario.paths.len();
        let paths = traffic.iter().take(count).enumerate();
        let paths = paths.map(|(path, t)| PathOutcome { sender: of_path(&ledger, path), traffic: *t }).collect();
        let named = self.scenario.links.iter().zip(traffic.iter().skip(Place::link(count, 0).0));
        let links = named.map(|(link, t)| LinkOutcome { name: link.name.clone(), traffic: *t }).collect();
        let datagrams = (totals.sent, totals.arrived, totals.lost);
        let around = Around { links, cross, datagrams, events: self.world.events() };
        let since_start = |at: Instant| at.since_origin();
        Outcome {
            end,
            elapsed: client.finished.map_or(self.world.now().since_origin(), since_start),
            verified_bytes: self.verified_bytes(),
            handshake: client.connected.map(since_start),
            first_byte: client.first_byte.map(since_start),
            exchanges: client.exchanges,
            stall_longest: self.stalls.longest,
            stalls: self.stalls.count,
            decisions: ledger.decisions,
            changes: ledger.changes,
            paths,
            faults,
            around,
            digest: self.world.digest(),
            series: self.series,
        }
    }
}

/// Something befalls the workers that serve a path.
fn strike(world: &mut World, [client, server]: [HostId; 2], path: usize, WorkerFault { kind, ends }: WorkerFault) {
    let struck = match ends {
        Ends::Client => &[client][..],
        Ends::Server => &[server],
        Ends::Both => &[client, server],
    };
    for host in struck {
        let is_meant = |route: &FourTuple| network::path_of(route) == Some(path);
        world.act::<PlaitHost, _>(*host, |host, now| host.strike_worker(now, kind, is_meant));
    }
}

/// Figures of a path of the scenario over all path ids that ran there.
fn of_path(ledger: &Ledger, path: usize) -> PathFigures {
    let mut sum = PathFigures::default();
    for figures in ledger.paths.values().filter(|figures| figures.scenario_path == Some(path)) {
        sum = PathFigures {
            sent_bytes: sum.sent_bytes + figures.sent_bytes,
            packets_sent: sum.packets_sent + figures.packets_sent,
            packets_lost: sum.packets_lost + figures.packets_lost,
            packets_received: sum.packets_received + figures.packets_received,
            received_bytes: sum.received_bytes + figures.received_bytes,
            probe_timeouts: sum.probe_timeouts + figures.probe_timeouts,
            mtu_falls: sum.mtu_falls + figures.mtu_falls,
            rtt_min: sum.rtt_min.into_iter().chain(figures.rtt_min).min(),
            active_at: sum.active_at.into_iter().chain(figures.active_at).min(),
            window_max_bytes: sum.window_max_bytes.max(figures.window_max_bytes),
            ..figures.clone()
        };
    }
    sum
}
