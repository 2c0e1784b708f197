//! A real queue: datagrams wait until the link takes them, and may still be dropped then.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::{Ecn, Instant};

use crate::link::aqm::{Care, CoDel, CoDelConfig, FlowQueues, FqCoDelConfig};
use crate::link::queued::Queued;
use crate::link::rate::{Rate, Transmitter};
use crate::link::stats::LinkStats;
use crate::link::verdict::{DropCause, Outcome, Release, Ticket};

/// A datagram that is being sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    item: Queued,
    /// Since when `left` bytes are being sent at an unchanged rate.
    since: Instant,
    left: u64,
    done: Instant,
}

/// A datagram that has just been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) ticket: Ticket,
    pub(crate) at: Instant,
    pub(crate) bytes: u64,
    pub(crate) ecn: Option<Ecn>,
}

/// The queue and the datagram on its way out.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveQueue {
    /// First in, first out; behind the queues of flows, where there are any, the device's own queue.
    waiting: VecDeque<Queued>,
    flows: FlowQueues,
    /// Bytes that wait in all of them.
    bytes: u64,
    sending: Option<Sending>,
    /// When a trace lets the next datagram begin.
    gate: Option<Instant>,
    next_ticket: u64,
    /// What has left the queue, one way or the other, and is still to be reported.
    released: VecDeque<Release>,
    codel: CoDel,
}

/// Who manages the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Management<'a> {
    None,
    CoDel(&'a CoDelConfig),
    FqCoDel(&'a FqCoDelConfig),
}

/// What the queue needs to take the next datagram.
pub(crate) struct Taking<'a> {
    pub(crate) rate: &'a Rate,
    pub(crate) management: Management<'a>,
    pub(crate) transmitter: &'a mut Transmitter,
    pub(crate) stats: &'a mut LinkStats,
}

impl LiveQueue {
    /// True when nothing waits or is being sent or reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_idle() && self.released.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn packets(&self) -> usize {
        self.waiting.len() + self.flows.packets()
    }

    /// Datagrams that wait or are being sent.
    pub(crate) fn pending(&self) -> usize {
        self.packets() + usize::from(self.sending.is_some())
    }

    /// True when a datagram could be sent at once.
    pub(crate) fn is_idle(&self) -> bool {
        self.packets() == 0 && self.sending.is_none()
    }

    /// How long a datagram that enters at `now` would wait at the present rate.
    pub(crate) fn wait(&self, now: Instant, rate: &Rate) -> Duration {
        let sending = self.sending.map_or(Duration::ZERO, |s| s.done.since(now));
        sending.saturating_add(rate.time_of(self.bytes))
    }

    /// One more: bytes, mark and flow.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        (bytes, ecn, flow): (u64, Option<Ecn>, u64),
        t: &mut Taking<'_>,
    ) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let item = Queued { ticket, entered: now, bytes, ecn };
        self.bytes += bytes;
        match t.management {
            Management::FqCoDel(fq) => {
                if let Some(lost) = self.flows.push(fq, flow, item) {
                    self.lose(lost, DropCause::QueueFull, t.stats);
                }
                self.refill(now, fq, fq.device_packets, t.stats);
            }
            Management::None | Management::CoDel(_) => self.waiting.push_back(item),
        }
        ticket
    }

    fn lose(&mut self, item: Queued, cause: DropCause, stats: &mut LinkStats) {
        self.bytes -= item.bytes;
        stats.on_drop(cause);
        self.released.push_back(Release { ticket: item.ticket, outcome: Outcome::Dropped(cause) });
    }

    /// From the queues of flows to the device's, until that holds `packets`.
    fn refill(&mut self, at: Instant, fq: &FqCoDelConfig, packets: usize, stats: &mut LinkStats) {
        while self.waiting.len() < packets && self.flows.packets() > 0 {
            let taken = self.flows.take(fq, at);
            stats.marked += taken.marked;
            taken.dropped.into_iter().for_each(|item| self.lose(item, DropCause::Aqm, stats));
            self.waiting.extend(taken.item);
        }
    }

    /// When something happens next; the origin when something is to be reported at once.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.released.is_empty() {
            return Some(Instant::ZERO);
        }
        let done = self.sending.map(|s| s.done).or(self.gate)?;
        (done < NEVER).then_some(done)
    }

    /// A datagram that is to be reported.
    pub(crate) fn poll_released(&mut self) -> Option<Release> {
        self.released.pop_front()
    }

    /// To be reported: what became of a datagram that was sent.
    pub(crate) fn release(&mut self, release: Release) {
        self.released.push_back(release);
    }

    /// The datagram whose sending has ended by `now`.
    pub(crate) fn poll_sent(&mut self, now: Instant) -> Option<Sent> {
        let Sending { item, done, .. } = self.sending.take_if(|s| s.done <= now)?;
        Some(Sent { ticket: item.ticket, at: done, bytes: item.bytes, ecn: item.ecn })
    }

    /// When the gate of a trace has opened by `now`: the instant it did.
    pub(crate) fn open_gate(&mut self, now: Instant) -> Option<Instant> {
        self.gate.take_if(|gate| *gate <= now)
    }

    /// Takes datagrams at `at`, once the link is free, until one is being sent.
    pub(crate) fn take(&mut self, at: Instant, t: &mut Taking<'_>) {
        if self.sending.is_some() || self.gate.is_some() {
            return;
        }
        while self.packets() > 0 {
            let begin = t.transmitter.peek(t.rate, at);
            if begin > at {
                self.gate = Some(begin);
                return;
            }
            let Some(mut item) = self.next(at, t) else { break };
            self.bytes -= item.bytes;
            let wait = at.since(item.entered);
            if let Management::CoDel(codel) = t.management
                && self.codel.on_dequeue(codel, at, wait, self.bytes) != Care::Pass
            {
                if item.ecn.is_none() {
                    t.stats.on_drop(DropCause::Aqm);
                    self.released.push_back(Release { ticket: item.ticket, outcome: Outcome::Dropped(DropCause::Aqm) });
                    continue;
                }
                item.ecn = Some(Ecn::Ce);
                t.stats.marked += 1;
            }
            t.stats.on_wait(wait);
            let (_, done) = t.transmitter.send(t.rate, at, item.bytes);
            self.sending = Some(Sending { item, since: at, left: item.bytes, done });
            return;
        }
        self.codel.on_empty();
    }

    /// The first in line; flows that wait take their turns even where nobody manages them any more.
    fn next(&mut self, at: Instant, t: &mut Taking<'_>) -> Option<Queued> {
        let unmanaged = FqCoDelConfig::default();
        let fq = if let Management::FqCoDel(fq) = t.management { fq } else { &unmanaged };
        self.refill(at, fq, 1, t.stats);
        let item = self.waiting.pop_front();
        self.refill(at, fq, fq.device_packets, t.stats);
        item
    }

    /// The rate has changed at `now`; `transmitter` is ready for the new one.
    pub(crate) fn on_rate(&mut self, now: Instant, rate: &Rate, transmitter: &mut Transmitter) {
        self.gate = None;
        let Some(s) = &mut self.sending else { return };
        let (whole, rest) = (s.done.since(s.since), s.done.since(now));
        if whole > Duration::ZERO && s.done > now {
            // Round up: a datagram that is not finished has at least a byte to go.
            s.left = ((s.left as f64 * rest.as_secs_f64() / whole.as_secs_f64()).ceil() as u64).clamp(1, s.left.max(1));
            s.since = now;
            s.done = transmitter.send(rate, now, s.left).1;
        }
    }

    /// Everything that waits or is being sent is lost.
    pub(crate) fn flush(&mut self, stats: &mut LinkStats) {
        let sending = self.sending.take().map(|s| s.item);
        let flows = self.flows.drain();
        for item in sending.into_iter().chain(self.waiting.drain(..)).chain(flows) {
            stats.on_drop(DropCause::Down);
            self.released.push_back(Release { ticket: item.ticket, outcome: Outcome::Dropped(DropCause::Down) });
        }
        self.bytes = 0;
        self.gate = None;
        self.codel.on_empty();
    }
}

/// Beyond any time that is waited for.
const NEVER: Instant = Instant::from_nanos(u64::MAX);
