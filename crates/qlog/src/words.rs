//! Our words in those of the qlog drafts.

use plait_base::observe::{CloseTrigger, DropReason, LossTrigger, PathState};
use plait_base::{PathId, Side, Space};

/// `packet_type` of a header. 0-RTT packets share the number space of 1-RTT and are not told apart.
pub(crate) fn packet_type(space: Space) -> &'static str {
    match space {
        Space::Initial => "initial",
        Space::Handshake => "handshake",
        Space::Data => "1RTT",
    }
}

/// `trigger` of `packet_dropped`.
pub(crate) fn drop_trigger(why: DropReason) -> &'static str {
    match why {
        DropReason::Malformed => "invalid",
        DropReason::NoKeys => "key_unavailable",
        DropReason::Authentication => "decryption_failure",
        DropReason::Duplicate => "duplicate",
        DropReason::WrongAddress | DropReason::UnknownPath => "rejected",
        DropReason::WrongVersion => "unsupported",
        DropReason::Overflow => "general",
    }
}

/// `trigger` of `packet_lost`; a discarded packet has none of the draft's.
pub(crate) fn loss_trigger(trigger: LossTrigger) -> Option<&'static str> {
    match trigger {
        LossTrigger::Reordering => Some("reordering_threshold"),
        LossTrigger::Time => Some("time_threshold"),
        LossTrigger::Discarded => None,
    }
}

/// `trigger` of `connection_closed`.
pub(crate) fn close_trigger(trigger: CloseTrigger) -> &'static str {
    match trigger {
        CloseTrigger::Application => "application",
        CloseTrigger::Error => "error",
        CloseTrigger::NoError => "unspecified",
        CloseTrigger::IdleTimeout => "idle_timeout",
        CloseTrigger::StatelessReset => "stateless_reset",
        CloseTrigger::VersionMismatch => "version_mismatch",
        CloseTrigger::Unreachable => "aborted",
    }
}

/// `new` of `migration_state_updated`, where the draft has a word for it.
pub(crate) fn migration_state(state: PathState) -> Option<&'static str> {
    match state {
        PathState::Validating => Some("probing_started"),
        PathState::Active => Some("probing_successful"),
        PathState::Closing => Some("probing_abandoned"),
        PathState::Backup | PathState::Failed | PathState::Unused | PathState::Closed => None,
    }
}

/// Name of a path among the tuples of a trace.
pub(crate) fn tuple_name(path: PathId) -> String {
    format!("p{}", path.0)
}

/// The vantage point's type.
pub(crate) fn vantage(side: Side) -> &'static str {
    if side.is_client() { "client" } else { "server" }
}

/// The keys that protect what one side sends.
pub(crate) fn key_type(side: Side) -> &'static str {
    if side.is_client() { "client_1rtt_secret" } else { "server_1rtt_secret" }
}
