//! All controllers by the names that configuration and the command line use.

use std::sync::Arc;

use crate::balia::BaliaFactory;
use crate::controller::ControllerFactory;
use crate::cubic::CubicFactory;
use crate::lia::LiaFactory;
use crate::newreno::NewRenoFactory;
use crate::olia::OliaFactory;

/// Every name that [`by_name`] knows.
pub const NAMES: [&str; 5] = ["newreno", "cubic", "lia", "olia", "balia"];

/// The factory of that name with its default settings.
pub fn by_name(name: &str) -> Option<Arc<dyn ControllerFactory>> {
    Some(match name {
        "newreno" => Arc::new(NewRenoFactory::default()),
        "cubic" => Arc::new(CubicFactory::default()),
        "lia" => Arc::new(LiaFactory::default()),
        "balia" => Arc::new(BaliaFactory::default()),
        "olia" => Arc::new(OliaFactory::default()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{Instant, PathId};

    #[test]
    fn every_name_builds_what_it_says() {
        for name in NAMES {
            let factory = by_name(name).unwrap();
            let controller = factory.build(PathId::ZERO, Instant::ZERO, 1200);
            assert_eq!((factory.name(), controller.name()), (name, name));
            assert_eq!(controller.window(), 12_000);
        }
        assert!(by_name("reno").is_none());
    }
}
