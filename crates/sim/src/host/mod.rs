//! The plait engine as a host of a simulated world, with a small application on top.

pub mod acks;
pub mod app;
mod attempts;
pub mod decisions;
mod holders;
pub mod ledger;
pub(crate) mod pattern;
pub mod tls;
pub mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, Random};
use plait_engine::config::RetryPolicy;
use plait_engine::connection::split::Coordinator;
use plait_engine::crypto::Protection;
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, Input, More, Received, ServerConfig,
    Transmit, TransportConfig,
};
use plait_netsim::{Datagram, Host, InterfaceState};

use app::{App, Progress};
use attempts::{AttemptState, Attempts, NoApp};
use holders::{Holders, Out};
use ledger::SharedLedger;
use tls::{Identity, IdentityError};

use crate::scenario::{WorkerFaultKind, Workers};

/// Payloads are written into allocations of this size.
const BLOCK_BYTES: usize = 16 << 10;
/// Datagrams of one train.
const TRAIN_SEGMENTS: usize = 10;

/// What both roles of a host are made from.
#[derive(Clone, Debug)]
pub struct HostSetup {
    /// Transport settings of its connections.
    pub transport: Arc<TransportConfig>,
    /// Protection after the handshake.
    pub protection: Protection,
    /// All randomness of this host comes from here.
    pub random: Random,
    /// When a client connects.
    pub start: Instant,
    /// Whether a client waits for an answer to its first address, and tries no other.
    pub first_path_only: bool,
    /// Who is told the secrets of a server's connections.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Who serves paths beside its connections.
    pub workers: Option<Workers>,
    /// How long it takes from a datagram to its turn, and an application from that turn to its own. Without it all is done
    /// when a datagram comes, and applications speak before their host sends.
    pub turn: Duration,
}

/// Why a host could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HostError {
    /// A certificate could not be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The engine refused to connect.
    #[error("the engine refused to connect: {0}")]
    Connect(String),
}

/// Makes an application for each connection that a server accepts.
pub type MakeApp = Box<dyn FnMut() -> Box<dyn App>>;

struct Live {
    coordinator: Coordinator,
    app: Box<dyn App>,
    turn: Duration,
    /// When the application has its turn, on a host that takes time.
    app_at: Option<Instant>,
    failure: Option<String>,
    /// Whoever serves its paths, where somebody does.
    holders: Option<Holders>,
    /// Datagrams for the connection itself.
    inbox: VecDeque<Input>,
    /// Its local addresses changed; it hears of them once it has all its paths.
    new_locals: Option<Vec<SocketAddr>>,
    /// The application and the connection were not asked yet what they want.
    is_new: bool,
    /// One of a client's attempts; it gets the application if its handshake is the first to be complete.
    is_attempt: bool,
}

impl Live {
    fn new(connection: Connection, app: Box<dyn App>, turn: Duration, holders: Option<Holders>) -> Self {
        let coordinator = Coordinator::new(connection);
        let inbox = VecDeque::new();
        Self {
            coordinator,
            app,
            turn,
            app_at: None,
            failure: None,
            holders,
            inbox,
            new_locals: None,
            is_new: true,
            is_attempt: false,
        }
    }

    /// How far it is, to be compared with others.
    fn rank(&self) -> (bool, (bool, u64)) {
        (self.failure.is_none(), self.app.progress().rank())
    }

    fn receive(&mut self, now: Instant, input: Input) {
        let Some(holders) = &mut self.holders else {
            self.coordinator.handle_datagram(now, input);
            self.rouse(now);
            return;
        };
        self.inbox.extend(holders.receive(input));
    }

    /// Another connection has word for this one, which is nobody else's.
    fn inform(&mut self, now: Instant, word: Input) {
        self.coordinator.handle_datagram(now, word);
        self.rouse(now);
    }

    /// Something has happened that the application may want to know.
    fn rouse(&mut self, now: Instant) {
        if !self.turn.is_zero() {
            self.app_at.get_or_insert(now + self.turn);
        }
    }

    /// When the connection itself wants a turn.
    fn own_deadline(&self) -> Option<Instant> {
        earliest(earliest(self.coordinator.deadline(), self.app.deadline()), self.app_at)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.own_deadline(), self.holders.as_ref().and_then(Holders::next_at))
    }

    /// The connection and those who serve its paths take turns.
    fn drive(&mut self, now: Instant, around: &mut HostView<'_>, buffer: &mut Vec<u8>, send: Send<'_>) {
        let Some(holders) = &mut self.holders else {
            self.take_turn(now, around, buffer, send);
            return;
        };
        let count = holders.count();
        for actor in holders.shuffled(count + 1) {
            let Some(holders) = &mut self.holders else { return };
            if actor < count {
                let may_send = !self.coordinator.is_halted();
                let strays = &mut self.inbox;
                holders.turn(now, actor, may_send, &mut Out { buffer, send, strays });
                continue;
            }
            let is_due = self.own_deadline().is_some_and(|at| at <= now);
            let Some(holders) = self.holders.as_mut().filter(|holders| {
                is_due || !self.inbox.is_empty() || holders.has_news(now) || std::mem::take(&mut self.is_new)
            }) else {
                continue;
            };
            holders.take_news(now, &mut self.coordinator);
            while let Some(input) = self.inbox.pop_front() {
                self.coordinator.handle_datagram(now, input);
            }
            if self.coordinator.deadline().is_some_and(|at| at <= now) {
                self.coordinator.on_timeout(now);
            }
            self.take_turn(now, around, buffer, send);
            if let Some(holders) = &mut self.holders {
                holders.give(now, &mut self.coordinator);
                holders.check(&self.coordinator);
            }
        }
    }

    /// What the connection tells goes to the application, which does whatever it can once it has its turn; and all that is to be
    /// sent leaves.
    fn take_turn(&mut self, now: Instant, around: &mut HostView<'_>, buffer: &mut Vec<u8>, send: Send<'_>) {
        self.hear(now, around);
        if !self.turn.is_zero() {
            self.send(now, buffer, send);
            if earliest(self.app_at, self.app.deadline()).is_none_or(|at| at > now) {
                return;
            }
            self.app_at = None;
        }
        self.app.drive(now, &mut self.coordinator);
        self.send(now, buffer, send);
    }

    fn send(&mut self, now: Instant, buffer: &mut Vec<u8>, send: Send<'_>) {
        while let Some(transmit) = self.coordinator.poll_transmit(now, TRAIN_SEGMENTS, buffer) {
            send(&transmit, buffer);
            if transmit.more == More::Nothing {
                break;
            }
        }
    }

    /// What the connection tells.
    fn hear(&mut self, now: Instant, around: &mut HostView<'_>) {
        while let Some(event) = self.coordinator.poll() {
            match event {
                Event::Connected => {
                    if self.is_attempt {
                        // Another one was first: this one is given up in a moment.
                        let Some(app) = around.attempts.as_mut().and_then(|attempts| attempts.win()) else { continue };
                        (self.app, self.is_attempt) = (app, false);
                    }
                    self.app.on_connected(now);
                    let usable = if around.locals.len() > 1 { usable(around.locals) } else { Vec::new() };
                    self.new_locals = (!usable.is_empty()).then_some(usable);
                    self.tell_locals(now);
                }
                Event::ConnectionLost(reason) => self.failure = Some(reason.to_string()),
                _ => {}
            }
        }
        self.tell_locals(now);
    }

    fn tell_locals(&mut self, now: Instant) {
        if self.new_locals.is_some()
            && let Some(connection) = self.coordinator.joined()
            && let Some(locals) = self.new_locals.take()
        {
            connection.set_local_addresses(now, &locals);
        }
    }
}

/// What the host has for each of its connections.
struct HostView<'a> {
    locals: &'a [(SocketAddr, InterfaceState)],
    attempts: Option<&'a mut Attempts>,
}

/// Takes a datagram, or a train, that leaves.
type Send<'a> = &'a mut dyn FnMut(&Transmit, &[u8]);

/// A plait endpoint in a world: a client with one connection, or a server with many.
pub struct PlaitHost {
    endpoint: Endpoint,
    live: BTreeMap<ConnectionHandle, Live>,
    /// Local addresses that a client's path policy may use, and whether each is up.
    locals: Vec<(SocketAddr, InterfaceState)>,
    make_app: Option<MakeApp>,
    /// A client's attempts to connect, while none has succeeded.
    attempts: Option<Attempts>,
    last: Progress,
    turn: Duration,
    /// Datagrams that have come since its last turn, and when it has its next for them.
    waiting: VecDeque<Datagram>,
    wakes: Option<Instant>,
    out: Outbox,
    buffer: Vec<u8>,
    /// The deadline as of the last poll: nothing changes it between polls.
    due: Option<Instant>,
    /// Who serves paths beside its connections, and where their turns are drawn from.
    workers: Option<(Workers, Random)>,
}

impl PlaitHost {
    /// A client that connects from the first of `locals`, or from the first that is answered, and may open paths from the others.
    ///
    /// # Errors
    /// There is no certificate, or the engine refuses.
    pub fn client(
        setup: HostSetup,
        locals: &[SocketAddr],
        remote: SocketAddr,
        app: impl App + 'static,
    ) -> Result<Self, HostError> {
        let mut random = setup.random;
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let endpoint = Endpoint::new(config, None, random.fork());
        let mut client = ClientConfig::new(Identity::shared()?.client(setup.protection));
        client.transport_config(setup.transport);
        if locals.is_empty() {
            return Err(HostError::Connect("no local address".into()));
        }
        let mut host = Self::empty(endpoint, setup.workers, setup.turn, &mut random);
        host.locals = locals.iter().map(|local| (*local, InterfaceState::Up)).collect();
        let tried = if setup.first_path_only { &locals[..1] } else { locals };
        host.attempts = Some(Attempts::new(setup.start, client, tried, remote, Box::new(app)));
        host.begin_attempts(setup.start)?;
        host.due = host.next_deadline();
        Ok(host)
    }

    /// A server that runs an application of `make_app` on each connection.
    ///
    /// # Errors
    /// There is no certificate.
    pub fn server(setup: HostSetup, make_app: MakeApp) -> Result<Self, HostError> {
        let mut random = setup.random;
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let identity = Identity::shared()?;
        let tls = match setup.key_log {
            Some(log) => identity.server_logged(setup.protection, log)?,
            None => identity.server(setup.protection),
        };
        let mut server = ServerConfig::from_random(tls, &mut random);
        server.transport_config(setup.transport).retry_policy(RetryPolicy::Application);
        let endpoint = Endpoint::new(config, Some(Arc::new(server)), random.fork());
        let mut host = Self::empty(endpoint, setup.workers, setup.turn, &mut random);
        host.make_app = Some(make_app);
        Ok(host)
    }

    /// Without workers nothing is drawn.
    fn empty(endpoint: Endpoint, workers: Option<Workers>, turn: Duration, random: &mut Random) -> Self {
        let workers = workers.map(|workers| (workers, random.fork()));
        Self {
            workers,
            turn,
            waiting: VecDeque::new(),
            wakes: None,
            endpoint,
            live: BTreeMap::new(),
            locals: Vec::new(),
            make_app: None,
            attempts: None,
            last: Progress::default(),
            out: Outbox::default(),
            buffer: Vec::new(),
            due: None,
        }
    }

    /// The connection that is meant where there are several: the one that is furthest, the first of equals.
    fn chief(&self) -> Option<&Live> {
        if self.live.len() <= 1 {
            return self.live.values().next();
        }
        self.live.values().rev().max_by_key(|one| one.rank())
    }

    fn chief_mut(&mut self) -> Option<&mut Live> {
        self.live.values_mut().rev().max_by_key(|one| one.rank())
    }

    /// How far the application of the connection is that is furthest, or of one that is gone.
    pub fn progress(&self) -> &Progress {
        self.chief().map_or(&self.last, |one| one.app.progress())
    }

    /// True once its application has finished or failed, or the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        let (progress, failure) = match self.chief() {
            Some(one) => (one.app.progress(), one.failure.as_ref()),
            None => (&self.last, self.last.failure.as_ref()),
        };
        progress.finished.is_some() || progress.failure.is_some() || failure.is_some()
    }

    /// Why that connection ended, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.chief().map_or(self.last.failure.as_deref(), |one| one.failure.as_deref())
    }

    /// Whoever is to serve the paths of one more connection.
    fn holders(&mut self) -> Option<Holders> {
        self.workers.as_mut().map(|(workers, random)| Holders::new(*workers, random.fork()))
    }

    /// Something befalls a worker of the connection that serves a path between addresses that are meant.
    pub fn strike_worker(&mut self, now: Instant, fault: WorkerFaultKind, is_meant: impl Fn(&FourTuple) -> bool) {
        if let Some(holders) = self.chief_mut().and_then(|one| one.holders.as_mut()) {
            holders.strike(now, fault, is_meant);
        }
    }

    /// All paths on loan come back, and everything said on the way arrives. What was wrong about them; `ledger` has what this
    /// end's connections sent.
    pub fn join(&mut self, now: Instant, ledger: &SharedLedger) -> Option<String> {
        let joined = self.live.values_mut().filter_map(|one| {
            let Live { holders, coordinator, .. } = one;
            let holders = holders.as_mut()?;
            holders.join(now, coordinator);
            let ledger = ledger.lock();
            let [book] = &ledger.acks[..] else { return holders.wrong().map(str::to_owned) };
            holders.wrong().map(str::to_owned).or_else(|| holders.accounts(coordinator, book))
        });
        // All of them, whatever is found.
        joined.collect::<Vec<_>>().into_iter().next()
    }

    /// Path ids of the connection that are open, and those that are not yet forgotten.
    pub fn path_counts(&self) -> (usize, usize) {
        let paths = self.chief().map(|one| one.coordinator.connection().paths());
        paths.map_or((0, 0), |paths| (paths.ids().len(), paths.ids_with_closing().len()))
    }

    /// All connections have their turn; again where one of them has word for another.
    fn drive(&mut self, now: Instant) {
        loop {
            let words = self.take_turns(now);
            if words.is_empty() {
                return;
            }
            for (handle, word) in words {
                if let Some(one) = self.live.get_mut(&handle) {
                    one.inform(now, word);
                }
            }
        }
    }

    fn take_turns(&mut self, now: Instant) -> Vec<(ConnectionHandle, Input)> {
        let Self { endpoint, live, last, out, buffer, locals, attempts, .. } = self;
        let (mut ended, mut words) = (false, Vec::new());
        for (handle, one) in live.iter_mut() {
            let mut around = HostView { locals, attempts: attempts.as_mut() };
            one.drive(now, &mut around, buffer, &mut |transmit, data| out.push(transmit, data));
            while let Some(event) = one.coordinator.poll_endpoint_event() {
                words.extend(endpoint.on_connection_event(*handle, event));
            }
            if one.coordinator.connection().is_drained() {
                if one.app.progress().rank() >= last.rank() {
                    *last = one.app.progress().clone();
                    last.failure = last.failure.take().or(one.failure.take());
                }
                ended = true;
            }
        }
        if ended {
            live.retain(|_, one| !one.coordinator.connection().is_drained());
        }
        words
    }

    /// Begins the attempts whose turn has come.
    ///
    /// # Errors
    /// The engine refuses to connect.
    fn begin_attempts(&mut self, now: Instant) -> Result<(), HostError> {
        while let Some(begun) = self.attempts.as_mut().and_then(|attempts| attempts.next(now, &mut self.endpoint)) {
            let (handle, connection) = begun.map_err(|error| HostError::Connect(error.to_string()))?;
            let holders = self.holders();
            let mut one = Live::new(connection, Box::<NoApp>::default(), self.turn, holders);
            one.is_attempt = true;
            self.live.insert(handle, one);
        }
        Ok(())
    }

    /// How the attempts fare; once one has succeeded the others are given up.
    fn judge_attempts(&mut self, now: Instant) {
        let Self { attempts, live, out, buffer, .. } = self;
        let Some(race) = attempts else { return };
        race.observe(now, |handle| match live.get(&handle) {
            Some(one) if one.failure.is_none() => match one.coordinator.connection().is_heard() {
                true => AttemptState::Answered,
                false => AttemptState::Open,
            },
            _ => AttemptState::Failed,
        });
        if !race.is_won() {
            return;
        }
        *attempts = None;
        let winner = live.values().find(|one| !one.is_attempt);
        let successor = winner.and_then(|one| one.coordinator.connection().session().peer_cid());
        for one in live.values_mut().filter(|one| one.is_attempt) {
            if let Some(connection) = one.coordinator.joined() {
                connection.withdraw(now, successor);
            }
            one.send(now, buffer, &mut |transmit, data| out.push(transmit, data));
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let attempt = self.attempts.as_ref().and_then(Attempts::deadline);
        earliest(earliest(self.live.values().filter_map(Live::deadline).min(), self.wakes), attempt)
    }

    fn admit(&mut self, handle: ConnectionHandle, connection: Connection) {
        let holders = self.holders();
        let Some(make_app) = &mut self.make_app else { return };
        self.live.insert(handle, Live::new(connection, make_app(), self.turn, holders));
    }
}

fn usable(locals: &[(SocketAddr, InterfaceState)]) -> Vec<SocketAddr> {
    locals.iter().filter(|(_, state)| *state == InterfaceState::Up).map(|(address, _)| *address).collect()
}

/// Datagrams that leave.
#[derive(Default)]
struct Outbox {
    datagrams: VecDeque<Datagram>,
    /// Where the next payloads go: about ten of full size share one allocation.
    block: BytesMut,
}

impl Outbox {
    fn push(&mut self, transmit: &Transmit, data: &[u8]) {
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for bytes in data.get(..transmit.size).unwrap_or(data).chunks(segment) {
            let FourTuple { local, remote } = transmit.tuple;
            if self.block.capacity() < bytes.len() {
                self.block = BytesMut::with_capacity(BLOCK_BYTES.max(bytes.len()));
            }
            self.block.extend_from_slice(bytes);
            let payload = self.block.split();
            self.datagrams.push_back(Datagram { src: local, dst: remote, ecn: transmit.ecn, payload });
        }
    }
}

impl PlaitHost {
    fn receive(&mut self, now: Instant, datagram: Datagram) {
        let mut reply = Vec::new();
        let tuple = FourTuple { local: datagram.dst, remote: datagram.src };
        match self.endpoint.receive(now, tuple, datagram.ecn, datagram.payload, &mut reply) {
            Received::Nothing => {}
            Received::Connection(handle, input) => {
                if let Some(one) = self.live.get_mut(&handle) {
                    one.receive(now, input);
                }
            }
            Received::Reply(transmit) => self.out.push(&transmit, &reply),
            Received::Incoming(incoming) => match self.endpoint.accept(incoming, now, &mut reply, None) {
                Ok((handle, connection)) => self.admit(handle, connection),
                Err(error) => {
                    if let Some(transmit) = error.reply {
                        self.out.push(&transmit, &reply);
                    }
                }
            },
        }
    }
}

impl Host for PlaitHost {
    fn on_datagram(&mut self, now: Instant, datagram: Datagram) {
        if self.turn.is_zero() {
            return self.receive(now, datagram);
        }
        self.waiting.push_back(datagram);
        self.wakes.get_or_insert(now + self.turn);
    }

    fn on_timeout(&mut self, now: Instant) {
        // Where others serve paths, timers are for whose turn it is.
        for one in self.live.values_mut().filter(|one| one.holders.is_none()) {
            if one.coordinator.deadline().is_some_and(|at| at <= now) {
                one.coordinator.on_timeout(now);
                one.rouse(now);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        if self.wakes.is_some_and(|at| at <= now) {
            self.wakes = None;
            while let Some(datagram) = self.waiting.pop_front() {
                self.receive(now, datagram);
            }
        }
        // What the engine refuses once it would have refused at the start.
        let _ = self.begin_attempts(now);
        self.drive(now);
        self.judge_attempts(now);
        self.due = self.next_deadline();
        if out.is_empty() {
            std::mem::swap(out, &mut self.out.datagrams);
        } else {
            out.append(&mut self.out.datagrams);
        }
    }

    fn on_interface(&mut self, now: Instant, address: IpAddr, state: InterfaceState) {
        for (local, is) in self.locals.iter_mut().filter(|(local, _)| local.ip() == address) {
            let _ = local;
            *is = state;
        }
        let locals = usable(&self.locals);
        if let Some(one) = self.chief_mut() {
            one.new_locals = Some(locals);
            one.tell_locals(now);
        }
    }
}
