//! Requests at an interval, and what became of each.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::delays::Delays;
use crate::units::rounded;

/// A request, and its answer if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Exchange {
    /// When it was due, since the first one.
    pub(crate) at_ms: f64,
    /// From then until its answer was read to the end; none without an answer.
    pub(crate) delay_ms: Option<f64>,
}

/// Every request that was due, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

impl Exchanges {
    /// What there is by now.
    pub(crate) fn list(&self) -> Vec<Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long those took that were answered.
    pub(crate) fn delays(&self) -> Delays {
        let mut delays = Delays::default();
        for ms in self.list().iter().filter_map(|exchange| exchange.delay_ms) {
            delays.add(Duration::from_secs_f64(ms.max(0.0) / 1e3));
        }
        delays
    }

    /// How many were answered.
    pub(crate) fn answered(&self) -> u64 {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().filter(|exchange| exchange.delay_ms.is_some()).count() as u64
    }

    /// One is due, so long after the first.
    pub(crate) fn ask(&self, at: Duration) {
        let exchange = Exchange { at_ms: ms(at), delay_ms: None };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    /// The answer of one was read to its end, so long after the first was due.
    pub(crate) fn answer(&self, index: usize, now: Duration) {
        if let Some(exchange) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
            exchange.delay_ms = Some(rounded(ms(now) - exchange.at_ms, 3));
        }
    }
}

fn ms(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 3)
}
