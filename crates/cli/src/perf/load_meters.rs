//! What a load has moved and done, while it runs and once it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::delays::SharedDelays;
use super::dialer::Dialer;
use super::exchanges::Exchanges;
use super::load::{BulkLoad, Extent, RequestLoad, Workload};
use crate::meter::Meter;
use crate::output::progress::LoadCounts;

/// What a load has moved and done.
#[derive(Clone, Debug)]
pub(crate) struct LoadMeters {
    /// The load as a whole, in time.
    pub(crate) all: Arc<Meter>,
    /// What was written over TCP; over QUIC what the server had, once that is settled.
    pub(crate) up: Arc<Meter>,
    /// What came from the server.
    pub(crate) down: Arc<Meter>,
    /// How long requests took.
    pub(crate) delays: SharedDelays,
    /// Requests at an interval.
    pub(crate) exchanges: Exchanges,
    /// Datagrams that were handed over.
    pub(crate) datagrams: Arc<AtomicU64>,
    /// Bytes that the server had of our streams before; none over TCP, where what was written counts.
    delivered: Option<u64>,
}

impl LoadMeters {
    /// Counts from now on.
    pub(crate) fn start(dialer: &Dialer) -> Self {
        let meter = || Arc::new(Meter::start());
        Self {
            all: meter(),
            up: meter(),
            down: meter(),
            delays: SharedDelays::default(),
            exchanges: Exchanges::default(),
            datagrams: Arc::default(),
            delivered: dialer.delivered(),
        }
    }

    /// Bytes of streams that the server has.
    fn up_bytes(&self, dialer: &Dialer) -> u64 {
        match (dialer.delivered(), self.delivered) {
            (Some(now), Some(before)) => now.saturating_sub(before),
            _ => self.up.bytes(),
        }
    }

    /// What `load` has moved and done so far.
    pub(crate) fn counts(&self, load: &Workload, dialer: &Dialer) -> LoadCounts {
        let (up, down) = (self.up_bytes(dialer), self.down.bytes());
        match load {
            // Of a load one way nothing but heads goes the other way, which nobody counts.
            Workload::Bulk(bulk) => {
                LoadCounts { up: (bulk.up > 0).then_some(up), down: (bulk.down > 0).then_some(down), count: None }
            }
            Workload::Requests(_) => LoadCounts { up: Some(up), down: Some(down), count: Some(self.answered()) },
            Workload::Datagrams(datagrams) => {
                let count = self.datagrams.load(Ordering::Relaxed);
                LoadCounts { up: Some(count * datagrams.size_bytes), down: None, count: Some(count) }
            }
            Workload::Connections(_) => LoadCounts::default(),
        }
    }

    /// Requests that have their answers.
    fn answered(&self) -> u64 {
        self.delays.count().max(self.exchanges.answered())
    }

    /// Stops the clocks that still run, and counts what the server has: all of a load that went well, else what it
    /// acknowledged.
    pub(crate) fn settle(&self, load: &Workload, dialer: &Dialer, is_done: bool) {
        [&self.all, &self.up, &self.down].iter().for_each(|meter| meter.stop());
        let had = self.up_bytes(dialer);
        let up = match load {
            Workload::Bulk(BulkLoad { up: 0, .. }) | Workload::Connections(_) | Workload::Datagrams(_) => 0,
            Workload::Bulk(BulkLoad { extent: Extent::Amount(bytes), .. }) if is_done => *bytes,
            Workload::Requests(RequestLoad { request_bytes, .. }) if is_done => self.answered() * *request_bytes as u64,
            Workload::Bulk(_) | Workload::Requests(_) => had,
        };
        self.up.set(up);
    }
}
