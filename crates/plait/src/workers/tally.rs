//! What threads did that serve paths and connections.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread did.
#[derive(Debug, Default)]
pub(super) struct WorkerTally {
    connections: AtomicU64,
    loans: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    handed_over: AtomicU64,
}

/// What one of the threads that serve paths did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerFigures {
    /// Connections of clients that it took on: their task runs on it until they lend a path.
    pub connections: u64,
    /// Paths that were lent to it, each as often as it was.
    pub loans: u64,
    /// UDP payload bytes that it sent.
    pub sent_bytes: u64,
    /// UDP payload bytes that it received, or that were handed to it.
    pub received_bytes: u64,
    /// Datagrams of paths that it serves, or of connections that it took on, which another thread received and handed over.
    pub handed_over: u64,
}

impl WorkerTally {
    pub(super) fn on_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn on_loan(&self) {
        self.loans.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn on_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn on_received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn on_handed_over(&self, datagrams: usize) {
        self.handed_over.fetch_add(datagrams as u64, Ordering::Relaxed);
    }

    pub(super) fn figures(&self) -> WorkerFigures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkerFigures {
            connections: read(&self.connections),
            loans: read(&self.loans),
            sent_bytes: read(&self.sent_bytes),
            received_bytes: read(&self.received_bytes),
            handed_over: read(&self.handed_over),
        }
    }
}
