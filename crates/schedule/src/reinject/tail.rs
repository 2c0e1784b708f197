//! Tail duplication: what would arrive later than a copy of it, is overdue, or lies on a path that loses packets; and,
//! within a budget, whatever is last.
//!
//! With it a path that is done with its share takes over what a slower one still holds, so that a transfer over several
//! paths takes no longer than the best of them needs for all of it.

use std::time::Duration;

use plait_base::Instant;
use plait_base::limits::{MAX_UNSTEADY_COPIES_BYTES, UNSTEADY_COPIES_SHARE};

use super::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict, next_round_trip};
use crate::view::{PathView, Room};

/// Data that is doubled just in case: one byte of so many that were sent,
const INSURANCE_SHARE: u64 = 16;
/// and so many more, bytes.
const INSURANCE_FREE_BYTES: u64 = 16_000;
/// The same where more data follows: what a slow path holds up there is its window at most, bytes.
const TAKEOVER_FREE_BYTES: u64 = 64_000;

/// The flight of an unsteady path is copied where it is no more than so many windows of the path that takes it: the window of a
/// path that carries little grows only by what is copied.
const UNSTEADY_FLIGHT_WINDOWS: u64 = 4;

/// A flight of more packets is doubled on a path that is being opened.
const OPENING_FLIGHT_PACKETS: u64 = 3;

/// So long nothing new must have left, where more may follow, before data is doubled just in case: an application that
/// writes without end rests for a moment after every write.
const PAUSE: Duration = Duration::from_millis(1);
/// What a copy must gain while more data follows: on fast networks queues and late acks of this size come and go.
const GAIN_MIN: Duration = Duration::from_millis(20);

/// Builds the policy `tail`, which has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailFactory;

impl ReinjectionFactory for TailFactory {
    fn name(&self) -> &'static str {
        "tail"
    }

    fn build(&self) -> Box<dyn Reinjection> {
        Box::new(Tail::default())
    }
}

/// The default policy: what was sent and copied so far, for the budget of what is doubled just in case.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    sent_bytes: u64,
    copied_bytes: u64,
    /// When new data last left.
    fresh_at: Instant,
}

impl Default for Tail {
    fn default() -> Self {
        Self { sent_bytes: 0, copied_bytes: 0, fresh_at: Instant::ZERO }
    }
}

impl Tail {
    /// True where acks of `busy` came so late lately that those of copies sent at once had come sooner. What is copied then is
    /// small, for the path that takes it, and all in all it is no more than what is sent.
    fn is_unsteady(&self, idle: &PathView, busy: &PathView, back: Duration) -> bool {
        let gains = busy.recent_rtt.late >= GAIN_MIN
            && busy.rtt.is_some_and(|rtt| rtt.saturating_add(busy.recent_rtt.late) > back + back / 16);
        let is_small = busy.in_flight_bytes <= idle.window_bytes.saturating_mul(UNSTEADY_FLIGHT_WINDOWS);
        gains && is_small && self.copied_bytes <= MAX_UNSTEADY_COPIES_BYTES + self.sent_bytes / UNSTEADY_COPIES_SHARE
    }

    fn can_afford(&self, bytes: u64, free_bytes: u64) -> bool {
        self.copied_bytes + bytes <= free_bytes + self.sent_bytes / INSURANCE_SHARE
    }
}

impl Reinjection for Tail {
    fn name(&self) -> &'static str {
        "tail"
    }

    fn judge(
        &mut self,
        idle: &PathView,
        busy: &PathView,
        packet: &Outstanding,
        occasion: Occasion,
        now: Instant,
    ) -> Verdict {
        let Some(back) = next_round_trip(idle) else {
            // Nothing says that a path without a round trip is the better one. While it is being opened it takes the flight that
            // may stand in the queue of a slow one, and no lone request: that arrives in half a round trip on any path.
            let is_long = busy.in_flight_bytes > OPENING_FLIGHT_PACKETS * busy.max_datagram_bytes;
            let may = is_long && idle.room == Room::CopiesOnly && occasion != Occasion::Blocked;
            let copies = may && self.can_afford(packet.bytes, INSURANCE_FREE_BYTES);
            return if copies { Verdict::Copy } else { Verdict::No };
        };
        let (Some(expected), Some(overdue)) = (packet.expected_ack(busy, now), packet.overdue_at(busy)) else {
            return Verdict::Copy;
        };
        // Home just in time to keep the limit away: what comes sooner by itself is not known before.
        let in_time = back + back / 8;
        if let Occasion::Closing(after) = occasion
            && after > in_time
        {
            return Verdict::No;
        }
        let is_unsteady = occasion != Occasion::Blocked && self.is_unsteady(idle, busy, back);
        if occasion == Occasion::Held {
            return if is_unsteady { Verdict::Copy } else { Verdict::No };
        }
        // While more data follows, a path is idle for a moment only and acks are late for many reasons: what it takes over
        // keeps to a budget. At the end of all data nothing is gained by thrift.
        let ends = occasion == Occasion::Drained;
        let may = ends || self.can_afford(packet.bytes, TAKEOVER_FREE_BYTES);
        // Acks of both take the same way back, so that round trips compare as one way trips do. A little goes in favour
        // of what is under way already.
        let margin = if ends { back / 16 } else { GAIN_MIN.max(back / 16) };
        // What all else waits for need not be overdue: that it is late will do (RFC 9002 6.1.2), where its copy is home before that.
        let late = match packet.late_at(busy) {
            _ if ends => overdue,
            Some(late) if now.max(late + GAIN_MIN) + back + margin < overdue => late + GAIN_MIN,
            _ => overdue + GAIN_MIN,
        };
        if may && (now >= late || expected > now + back + margin) {
            return Verdict::Copy;
        }
        if matches!(occasion, Occasion::Closing(_)) {
            return Verdict::Later(late);
        }
        // Should it be lost, its own path repairs it a round trip after it is overdue: a copy must be sooner to be of use. Where
        // more is lost, so may be the repair.
        let doubtful = busy.is_lossy();
        let repaired = if doubtful { overdue + overdue.since(packet.sent_at) } else { overdue };
        let helps = now + back < repaired + busy.rtt_or_max();
        let last = occasion != Occasion::Blocked && self.can_afford(packet.bytes, INSURANCE_FREE_BYTES);
        let settled = if ends { now } else { self.fresh_at + PAUSE };
        match is_unsteady || (helps && (doubtful || last)) {
            true if now >= settled => Verdict::Copy,
            true => Verdict::Later(settled.min(late)),
            false => Verdict::Later(late),
        }
    }

    fn on_sent(&mut self, bytes: u64, copied: u64, now: Instant) {
        if copied < bytes {
            self.fresh_at = now;
        }
        self.sent_bytes += bytes;
        self.copied_bytes += copied;
    }
}
