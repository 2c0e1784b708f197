//! Carries a trial out in virtual time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use plait_base::Instant;
use plait_netsim::link::LinkState;
use plait_netsim::{Capture, Depth, Duplex, Hop, HostId, NatConfig, NatId, Rebinding, RunEnd, World};

use super::{End, Fault, Outcome, Trial};
use crate::peers::{Peer, Setup, Way, progress};

const PORT: u16 = 4433;
/// Public addresses of each NAT, the first in use at the start.
const PUBLIC: u8 = 6;
/// By when both ends must be connected, whatever is lost.
const CONNECT: Duration = Duration::from_secs(25);
/// Longer than any idle timeout and the states after it.
const REST: Duration = Duration::from_secs(150);

fn inner(leg: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, leg as u8, 1))
}

fn public(leg: usize, nth: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(100, 64, leg as u8, 1 + nth))
}

fn service(leg: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, leg as u8, 1)), PORT)
}

struct Stage {
    world: World,
    client: HostId,
    server: HostId,
    links: Vec<Duplex>,
    nats: Vec<NatId>,
    /// How often each NAT got another address.
    moved: Vec<u8>,
}

impl Trial {
    /// Runs it.
    ///
    /// # Errors
    /// Says what went wrong: a wrong byte, a stall, an error, something left over.
    pub fn run(&self) -> Result<Outcome, String> {
        let mut stage = Stage::new(self);
        let result = self.play(&mut stage);
        for record in stage.world.records() {
            let head: String = record.payload().iter().take(24).map(|byte| format!("{byte:02x}")).collect();
            println!("{} {head}", record.line());
        }
        result
    }

    fn play(&self, stage: &mut Stage) -> Result<Outcome, String> {
        for request in &self.requests {
            let request = *request;
            stage.world.act::<Peer, _>(stage.client, |peer, _| peer.0.request(request));
        }
        for leg in 1..self.legs.len() {
            stage.world.act::<Peer, _>(stage.client, |peer, _| peer.0.open_path(inner(leg), service(leg)));
        }
        stage.connect()?;
        stage.suffer(self);
        stage.transfer(self)?;
        let took = stage.world.now().since_origin();
        stage.part(self)?;
        let (datagrams, digest) = (stage.world.totals().sent, stage.world.digest());
        Ok(Outcome { took, limit: self.limit, datagrams, digest })
    }
}

impl Stage {
    fn new(trial: &Trial) -> Self {
        let mut world = World::new(trial.seed);
        world.set_digest_depth(Depth::Timing);
        if std::env::var_os("PLAIT_TRACE").is_some() {
            world.set_capture(Capture::Payloads(100_000));
        }
        world.net.set_damage(trial.damage);
        let legs = 0..trial.legs.len();
        let (inners, services): (Vec<IpAddr>, Vec<IpAddr>) = legs.clone().map(|i| (inner(i), service(i).ip())).unzip();
        let (paths, seed) = (trial.legs.len() as u32, trial.seed);
        let local = SocketAddr::new(inner(0), 50_000);
        let setup = Setup { local, remote: Some(service(0)), paths, seed };
        let client = world.add_host(trial.pairing.client.build_with(setup, trial.options), &inners);
        let setup = Setup { local: service(0), remote: None, paths, seed: seed ^ 0xbeef };
        let server = world.add_host(trial.pairing.server.build_with(setup, trial.options), &services);
        let (mut links, mut nats) = (Vec::new(), Vec::new());
        for (i, leg) in trial.legs.iter().enumerate() {
            let forward = world.net.add_link(leg.forward.clone());
            let backward = world.net.add_link(leg.backward.clone());
            let nat = world.net.add_nat(NatConfig::new(public(i, 0)));
            world.net.route(inner(i), service(i).ip(), &[Hop::NatOut(nat), Hop::Link(forward)]);
            for nth in 0..PUBLIC {
                world.net.route(service(i).ip(), public(i, nth), &[Hop::Link(backward), Hop::NatIn(nat)]);
            }
            links.push(Duplex { forward, backward });
            nats.push(nat);
        }
        Self { world, client, server, links, nats, moved: vec![0; trial.legs.len()] }
    }

    fn connect(&mut self) -> Result<(), String> {
        let (client, server) = (self.client, self.server);
        let end = self.world.run_until_done(Instant::ZERO + CONNECT, |world| {
            let ends = [progress(world, client), progress(world, server)];
            ends.iter().all(|p| p.connected) || ends.iter().any(|p| p.failure.is_some()) || ends[0].is_done()
        });
        self.healthy("connecting", end)
    }

    fn healthy(&self, during: &str, end: RunEnd) -> Result<(), String> {
        let (client, server) = (progress(&self.world, self.client), progress(&self.world, self.server));
        let spoiled = client.failure.is_some() || server.failure.is_some();
        if end == RunEnd::Condition && !spoiled {
            return Ok(());
        }
        Err(format!(
            "{during}: {end:?} at {:?}\n    client {client:?}\n    server {server:?}",
            self.world.now().since_origin()
        ))
    }

    /// Sets the faults up.
    fn suffer(&mut self, trial: &Trial) {
        let start = self.world.now();
        for &(after, fault) in &trial.faults {
            let at = start + after;
            let (client, server) = (self.client, self.server);
            match fault {
                Fault::NewPort(leg) => {
                    let nat = self.nats[leg];
                    self.world.at(at, move |world| world.net.rebind(nat, Rebinding::Port));
                }
                Fault::NewAddress(leg) => {
                    self.moved[leg] += 1;
                    let (nat, address) = (self.nats[leg], public(leg, self.moved[leg]));
                    self.world.at(at, move |world| world.net.rebind(nat, Rebinding::Address(address)));
                }
                Fault::Outage(leg, lasting) => {
                    let link = self.links[leg];
                    let set = move |state| {
                        move |world: &mut World| world.net.change_duplex(link, |config| config.state = state)
                    };
                    self.world.at(at, set(LinkState::Down));
                    self.world.at(at + lasting, set(LinkState::Up));
                }
                Fault::Shrink(leg, mtu) => {
                    let link = self.links[leg];
                    self.world.at(at, move |world| world.net.change_duplex(link, |config| config.mtu_bytes = mtu));
                }
                Fault::Order(end, order) => {
                    let host = if end == End::Client { client } else { server };
                    self.world.at(at, move |world| {
                        world.act::<Peer, _>(host, |peer, now| peer.0.obey(now, order));
                    });
                }
            }
        }
    }

    fn transfer(&mut self, trial: &Trial) -> Result<(), String> {
        let (client, server) = (self.client, self.server);
        let end = self.world.run_until_done(Instant::ZERO + trial.limit + CONNECT, |world| {
            let ends = [progress(world, client), progress(world, server)];
            ends.iter().all(|p| p.is_done()) || ends.iter().any(|p| p.failure.is_some())
        });
        self.healthy("transfer", end)?;
        let sum = |way| trial.requests.iter().filter(|q| q.way == way).map(|q| q.bytes).sum::<u64>();
        let verified = [progress(&self.world, client), progress(&self.world, server)].map(|p| p.verified_bytes);
        if verified == [sum(Way::Download), sum(Way::Upload)] {
            return Ok(());
        }
        Err(format!("verified bytes (client, server) {verified:?}, which is not what was asked for"))
    }

    /// Closes; then nothing may be left, on any side.
    fn part(&mut self, trial: &Trial) -> Result<(), String> {
        let host = if trial.closer == End::Client { self.client } else { self.server };
        self.world.act::<Peer, _>(host, |peer, now| peer.0.close(now));
        let end = self.world.run_until(self.world.now() + REST);
        let left = |id| self.world.host::<Peer>(id).map(|peer| peer.0.leftovers()).unwrap_or_default();
        let (client, server) = (left(self.client), left(self.server));
        if end == RunEnd::Idle && client.is_empty() && server.is_empty() && self.world.net.in_flight() == 0 {
            return Ok(());
        }
        Err(format!("after the close: {end:?}, client keeps [{client}], server keeps [{server}]"))
    }
}
