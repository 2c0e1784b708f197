//! The values of what is set about paths, and their defaults.

use std::num::{NonZeroU8, NonZeroU32};
use std::sync::Arc;

use plait_base::{PathId, limits};
use plait_path::policy::Manual;
use plait_path::policy::ack_route::Fastest;
use plait_path::{AckRouteFactory, AddressScope, PathPolicyFactory};
use plait_schedule::reinject::{ReinjectionFactory, TailFactory};

use plait_wire::params::{AdditionalAddressesUse, AnnouncementParameters, Announcements};

use super::Switch;
use super::extension::Extension;

/// Whether a peer may move a path to another address (RFC 9000 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// A path follows its peer to a new address after validating it.
    Allowed,
    /// Packets from another address are dropped, and disable_active_migration says so.
    Refused,
}

/// Paths of a multipath connection.
#[derive(Clone, Debug)]
pub(crate) struct PathTuning {
    /// Paths that may be open at once, the first included; none does not offer the extension.
    pub(crate) max_concurrent: Option<NonZeroU32>,
    /// By which extension they are had.
    pub(crate) extension: Extension,
    /// Whether hosts tell each other of their addresses where both wish it.
    pub(crate) announce_addresses: Switch,
    /// Whether nonces of Multiflow connections have the uniflow id in their top bits where both wish it.
    pub(crate) uniflow_nonces: Switch,
    /// Whether servers name their addresses to clients in frames of noq.
    pub(crate) nat_traversal: Switch,
    /// Whether servers tell all their addresses at once to clients that read ADDITIONAL_ADDRESSES.
    pub(crate) additional_addresses: Switch,
    /// Whether they tell each other how their paths do.
    pub(crate) tell_paths: Switch,
    /// Which addresses that the peer names may be asked.
    pub(crate) address_scope: AddressScope,
    /// Path validations under way at once.
    pub(crate) max_validations: usize,
    /// Connection ids of the peer kept for one path: active_connection_id_limit, 2 to 8.
    pub(crate) cid_limit: u64,
    /// Whether a path with a probe time-out and no answer is avoided, and its packets sent again elsewhere.
    pub(crate) potentially_failed: Switch,
    /// Whether a new path carries copies of what other paths carry until its RTT is known.
    pub(crate) duplicate_until_rtt: Switch,
    /// Probe time-outs in a row after which a failed path is abandoned while another path works.
    pub(crate) abandon_after_ptos: u32,
    /// Which path carries the ACKs of a path.
    pub(crate) ack_route: Arc<dyn AckRouteFactory>,
    /// Whether data under way on one path is sent again on an idle one.
    pub(crate) reinjection: Arc<dyn ReinjectionFactory>,
    /// Who opens and closes paths.
    pub(crate) policy: Arc<dyn PathPolicyFactory>,
}

impl PathTuning {
    /// The initial_max_path_id to announce, none without the extension. It is at least 1 whenever the extension is
    /// offered, because some peers take 0 for "no multipath".
    pub(crate) fn initial_max_path_id(&self) -> Option<PathId> {
        self.max_id().filter(|_| self.extension != Extension::Multiflow)
    }

    /// The max_sending_uniflow_id to announce, none without Multiflow.
    pub(crate) fn max_sending_uniflow_id(&self) -> Option<PathId> {
        self.max_id().filter(|_| self.extension != Extension::Multipath)
    }

    /// What we wish beside RFC 10069 and Multiflow.
    pub(crate) fn announcements(&self) -> AnnouncementParameters {
        let is_on = |switch| switch == Switch::On && self.initial_max_path_id().is_some();
        let uniflow_nonces = self.uniflow_nonces == Switch::On && self.max_sending_uniflow_id().is_some();
        AnnouncementParameters {
            own: Announcements {
                addresses: is_on(self.announce_addresses),
                paths: is_on(self.tell_paths),
                uniflow_nonces,
            },
            nat_traversal_addresses: NonZeroU8::new(limits::MAX_HOST_ADDRESSES as u8)
                .filter(|_| is_on(self.nat_traversal)),
            additional_addresses: match self.additional_addresses {
                Switch::On => AdditionalAddressesUse::Supported,
                Switch::Off => AdditionalAddressesUse::Unsupported,
            },
        }
    }

    fn max_id(&self) -> Option<PathId> {
        self.max_concurrent.map(|n| PathId((n.get() - 1).max(1)))
    }
}

impl Default for PathTuning {
    fn default() -> Self {
        Self {
            max_concurrent: NonZeroU32::new(8),
            extension: Extension::Multipath,
            announce_addresses: Switch::Off,
            uniflow_nonces: Switch::Off,
            nat_traversal: Switch::Off,
            additional_addresses: Switch::Off,
            tell_paths: Switch::Off,
            address_scope: AddressScope::Global,
            max_validations: limits::MAX_VALIDATIONS,
            cid_limit: limits::MAX_REMOTE_CIDS_PER_PATH,
            potentially_failed: Switch::On,
            duplicate_until_rtt: Switch::On,
            abandon_after_ptos: 30,
            ack_route: Arc::new(Fastest::default()),
            reinjection: Arc::new(TailFactory),
            policy: Arc::new(Manual),
        }
    }
}
