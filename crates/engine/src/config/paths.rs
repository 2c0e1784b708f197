//! Paths of a connection: how many, who opens them, where ACKs travel and what happens when one fails (RFC 10069).

use std::num::NonZeroU32;
use std::sync::Arc;

use plait_base::PathId;
use plait_base::limits;
use plait_path::policy::Manual;
use plait_path::policy::ack_route::Fastest;
use plait_path::{AckRouteFactory, PathPolicyFactory};
use plait_schedule::reinject::{ReinjectionFactory, TailFactory};

use super::{Switch, TransportConfig};

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
    /// Path validations under way at once.
    pub(crate) max_validations: usize,
    /// Connection ids of the peer kept for one path: active_connection_id_limit, 2 to 8.
    pub(crate) cid_limit: u64,
    /// Whether a path with a probe time-out and no answer is avoided, and its packets sent again elsewhere.
    pub(crate) potentially_failed: Switch,
    /// Whether a new path carries copies of what other paths carry until its RTT is known.
    pub(crate) duplicate_until_rtt: Switch,
    /// Probe time-outs in a row after which a failed path is abandoned while another path works.
    pub(crate) abandon_after_probes: u32,
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
        self.max_concurrent.map(|n| PathId((n.get() - 1).max(1)))
    }
}

impl Default for PathTuning {
    fn default() -> Self {
        Self {
            max_concurrent: NonZeroU32::new(8),
            max_validations: limits::MAX_VALIDATIONS,
            cid_limit: limits::MAX_REMOTE_CIDS_PER_PATH,
            potentially_failed: Switch::On,
            duplicate_until_rtt: Switch::On,
            abandon_after_probes: 30,
            ack_route: Arc::new(Fastest::default()),
            reinjection: Arc::new(TailFactory),
            policy: Arc::new(Manual),
        }
    }
}

/// Settings of paths: how many, who opens them, what they carry.
impl TransportConfig {
    /// Paths that may be open at once, the first included. 2 to 64, default 8; 0 or 1 does not offer the extension.
    ///
    /// The peer learns of it as `initial_max_path_id = count - 1`.
    pub fn max_concurrent_multipath_paths(&mut self, count: u32) -> &mut Self {
        let count = if count < 2 { 0 } else { count.min(limits::MAX_PATHS as u32) };
        self.paths.max_concurrent = NonZeroU32::new(count);
        self
    }

    /// Path validations under way at once. 1 to 8, default 8; further paths wait.
    pub fn max_concurrent_validations(&mut self, count: usize) -> &mut Self {
        self.paths.max_validations = count.clamp(1, limits::MAX_VALIDATIONS);
        self
    }

    /// Connection ids of the peer that we keep for each path. 2 to 8, default 4 (RFC 9000 18.2).
    pub fn active_connection_id_limit(&mut self, count: u64) -> &mut Self {
        self.paths.cid_limit = count.clamp(2, limits::MAX_LOCAL_CIDS_PER_PATH as u64);
        self
    }

    /// Whether a path that stopped answering is avoided at once and its packets go elsewhere. Default on.
    pub fn potentially_failed(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.potentially_failed = switch.into();
        self
    }

    /// Whether a new path carries only copies until its RTT is known, so that a bad path costs nothing. Default on.
    pub fn duplicate_until_rtt(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.duplicate_until_rtt = switch.into();
        self
    }

    /// Probe time-outs in a row after which a failed path is abandoned, if another works. At least 2, default 30: about half a minute.
    pub fn abandon_after_probes(&mut self, count: u32) -> &mut Self {
        self.paths.abandon_after_probes = count.max(2);
        self
    }

    /// Which path carries the ACKs of a path. Default `fastest`.
    pub fn ack_route(&mut self, factory: Arc<dyn AckRouteFactory>) -> &mut Self {
        self.paths.ack_route = factory;
        self
    }

    /// Whether data that is under way on one path is sent again on another that has nothing else to carry.
    /// Default `tail`.
    pub fn reinjection(&mut self, factory: Arc<dyn ReinjectionFactory>) -> &mut Self {
        self.paths.reinjection = factory;
        self
    }

    /// Who opens and closes paths. Default `manual`: the application alone.
    pub fn path_policy(&mut self, factory: Arc<dyn PathPolicyFactory>) -> &mut Self {
        self.paths.policy = factory;
        self
    }
}
