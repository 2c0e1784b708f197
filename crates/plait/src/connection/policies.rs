//! The policies of our side of a connection, which may change while it lives.

use std::sync::Arc;

use plait_congestion::ControllerFactory;
use plait_engine::config::StreamPlacement;
use plait_engine::connection::Policies;
use plait_path::AckRouteFactory;
use plait_schedule::SchedulerFactory;
use plait_schedule::reinject::ReinjectionFactory;

use super::Connection;

/// Policies of our side: what we send, and how. The peer's own decide what it sends.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, _server) = pair().await;
/// client.set_scheduler(&*plait::scheduler("redundant").expect("a name of plait::SCHEDULERS"));
/// assert_eq!(client.policies().scheduler, "redundant");
/// # Ok(())
/// # });
/// ```
impl Connection {
    /// Names of the policies that act now on our side.
    pub fn policies(&self) -> Policies {
        self.shared.lock().engine.connection().policies()
    }

    /// Lets another scheduler choose the path of every packet from now on.
    pub fn set_scheduler(&self, factory: &dyn SchedulerFactory) {
        let mut state = self.shared.lock();
        state.engine.set_scheduler(factory);
        state.wake_driver();
    }

    /// Lets acks travel by another policy from now on.
    pub fn set_ack_route(&self, factory: &dyn AckRouteFactory) {
        let mut state = self.shared.lock();
        state.engine.set_ack_route(factory);
        state.wake_driver();
    }

    /// Lets idle paths send again by another policy from now on.
    pub fn set_reinjection(&self, factory: &dyn ReinjectionFactory) {
        let mut state = self.shared.lock();
        state.engine.set_reinjection(factory);
        state.wake_driver();
    }

    /// Lets streams keep to a path each from now on, or no longer.
    pub fn set_stream_placement(&self, placement: StreamPlacement) {
        let mut state = self.shared.lock();
        state.engine.set_stream_placement(placement);
        state.wake_driver();
    }

    /// Gives every path a new congestion controller of this kind. Each begins again with its first window, about ten
    /// datagrams: do it before much is sent.
    pub fn set_congestion_controller(&self, factory: Arc<dyn ControllerFactory>) {
        let mut state = self.shared.lock();
        state.now_or_later(self.shared.clock.now(), |engine, now| engine.set_congestion_controller(now, factory));
        state.wake_driver();
    }
}
