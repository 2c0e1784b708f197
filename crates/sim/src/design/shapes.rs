//! Random pairs of paths of one shape each, drawn from a seed: the shapes in which several paths were slower than one.

use std::fmt::Write;

use plait_base::Random;

/// What the networks of a shape have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Both paths come to one queue of 3 to 20 packets.
    SharedQueue,
    /// The receiver's window, 64 kB to 16 MB, may bind.
    Window,
    /// Any two paths, some with losses.
    Plain,
    /// Packets come with a jitter of up to 20 ms.
    Jitter,
    /// A queue is managed.
    Managed,
    /// One path changes: its rate, its delay, or it is gone for a while.
    Events,
}

/// The shapes in the order in which gates walk them.
pub const SHAPES: [Shape; 6] =
    [Shape::SharedQueue, Shape::Window, Shape::Plain, Shape::Jitter, Shape::Managed, Shape::Events];

/// A network of a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The tables of paths, links and events of a scenario.
    pub network: String,
    /// Lines of its table of endpoints.
    pub endpoints: String,
    /// Whether runs of different seeds differ.
    pub is_random: bool,
}

impl Shape {
    /// A name fit for a folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedQueue => "shared-queue",
            Self::Window => "window",
            Self::Plain => "random",
            Self::Jitter => "jitter",
            Self::Managed => "aqm",
            Self::Events => "events",
        }
    }

    /// The network of this shape that belongs to a seed.
    pub fn draw(self, seed: u64) -> Drawn {
        let mut draw = Draw(Random::from_u64(seed ^ (self as u64 + 1) << 32));
        let (mut network, mut endpoints) = (String::new(), String::new());
        if self == Self::SharedQueue {
            let packets = 3 + draw.0.below(18);
            let (rate, delay) = (draw.log(2.0, 50.0), draw.even(2.0, 30.0));
            let _ = write!(
                network,
                "[[link]]\nname = \"shared\"\nrate_mbps = {rate:?}\ndelay_ms = {delay:?}\nqueue_packets = {packets}\n"
            );
            let delays = [draw.even(0.0, 30.0), draw.even(0.0, 30.0)];
            // Paths that are alike send in step.
            let delays = if draw.0.chance(0.25) { [delays[0]; 2] } else { delays };
            for delay in delays {
                let _ = write!(network, "[[path]]\nvia = [\"shared\"]\ndelay_ms = {delay:?}\n");
            }
            return Drawn { network, endpoints, is_random: false };
        }
        let lossy = self == Self::Plain && draw.0.chance(0.4);
        for path in 0..2 {
            let _ = write!(
                network,
                "[[path]]\nrate_mbps = {:?}\nrtt_ms = {:?}\nqueue_ms = {:?}\n",
                draw.log(0.5, 100.0),
                draw.log(2.0, 300.0),
                draw.log(5.0, 800.0)
            );
            if lossy && draw.0.chance(0.7) {
                let _ = writeln!(network, "loss = {:?}", draw.log(0.0005, 0.03));
            }
            if self == Self::Jitter {
                let _ = writeln!(network, "jitter_ms = {:?}", draw.log(0.5, 20.0));
            }
            if self == Self::Managed && (path == 0 || draw.0.chance(0.5)) {
                let kind = ["codel", "red", "fq-codel"][draw.0.below(3) as usize];
                let _ = writeln!(network, "aqm = \"{kind}\"");
            }
        }
        match self {
            Self::Window => endpoints = format!("receive_window_bytes = {}\n", draw.log(64e3, 16e6) as u64),
            Self::Events => draw.events(&mut network),
            _ => {}
        }
        Drawn { network, endpoints, is_random: lossy || matches!(self, Self::Jitter | Self::Managed) }
    }
}

struct Draw(Random);

impl Draw {
    fn even(&mut self, low: f64, high: f64) -> f64 {
        ((low + self.0.unit() * (high - low)) * 1e3).round() / 1e3
    }

    fn log(&mut self, low: f64, high: f64) -> f64 {
        ((low.ln() + self.0.unit() * (high / low).ln()).exp() * 1e3).round() / 1e3
    }

    fn events(&mut self, network: &mut String) {
        let (path, at) = (self.0.below(2), self.log(0.1, 3.0));
        let end = at + self.log(0.1, 2.0);
        let (now, then) = match self.0.below(3) {
            0 => (format!("rate_mbps = {:?}", self.log(0.5, 100.0)), None),
            1 => (format!("rtt_ms = {:?}", self.log(2.0, 300.0)), None),
            _ => ("state = \"down\"".to_owned(), Some("state = \"up\"")),
        };
        let _ = write!(network, "[[event]]\nat_s = {at:?}\npath = {path}\n{now}\n");
        if let Some(then) = then {
            let _ = write!(network, "[[event]]\nat_s = {end:?}\npath = {path}\n{then}\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, Traces, Tree};

    #[test]
    fn every_shape_draws_scenarios_that_differ() {
        for shape in SHAPES {
            for seed in 0..40 {
                let Drawn { network, endpoints, .. } = shape.draw(seed);
                assert_ne!(network, shape.draw(seed + 1).network);
                let text = format!(
                    "name = \"x\"\n{network}[transfer]\nkind = \"download\"\nbytes = 1\n[endpoints]\n{endpoints}"
                );
                let tree = Tree::parse(shape.name(), &text).unwrap();
                let scenario =
                    Scenario::read(&tree, &Traces::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(scenario.paths.len(), 2);
            }
        }
    }
}
