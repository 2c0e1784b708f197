//! Schedulers, congestion controllers, ACK routes, reinjection and path policies by the names that people type.

use std::sync::Arc;

use plait_congestion::ControllerFactory;
use plait_path::{AckRouteFactory, PathPolicyFactory};
use plait_schedule::SchedulerFactory;
use plait_schedule::reinject::{self, ReinjectionFactory};

/// Names of the schedulers, `minrtt` by default.
pub const SCHEDULERS: &[&str] = &plait_schedule::NAMES;
/// Names of the congestion controllers, by default `cubic` over one path and `auto` over several.
pub const CONGESTION_CONTROLLERS: &[&str] = &plait_congestion::NAMES;
/// Names of the ACK routes, `fastest` by default.
pub const ACK_ROUTES: &[&str] = &plait_path::ack_route::NAMES;
/// Names of the reinjection policies, `tail` by default.
pub const REINJECTIONS: &[&str] = &reinject::NAMES;
/// Names of the path policies, `manual` by default.
pub const PATH_POLICIES: &[&str] = &plait_path::policy::NAMES;

/// The scheduler of that name, for [`crate::TransportConfig::scheduler`].
pub fn scheduler(name: &str) -> Option<Arc<dyn SchedulerFactory>> {
    plait_schedule::by_name(name)
}

/// The congestion controller of that name, for [`crate::TransportConfig::congestion_controller_factory`] (one path) and
/// [`crate::TransportConfig::multipath_controller`] (several).
pub fn congestion_controller(name: &str) -> Option<Arc<dyn ControllerFactory>> {
    plait_congestion::by_name(name)
}

/// The ACK route of that name, for [`crate::TransportConfig::ack_route`].
pub fn ack_route(name: &str) -> Option<Arc<dyn AckRouteFactory>> {
    plait_path::ack_route::by_name(name)
}

/// The reinjection policy of that name, for [`crate::TransportConfig::reinjection`].
pub fn reinjection(name: &str) -> Option<Arc<dyn ReinjectionFactory>> {
    reinject::by_name(name)
}

/// The path policy of that name, for [`crate::TransportConfig::path_policy`].
pub fn path_policy(name: &str) -> Option<Arc<dyn PathPolicyFactory>> {
    plait_path::policy::by_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_somebody() {
        assert!(SCHEDULERS.iter().all(|name| scheduler(name).is_some()));
        assert!(CONGESTION_CONTROLLERS.iter().all(|name| congestion_controller(name).is_some()));
        assert!(ACK_ROUTES.iter().all(|name| ack_route(name).is_some()));
        assert!(REINJECTIONS.iter().all(|name| reinjection(name).is_some()));
        assert!(PATH_POLICIES.iter().all(|name| path_policy(name).is_some()));
        assert!(scheduler("nobody").is_none());
    }
}
