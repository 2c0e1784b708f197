//! Links and their changes in a few words, for reports.

use std::time::Duration;

use plait_netsim::InterfaceState;
use plait_netsim::link::{LinkState, Loss, Rate};

use super::link::{LinkEdit, LinkPlan, QueuePlan};
use super::{EventPlan, Scenario, WorkerFaultKind};

fn ms(time: Duration) -> String {
    let text = format!("{:.2}", time.as_secs_f64() * 1e3);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

fn rate(rate: &Rate) -> String {
    match rate {
        Rate::Unlimited => "unlimited".into(),
        Rate::Fixed(bps) => format!("{} Mbit/s", *bps as f64 / 1e6),
        Rate::Trace(_) => match rate.mean_bps() {
            Some(bps) => format!("trace of {:.2} Mbit/s", bps as f64 / 1e6),
            None => "trace".into(),
        },
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

fn loss(loss: Loss) -> String {
    match loss {
        Loss::None => "no loss".into(),
        Loss::Bernoulli(p) => format!("loss {}", percent(p)),
        Loss::GilbertElliott { .. } | Loss::TimedGilbertElliott { .. } => "loss in bursts".into(),
        Loss::PerByte(p) => format!("loss {p:e} a byte"),
    }
}

fn queue(queue: QueuePlan) -> String {
    match queue {
        QueuePlan::Time(time) => format!("queue {}", ms(time)),
        QueuePlan::Bytes(bytes) => format!("queue {bytes} bytes"),
        QueuePlan::Packets(packets) => format!("queue {packets} packets"),
    }
}

fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
    }
}

impl LinkPlan {
    /// Rate, delay, queue and loss.
    pub fn summary(&self) -> String {
        let mut words = vec![rate(&self.rate), ms(self.delay), queue(self.queue), loss(self.loss)];
        if self.state == LinkState::Down {
            words.push("down".into());
        }
        words.join(", ")
    }
}

impl LinkEdit {
    /// What it sets; nothing where it sets nothing.
    pub fn summary(&self) -> String {
        let words = [
            self.state.map(|to| state(to).to_owned()),
            self.rate.as_ref().map(rate),
            self.delay.map(ms),
            self.loss.map(loss),
            self.queue.map(queue),
            self.aqm.map(|_| "another AQM".to_owned()),
            self.jitter.map(|to| format!("jitter {}", ms(to))),
            self.jitter_kind.map(|to| format!("{to:?} jitter").to_lowercase()),
            self.reorder.map(|to| format!("reordered {}", percent(to.probability))),
            self.duplicate.map(|to| format!("doubled {}", percent(to))),
            self.corrupt.map(|to| format!("damaged {}", percent(to))),
            self.mtu_bytes.map(|to| format!("MTU {to} bytes")),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl EventPlan {
    /// Where, and what changes there.
    pub fn summary(&self, scenario: &Scenario) -> String {
        let place = self.place.0;
        let link = place.checked_sub(scenario.paths.len()).and_then(|link| scenario.links.get(link));
        let place = link.map_or_else(|| format!("path {place}"), |link| link.name.clone());
        let (up, down) = (self.up.summary(), self.down.summary());
        let what = match (up == down, up.is_empty(), down.is_empty()) {
            (true, true, _) => self.elsewhere(),
            (true, _, _) => down,
            (_, true, _) => format!("down {down}"),
            (_, _, true) => format!("up {up}"),
            _ => format!("down {down}; up {up}"),
        };
        format!("{place}: {what}")
    }

    /// What changes beside the link's values.
    fn elsewhere(&self) -> String {
        let words = [
            self.interface.map(|to| if to == InterfaceState::Up { "interface up" } else { "interface down" }),
            self.rebind.map(|_| "the NAT forgets"),
            self.vary.as_ref().map(|_| "other ranges"),
            self.worker.map(|fault| match fault.kind {
                WorkerFaultKind::Stalls(_) => "its worker stalls",
                WorkerFaultKind::DiesSeen | WorkerFaultKind::DiesUnseen => "its worker dies",
            }),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, Traces, Tree};

    #[test]
    fn links_and_events_in_words() {
        let text = "[[path]]\nrate_mbps = 2.5\nrtt_ms = 21\nqueue_ms = 50\nloss = 0.001\n\
                    [[event]]\nat_s = 3\npath = 0\nloss = 1.0\n[[event]]\nat_s = 4\npath = 0\nup = { rate_mbps = 1 }\n\
                    [[event]]\nat_s = 5\npath = 0\njitter_ms = 2\nmtu_bytes = 1300\n\
                    [[event]]\nat_s = 6\npath = 0\ninterface = \"down\"\n\
                    [transfer]\nkind = \"download\"\n";
        let scenario = Scenario::read(&Tree::parse("x", text).unwrap(), &Traces::default()).unwrap();
        assert_eq!(scenario.paths[0].own.down.summary(), "2.5 Mbit/s, 10.5 ms, queue 50 ms, loss 0.1 %");
        let events: Vec<String> = scenario.events.iter().map(|event| event.summary(&scenario)).collect();
        let others = ["path 0: jitter 2 ms, MTU 1300 bytes", "path 0: interface down"];
        assert_eq!(events[..2], ["path 0: loss 100 %", "path 0: up 1 Mbit/s"]);
        assert_eq!(events[2..], others);
    }
}
