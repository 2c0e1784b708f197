//! This program itself: over every path, over the initial one alone, or with other settings than the scenario's.

use plait_sim::scenario::{Endpoints, Extension, Scenario};
use plait_sim::{ACK_PATHS, Policies, REINJECTIONS};

use super::{Contender, perf};
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Program, RunFailure, Wiring, Work};

/// Keys of `[endpoints]` that a variant may set, and the flag of each at both ends.
const SETTINGS: [(&str, &str); 5] = [
    ("scheduler", "--scheduler"),
    ("congestion", "--cc"),
    ("ack_path", "--ack-path"),
    ("reinjection", "--reinjection"),
    ("extension", "--extension"),
];

/// `plait perf` at both ends.
#[derive(Clone, Debug)]
pub(crate) struct Plait {
    name: String,
    about: String,
    /// Settings over the scenario's, by key.
    sets: Vec<(&'static str, String)>,
}

impl Plait {
    /// As the scenario's endpoints are.
    pub(crate) fn multipath() -> Self {
        let about = "Multipath QUIC (RFC 10069), this program".to_owned();
        Self { name: "plait".to_owned(), about, sets: Vec::new() }
    }

    /// QUIC over the initial path.
    pub(crate) fn single() -> Self {
        let about = "QUIC over the initial path, this program".to_owned();
        Self { name: "plait-single".to_owned(), about, sets: vec![("extension", "none".to_owned())] }
    }

    /// `plait:KEY=VALUE`, several joined by `+`: with other settings than the scenario's.
    ///
    /// # Errors
    /// A key that there is not, or a value that it cannot have.
    pub(crate) fn variant(name: &str, settings: &str) -> Result<Self, String> {
        let mut sets = Vec::new();
        for setting in settings.split('+') {
            let (key, value) = setting.split_once('=').ok_or_else(|| format!("`{setting}` is not KEY=VALUE"))?;
            let known = SETTINGS.iter().find(|(known, _)| *known == key);
            let names = || SETTINGS.map(|(known, _)| known).join(", ");
            let (key, _) = known.ok_or_else(|| format!("there is no setting `{key}`; there are {}", names()))?;
            let words = words(key);
            if !words.contains(&value) {
                return Err(format!("{key} cannot be `{value}`; accepted: {}", words.join(", ")));
            }
            sets.push((*key, value.to_owned()));
        }
        Ok(Self { name: name.to_owned(), about: format!("this program with {settings}"), sets })
    }

    /// The value of a key: the variant's, or the scenario's; none leaves it to the program.
    fn value<'a>(&'a self, endpoints: &'a Endpoints, key: &str) -> Option<&'a str> {
        if let Some((_, value)) = self.sets.iter().find(|(set, _)| *set == key) {
            return Some(value);
        }
        match key {
            "scheduler" => Some(endpoints.scheduler.name()),
            "congestion" => endpoints.congestion.as_ref().map(|chosen| chosen.name()),
            "ack_path" => Some(endpoints.ack_path),
            "reinjection" => Some(endpoints.reinjection),
            _ => Some(extension_word(endpoints.extension)),
        }
    }

    /// Flags of the policies of one side.
    fn flags<'a>(&'a self, work: &'a Work) -> Vec<&'a str> {
        let policies = SETTINGS.iter().filter(|(key, _)| *key != "extension");
        policies.filter_map(|(key, flag)| Some([*flag, self.value(&work.endpoints, key)?])).flatten().collect()
    }

    fn extension<'a>(&'a self, endpoints: &'a Endpoints) -> &'a str {
        self.value(endpoints, "extension").unwrap_or("multipath")
    }
}

impl Contender for Plait {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn is_multipath(&self) -> bool {
        self.sets.iter().all(|set| *set != ("extension", "none".to_owned()))
    }

    fn availability(&self, _machine: &Machine) -> Result<(), String> {
        perf::availability()
    }

    fn accepts(&self, scenario: &Scenario, wiring: Wiring) -> Result<(), String> {
        match (wiring, self.extension(&scenario.endpoints)) {
            (Wiring::Relay, "multiflow") => Err("its hosts tell each other their addresses, and would go round the \
                 relay; leave --relay out"
                .to_owned()),
            _ => Ok(()),
        }
    }

    fn server(&self, work: &Work) -> Program {
        let mut flags = self.flags(work);
        if self.extension(&work.endpoints) == "multiflow" {
            flags.extend(["--multiflow", "--private-addresses"]);
        }
        perf::server(work, &flags)
    }

    fn client(&self, work: &Work) -> Program {
        let extension = self.extension(&work.endpoints);
        let mut flags = self.flags(work);
        flags.extend(["--extension", extension, "--path-policy", work.endpoints.path_policy]);
        if work.endpoints.handshake.first_path_only {
            flags.push("--first-path-only");
        }
        if extension == "multiflow" {
            flags.push("--private-addresses");
        }
        let paths = if extension == "none" { 1 } else { usize::MAX };
        perf::client(work, &flags, work.ways_in_order().take(paths).map(|way| way.client))
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let mut outcome = perf::outcome(work, output)?;
        let named = outcome.notes.get("extension").map(String::as_str);
        if let Some(other) = named.filter(|named| *named != self.extension(&work.endpoints) && work.ways.len() > 1) {
            return Err(RunFailure::Strayed(format!("the extension was {other}")));
        }
        for (key, _) in SETTINGS {
            // The client knows what both sides were told, not what the server made of it.
            let value = self.value(&work.endpoints, key).map(str::to_owned);
            outcome.notes.extend(value.map(|value| (key.to_owned(), value)));
        }
        Ok(outcome)
    }
}

/// The values that a key may have.
fn words(key: &str) -> Vec<&'static str> {
    let policies = Policies::default();
    match key {
        "scheduler" => policies.scheduler_names(),
        "congestion" => policies.controller_names(),
        "ack_path" => ACK_PATHS.to_vec(),
        "reinjection" => REINJECTIONS.to_vec(),
        _ => [Extension::Multipath, Extension::Multiflow, Extension::None].map(extension_word).to_vec(),
    }
}

fn extension_word(extension: Extension) -> &'static str {
    match extension {
        Extension::Multipath => "multipath",
        Extension::Multiflow => "multiflow",
        Extension::None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_name_what_they_set() {
        let variant = Plait::variant("plait:x", "scheduler=ecf+ack_path=own").unwrap();
        assert_eq!(variant.sets, [("scheduler", "ecf".to_owned()), ("ack_path", "own".to_owned())]);
        assert!(variant.is_multipath() && !Plait::variant("x", "extension=none").unwrap().is_multipath());
        assert!(Plait::variant("x", "speed=9").unwrap_err().contains("there are scheduler, congestion"));
        for setting in ["scheduler=zz", "congestion=", "ack_path=Own", "reinjection=no", "extension=quic"] {
            let wrong = Plait::variant("x", setting).unwrap_err();
            assert!(wrong.contains("cannot be") && wrong.contains("accepted: "), "{wrong}");
        }
        assert!(Plait::variant("x", "scheduler").unwrap_err().contains("not KEY=VALUE"));
    }
}
