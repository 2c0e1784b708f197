//! Streams of two ends joined by packets: see the topics.

mod ends;
mod exchange;
mod leases;
mod limits;
mod sending;

use bytes::Bytes;
use plait_base::{Instant, Side};

use super::*;
use crate::config::Window;
use crate::events::{Order, ReadError};
use crate::lanes::Lanes;
use crate::testing::{Seen, deliver, packet};

/// Two ends that know each other's limits.
fn pair(config: StreamsConfig) -> (Streams, Streams) {
    let (mut a, mut b) = (Streams::new(Side::Client, config), Streams::new(Side::Server, config));
    a.set_peer_limits(&b.config.announced());
    b.set_peer_limits(&a.config.announced());
    (a, b)
}

fn small() -> StreamsConfig {
    StreamsConfig {
        max_bidi: 4,
        max_uni: 4,
        stream_window: Window::fixed(1000),
        window: Window::fixed(1500),
        send_window: 4000,
    }
}

impl Streams {
    /// The next packet of control frames and data.
    fn packet(&mut self, room: usize) -> (Bytes, Vec<SentFrame>) {
        packet(room, |w| {
            self.fill_control(Instant::ZERO, w);
            self.fill_data(Lanes::ALL, w);
        })
    }

    fn acked(&mut self, carried: &[SentFrame]) {
        carried.iter().for_each(|c| self.on_acked(c));
        self.assert_sums();
    }

    fn lost(&mut self, carried: &[SentFrame]) {
        carried.iter().for_each(|c| self.on_lost(c));
        self.assert_sums();
    }

    /// The sums agree with the streams, and flow control holds.
    fn assert_sums(&mut self) {
        let mut sum = Tally::default();
        for (_, half) in self.table.live_sends() {
            sum.shift(Tally::default(), Tally::of(half));
            assert!(half.buffer.end() <= half.credit.limit, "beyond the stream's limit");
        }
        assert_eq!(sum, self.tally);
        assert!(self.send.used <= self.send.limit, "beyond the connection's limit");
        assert!(self.receive.consumed() <= self.receive.received());
        assert!(self.receive.received() <= self.receive.limit());
    }

    fn events(&mut self) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.poll_event()).collect()
    }

    fn read_all(&mut self, id: StreamId) -> (Vec<u8>, Result<(), ReadError>) {
        let mut all = Vec::new();
        loop {
            match self.read(id, usize::MAX, Order::Ordered) {
                Ok(Some(chunk)) => all.extend_from_slice(&chunk.bytes),
                Ok(None) => return (all, Ok(())),
                Err(e) => return (all, Err(e)),
            }
        }
    }
}

/// Sends all that `from` has to `to` and acks it; the STREAM frames.
fn flush(from: &mut Streams, to: &mut Streams) -> Vec<Seen> {
    let mut seen = Vec::new();
    for _ in 0..10_000 {
        let (bytes, carried) = from.packet(1200);
        if carried.is_empty() {
            return seen;
        }
        seen.extend(deliver(bytes, to).expect("an honest peer"));
        from.acked(&carried);
        to.assert_sums();
    }
    panic!("never done");
}
