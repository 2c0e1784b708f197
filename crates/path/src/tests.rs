//! A sender and a receiver over a slow, lossy, shuffling link: all data arrives, and every byte leaves the flight.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::time::earliest;
use plait_base::{Ecn, Instant, PathId, Random, Space};
use plait_congestion::by_name;
use plait_wire::frame::AckForm;
use plait_wire::{Frame, FrameWriter, Frames, SentFrame};

use crate::send::SendFlow;
use crate::{
    AckNeed, AckPolicy, AckReport, Eliciting, Feedback, PacketInfo, ReceiveFlow, SendConfig, SendRoom, TimerFired,
};

const PATH: PathId = PathId(1);
const DELAY: Duration = Duration::from_millis(20);
const BYTES: u16 = 1200;

/// What the link does to packets.
#[derive(Clone, Copy)]
struct Weather {
    loss: f64,
    late: f64,
    acks_lost: f64,
    marks: Option<Ecn>,
}

enum Flying {
    Data { number: u64, block: Option<u64>, ecn: Option<Ecn> },
    Ack(Vec<u8>),
}

struct World {
    now: Instant,
    random: Random,
    weather: Weather,
    send: SendFlow,
    receive: ReceiveFlow,
    shared: SharedPathMetrics,
    feedback: Feedback,
    wire: BTreeMap<(Instant, u64), Flying>,
    order: u64,
    to_send: VecDeque<u64>,
    arrived: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    dropped: u64,
}

impl World {
    fn new(controller: &str, seed: u64, weather: Weather, blocks: u64) -> Self {
        let mut random = Random::from_u64(seed);
        let config = SendConfig { skip: Some(random.fork().into()), ..SendConfig::default() };
        let controller = by_name(controller).unwrap().build(PATH, Instant::ZERO, BYTES.into());
        Self {
            now: Instant::ZERO,
            random,
            weather,
            send: SendFlow::new(PATH, Instant::ZERO, controller, config),
            receive: ReceiveFlow::new(PATH, Space::Data, AckPolicy::delayed(Duration::from_millis(25))),
            shared: SharedPathMetrics::default(),
            feedback: Feedback::default(),
            wire: BTreeMap::new(),
            order: 0,
            to_send: (0..blocks).collect(),
            arrived: BTreeSet::new(),
            acked: BTreeSet::new(),
            dropped: 0,
        }
    }

    fn fly(&mut self, loss: f64, what: Flying) {
        self.order += 1;
        if self.random.chance(loss) {
            self.dropped += 1;
            return;
        }
        let late = if self.random.chance(self.weather.late) { DELAY / 4 } else { Duration::ZERO };
        self.wire.insert((self.now + DELAY + late, self.order), what);
    }

    fn send_one(&mut self, block: Option<u64>) {
        let number = self.send.next_number(Space::Data);
        let mark = self.send.ecn();
        let packet = PacketInfo {
            bytes: BYTES,
            ack_eliciting: true,
            in_flight: true,
            ecn_marked: mark.is_some(),
            app_limited: self.to_send.is_empty(),
            ..PacketInfo::default()
        };
        let carried = block.map_or(SentFrame::Ping, SentFrame::MaxData);
        self.send.on_sent(self.now, Space::Data, &packet, &[carried]);
        let ecn = mark.and(self.weather.marks);
        self.fly(self.weather.loss, Flying::Data { number, block, ecn });
    }

    fn send_all(&mut self) -> Option<Instant> {
        while self.send.probes_due(Space::Data) > 0 {
            let block = self.to_send.pop_front();
            self.send_one(block);
        }
        while let Some(block) = self.to_send.front().copied() {
            self.send.prepare_to_send(self.now, BYTES.into());
            match self.send.room(self.now, BYTES.into()) {
                SendRoom::Free => {
                    self.to_send.pop_front();
                    self.send_one(Some(block));
                }
                SendRoom::Window => return None,
                SendRoom::Paced(at) => return Some(at),
            }
        }
        None
    }

    fn arrive(&mut self, what: Flying) {
        match what {
            Flying::Data { number, block, ecn } => {
                assert!(!self.receive.is_duplicate(number));
                self.receive.on_packet(self.now, number, Eliciting::Yes, ecn);
                self.arrived.extend(block);
            }
            Flying::Ack(bytes) => {
                let Some(Ok(Frame::Ack(ack))) = Frames::new(&bytes).next() else { panic!("an ack") };
                let delay = Duration::from_micros(ack.delay << 3);
                let report = AckReport { largest: ack.largest, delay, ecn: ack.ecn, via: PATH };
                let (shared, feedback) = (&mut self.shared, &mut self.feedback);
                self.send.on_ack(self.now, Space::Data, &report, ack.ranges(), shared, feedback).unwrap();
            }
        }
    }

    fn acknowledge(&mut self) {
        if self.receive.ack_need(self.now) < AckNeed::Now {
            return;
        }
        let (mut bytes, mut carried) = (Vec::new(), Vec::new());
        let mut w = FrameWriter::new(&mut bytes, BYTES.into(), &mut carried);
        assert!(self.receive.fill_ack(self.now, &mut w, AckForm::Path, 3).is_some());
        self.receive.on_ack_sent();
        self.fly(self.weather.acks_lost, Flying::Ack(bytes));
    }

    fn digest(&mut self) {
        for carried in self.feedback.acked.drain(..) {
            if let SentFrame::MaxData(block) = carried {
                assert!(self.arrived.contains(&block));
                self.acked.insert(block);
            }
        }
        for carried in self.feedback.lost.drain(..) {
            match carried {
                SentFrame::MaxData(block) if !self.acked.contains(&block) => self.to_send.push_back(block),
                _ => {}
            }
        }
        self.feedback.clear();
    }

    /// Runs until all is acked; how long that took.
    fn run(&mut self, blocks: u64) -> Duration {
        while (self.acked.len() as u64) < blocks {
            let paced = self.send_all();
            let flying = self.wire.first_key_value().map(|((at, _), _)| *at);
            let timers = earliest(self.send.deadline(), self.receive.deadline());
            let next = earliest(earliest(paced, flying), timers).expect("something is always due");
            self.now = self.now.max(next);
            assert!(self.now < Instant::ZERO + Duration::from_secs(600), "stuck");
            while let Some(entry) = self.wire.first_entry().filter(|e| e.key().0 <= self.now) {
                let what = entry.remove();
                self.arrive(what);
            }
            self.acknowledge();
            if self.send.deadline().is_some_and(|at| at <= self.now) {
                let fired = self.send.on_timeout(self.now, &mut self.shared, &mut self.feedback);
                if let (TimerFired::Pto { .. }, true) = (fired, self.to_send.is_empty()) {
                    let mut oldest = Vec::new();
                    self.send.oldest_frames(Space::Data, 0, 2, &mut oldest);
                    self.feedback.lost.extend(oldest);
                }
            }
            self.digest();
        }
        self.now.since(Instant::ZERO)
    }
}

const FAIR: Weather = Weather { loss: 0.0, late: 0.0, acks_lost: 0.0, marks: Some(Ecn::Ect0) };

#[test]
fn a_clean_link_loses_nothing() {
    for name in ["newreno", "cubic"] {
        let mut world = World::new(name, 1, FAIR, 3000);
        let took = world.run(3000);
        let stats = world.send.stats();
        assert_eq!((stats.packets_lost, stats.timeouts, stats.congestion_events), (0, 0, 0), "{name}");
        assert_eq!(world.send.ecn(), Some(Ecn::Ect0));
        assert!(took < Duration::from_secs(2), "{name}: {took:?}");
        let rtt = stats.rtt.unwrap();
        assert!((DELAY * 2..DELAY * 2 + Duration::from_millis(30)).contains(&rtt), "{rtt:?}");
        assert!(stats.delivery_rate_bps.is_some_and(|bps| bps > 5_000_000), "{stats:?}");
    }
}

#[test]
fn loss_and_disorder_only_slow_things_down() {
    for seed in 0..12 {
        for (loss, late, acks_lost) in [(0.02, 0.0, 0.0), (0.1, 0.05, 0.1), (0.4, 0.2, 0.4)] {
            let mut world = World::new("newreno", seed, Weather { loss, late, acks_lost, marks: None }, 400);
            world.run(400);
            let stats = world.send.stats();
            assert!(stats.packets_lost > 0 && stats.packets_lost <= stats.packets_sent);
            assert!(stats.packets_acked + stats.packets_lost <= stats.packets_sent + stats.packets_spurious);
            assert_eq!(world.send.ecn(), None, "bleached marks are noticed");
            let outstanding = stats.packets_sent + stats.packets_spurious - stats.packets_acked - stats.packets_lost;
            assert_eq!(stats.in_flight_bytes, outstanding * u64::from(BYTES));
        }
    }
}

#[test]
fn ce_marks_keep_the_window_small() {
    // RFC 9002 7-2
    let mut calm = World::new("newreno", 3, FAIR, 2000);
    calm.run(2000);
    let mut marked = World::new("newreno", 3, Weather { marks: Some(Ecn::Ce), ..FAIR }, 2000);
    marked.run(2000);
    assert!(marked.send.stats().congestion_events > 5);
    assert!(marked.send.window() < calm.send.window() / 4);
}
