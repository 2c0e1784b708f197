//! The loop: hand over what is due, read what has come, wait exactly until something is due.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::poll::ppoll;
use nix::sys::time::TimeSpec;
use plait_base::Instant;
use plait_sim::scenario::Direction;

use super::fabric::Fabric;
use super::packet::Facts;
use super::{Gates, LinkRecord};
use crate::clock::ClockPoint;

/// Packets read from one place before others get a turn, and packets handed over before reading does.
const READ_TURN: usize = 32;
const WRITE_TURN: usize = 64;
/// Within these bounds the loop no longer sleeps before something is due: twice as long as waking up took of late. A
/// processor that rests often takes long to wake, and then there is time to spare; a busy one wakes at once.
const SPIN_MIN: Duration = Duration::from_micros(10);
const SPIN_MAX: Duration = Duration::from_micros(250);
/// So much a new wake-up weighs in what is held of the last ones.
const WAKE_WEIGHT: f64 = 0.125;
/// How often the loop looks whether it should stop.
const STOP_LOOK: Duration = Duration::from_millis(20);
/// Payload of a packet that brings data rather than acknowledgements.
const DATA_BYTES: usize = 100;
/// The largest IP packet.
const PACKET_BYTES_MAX: usize = 65_536;

/// The loop's state between rounds.
struct Rhythm<'a, G> {
    fabric: Fabric,
    gates: G,
    buffer: Vec<u8>,
    record: LinkRecord,
    /// Where others learn when the first packet came.
    first: &'a OnceLock<ClockPoint>,
    /// How long after the end of a pause the loop ran again, of late.
    wake: Duration,
}

/// Carries packets until told to stop; sets `first` when the first has come.
pub(super) fn run(fabric: Fabric, gates: impl Gates, first: &OnceLock<ClockPoint>, stop: &AtomicBool) -> LinkRecord {
    let (buffer, record) = (vec![0; PACKET_BYTES_MAX], LinkRecord::default());
    let mut rhythm = Rhythm { fabric, gates, buffer, record, first, wake: SPIN_MIN };
    while !stop.load(Ordering::Relaxed) {
        let has_written = rhythm.hand_over();
        let has_read = rhythm.take_in();
        if has_written || has_read {
            continue;
        }
        let pause = rhythm.pause();
        if !pause.is_zero() {
            let before = ClockPoint::now();
            let woken = ppoll(&mut rhythm.gates.waits(), Some(TimeSpec::from_duration(pause)), None);
            if woken == Ok(0) {
                rhythm.on_wake(ClockPoint::now().since(before).saturating_sub(pause));
            }
        }
    }
    rhythm.record.traffic = rhythm.fabric.traffic();
    rhythm.record.crossed = rhythm.fabric.crossed();
    rhythm.record.refused += rhythm.gates.lost();
    rhythm.record
}

impl<G: Gates> Rhythm<'_, G> {
    /// Time since the first packet; none before it.
    fn time(&self, now: ClockPoint) -> Option<Instant> {
        self.record.first.map(|first| Instant::ZERO + now.since(first))
    }

    /// Writes what is due, a turn of it.
    fn hand_over(&mut self) -> bool {
        let Some(now) = self.time(ClockPoint::now()) else { return false };
        let Self { fabric, gates, .. } = self;
        fabric.turn(now, |path, state| gates.interface(path, state));
        for count in 0..WRITE_TURN {
            let clock = ClockPoint::now();
            let Some(now) = self.time(clock) else { return false };
            let Some(arrival) = self.fabric.poll(now) else { return count > 0 };
            self.record.lateness.add(now.since(arrival.at));
            if !self.gates.deliver(arrival.path, arrival.direction, &arrival.bytes) {
                self.record.refused += 1;
            }
            if arrival.direction == Direction::Down && arrival.payload_bytes > DATA_BYTES {
                self.record.last_payload = Some(clock);
            }
            self.fabric.take_back(arrival.bytes);
        }
        true
    }

    /// Reads what has come, a turn of it from each place.
    fn take_in(&mut self) -> bool {
        let mut has_read = false;
        for source in 0..self.gates.sources() {
            for _ in 0..READ_TURN {
                let Some(entry) = self.gates.receive(source, &mut self.buffer) else { break };
                let packet = self.buffer.get(..entry.size).unwrap_or_default();
                has_read = true;
                let Some(facts) = Facts::read(packet) else {
                    self.record.strays += 1;
                    continue;
                };
                let clock = ClockPoint::now();
                let first = *self.record.first.get_or_insert(clock);
                self.first.get_or_init(|| first);
                let now = Instant::ZERO + clock.since(first);
                self.fabric.enter(now, entry.path, entry.direction, facts, packet);
            }
        }
        has_read
    }

    /// A pause lasted so much longer than it should.
    fn on_wake(&mut self, late: Duration) {
        // One that is off the scale says that somebody else ran, not how long waking takes.
        self.wake = self.wake.mul_f64(1.0 - WAKE_WEIGHT) + late.min(SPIN_MAX).mul_f64(WAKE_WEIGHT);
    }

    /// How long nothing is to be done but to wait for packets.
    fn pause(&self) -> Duration {
        let deadline = self.record.first.and_then(|_| self.fabric.deadline());
        let now = self.time(ClockPoint::now()).unwrap_or_default();
        let spin = (self.wake * 2).clamp(SPIN_MIN, SPIN_MAX);
        deadline.map_or(STOP_LOOK, |at| at.since(now).saturating_sub(spin).min(STOP_LOOK))
    }
}
