//! What a scenario may say of a simulated world that no real network or host can be told, each by its key.

use std::time::Duration;

use plait_netsim::link::Rate;
use plait_sim::scenario::{CrossLoad, CrossPlan, DuplexPlan, Endpoints, Scenario};

use super::Wiring;
use crate::error::LabError;
use crate::host::Family;

/// Paths that fit the address plan.
const PATHS_MAX: usize = 64;
/// The smallest MTU of a link that carries IPv6 (RFC 8200 5).
const IPV6_MTU_MIN: u32 = 1280;
/// A run that takes longer is a mistake more often than a wish.
const TIME_LIMIT_MAX: Duration = Duration::from_secs(3600);

/// Names the first key that cannot be done.
///
/// # Errors
/// There is one.
pub(crate) fn check(scenario: &Scenario, wiring: Wiring) -> Result<(), LabError> {
    let no = |key: String, why: &str| Err(LabError::NotInRealTime { key, why: why.to_owned() });
    if scenario.paths.len() > PATHS_MAX {
        return no("path".to_owned(), "there are addresses for 64 paths");
    }
    if scenario.time_limit > TIME_LIMIT_MAX {
        return no(
            "time_limit_s".to_owned(),
            "an hour is the most that is waited; set a shorter time, as --set time_limit_s=120",
        );
    }
    let is_flow = |plan: &CrossPlan| matches!(plan.load, CrossLoad::Flow { .. });
    if let Some(at) = scenario.cross.iter().position(is_flow).filter(|_| wiring == Wiring::Relay) {
        let why = "a connection that competes wants hosts of its own; leave --relay out";
        return no(format!("cross.{at}.kind"), why);
    }
    if scenario.events.iter().any(|event| event.worker.is_some()) {
        return no("event.worker_dies".to_owned(), "there are no workers to stall or to fall; leave it out");
    }
    if wiring == Wiring::Relay && scenario.events.iter().any(|event| event.interface.is_some()) {
        return no(
            "event.interface".to_owned(),
            "loopback stays up; leave --relay out, or stop the link by state = \"down\" in its place",
        );
    }
    if let Some(key) = too_small_for_ipv6(scenario).filter(|_| wiring == Wiring::Namespaces(Family::V6)) {
        return no(key, "a link has to carry 1280 bytes of IPv6; leave --ipv6 out");
    }
    let unlimited = |link: &DuplexPlan| [&link.up, &link.down].iter().any(|way| way.rate == Rate::Unlimited);
    let bounded = |path: usize| {
        scenario.way(path).iter().any(|place| scenario.duplexes().nth(place.0).is_some_and(|link| !unlimited(link)))
    };
    if let Some(path) = (0..scenario.paths.len()).find(|path| !bounded(*path)) {
        return no(format!("path.{path}.rate_mbps"), "without a rate the machine would be measured, not the network");
    }
    endpoints(&scenario.endpoints).map_or(Ok(()), |(key, why)| no(format!("endpoints.{key}"), why))
}

/// The MTU of the first link that is too small to carry IPv6.
fn too_small_for_ipv6(scenario: &Scenario) -> Option<String> {
    let is_small = |link: &DuplexPlan| [&link.up, &link.down].iter().any(|way| way.mtu_bytes < IPV6_MTU_MIN);
    let place = scenario.duplexes().position(is_small)?;
    let (list, number) = place.checked_sub(scenario.paths.len()).map_or(("path", place), |link| ("link", link));
    Some(format!("{list}.{number}.mtu_bytes"))
}

/// The first setting of hosts that only simulated ones have.
fn endpoints(endpoints: &Endpoints) -> Option<(&'static str, &'static str)> {
    let usual = Endpoints::default();
    let flag = "`plait perf` has no flag for it; leave it out";
    let nobody = "no contender is asked for it; leave it out";
    [
        (endpoints.protection != usual.protection, "protection", "real packets are always protected; leave it out"),
        (endpoints.duplicate_until_rtt != usual.duplicate_until_rtt, "duplicate_until_rtt", flag),
        (endpoints.keep_alive != usual.keep_alive, "keep_alive_s", flag),
        (endpoints.max_burst_bytes != usual.max_burst_bytes, "max_burst_bytes", flag),
        (endpoints.wishes.uniflow_nonces != usual.wishes.uniflow_nonces, "uniflow_nonces", flag),
        (endpoints.wishes.ack_frequency != usual.wishes.ack_frequency, "ack_frequency_packets", nobody),
        (endpoints.wishes.tell_paths != usual.wishes.tell_paths, "tell_paths", flag),
        (endpoints.placement != usual.placement, "placement", nobody),
        (endpoints.workers != usual.workers, "workers", "turns of workers are the simulator's to draw; leave it out"),
    ]
    .into_iter()
    .find_map(|(is_set, key, why)| is_set.then_some((key, why)))
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::{Traces, Tree};

    use super::*;

    fn said(more: &str) -> String {
        said_of(more, Wiring::Namespaces(Family::V4))
    }

    fn said_of(more: &str, wiring: Wiring) -> String {
        let text = format!("[[path]]\nrate_mbps = 10\n[transfer]\nkind = \"download\"\nbytes = 1000\n{more}");
        let read = Scenario::read(&Tree::parse("t", &text).unwrap(), &Traces::default());
        let scenario = read.unwrap_or_else(|error| panic!("{more}: {error}"));
        check(&scenario, wiring).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_not_of_this_world_is_named() {
        assert_eq!(said(""), "");
        assert_eq!(said("[[event]]\nat_s = 1\npath = 0\nloss = 1.0\n"), "");
        for (more, expected) in [
            ("[endpoints]\nprotection = \"null\"\n", "endpoints.protection cannot be done in real time: real packets"),
            ("[endpoints]\nmax_burst_bytes = 2000\n", "endpoints.max_burst_bytes cannot"),
            ("[endpoints]\nack_frequency_packets = 9\n", "endpoints.ack_frequency_packets cannot"),
            ("[endpoints]\nkeep_alive_s = 1\n", "endpoints.keep_alive_s cannot"),
            ("[[event]]\nat_s = 1\npath = 0\ninterface = \"down\"\n", ""),
            ("[[path]]\nrate_mbps = 1\n[path.nat]\n", ""),
            ("[[rule]]\npath = 0\naction = \"drop\"\n", ""),
            ("[[cross]]\nkind = \"constant\"\nrate_mbps = 1\npath = 0\n", ""),
            ("[[cross]]\nkind = \"flow\"\npath = 0\n", ""),
            ("[[link]]\nname = \"a\"\nrate_mbps = 5\n[[path]]\nvia = [\"a\"]\n", ""),
        ] {
            let text = said(more);
            assert!(text.starts_with(expected) && (expected.is_empty() == text.is_empty()), "{more}: {text}");
        }
        let small = "[[path]]\nrate_mbps = 1\ndown = { mtu_bytes = 1279 }\n";
        let six = said_of(small, Wiring::Namespaces(Family::V6));
        assert!(six.starts_with("path.1.mtu_bytes cannot be done in real time: a link has to carry 1280"), "{six}");
        assert_eq!((said(small), said_of("", Wiring::Namespaces(Family::V6))), (String::new(), String::new()));
        let flow = said_of("[[cross]]\nkind = \"flow\"\npath = 0\n", Wiring::Relay);
        assert!(flow.starts_with("cross.0.kind cannot be done in real time: a connection that competes"), "{flow}");
        let down = "[[event]]\nat_s = 1\npath = 0\ninterface = \"down\"\n";
        assert!(
            said_of(down, Wiring::Relay).starts_with("event.interface cannot be done in real time: loopback stays up")
        );
    }
    #[test]
    fn every_example_is_of_both_worlds() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let mut seen = 0;
        for file in files.filter(|path| path.extension().is_some_and(|end| end == "toml")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let scenario = Scenario::read(&Tree::parse("t", &text).unwrap(), &Traces::beside(&file)).unwrap();
            for wiring in [Wiring::Namespaces(Family::V4), Wiring::Namespaces(Family::V6), Wiring::Relay] {
                assert!(check(&scenario, wiring).is_ok(), "{}", file.display());
            }
            seen += 1;
        }
        assert!(seen >= 3, "{seen}");
    }
}
