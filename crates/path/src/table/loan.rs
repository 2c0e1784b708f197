//! What is known of a path that somebody else serves, and of what went there.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, StreamId};
use plait_wire::SentFrame;

use super::{PathRoom, PathSnapshot};
use crate::ack_frequency::AckTerms;
use crate::path::Path;
use crate::send::SendRoom;
use crate::stats::PathTotals;

/// A lease takes a little less than the room for it. What is left of that is no room: a scheduler would choose the path for it
/// in place of one that waits for data.
const LEAST_LEASE_BYTES: u64 = 256;

/// What is known of a path that somebody else serves.
#[derive(Clone, Copy, Debug)]
pub struct LoanRecord {
    /// The path as its holder saw it last.
    pub snapshot: PathSnapshot,
    /// What it did by then.
    pub totals: PathTotals,
}

impl LoanRecord {
    /// How a path fares that works, with the room that its holder has for more.
    pub fn of(path: &Path, room: SendRoom) -> Self {
        let snapshot = path.snapshot(PathState::Active, None, PathRoom::Send(room));
        Self { snapshot, totals: path.totals() }
    }
}

/// A path that somebody else serves, and what went there with it and since.
#[derive(Debug)]
pub struct Loan {
    /// The path as its holder saw it last.
    pub record: LoanRecord,
    /// Since when it is lent.
    pub since: Instant,
    /// What it had done by then.
    pub began_with: PathTotals,
    /// The number of this loan, which no other of the connection has.
    pub serial: u64,
    /// Control frames that are under way on it or wait there, whose fate is not known.
    pub carried: Vec<SentFrame>,
    /// Streams of the leases that did not leave, one entry each.
    pub leases: Vec<StreamId>,
    /// Stream bytes that were lent to it so far.
    pub lent_bytes: u64,
    /// Bundles of control frames that went there so far.
    pub bundles: u64,
    /// Packets that may be sealed there, in all since it began.
    pub seal_quota: u64,
    /// What its holder takes of both, as it said last.
    pub appetite: Appetite,
    /// Since when something that went there has had no answer.
    pub unanswered_since: Option<Instant>,
    /// Whether it was asked back.
    pub recall: Recall,
    /// Figures of other paths that its controller reads are out of date there.
    pub metrics_due: bool,
    /// When they were told last.
    pub metrics_told: Option<Instant>,
    /// What its holder was told of acks.
    pub ack_terms: AckTerms,
}

/// How much the holder of a path can use, and has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appetite {
    /// Stream bytes that may be lent to it, in all since the loan began.
    pub until_bytes: u64,
    /// Bundles that have left.
    pub bundles_sent: u64,
    /// Packets that were sealed.
    pub packets_sealed: u64,
}

/// Whether a lent path was asked back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recall {
    /// It may stay where it is.
    #[default]
    No,
    /// It was asked back, and did not come yet; since when.
    Asked(Instant),
}

/// When a path was last looked at, to find out whether it carries enough to be served elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct LendingTurn {
    /// Bytes sent and received by the last look, and when that was.
    pub looked_at: Option<(Instant, u64)>,
    /// Whether it carried enough by then; true until the next look, so that a path that may not go at once goes as soon as it may.
    pub is_busy: bool,
    /// Not to be lent before: it came back a moment ago.
    pub not_before: Option<Instant>,
    /// How long it stays the next time that it comes back soon.
    pub wait: Duration,
}

impl Loan {
    /// Stream bytes that its holder can still use; 0 where they are not worth a lease.
    pub fn room(&self) -> u64 {
        let room = self.appetite.until_bytes.saturating_sub(self.lent_bytes);
        if room < LEAST_LEASE_BYTES { 0 } else { room }
    }

    /// Bytes that were sent and received meanwhile on a path that has done so much by now.
    pub fn moved_bytes(&self, now: PathTotals) -> u64 {
        let moved = |totals: PathTotals| totals.sent_bytes + totals.received_bytes;
        moved(now).saturating_sub(moved(self.began_with))
    }

    /// So many leases of a stream ended.
    pub fn on_leases_ended(&mut self, stream: StreamId, count: u32) {
        for _ in 0..count {
            if let Some(at) = self.leases.iter().position(|lent| *lent == stream) {
                self.leases.remove(at);
            }
        }
    }

    /// Something went there that its holder is to report on.
    pub fn on_given(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Its holder reported: whoever still has something reports again.
    pub fn on_answer(&mut self, now: Instant) {
        let has_unsent = !self.leases.is_empty() || self.bundles > self.appetite.bundles_sent;
        self.unanswered_since = has_unsent.then_some(now);
    }

    /// The room is what schedulers see.
    pub fn show_room(&mut self) {
        let room = if self.room() > 0 && self.recall == Recall::No { SendRoom::Free } else { SendRoom::Window };
        self.record.snapshot.room = PathRoom::Send(room);
    }
}
