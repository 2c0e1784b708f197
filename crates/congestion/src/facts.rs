//! Facts that unit tests tell controllers.

use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionKind, Limit, RateSample, RttSample};

/// `bytes` acked on path 0 at second 1, window in use, RTT 100 ms.
pub(crate) fn acked(bytes: u64) -> Acked {
    let rtt = Duration::from_millis(100);
    Acked {
        path: PathId::ZERO,
        now: Instant::from_nanos(1_000_000_000),
        bytes,
        bytes_total: bytes,
        sent_at: Instant::from_nanos(900_000_000),
        largest: 10,
        next_number: 20,
        rtt: RttSample { latest: rtt, smoothed: rtt, min: rtt, ..RttSample::default() },
        in_flight: 0,
        limit: Limit::Window,
        delivery: delivery(bytes),
    }
}

/// `bytes` delivered in 100 ms, all that ever was.
pub(crate) fn delivery(bytes: u64) -> RateSample {
    RateSample {
        total_bytes: bytes,
        prior_bytes: 0,
        interval: Duration::from_millis(100),
        flight_bytes: bytes,
        lost_bytes: 0,
        limit: Limit::Window,
    }
}

/// A congestion event on path 0 at second 1.
pub(crate) fn congestion(kind: CongestionKind) -> Congestion {
    let (now, sent_at) = (Instant::from_nanos(1_000_000_000), Instant::from_nanos(900_000_000));
    Congestion { path: PathId::ZERO, now, sent_at, kind, lost_bytes: 1000, in_flight: 0 }
}

/// Metrics of an active path with datagrams of 1000 bytes.
pub(crate) fn metrics(path: u32, window_bytes: u64, rtt_ms: u64) -> PathMetrics {
    PathMetrics {
        window_bytes,
        rtt: Some(Duration::from_millis(rtt_ms)),
        max_datagram_bytes: 1000,
        active: true,
        ..PathMetrics::new(PathId(path))
    }
}

/// What these paths share.
pub(crate) fn shared(all_metrics: &[PathMetrics]) -> SharedPathMetrics {
    let mut shared = SharedPathMetrics::default();
    all_metrics.iter().for_each(|p| shared.update(*p));
    shared
}
