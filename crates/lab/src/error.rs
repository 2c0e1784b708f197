//! What can go wrong in the laboratory, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use plait_sim::campaign::CampaignError;
use plait_sim::scenario::ScenarioError;

/// Why the laboratory did not do what was asked. A contender that fails is a result, not an error.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Neither root nor user namespaces.
    #[error(
        "the laboratory needs network namespaces of its own ({said}); `plait lab run --relay` runs QUIC stacks without; else run it as root, or let users make namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0)"
    )]
    NoNamespaces {
        /// What the system said.
        said: String,
    },
    /// No TUN devices.
    #[error("/dev/net/tun: {error}; load the module (modprobe tun), and let this user open it")]
    NoTun {
        /// What the system said.
        error: io::Error,
    },
    /// A program of the system is missing.
    #[error("`{program}` cannot be run ({error}); install {package}")]
    NoTool {
        /// The program that is missing.
        program: &'static str,
        /// What the system said.
        error: io::Error,
        /// The package that it comes with.
        package: &'static str,
    },
    /// A program of the system refused.
    #[error("`{command}` failed: {said}")]
    Refused {
        /// The whole command.
        command: String,
        /// What it complained of.
        said: String,
    },
    /// What was asked for is not there, or not so.
    #[error("{0}")]
    Usage(String),
    /// A name that no contender has.
    #[error("there is no contender `{name}`; there are {known}")]
    NoContender {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A variant of ours with a setting that it cannot have.
    #[error("`{name}`: {why}")]
    BadVariant {
        /// What was asked for.
        name: String,
        /// What is wrong, and what is accepted.
        why: String,
    },
    /// A contender that this machine cannot run.
    #[error("{name} cannot be run here: {why}")]
    Unavailable {
        /// The contender's name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// Something in the scenario that no real network and no real host can be told to do.
    #[error("{key} cannot be done in real time: {why}")]
    NotInRealTime {
        /// The key of the scenario file.
        key: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// Files, pipes and threads.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Results cannot be kept.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
    /// It was asked to stop.
    #[error("interrupted; nothing of it is left behind")]
    Stopped,
}

impl From<plait_sim::campaign::StoreError> for LabError {
    fn from(error: plait_sim::campaign::StoreError) -> Self {
        Self::Campaign(error.into())
    }
}

impl LabError {
    /// An error of the system while something was done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }

    /// An error of the system at a file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::io(PathBuf::from(path).display().to_string())
    }

    /// Whether it was asked wrongly, rather than gone wrong on the way.
    pub fn is_usage(&self) -> bool {
        let is_file = matches!(self, Self::Scenario(_) | Self::Campaign(CampaignError::Scenario(_)));
        is_file
            || matches!(
                self,
                Self::Usage(_) | Self::NoContender { .. } | Self::BadVariant { .. } | Self::NotInRealTime { .. }
            )
    }
}
