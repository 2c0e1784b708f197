//! FQ-CoDel (RFC 8290): a queue with CoDel for each flow, served in turns, before a first-in first-out device queue.

use std::collections::{BTreeMap, VecDeque};

use plait_base::{Ecn, Instant};

use super::{Care, CoDel, CoDelConfig};
use crate::link::queued::Queued;

/// Settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel of each flow.
    pub codel: CoDelConfig,
    /// Bytes that a flow may send in a turn; one full frame (RFC 8290 5.2.2).
    pub quantum_bytes: u32,
    /// Queues that flows are hashed to (RFC 8290 5.2.4).
    pub queues: u32,
    /// Datagrams that wait in all queues together; beyond them the fattest queue loses its first (RFC 8290 4.1.3).
    pub packets: usize,
    /// Datagrams in the device's own queue behind, which nobody manages: they have left their flow's queue. 0 for none.
    pub device_packets: usize,
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        Self { codel: CoDelConfig::default(), quantum_bytes: 1514, queues: 1024, packets: 10_240, device_packets: 0 }
    }
}

/// The queue of one flow.
#[derive(Clone, Debug, Default)]
struct FlowQueue {
    waiting: VecDeque<Queued>,
    bytes: u64,
    deficit: i64,
    codel: CoDel,
    /// Whether it is in one of the lists.
    listed: bool,
}

/// The queues of all flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowQueues {
    flows: BTreeMap<u32, FlowQueue>,
    /// Flows that have just begun, and the others.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
}

/// What taking the next datagram gave: those dropped on the way, and it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) dropped: Vec<Queued>,
    pub(crate) item: Option<Queued>,
    pub(crate) marked: u64,
}

impl FlowQueues {
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// One more of `flow`; gives back the datagram that the fattest queue loses for it.
    pub(crate) fn push(&mut self, c: &FqCoDelConfig, flow: u64, item: Queued) -> Option<Queued> {
        let bucket = (flow % u64::from(c.queues.max(1))) as u32;
        let queue = self.flows.entry(bucket).or_default();
        queue.bytes += item.bytes;
        queue.waiting.push_back(item);
        self.packets += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(c.quantum_bytes);
            self.new.push_back(bucket);
        }
        if self.packets <= c.packets {
            return None;
        }
        let fattest = self.flows.values_mut().max_by_key(|queue| queue.bytes)?;
        let lost = fattest.waiting.pop_front()?;
        fattest.bytes -= lost.bytes;
        self.packets -= 1;
        Some(lost)
    }

    /// Takes the next datagram at `now`. RFC 8290 4.2: dequeue
    pub(crate) fn take(&mut self, c: &FqCoDelConfig, now: Instant) -> Taken {
        let mut taken = Taken::default();
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let Some(bucket) = list.front().copied() else { return taken };
            let Some(queue) = self.flows.get_mut(&bucket) else {
                list.pop_front();
                continue;
            };
            if queue.deficit <= 0 {
                queue.deficit += i64::from(c.quantum_bytes.max(1));
                list.pop_front();
                self.old.push_back(bucket);
                continue;
            }
            let before = taken.dropped.len();
            let item = queue.next(&c.codel, now, &mut taken);
            self.packets -= taken.dropped.len() - before;
            let Some(item) = item else {
                list.pop_front();
                if is_new {
                    self.old.push_back(bucket);
                } else {
                    queue.listed = false;
                }
                continue;
            };
            queue.deficit -= i64::try_from(item.bytes).unwrap_or(i64::MAX);
            self.packets -= 1;
            taken.item = Some(item);
            return taken;
        }
    }

    /// Everything that waits is gone.
    pub(crate) fn drain(&mut self) -> Vec<Queued> {
        let mut gone: Vec<Queued> = self.flows.values_mut().flat_map(|queue| queue.waiting.drain(..)).collect();
        gone.sort_by_key(|item| item.ticket);
        *self = Self::default();
        gone
    }
}

impl FlowQueue {
    /// The first that CoDel lets through.
    fn next(&mut self, c: &CoDelConfig, now: Instant, taken: &mut Taken) -> Option<Queued> {
        while let Some(mut item) = self.waiting.pop_front() {
            self.bytes -= item.bytes;
            if self.codel.on_dequeue(c, now, now.since(item.entered), self.bytes) == Care::Pass {
                return Some(item);
            }
            if item.ecn.is_some() {
                item.ecn = Some(Ecn::Ce);
                taken.marked += 1;
                return Some(item);
            }
            taken.dropped.push(item);
        }
        self.codel.on_empty();
        None
    }
}
