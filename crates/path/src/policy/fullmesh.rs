//! The policy that opens a path from each of our addresses to each of the peer's.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::limits::MAX_HOST_ADDRESSES;
use plait_base::observe::PathState;
use plait_base::time::earliest;
use plait_base::{CloseCode, FourTuple, Instant};

use super::{Facts, Opener, PathPolicy, PathPolicyFactory, Wish};
use crate::status::PathStatus;

/// Pause after the first failure of a pair of addresses; doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_millis(250);
/// The same after a path that did not fail: somebody wanted it to end.
const RETRY_UNWANTED: Duration = Duration::from_secs(1);
/// Longest pause after repeated failures.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Addresses of ours for which the failures of all pairs are remembered, however many addresses the peer tells.
const OWN_REMEMBERED: usize = 8;
/// Pairs whose failures are remembered. One that is forgotten is asked again without a pause.
const MAX_REMEMBERED: usize = MAX_HOST_ADDRESSES * OWN_REMEMBERED;

#[derive(Clone, Copy, Debug)]
struct Failure {
    tuple: FourTuple,
    retry_at: Instant,
    pause: Duration,
}

/// One path for each pair of addresses of the same family, as far as limits allow; paths whose local address
/// went away are ended once another path works.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullMesh {
    failures: Vec<Failure>,
    /// When the first pair that has to wait may be tried again.
    retry_at: Option<Instant>,
}

impl FullMesh {
    /// The time before which the pair is not to be tried, if that is still ahead.
    fn barred_until(&self, now: Instant, tuple: &FourTuple) -> Option<Instant> {
        self.failures.iter().find(|f| f.tuple == *tuple && f.retry_at > now).map(|f| f.retry_at)
    }
}

/// True when a path on `tuple` starts at the address `local`; an unspecified one stands for all of its family.
fn starts_at(tuple: &FourTuple, local: &SocketAddr) -> bool {
    let same_family = tuple.local.is_ipv4() == local.is_ipv4();
    let any = tuple.local.ip().is_unspecified() || local.ip().is_unspecified();
    same_family && (any || tuple.local.ip() == local.ip()) && (any || tuple.local.port() == local.port())
}

impl PathPolicy for FullMesh {
    fn name(&self) -> &'static str {
        "fullmesh"
    }

    fn decide(&mut self, facts: &Facts<'_>, wishes: &mut Vec<Wish>) {
        self.retry_at = None;
        if facts.opener == Opener::Peer {
            return;
        }
        let has_address = |path: &&super::PathFact| facts.local.iter().any(|l| starts_at(&path.tuple, l));
        let other_works =
            facts.paths.iter().filter(has_address).any(|p| matches!(p.state, PathState::Active | PathState::Backup));
        if other_works {
            let orphans = facts.paths.iter().filter(|p| !has_address(p));
            wishes.extend(orphans.map(|p| Wish::Abandon { id: p.id, code: CloseCode::PATH_UNSTABLE_OR_POOR }));
        }
        let mut left = facts.room.min(facts.validations);
        for &remote in facts.peer {
            for &local in facts.local.iter().filter(|l| l.is_ipv4() == remote.is_ipv4()) {
                let tuple = FourTuple { local, remote };
                if facts.paths.iter().any(|p| p.tuple.remote == remote && starts_at(&p.tuple, &local)) {
                    continue;
                }
                if let Some(at) = self.barred_until(facts.now, &tuple) {
                    self.retry_at = earliest(self.retry_at, Some(at));
                } else if left > 0 {
                    left -= 1;
                    wishes.push(Wish::Open { tuple, status: PathStatus::Available });
                }
            }
        }
    }

    fn on_ended(&mut self, now: Instant, tuple: FourTuple, code: CloseCode) {
        let before = self.failures.iter().position(|f| f.tuple == tuple).map(|at| self.failures.remove(at));
        // A pair that worked for long since its last failure starts afresh.
        let recent = before.filter(|f| now.since(f.retry_at) < RETRY_MAX * 2);
        let first = if code == CloseCode::PATH_UNSTABLE_OR_POOR { RETRY_FIRST } else { RETRY_UNWANTED };
        let pause = recent.map_or(first, |f| (f.pause * 2).min(RETRY_MAX));
        if self.failures.len() >= MAX_REMEMBERED {
            self.failures.remove(0);
        }
        self.failures.push(Failure { tuple, retry_at: now + pause, pause });
        self.retry_at = earliest(self.retry_at, Some(now + pause));
    }

    fn deadline(&self) -> Option<Instant> {
        self.retry_at
    }
}

impl PathPolicyFactory for FullMesh {
    fn name(&self) -> &'static str {
        "fullmesh"
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(Self::default())
    }
}
