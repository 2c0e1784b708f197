//! Coupled CUBIC: all paths together take what one CUBIC flow would take on the best of them.
//!
//! After Lee, Kim, Kwon and Han, Coupled CUBIC Congestion Control for MPTCP (CSSE 2023), and Kato et al., mpCUBIC (2020),
//! which link CUBIC's increases the way LIA links Reno's (RFC 6356 2). The factors here follow from the response functions
//! (RFC 9438 5.1): a window goes with the fourth root of C and the square root of the additive increase. So that the sum of
//! all rates is the best path's own rate, each window has to be `share` times one flow's, where `share` is the best path's
//! part in that sum; C is multiplied by its fourth power and the increase by its square.

use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, ControllerFactory};
use crate::coupled;
use crate::cubic::{Cubic, Gain};
use crate::window::SlowStart;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoupledCubicFactory {
    /// How the first slow start of a path ends; at the onset of a queue by default.
    pub(crate) slow_start: SlowStart,
}

impl ControllerFactory for CoupledCubicFactory {
    fn name(&self) -> &'static str {
        "coupled-cubic"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(CoupledCubic { path, cubic: Cubic::new(mss, self.slow_start) })
    }
}

/// One path's coupled CUBIC.
#[derive(Clone, Debug)]
struct CoupledCubic {
    path: PathId,
    cubic: Cubic,
}

/// The gain of each path whose best one has `share` of the sum of all rates.
pub(crate) fn gain(share: f64) -> Gain {
    let square = share * share;
    Gain { curve: square * square, friendly: square, start: 1.0 }
}

impl CongestionController for CoupledCubic {
    fn name(&self) -> &'static str {
        "coupled-cubic"
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn ssthresh(&self) -> u64 {
        self.cubic.ssthresh()
    }

    fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        self.cubic.pacing_rate(rtt)
    }

    fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics) {
        let own = coupled::own(self.path, self.cubic.size(), &ack.rtt, shared);
        let rates = coupled::siblings(&own, shared).map(|s| s.rate());
        let (best, sum) = rates.fold((0.0, 0.0), |(best, sum): (f64, f64), rate| (best.max(rate), sum + rate));
        self.cubic.grow(ack, if sum > 0.0 { gain(best / sum) } else { Gain::default() });
    }

    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics) {
        self.cubic.on_congestion(event, shared);
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.cubic.on_max_datagram_bytes(mss);
    }

    fn on_longer_way_back(&mut self, times: f64) {
        self.cubic.on_longer_way_back(times);
    }

    fn on_spurious(&mut self) {
        self.cubic.on_spurious();
    }

    fn is_coupled(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::CongestionKind;
    use crate::facts::{acked, congestion, metrics, shared};

    /// Windows of a path in congestion avoidance after 2 s of acks, one window per RTT.
    fn grown(shared: &SharedPathMetrics) -> u64 {
        let mut path = CoupledCubicFactory::default().build(PathId::ZERO, Instant::ZERO, 1000);
        path.on_acked(&acked(90_000), shared);
        path.on_congestion(&congestion(CongestionKind::Loss), shared);
        for round in 0..20 {
            let now = Instant::from_nanos(1_000_000_000) + Duration::from_millis(100) * round;
            let bytes = path.window();
            path.on_acked(&Acked { now, ..acked(bytes) }, shared);
        }
        path.window()
    }

    #[test]
    fn alone_it_is_cubic() {
        let mut cubic = Cubic::new(1000, SlowStart::HyStart);
        cubic.on_acked(&acked(90_000), &SharedPathMetrics::default());
        cubic.on_congestion(&congestion(CongestionKind::Loss), &SharedPathMetrics::default());
        for round in 0..20 {
            let now = Instant::from_nanos(1_000_000_000) + Duration::from_millis(100) * round;
            let bytes = cubic.window();
            cubic.on_acked(&Acked { now, ..acked(bytes) }, &SharedPathMetrics::default());
        }
        assert_eq!(grown(&SharedPathMetrics::default()), cubic.window());
    }

    #[test]
    fn the_more_siblings_the_slower() {
        let sizes = [0, 1, 2, 4].map(|others| {
            let others: Vec<_> = (1..=others).map(|id| metrics(id, 70_000, 100)).collect();
            grown(&shared(&others))
        });
        assert!(sizes.windows(2).all(|pair| pair[0] > pair[1]), "{sizes:?}");
        assert!(sizes[3] >= 70_000, "{sizes:?}");
    }

    #[test]
    fn a_path_next_to_a_small_one_is_hardly_slower() {
        let alone = grown(&SharedPathMetrics::default());
        let with = grown(&shared(&[metrics(1, 2_000, 400)]));
        assert!(with * 100 > alone * 98, "{with} {alone}");
    }
}
