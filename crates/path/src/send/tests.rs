//! Scripted scenarios of RFC 9002 and a comparison with a simple model.

mod model;
mod scenarios;
mod timers;

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{EcnCounts, Instant, PathId, Space, Violation};
use plait_congestion::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, CubicFactory, Limit,
};
use plait_wire::SentFrame;

use super::ecn::EcnState;
use super::*;

const MS: Duration = Duration::from_millis(1);
const BYTES: u16 = 1000;

/// What a controller was told.
#[derive(Clone, Debug, Default)]
struct Tape {
    events: Vec<(CongestionKind, u64)>,
    acked: u64,
    acked_total: u64,
    limits: Vec<Limit>,
    spurious: u32,
}

/// A controller with a fixed window that writes down what it hears.
#[derive(Debug)]
struct Scribe {
    window: u64,
    tape: Arc<Mutex<Tape>>,
}

impl CongestionController for Scribe {
    fn name(&self) -> &'static str {
        "scribe"
    }
    fn window(&self) -> u64 {
        self.window
    }
    fn ssthresh(&self) -> u64 {
        0
    }
    fn on_acked(&mut self, ack: &Acked, _shared: &SharedPathMetrics) {
        let mut tape = self.tape.lock().unwrap();
        tape.acked += ack.bytes;
        tape.acked_total += ack.bytes_total;
        tape.limits.push(ack.limit);
    }
    fn on_congestion(&mut self, event: &Congestion, _shared: &SharedPathMetrics) {
        self.tape.lock().unwrap().events.push((event.kind, event.lost_bytes));
    }
    fn on_max_datagram_bytes(&mut self, _mss: u64) {}
    fn on_spurious(&mut self) {
        self.tape.lock().unwrap().spurious += 1;
    }
}

/// A flow on a bench, with its clock in milliseconds.
struct Bench {
    flow: SendFlow,
    shared: SharedPathMetrics,
    feedback: Feedback,
    tape: Arc<Mutex<Tape>>,
    now: Instant,
}

fn at(ms: u32) -> Instant {
    Instant::ZERO + MS * ms
}

impl Bench {
    fn new() -> Self {
        Self::with(SendConfig { ecn: EcnMode::Off, ..SendConfig::default() })
    }

    fn with(config: SendConfig) -> Self {
        let tape = Arc::new(Mutex::new(Tape::default()));
        let controller = Box::new(Scribe { window: 1_000_000, tape: Arc::clone(&tape) });
        let flow = SendFlow::new(PathId::ZERO, Instant::ZERO, controller, config);
        Self { flow, shared: SharedPathMetrics::default(), feedback: Feedback::default(), tape, now: Instant::ZERO }
    }

    fn scribe(&self, window: u64) -> Box<Scribe> {
        Box::new(Scribe { window, tape: Arc::clone(&self.tape) })
    }

    /// Sends an ack-eliciting packet in `Data` that carries MAX_DATA of its own number.
    fn send(&mut self, ms: u32) -> u64 {
        self.send_in(ms, Space::Data, packet())
    }

    /// Asks for a packet of 1000 bytes, as a sender that would act upon it.
    fn room(&mut self, ms: u32) -> SendRoom {
        self.flow.prepare_to_send(at(ms), 1000);
        self.flow.room(at(ms), 1000)
    }

    fn send_in(&mut self, ms: u32, space: Space, packet: PacketInfo) -> u64 {
        self.now = at(ms);
        let number = self.flow.next_number(space);
        self.flow.on_sent(self.now, space, &packet, &[SentFrame::MaxData(number)]);
        number
    }

    fn ack(&mut self, ms: u32, ranges: &[RangeInclusive<u64>]) -> Result<AckOutcome, Violation> {
        self.ack_with(ms, Space::Data, Duration::ZERO, None, ranges)
    }

    fn ack_with(
        &mut self,
        ms: u32,
        space: Space,
        delay: Duration,
        ecn: Option<EcnCounts>,
        ranges: &[RangeInclusive<u64>],
    ) -> Result<AckOutcome, Violation> {
        self.now = at(ms);
        self.feedback.clear();
        let largest = ranges.iter().map(|r| *r.end()).max().unwrap();
        let report = AckReport { largest, delay, ecn, via: PathId::ZERO };
        let (shared, feedback) = (&mut self.shared, &mut self.feedback);
        self.flow.on_ack(self.now, space, &report, ranges.iter().cloned(), shared, feedback)
    }

    fn timeout(&mut self, ms: u32) -> TimerFired {
        self.now = at(ms);
        self.feedback.clear();
        self.flow.on_timeout(self.now, &mut self.shared, &mut self.feedback)
    }

    fn lost(&self) -> Vec<u64> {
        self.feedback.lost.iter().map(number_of).collect()
    }

    fn acked(&self) -> Vec<u64> {
        self.feedback.acked.iter().map(number_of).collect()
    }

    fn tape(&self) -> Tape {
        self.tape.lock().unwrap().clone()
    }

    fn kinds(&self) -> Vec<CongestionKind> {
        self.tape().events.iter().map(|(kind, _)| *kind).collect()
    }
}

fn number_of(frame: &SentFrame) -> u64 {
    match frame {
        SentFrame::MaxData(n) => *n,
        other => panic!("{other:?}"),
    }
}

fn packet() -> PacketInfo {
    PacketInfo { bytes: BYTES, ack_eliciting: true, in_flight: true, ..PacketInfo::default() }
}
