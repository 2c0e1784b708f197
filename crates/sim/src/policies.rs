//! The schedulers and controllers that a scenario may name: the engine's, and those that a program adds.

use std::fmt::Debug;
use std::sync::Arc;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{Instant, PathId};
use plait_engine::congestion::{self, ControllerFactory};
use plait_engine::schedule::{self, SchedulerFactory};

/// A policy that a scenario chose: its name and what builds it.
#[derive(Debug)]
pub struct Chosen<F: ?Sized> {
    name: &'static str,
    factory: Arc<F>,
}

impl<F: ?Sized> Chosen<F> {
    /// The name that scenario files and results use.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What builds it.
    pub fn factory(&self) -> Arc<F> {
        self.factory.clone()
    }
}

impl<F: ?Sized> Clone for Chosen<F> {
    fn clone(&self) -> Self {
        Self { name: self.name, factory: self.factory.clone() }
    }
}

impl<F: ?Sized> PartialEq for Chosen<F> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Factories by the names that scenario files use. A program's own come first: one of the engine's of the same name is
/// hidden by it.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    schedulers: Vec<Arc<dyn SchedulerFactory>>,
    controllers: Vec<Arc<dyn ControllerFactory>>,
}

impl Policies {
    /// The engine's alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more scheduler, under the name that its factory gives.
    #[must_use]
    pub fn with_scheduler(mut self, factory: impl SchedulerFactory + 'static) -> Self {
        self.schedulers.push(Arc::new(factory));
        self
    }

    /// With one more congestion controller, under the name that its factory gives.
    #[must_use]
    pub fn with_controller(mut self, factory: impl ControllerFactory + 'static) -> Self {
        self.controllers.push(Arc::new(factory));
        self
    }

    /// Names of schedulers, a program's own first.
    pub fn scheduler_names(&self) -> Vec<&'static str> {
        self.schedulers.iter().map(|own| own.name()).chain(schedule::NAMES).collect()
    }

    /// Names of congestion controllers, a program's own first.
    pub fn controller_names(&self) -> Vec<&'static str> {
        self.controllers.iter().map(|own| own.name()).chain(congestion::NAMES).collect()
    }

    /// Names of the congestion controllers that look at their own path alone.
    pub fn uncoupled_names(&self) -> Vec<&'static str> {
        let is_uncoupled = |name: &&str| {
            let factory = self.controller(name).map(|chosen| chosen.factory());
            let mss = MIN_DATAGRAM_BYTES as u64;
            factory.is_some_and(|factory| !factory.build(PathId::ZERO, Instant::ZERO, mss).is_coupled())
        };
        self.controller_names().into_iter().filter(is_uncoupled).collect()
    }

    /// The scheduler of that name.
    pub fn scheduler(&self, name: &str) -> Option<Chosen<dyn SchedulerFactory>> {
        let own = self.schedulers.iter().find(|own| own.name() == name).cloned();
        own.or_else(|| schedule::by_name(name)).map(|factory| Chosen { name: factory.name(), factory })
    }

    /// The congestion controller of that name.
    pub fn controller(&self, name: &str) -> Option<Chosen<dyn ControllerFactory>> {
        let own = self.controllers.iter().find(|own| own.name() == name).cloned();
        own.or_else(|| congestion::by_name(name)).map(|factory| Chosen { name: factory.name(), factory })
    }

    /// The engine's default scheduler.
    pub(crate) fn default_scheduler() -> Chosen<dyn SchedulerFactory> {
        let factory = schedule::by_name(schedule::DEFAULT);
        let factory = factory.unwrap_or_else(|| Arc::new(schedule::MinRttFactory));
        Chosen { name: factory.name(), factory }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::Random;
    use plait_engine::schedule::Scheduler;

    #[derive(Debug)]
    struct Mine(&'static str);

    impl SchedulerFactory for Mine {
        fn name(&self) -> &'static str {
            self.0
        }

        fn build(&self, _random: Random) -> Box<dyn Scheduler> {
            Box::new(schedule::MinRtt::default())
        }
    }

    #[test]
    fn own_policies_come_first() {
        let policies = Policies::new().with_scheduler(Mine("mine")).with_scheduler(Mine("blest"));
        assert_eq!(&policies.scheduler_names()[..2], ["mine", "blest"]);
        let hidden = policies.scheduler("blest").unwrap();
        assert!(format!("{:?}", hidden.factory()).starts_with("Mine"));
        assert_eq!(policies.scheduler("ecf").unwrap().name(), "ecf");
        assert!(policies.scheduler("other").is_none() && policies.controller("mine").is_none());
        assert_eq!(Policies::default_scheduler().name(), schedule::DEFAULT);
    }
}
