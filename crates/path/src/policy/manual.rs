//! The policy that leaves every path to the application; one whose address is gone moves to another.

use super::{AddressUse, Facts, PathPolicy, PathPolicyFactory, Wish};

/// Opens nothing and ends nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manual;

impl PathPolicy for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }

    fn decide(&mut self, _facts: &Facts<'_>, _wishes: &mut Vec<Wish>) {}

    fn address_use(&self) -> AddressUse {
        AddressUse::LeavesPaths
    }
}

impl PathPolicyFactory for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(*self)
    }
}
