//! Two endpoints in one process, and two links of 1 Gbit/s between them, in virtual time. Nothing is lost; trains arrive as
//! receive calls with GRO bring them.

use std::collections::BinaryHeap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{FourTuple, Instant, Random};
use plait_engine::crypto::tls::Identity;
use plait_engine::crypto::{ClientTlsConfig, Protection, ServerTlsConfig};
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, More, Received, ServerConfig, TransportConfig,
};

const WINDOW_BYTES: u64 = 4 << 20;
const MAX_SEGMENTS: usize = 44;
/// Nanoseconds that a byte takes: 1 Gbit/s.
const BYTE_NANOS: u64 = 8;

/// A train on its way.
struct Flight {
    at: Instant,
    order: u64,
    to: usize,
    tuple: FourTuple,
    segment_bytes: usize,
    data: BytesMut,
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The earliest is the greatest.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

pub(crate) struct End {
    endpoint: Endpoint,
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    buffer: Vec<u8>,
    reply: Vec<u8>,
}

/// The client at 0, the server at 1.
pub(crate) struct World {
    pub(crate) ends: [End; 2],
    pub(crate) now: Instant,
    flights: BinaryHeap<Flight>,
    order: u64,
    /// When each path's link towards the server is free.
    free_at: [Instant; 2],
}

impl World {
    pub(crate) fn new(paths: u32, protection: Protection) -> Result<Self, Box<dyn Error>> {
        let mut transport = TransportConfig::default();
        transport.max_concurrent_multipath_paths(paths).send_window(WINDOW_BYTES);
        transport.max_stream_receive_window(WINDOW_BYTES).max_receive_window(WINDOW_BYTES);
        let transport = Arc::new(transport);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes())?;
        let mut random = Random::from_u64(1);
        let tls = ServerTlsConfig::builder(identity).alpn(["transfer"]).protection(protection).build()?;
        let mut server = ServerConfig::from_random(tls, &mut random);
        server.transport_config(transport.clone());
        let tls =
            ClientTlsConfig::builder().accept_any_certificate().alpn(["transfer"]).protection(protection).build()?;
        let mut client = ClientConfig::new(tls);
        client.transport_config(transport);
        let mut end = |server| {
            let config = Arc::new(EndpointConfig::from_random(&mut random));
            let endpoint = Endpoint::new(config, server, random.fork());
            End { endpoint, connection: None, buffer: Vec::new(), reply: Vec::new() }
        };
        let mut ends = [end(None), end(Some(Arc::new(server)))];
        let tuple = FourTuple { local: address(1), remote: address(9) };
        ends[0].connection = Some(ends[0].endpoint.connect(Instant::ZERO, client, tuple, "localhost")?);
        Ok(Self { ends, now: Instant::ZERO, flights: BinaryHeap::new(), order: 0, free_at: [Instant::ZERO; 2] })
    }

    /// Lets everything leave that may, then goes on to what happens next.
    pub(crate) fn step(&mut self) -> Result<(), Box<dyn Error>> {
        for from in 0..2 {
            self.transmit(from);
        }
        let deadlines = self.ends.iter().filter_map(|end| end.connection.as_ref()?.1.deadline());
        let next = deadlines.chain(self.flights.peek().map(|flight| flight.at)).min();
        self.now = self.now.max(next.ok_or("nothing will happen any more")?);
        for end in &mut self.ends {
            if let Some((_, connection)) = &mut end.connection
                && connection.deadline().is_some_and(|at| at <= self.now)
            {
                connection.on_timeout(self.now);
            }
        }
        while self.flights.peek().is_some_and(|flight| flight.at <= self.now) {
            if let Some(flight) = self.flights.pop() {
                self.deliver(flight)?;
            }
        }
        Ok(())
    }

    fn transmit(&mut self, from: usize) {
        let End { endpoint, connection, buffer, .. } = &mut self.ends[from];
        let Some((handle, connection)) = connection else { return };
        loop {
            let transmit = connection.poll_transmit(self.now, MAX_SEGMENTS, buffer);
            while let Some(event) = connection.poll_endpoint_event() {
                endpoint.on_connection_event(*handle, event);
            }
            let Some(transmit) = transmit else { return };
            let FourTuple { local, remote } = transmit.tuple;
            let is_second = [local, remote].contains(&address(2));
            // What the server says is little: it finds its link free.
            let mut leaves_at = self.now;
            if from == 0 {
                let free_at = &mut self.free_at[usize::from(is_second)];
                *free_at = self.now.max(*free_at) + Duration::from_nanos(transmit.size as u64 * BYTE_NANOS);
                leaves_at = *free_at;
            }
            self.order += 1;
            self.flights.push(Flight {
                at: leaves_at + Duration::from_millis(if is_second { 6 } else { 5 }),
                order: self.order,
                to: 1 - from,
                tuple: FourTuple { local: remote, remote: local },
                segment_bytes: transmit.segment_size.unwrap_or(transmit.size),
                data: BytesMut::from(&buffer[..transmit.size]),
            });
            if transmit.more == More::Nothing {
                return;
            }
        }
    }

    fn deliver(&mut self, flight: Flight) -> Result<(), Box<dyn Error>> {
        let Flight { to, tuple, segment_bytes, mut data, .. } = flight;
        let End { endpoint, connection, reply, .. } = &mut self.ends[to];
        while !data.is_empty() {
            match endpoint.receive_front(self.now, tuple, None, &mut data, segment_bytes, reply) {
                Received::Connection(_, input) => {
                    if let Some((_, connection)) = connection {
                        connection.handle_datagram(self.now, input);
                    }
                }
                Received::Incoming(incoming) => {
                    let accepted = endpoint.accept(incoming, self.now, reply, None);
                    *connection = Some(accepted.map_err(|refusal| refusal.cause.to_string())?);
                }
                Received::Nothing => {}
                Received::Reply(_) => return Err("an answer without a connection".into()),
            }
        }
        Ok(())
    }
}

pub(crate) fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4433))
}
