//! All schedulers by the names that configuration and the command line use.

use std::sync::Arc;

use crate::backup::BackupFactory;
use crate::blest::BlestFactory;
use crate::ecf::EcfFactory;
use crate::minrtt::MinRttFactory;
use crate::peekaboo::PeekabooFactory;
use crate::redundant::RedundantFactory;
use crate::round_robin::RoundRobinFactory;
use crate::scheduler::SchedulerFactory;
use crate::weighted::WeightedFactory;

/// Every name that [`by_name`] knows; the first is the default.
pub const NAMES: [&str; 8] = ["minrtt", "round-robin", "weighted", "blest", "ecf", "peekaboo", "redundant", "backup"];

/// The factory of that name with its default settings.
pub fn by_name(name: &str) -> Option<Arc<dyn SchedulerFactory>> {
    Some(match name {
        "minrtt" => Arc::new(MinRttFactory),
        "round-robin" => Arc::new(RoundRobinFactory),
        "weighted" => Arc::new(WeightedFactory::default()),
        "blest" => Arc::new(BlestFactory),
        "ecf" => Arc::new(EcfFactory),
        "peekaboo" => Arc::new(PeekabooFactory),
        "redundant" => Arc::new(RedundantFactory),
        "backup" => Arc::new(BackupFactory),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::Random;

    #[test]
    fn every_name_builds_what_it_says() {
        for name in NAMES {
            let factory = by_name(name).unwrap();
            assert_eq!((factory.name(), factory.build(Random::from_u64(1)).name()), (name, name));
        }
        assert!(by_name("fastest").is_none());
    }
}
