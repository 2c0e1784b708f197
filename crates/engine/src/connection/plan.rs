//! Which paths this connection should have: the policy, the addresses it knows, and when to ask it again.

use std::net::SocketAddr;

use plait_base::{Instant, Side};
use plait_path::PathPolicy;
use plait_path::policy::{Facts, PathFact, Wish};

use super::flows::Paths;

/// The path policy with the facts that it decides from.
#[derive(Debug)]
pub(super) struct Plan {
    policy: Box<dyn PathPolicy>,
    local: Vec<SocketAddr>,
    peer: Vec<SocketAddr>,
    changed: bool,
}

impl Plan {
    pub(super) fn new(policy: Box<dyn PathPolicy>) -> Self {
        Self { policy, local: Vec::new(), peer: Vec::new(), changed: false }
    }

    /// A fact changed: the policy is asked again.
    pub(super) fn touch(&mut self) {
        self.changed = true;
    }

    pub(super) fn set_local(&mut self, addresses: &[SocketAddr]) {
        self.changed |= self.local != addresses;
        self.local = addresses.to_vec();
    }

    pub(super) fn local(&self) -> &[SocketAddr] {
        &self.local
    }

    pub(super) fn add_peer(&mut self, address: SocketAddr) {
        if !self.peer.contains(&address) {
            self.peer.push(address);
            self.changed = true;
        }
    }

    /// The peer's address in the handshake.
    pub(super) fn first_peer(&self) -> Option<SocketAddr> {
        self.peer.first().copied()
    }

    pub(super) fn policy_mut(&mut self) -> &mut dyn PathPolicy {
        &mut *self.policy
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.policy.deadline()
    }

    /// The policy's wishes, when there is reason to ask it.
    pub(super) fn wishes(
        &mut self,
        now: Instant,
        side: Side,
        paths: &Paths,
        (max_paths, max_validations): (usize, usize),
    ) -> Vec<Wish> {
        let due = self.policy.deadline().is_some_and(|at| at <= now);
        if !std::mem::take(&mut self.changed) && !due {
            return Vec::new();
        }
        let fact = |slot: &super::flows::Slot| {
            let path = slot.path.as_ref()?;
            Some(PathFact { id: slot.id, route: path.route.tuple(), state: slot.state() })
        };
        let facts: Vec<PathFact> = paths.open_slots().filter_map(fact).collect();
        let mut wishes = Vec::new();
        self.policy.decide(
            &Facts {
                now,
                side,
                local: &self.local,
                peer: &self.peer,
                paths: &facts,
                room: max_paths.saturating_sub(facts.len()),
                validations: max_validations.saturating_sub(paths.validations()),
            },
            &mut wishes,
        );
        wishes
    }
}
