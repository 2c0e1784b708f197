//! Policies of a connection that lives: which of them act, and others in their place.

use std::sync::Arc;

use plait_base::Instant;
use plait_congestion::ControllerFactory;
use plait_path::AckRouteFactory;
use plait_schedule::SchedulerFactory;
use plait_schedule::reinject::ReinjectionFactory;

use crate::connection::Connection;
use crate::connection::send::reinject::Reinjector;

/// Names of the policies by which one end of a connection sends, as the registries know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policies {
    /// The scheduler of packets.
    pub scheduler: &'static str,
    /// The congestion controller that a path gets.
    pub congestion: &'static str,
    /// Where acks travel.
    pub ack_route: &'static str,
    /// What idle paths send again.
    pub reinjection: &'static str,
}

impl Connection {
    /// The policies that act now.
    pub fn policies(&self) -> Policies {
        Policies {
            scheduler: self.scheduling.scheduler.name(),
            congestion: self.paths.controller().name(),
            ack_route: self.scheduling.acks.route.name(),
            reinjection: self.scheduling.reinjector.name(),
        }
    }

    /// Lets another scheduler choose the path of every packet from now on. It begins without any memory of the paths.
    pub fn set_scheduler(&mut self, factory: &dyn SchedulerFactory) {
        self.scheduling.scheduler = factory.build(self.random.fork());
    }

    /// Lets acks travel by another policy from now on.
    pub fn set_ack_route(&mut self, factory: &dyn AckRouteFactory) {
        self.scheduling.acks.route = factory.build();
    }

    /// Lets idle paths send again by another policy from now on; copies that wait already are sent.
    pub fn set_reinjection(&mut self, factory: &dyn ReinjectionFactory) {
        self.scheduling.reinjector = Reinjector::new(factory);
    }

    /// Gives every open path a new congestion controller of this kind, and those that open later too. Each path begins
    /// again with its first window and without a threshold, as at its start; what is in flight stays counted. It is meant for
    /// the beginning of a connection: later it costs each path a slow start.
    pub fn set_congestion_controller(&mut self, now: Instant, factory: Arc<dyn ControllerFactory>) {
        self.paths.set_controller(now, factory);
        self.scheduling.views.expire();
    }
}
