//! What is wrong with a scenario: where, which key, why, and what would be accepted.

use super::origin::Origin;

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File and line, or the option that set it.
    pub origin: Origin,
    /// The key, dotted; empty where the text is no TOML at all.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be accepted.
    pub accepted: String,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { origin, key, problem, accepted } = self;
        let key = if key.is_empty() { String::new() } else { format!(" `{key}`:") };
        write!(f, "{origin}:{key} {problem}; accepted: {accepted}")
    }
}

impl std::error::Error for ScenarioError {}
