//! Counts what arrives on the streams of a connection, for progress and results.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::measure::Arrivals;

/// Bytes and times of the bodies of a connection.
#[derive(Debug)]
pub(crate) struct Meter {
    clock: Clock,
    bytes: AtomicU64,
    arrivals: Mutex<Arrivals>,
    handshake_s: OnceLock<f64>,
    stopped_s: OnceLock<f64>,
}

impl Meter {
    /// Counts from now on.
    pub(crate) fn start() -> Self {
        Self {
            clock: Clock::start(),
            bytes: AtomicU64::new(0),
            arrivals: Mutex::default(),
            handshake_s: OnceLock::new(),
            stopped_s: OnceLock::new(),
        }
    }

    /// The handshake is done.
    pub(crate) fn on_handshake(&self) {
        // The first one counts.
        let _ = self.handshake_s.set(self.clock.seconds());
    }

    /// Seconds from the start to the end of the handshake; none before that.
    pub(crate) fn handshake_s(&self) -> Option<f64> {
        self.handshake_s.get().copied()
    }

    /// So many bytes went another way than through [`Meter::on_chunk`].
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It was so many bytes in all.
    pub(crate) fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// So many bytes of a body arrived.
    pub(crate) fn on_chunk(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let at = self.clock.elapsed();
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).on_chunk(at);
    }

    /// Nothing more will come, though more should.
    pub(crate) fn on_broken_off(&self) {
        let at = Duration::from_secs_f64(self.seconds());
        self.stop();
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).on_broken_off(at);
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Times so far.
    pub(crate) fn arrivals(&self) -> Arrivals {
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seconds since the start, until [`Meter::stop`].
    pub(crate) fn seconds(&self) -> f64 {
        self.stopped_s.get().copied().unwrap_or_else(|| self.clock.seconds())
    }

    /// Everything has arrived.
    pub(crate) fn stop(&self) {
        // The first end counts.
        let _ = self.stopped_s.set(self.clock.seconds());
    }
}
