//! A congestion controller of one's own in the whole of `plait sim`:
//! `cargo run --release --example custom_controller -- run examples/two-paths.toml --set endpoints.congestion=calm`

use plait_sim::Policies;
use plait_sim::base::{Instant, PathId, shared_metrics::SharedPathMetrics};
use plait_sim::congestion::{Acked, Congestion, CongestionController, ControllerFactory, Limit, NO_THRESHOLD};

/// Keeps two to four packets in the queue, in the manner of TCP Vegas (Brakmo and Peterson 1995). Sizes are bytes.
#[derive(Debug)]
struct Calm(u64, u64); // window and largest datagram
impl CongestionController for Calm {
    fn name(&self) -> &'static str {
        "calm"
    }

    fn window(&self) -> u64 {
        self.0
    }

    fn ssthresh(&self) -> u64 {
        NO_THRESHOLD
    }

    fn on_acked(&mut self, ack: &Acked, _shared: &SharedPathMetrics) {
        let Self(window, max_datagram) = self;
        let waiting = 1.0 - ack.rtt.min.as_secs_f64() / ack.rtt.latest.as_secs_f64().max(1e-9);
        let packets = waiting * *window as f64 / *max_datagram as f64;
        match ack.limit {
            Limit::Window if packets < 2.0 => *window += ack.bytes / 2, // half again each round trip
            _ if packets > 4.0 => *window = (*window - ack.bytes.min(*window) / 32).max(2 * *max_datagram),
            _ => {}
        }
    }

    fn on_congestion(&mut self, _event: &Congestion, _shared: &SharedPathMetrics) {
        self.0 = (self.0 / 2).max(2 * self.1);
    }

    fn on_max_datagram_bytes(&mut self, max_datagram: u64) {
        *self = Self(self.0.max(2 * max_datagram), max_datagram);
    }
}

#[derive(Debug)]
struct CalmFactory;
impl ControllerFactory for CalmFactory {
    fn name(&self) -> &'static str {
        "calm"
    }

    fn build(&self, _path: PathId, _now: Instant, max_datagram: u64) -> Box<dyn CongestionController> {
        Box::new(Calm(10 * max_datagram, max_datagram))
    }
}

fn main() -> std::process::ExitCode {
    plait_cli::sim_main(Policies::new().with_controller(CalmFactory))
}
