//! Names of policies as people type them: those of the engine's tables, so that what is registered there can be typed here.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use plait::engine::path::{ack_route, policy};
use plait::engine::schedule::reinject;
use plait::engine::{congestion, schedule};

/// A name of one table, as a flag and a query take it.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident of $($table:ident)::+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(&'static str);

        impl $name {
            /// The name of the one that acts where nobody chose.
            pub(crate) const DEFAULT: Self = Self($($table)::+::DEFAULT);
            /// Every name of the table, in its order.
            const ALL: [Self; $($table)::+::NAMES.len()] = {
                let mut all = [Self::DEFAULT; $($table)::+::NAMES.len()];
                let mut i = 0;
                while i < all.len() {
                    all[i] = Self($($table)::+::NAMES[i]);
                    i += 1;
                }
                all
            };

            /// The name as typed and as reported.
            pub(crate) fn name(self) -> &'static str {
                self.0
            }
        }

        impl ValueEnum for $name {
            fn value_variants<'a>() -> &'a [Self] {
                &Self::ALL
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(PossibleValue::new(self.0))
            }
        }
    };
}

names! {
    /// The name of a scheduler.
    SchedulerName of schedule
}

names! {
    /// The name of a congestion controller; the default is that of a connection over one path.
    CongestionName of congestion
}

names! {
    /// The name of an ack route.
    AckPathName of ack_route
}

names! {
    /// The name of a reinjection policy.
    ReinjectionName of reinject
}

names! {
    /// The name of a path policy; the default is that of the library.
    PathPolicyName of policy
}

impl PathPolicyName {
    /// The name of the one that acts in the command where nobody chose: it opens a path from each address.
    pub(crate) const OPENING: Self = Self("fullmesh");
}

impl CongestionName {
    /// The name of the one that acts over several paths where nobody chose.
    pub(crate) const MULTIPATH_DEFAULT: Self = Self(congestion::MULTIPATH_DEFAULT);
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command_line::CommandLine;

    /// Every name of `Name` parses, prints what was typed, and stands in the help of each flag, given with its command.
    fn walk<Name: ValueEnum + PartialEq + std::fmt::Debug>(
        registered: &[&str],
        flags: &[(&str, &str)],
        print: impl Fn(Name) -> &'static str,
    ) {
        for name in registered {
            assert_eq!(Name::from_str(name, false).map(&print), Ok(*name));
        }
        assert!(Name::from_str("nobody", false).is_err());
        let listed = format!("[possible values: {}]", registered.join(", "));
        for (command, flag) in flags {
            let line = CommandLine::command();
            let command = line.find_subcommand(command).unwrap();
            let flag = command.get_arguments().find(|arg| arg.get_long() == Some(*flag)).unwrap();
            // The help as it is shown, of this flag alone.
            let help = clap::Command::new("x").term_width(0).arg(flag.clone()).render_help().to_string();
            assert!(help.contains(&listed), "{flag}: {help}");
        }
    }

    #[test]
    fn what_is_registered_can_be_typed() {
        let sides = |ours, theirs| [("get", ours), ("serve", ours), ("demo", ours), ("get", theirs)];
        walk(&schedule::NAMES, &sides("scheduler", "server-scheduler"), SchedulerName::name);
        walk(&congestion::NAMES, &sides("cc", "server-cc"), CongestionName::name);
        walk(&ack_route::NAMES, &sides("ack-path", "server-ack-path"), AckPathName::name);
        walk(&reinject::NAMES, &sides("reinjection", "server-reinjection"), ReinjectionName::name);
        // Clients open paths, and the demo opens its own.
        walk(&policy::NAMES, &[("get", "path-policy")], PathPolicyName::name);
        assert!(policy::NAMES.contains(&PathPolicyName::OPENING.name()));
    }
}
