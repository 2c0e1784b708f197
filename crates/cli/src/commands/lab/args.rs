//! What can be typed after `plait lab`.

use clap::Subcommand;

use crate::commands::sim::args::ShowArgs;

/// The commands of the laboratory in real time.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Say what this machine can do: namespaces, devices, MPTCP, and which stacks can be compared on it
    Doctor(ShowArgs),
}
