//! What changes in a network as time passes: the scenario's events, and values that are drawn anew.

use std::time::Duration;

use plait_base::{Instant, Random, time};
use plait_netsim::InterfaceState;
use plait_netsim::link::{LinkConfig, Loss, Rate, Service};

use super::{DuplexPlan, EventPlan, Place, Rebind, Scenario, Vary, WorkerFault};

/// Something that changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Both directions of a link, up and down, have these settings from now on.
    Link(Place, Box<(LinkConfig, LinkConfig)>),
    /// The client's interface of a path goes up or down.
    Interface(usize, InterfaceState),
    /// The NAT of a path forgets its mappings.
    Rebind(usize, Rebind),
    /// Something befalls the workers that serve a path.
    Worker(usize, WorkerFault),
}

/// The plans of all links as they are now, and when they change next.
#[derive(Clone, Debug)]
pub struct Changes {
    plans: Vec<DuplexPlan>,
    services: Vec<Service>,
    next_event: usize,
    draws: Vec<Option<Instant>>,
    random: Random,
}

impl Changes {
    /// At the start; `random` draws what varies.
    pub fn new(scenario: &Scenario, random: Random) -> Self {
        let draws = scenario.duplexes().map(|link| link.vary.map(|_| Instant::ZERO)).collect();
        let plans = scenario.duplexes().cloned().collect();
        Self { plans, services: services(scenario), next_event: 0, draws, random }
    }

    /// The settings of every link as they are now, up and down, in the order of their places.
    pub fn links(&self) -> impl Iterator<Item = (LinkConfig, LinkConfig)> {
        let plans = self.plans.iter().zip(&self.services);
        plans.map(|(plan, service)| (plan.up.config(*service), plan.down.config(*service)))
    }

    /// When something changes next.
    pub fn next_at(&self, scenario: &Scenario) -> Option<Instant> {
        let event = scenario.events.get(self.next_event).map(|event| Instant::ZERO + event.at);
        let draw = self.draws.iter().flatten().min().copied();
        time::earliest(event, draw)
    }

    /// Goes on to `now`; `on` hears of each change, in order.
    pub fn advance(&mut self, now: Instant, scenario: &Scenario, mut on: impl FnMut(Turn)) {
        while let Some(event) = scenario.events.get(self.next_event).filter(|event| Instant::ZERO + event.at <= now) {
            self.next_event += 1;
            let index = event.place.0;
            if let Some(plan) = self.plans.get_mut(index) {
                event.up.apply(&mut plan.up);
                event.down.apply(&mut plan.down);
                plan.vary = event.vary.or(plan.vary);
            }
            if let Some(draw) = self.draws.get_mut(index).filter(|_| event.vary.is_some()) {
                *draw = Some(now);
            }
            let interface = event.interface.map(|state| Turn::Interface(index, state));
            let rebind = event.rebind.map(|rebind| Turn::Rebind(index, rebind));
            let worker = event.worker.map(|fault| Turn::Worker(index, fault));
            [self.link(index), interface, rebind, worker].into_iter().flatten().for_each(&mut on);
        }
        for index in 0..self.draws.len() {
            let due = self.draws.get(index).copied().flatten().is_some_and(|at| at <= now);
            let Some(vary) = self.plans.get(index).and_then(|plan| plan.vary).filter(|_| due) else { continue };
            if let Some(plan) = self.plans.get_mut(index) {
                redraw(plan, &vary, &mut self.random);
            }
            if let Some(draw) = self.draws.get_mut(index) {
                *draw = Some(now + vary.interval);
            }
            self.link(index).into_iter().for_each(&mut on);
        }
    }

    fn link(&self, index: usize) -> Option<Turn> {
        let (plan, service) = (self.plans.get(index)?, *self.services.get(index)?);
        let configs = (plan.up.config(service), plan.down.config(service));
        Some(Turn::Link(Place(index), Box::new(configs)))
    }
}

/// Of each link: its queue is real where something changes what its datagrams meet when they leave; else it plans ahead,
/// which is faster.
fn services(scenario: &Scenario) -> Vec<Service> {
    let touches = |event: &EventPlan| event.up.touches_queue() || event.down.touches_queue() || event.vary.is_some();
    let of = |(index, link): (usize, &DuplexPlan)| {
        let touched = scenario.events.iter().any(|event| event.place.0 == index && touches(event));
        if touched || link.vary.is_some() { Service::Live } else { Service::Planned }
    };
    scenario.duplexes().enumerate().map(of).collect()
}

fn redraw(plan: &mut DuplexPlan, vary: &Vary, random: &mut Random) {
    let mut draw = |(low, high): (f64, f64)| low + random.unit() * (high - low);
    if let Some(span) = vary.rate_mbps {
        plan.down.rate = Rate::Fixed((draw(span) * 1e6) as u64);
        if plan.up.rate == Rate::Unlimited {
            plan.up.rate = plan.down.rate.clone();
        }
    }
    if let Some(span) = vary.delay_ms {
        let ms = draw(span);
        let ms = if vary.whole_ms { ms.floor() } else { ms };
        plan.down.delay = Duration::from_nanos((ms * 1e6) as u64);
        plan.up.delay = plan.down.delay;
    }
    if let Some(span) = vary.loss {
        plan.down.loss = Loss::Bernoulli(draw(span));
    }
    if let Some(span) = vary.loss_per_byte {
        plan.down.loss = Loss::PerByte(draw(span));
    }
}
