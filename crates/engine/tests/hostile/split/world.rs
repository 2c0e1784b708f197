//! Two engines whose paths are served by others, in virtual time: links with a rate and losses, and messages that take a while.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{Dir, FourTuple, Instant, PathId, Random, StreamId};
use plait_engine::connection::split::{Coordinator, FromPath, LentPath, ReturnReason, ToPath};
use plait_engine::path::PathStatus;
use plait_engine::stream::{Order, ReadError};
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, Received, ServerConfig,
    TransportConfig,
};

use crate::puppet::{ENGINE, addr, client_tls, server_tls};

const STEP: Duration = Duration::from_micros(50);

/// Things on their way, in order.
struct Wire<T> {
    items: VecDeque<(Instant, T)>,
}

impl<T> Wire<T> {
    fn push(&mut self, at: Instant, item: T) {
        let at = self.items.back().map_or(at, |(last, _)| at.max(*last));
        self.items.push_back((at, item));
    }

    fn pop(&mut self, now: Instant) -> Option<T> {
        self.items.front().filter(|(at, _)| *at <= now)?;
        self.items.pop_front().map(|(_, item)| item)
    }
}

/// To those who serve paths.
enum Down {
    Lend(Box<LentPath>),
    Tell(PathId, ToPath),
}

/// To the connection.
enum Up {
    Tell(PathId, FromPath),
    Back(Box<LentPath>),
    /// A message whose path was no more there.
    Bounced(PathId, ToPath),
}

/// When an end lends its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    Never,
    /// As soon as the connection lets it.
    Eager,
    OnDemand,
}

/// What came of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    pub bytes: u64,
    pub is_finished: bool,
    pub reset: Option<u64>,
}

/// One end.
pub struct End {
    endpoint: Endpoint,
    live: Option<(ConnectionHandle, Coordinator)>,
    pub lending: Lending,
    #[expect(clippy::vec_box, reason = "they come and go boxed")]
    holders: Vec<Box<LentPath>>,
    down: Wire<Down>,
    up: Wire<Up>,
    pub loans: usize,
    pub returns: Vec<ReturnReason>,
    /// Streams that are written: how far, and how far in all.
    writes: Vec<(StreamId, u64, u64)>,
    reads: Vec<StreamId>,
    pub arrived: BTreeMap<StreamId, Arrived>,
    /// The longest piece that was read, bytes.
    pub longest_piece: usize,
    pub events: Vec<Event>,
    /// Of so many datagrams for a lent path one lands with the connection; 0: none.
    pub astray: u64,
    /// Holders take no turn before.
    pub stalled_until: Instant,
}

/// One way of a link.
#[derive(Clone, Copy, Default)]
struct Lane {
    free_at: Instant,
}

pub struct World {
    pub now: Instant,
    pub random: Random,
    pub client: End,
    pub server: End,
    /// Longest time that a message takes, microseconds.
    pub message_us: u64,
    pub loss: f64,
    /// What one byte takes on a link.
    pub byte_ns: u64,
    /// The last byte of the client's address on a path whose links are slower, and what one byte takes there.
    pub slow_path: Option<(u64, u64)>,
    /// The last byte of the client's address on the path that loses everything.
    pub dead_path: Option<u64>,
    /// Datagrams are received so often, those of a path together where their sizes let them.
    pub batch_us: u64,
    lanes: BTreeMap<(bool, SocketAddr), Lane>,
    air: Vec<(Instant, bool, FourTuple, Vec<u8>)>,
}

fn byte(id: StreamId, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 9) ^ id.0) as u8
}

/// The client's address of its path number `index`.
fn client_address(index: usize) -> FourTuple {
    FourTuple { local: addr(&format!("10.1.0.{}:4000", index + 1)), remote: addr(ENGINE) }
}

fn flipped(tuple: FourTuple) -> FourTuple {
    FourTuple { local: tuple.remote, remote: tuple.local }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End")
            .field("arrived", &self.arrived)
            .field("loans", &self.loans)
            .field("returns", &self.returns.iter().rev().take(10).collect::<Vec<_>>())
            .field("holders", &self.holders)
            .field("deadline", &self.live.as_ref().map(|(_, coordinator)| coordinator.deadline()))
            .field(
                "statistics",
                &self.live.as_ref().map(|(_, c)| c.connection().path_statistics(Instant::ZERO, PathId::ZERO)),
            )
            .finish()
    }
}

impl End {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            live: None,
            lending: Lending::Never,
            holders: Vec::new(),
            down: Wire { items: VecDeque::new() },
            up: Wire { items: VecDeque::new() },
            loans: 0,
            returns: Vec::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            arrived: BTreeMap::new(),
            longest_piece: 0,
            events: Vec::new(),
            astray: 0,
            stalled_until: Instant::ZERO,
        }
    }

    pub fn coordinator(&mut self) -> &mut Coordinator {
        &mut self.live.as_mut().expect("a connection").1
    }

    pub fn connection(&self) -> &Connection {
        self.live.as_ref().expect("a connection").1.connection()
    }

    /// Opens a stream on which `bytes` are written as there is room.
    pub fn send(&mut self, bytes: u64) -> StreamId {
        let id = self.coordinator().streams().open(Dir::Uni).expect("a stream");
        self.writes.push((id, 0, bytes));
        id
    }

    /// Writes no more on a stream: it was reset or stopped.
    pub fn forget(&mut self, id: StreamId) {
        self.writes.retain(|(stream, ..)| *stream != id);
    }

    pub fn is_lent(&self) -> bool {
        !self.holders.is_empty()
    }

    /// A holder vanishes with its path, or seems to.
    pub fn take_holder(&mut self, index: usize) -> Box<LentPath> {
        self.holders.remove(index)
    }

    /// True while stream data is on its way to path `id`.
    pub fn is_leasing(&self, id: PathId) -> bool {
        self.down.items.iter().any(|(_, down)| matches!(down, Down::Tell(to, order) if *to == id && order.is_lease()))
    }

    /// Takes away the orders that are on their way to path `id`.
    pub fn take_orders(&mut self, id: PathId) -> Vec<ToPath> {
        let (theirs, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.down.items)
            .into_iter()
            .partition(|(_, down)| matches!(down, Down::Tell(to, _) if *to == id));
        self.down.items = others;
        let orders = theirs.into_iter().filter_map(|(_, down)| match down {
            Down::Tell(_, order) => Some(order),
            Down::Lend(_) => None,
        });
        orders.collect()
    }

    pub fn holders(&self) -> usize {
        self.holders.len()
    }

    fn run_application(&mut self) {
        let Self { live: Some((_, coordinator)), writes, reads, arrived, longest_piece, events, .. } = self else {
            return;
        };
        for (id, written, total) in writes.iter_mut() {
            while *written < *total {
                let data: Vec<u8> = (*written..(*written + 10_000).min(*total)).map(|at| byte(*id, at)).collect();
                let Ok(taken) = coordinator.send_stream(*id).write(&data) else { break };
                *written += taken as u64;
                if *written == *total {
                    coordinator.send_stream(*id).finish().unwrap();
                }
            }
        }
        writes.retain(|(_, written, total)| written < total);
        while let Some(id) = coordinator.streams().accept(Dir::Uni) {
            reads.push(id);
        }
        reads.retain(|id| {
            let got = arrived.entry(*id).or_default();
            loop {
                match coordinator.recv_stream(*id).read(usize::MAX, Order::Ordered) {
                    Ok(Some(chunk)) => {
                        assert_eq!(chunk.offset, got.bytes);
                        let is_right = chunk.bytes.iter().zip(got.bytes..).all(|(is, at)| *is == byte(*id, at));
                        assert!(is_right, "wrong bytes in stream {id:?} from {}", got.bytes);
                        got.bytes += chunk.bytes.len() as u64;
                        *longest_piece = chunk.bytes.len().max(*longest_piece);
                    }
                    Ok(None) => {
                        got.is_finished = true;
                        return false;
                    }
                    Err(ReadError::Blocked) => return true,
                    Err(ReadError::Reset(code)) => {
                        got.reset = Some(code);
                        return false;
                    }
                    Err(_) => return false,
                }
            }
        });
        while let Some(event) = coordinator.poll() {
            events.push(event);
        }
    }

    /// Lends, and carries messages and paths from one to the other.
    fn pass_messages(&mut self, now: Instant, random: &mut Random, message_us: u64) {
        let Self { live: Some((_, coordinator)), holders, down, up, .. } = self else { return };
        let mut later = || now + Duration::from_micros(random.below(message_us + 1));
        while let Some(message) = up.pop(now) {
            match message {
                Up::Tell(id, message) => coordinator.handle_message(now, id, message),
                Up::Back(lent) => coordinator.take_back(now, lent),
                Up::Bounced(id, message) => coordinator.handle_undelivered(now, id, message),
            }
        }
        let ids = coordinator.connection().paths().ids();
        let lent = match self.lending {
            Lending::Never => None,
            Lending::Eager => ids.into_iter().find_map(|id| coordinator.lend(now, id)),
            Lending::OnDemand => coordinator.poll_lend(now),
        };
        if let Some(lent) = lent {
            self.loans += 1;
            down.push(later(), Down::Lend(lent));
        }
        while let Some((id, message)) = coordinator.poll_message(now) {
            down.push(later(), Down::Tell(id, message));
        }
        if now < self.stalled_until {
            return;
        }
        while let Some(message) = down.pop(now) {
            match message {
                Down::Lend(lent) => holders.push(lent),
                Down::Tell(id, message) => match holders.iter_mut().find(|lent| lent.id() == id) {
                    Some(lent) => lent.handle_message(now, message),
                    None => up.push(later(), Up::Bounced(id, message)),
                },
            }
        }
        for lent in holders.iter_mut() {
            if lent.deadline().is_some_and(|at| at <= now) {
                lent.on_timeout(now);
            }
            while let Some(message) = lent.poll_message(now) {
                up.push(later(), Up::Tell(lent.id(), message));
            }
        }
        let mut at = 0;
        while at < holders.len() {
            let Some(why) = holders[at].wants_back().cloned() else {
                at += 1;
                continue;
            };
            self.returns.push(why);
            up.push(later(), Up::Back(holders.remove(at)));
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut Vec<(FourTuple, Vec<u8>)>) {
        let Self { live: Some((handle, coordinator)), holders, endpoint, .. } = self else { return };
        let mut buf = Vec::new();
        if now >= self.stalled_until {
            for lent in holders.iter_mut() {
                while let Some(transmit) = lent.poll_transmit(now, 8, &mut buf) {
                    let segment = transmit.segment_size.unwrap_or(transmit.size);
                    out.extend(
                        buf[..transmit.size].chunks(segment).map(|datagram| (transmit.tuple, datagram.to_vec())),
                    );
                }
            }
        }
        while let Some(transmit) = coordinator.poll_transmit(now, 8, &mut buf) {
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            out.extend(buf[..transmit.size].chunks(segment).map(|datagram| (transmit.tuple, datagram.to_vec())));
        }
        while let Some(event) = coordinator.poll_endpoint_event() {
            endpoint.on_connection_event(*handle, event);
        }
    }

    /// Datagrams that came together, each of `segment` bytes but the last.
    fn receive(&mut self, now: Instant, random: &mut Random, train: Train) -> Vec<Vec<u8>> {
        let Train { tuple, mut bytes, segment } = train;
        let mut replies = Vec::new();
        while !bytes.is_empty() {
            let mut reply = Vec::new();
            let received = self.endpoint.receive_front(now, tuple, None, &mut bytes, segment, &mut reply);
            replies.extend(self.take_in(now, random, received).then_some(reply));
        }
        replies
    }

    /// True where there is a reply.
    fn take_in(&mut self, now: Instant, random: &mut Random, received: Received) -> bool {
        match received {
            Received::Nothing => {}
            Received::Reply(_) => return true,
            Received::Incoming(incoming) => {
                let (handle, connection) = self.endpoint.accept(incoming, now, &mut Vec::new(), None).unwrap();
                self.live = Some((handle, Coordinator::new(connection)));
            }
            Received::Connection(handle, input) => {
                let Some((_, coordinator)) = self.live.as_mut().filter(|(live, _)| *live == handle) else {
                    return false;
                };
                let is_astray = self.astray > 0 && random.below(self.astray) == 0;
                match self.holders.iter_mut().find(|lent| lent.id() == input.path() && !is_astray) {
                    Some(lent) => lent.handle_datagram(now, input),
                    None => coordinator.handle_datagram(now, input),
                };
            }
        }
        false
    }
}

/// Datagrams of one tuple, as a receive call with GRO brings them.
struct Train {
    tuple: FourTuple,
    bytes: BytesMut,
    segment: usize,
}

impl World {
    /// Two ends with `paths` paths, each of 20 Mbit/s at first and 4 ms, 8 ms, 12 ms and so on there and back.
    pub fn new(seed: u64, paths: usize, change: impl Fn(&mut TransportConfig)) -> Self {
        let mut random = Random::from_u64(seed);
        let mut transport = TransportConfig::default();
        transport.max_concurrent_multipath_paths(8);
        change(&mut transport);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::from_random(server_tls(), &mut random);
        server.transport_config(transport.clone());
        let mut client = ClientConfig::new(client_tls());
        client.transport_config(transport);
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let server = Endpoint::new(config.clone(), Some(Arc::new(server)), random.fork());
        let mut endpoint = Endpoint::new(config, None, random.fork());
        let (handle, connection) = endpoint.connect(Instant::ZERO, client, client_address(0), "localhost").unwrap();
        let mut client = End::new(endpoint);
        client.live = Some((handle, Coordinator::new(connection)));
        let mut world = Self {
            now: Instant::ZERO,
            random,
            client,
            server: End::new(server),
            message_us: 0,
            loss: 0.0,
            byte_ns: 400,
            slow_path: None,
            dead_path: None,
            batch_us: 0,
            lanes: BTreeMap::new(),
            air: Vec::new(),
        };
        world.run(100);
        for index in 1..paths {
            world.open_path(index);
            world.run(100);
        }
        for end in [&mut world.client, &mut world.server] {
            assert_eq!(end.connection().paths().ids().len(), paths);
            end.events.clear();
        }
        world
    }

    /// The client opens its path number `index`.
    pub fn open_path(&mut self, index: usize) {
        let connection = self.client.coordinator().joined().expect("nothing is lent");
        connection.open_path(self.now, client_address(index), PathStatus::Available).unwrap();
    }

    pub fn lend(&mut self, client: Lending, server: Lending) {
        (self.client.lending, self.server.lending) = (client, server);
    }

    /// Lets so many milliseconds pass.
    pub fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.step();
        }
    }

    /// Until all that was written arrived, but for streams that ended otherwise.
    pub fn run_until_done(&mut self, streams: usize, patience_ms: u64) {
        let end = self.now + Duration::from_millis(patience_ms);
        let is_done = |arrived: &Arrived| arrived.is_finished || arrived.reset.is_some();
        loop {
            let ends = [&self.client, &self.server];
            let done: usize = ends.iter().map(|end| end.arrived.values().filter(|a| is_done(a)).count()).sum();
            if done >= streams {
                return;
            }
            for end in ends {
                let lost = end.events.iter().find(|event| matches!(event, Event::ConnectionLost(_)));
                assert!(!end.connection().is_closed(), "{lost:?} at {:?}", self.now);
            }
            assert!(self.now < end, "not done by {:?}:\n{:?}\n{:?}", self.now, self.client, self.server);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for end in [&mut self.client, &mut self.server] {
            if let Some((_, coordinator)) = &mut end.live
                && coordinator.deadline().is_some_and(|at| at <= now)
            {
                coordinator.on_timeout(now);
            }
            end.run_application();
            end.pass_messages(now, &mut self.random, self.message_us);
        }
        self.send(true);
        self.send(false);
        self.deliver();
        self.now += STEP;
    }

    fn send(&mut self, by_client: bool) {
        let mut out = Vec::new();
        let end = if by_client { &mut self.client } else { &mut self.server };
        end.transmit(self.now, &mut out);
        out.into_iter().for_each(|(tuple, datagram)| self.launch(by_client, tuple, datagram));
    }

    fn launch(&mut self, by_client: bool, tuple: FourTuple, datagram: Vec<u8>) {
        let client = if by_client { tuple.local } else { tuple.remote };
        let index = if let IpAddr::V4(ip) = client.ip() { u64::from(ip.octets()[3]) } else { 1 };
        let lane = self.lanes.entry((by_client, client)).or_default();
        let begin = lane.free_at.max(self.now);
        // A queue of 20 ms.
        if begin.since(self.now) > Duration::from_millis(20) || self.random.chance(self.loss) {
            return;
        }
        let byte_ns = self.slow_path.filter(|(path, _)| *path == index).map_or(self.byte_ns, |(_, byte_ns)| byte_ns);
        lane.free_at = begin + Duration::from_nanos(datagram.len() as u64 * byte_ns);
        if self.dead_path == Some(index) {
            return;
        }
        let at = lane.free_at + Duration::from_millis(2 * index);
        self.air.push((at, by_client, flipped(tuple), datagram));
    }

    fn deliver(&mut self) {
        let now = self.now;
        if self.batch_us > 0 && !now.since(Instant::ZERO).as_micros().is_multiple_of(u128::from(self.batch_us)) {
            return;
        }
        let mut due: Vec<_> = self.air.extract_if(.., |(at, ..)| *at <= now).collect();
        due.sort_by_key(|(at, by_client, tuple, _)| {
            let path = Some((*by_client, tuple.local, tuple.remote)).filter(|_| self.batch_us > 0);
            (path, *at)
        });
        let mut trains: Vec<(bool, Train)> = Vec::new();
        for (_, by_client, tuple, datagram) in due {
            let fits = |(by, train): &&mut (bool, Train)| {
                let is_whole = train.bytes.len().is_multiple_of(train.segment) && train.bytes.len() < 60_000;
                *by == by_client && train.tuple == tuple && is_whole && datagram.len() <= train.segment
            };
            match trains.last_mut().filter(|_| self.batch_us > 0).filter(fits) {
                Some((_, train)) => train.bytes.extend_from_slice(&datagram),
                None => {
                    let segment = datagram.len();
                    trains.push((by_client, Train { tuple, bytes: BytesMut::from(&datagram[..]), segment }));
                }
            }
        }
        for (by_client, train) in trains {
            let to = if by_client { &mut self.server } else { &mut self.client };
            let tuple = train.tuple;
            for reply in to.receive(now, &mut self.random, train) {
                self.launch(!by_client, tuple, reply);
            }
        }
    }
}
