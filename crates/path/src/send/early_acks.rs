//! Bytes whose acks came home by a shortcut, until they would have come by the path's own way back.
//!
//! RFC 10069 lets acks take any path. A flow whose acks are home sooner has room sooner, and with the same window more of a
//! bottleneck than a single-path flow beside it. So what was acked counts against the window until its ack would have come the
//! own way: the controller works in windows and round trips of that way, and knows nothing of shortcuts but in slow start.
//! Loss detection, probes and scheduling keep the shorter round trip.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::Instant;

/// Acks within this part of the shortcut leave together.
const SPACING_DIVISOR: u32 = 32;
/// Groups that are kept, a few more than fit into one shortcut; beyond them the oldest leaves at once.
const GROUPS_MAX: usize = 64;

/// What was acked by a shortcut a short while ago.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyAcks {
    /// When each group's acks would have come, and its bytes; the oldest first.
    groups: VecDeque<(Instant, u64)>,
    bytes: u64,
}

impl EarlyAcks {
    /// Bytes that count as if they were in flight.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many bytes were acked at `now`, sooner by `shortcut` than by the own way.
    pub(crate) fn on_acked(&mut self, now: Instant, shortcut: Duration, bytes: u64) {
        self.expire(now);
        if shortcut.is_zero() || bytes == 0 {
            return;
        }
        let due = now + shortcut;
        self.bytes += bytes;
        if let Some((first, sum)) = self.groups.back_mut()
            && due <= *first + shortcut / SPACING_DIVISOR
        {
            *sum += bytes;
            return;
        }
        if self.groups.len() == GROUPS_MAX {
            self.bytes -= self.groups.pop_front().map_or(0, |(_, bytes)| bytes);
        }
        self.groups.push_back((due, bytes));
    }

    /// Those leave whose acks would have come by now.
    #[inline]
    pub(crate) fn expire(&mut self, now: Instant) {
        // With acks by the own way there is nothing to look at.
        if self.bytes == 0 {
            return;
        }
        while let Some((_, bytes)) = self.groups.front().copied().filter(|(due, _)| *due <= now) {
            self.bytes -= bytes;
            self.groups.pop_front();
        }
    }

    /// When so many bytes will have left; none where there are not so many.
    pub(crate) fn free_at(&self, bytes: u64) -> Option<Instant> {
        let mut freed = 0;
        self.groups.iter().find_map(|(due, group)| {
            freed += group;
            (freed >= bytes).then_some(*due)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Instant {
        Instant::ZERO + MS * ms
    }

    #[test]
    fn bytes_count_until_their_acks_would_have_come() {
        let mut early = EarlyAcks::default();
        early.on_acked(at(0), MS * 64, 1000);
        early.on_acked(at(1), MS * 64, 100);
        early.on_acked(at(10), MS * 64, 10);
        assert_eq!((early.bytes(), early.groups.len()), (1110, 2), "acks close together are one group");
        assert_eq!([1, 1100, 1101, 1111].map(|b| early.free_at(b)), [Some(at(64)), Some(at(64)), Some(at(74)), None]);
        early.expire(at(63));
        assert_eq!(early.bytes(), 1110);
        early.expire(at(64));
        assert_eq!(early.bytes(), 10);
        early.on_acked(at(80), Duration::ZERO, 5000);
        assert_eq!(early.bytes(), 0, "acks by the own way come when they come");
    }

    #[test]
    fn groups_are_bounded() {
        let mut early = EarlyAcks::default();
        (0..10_000).for_each(|ms| early.on_acked(at(ms), MS * 320, 1));
        assert!(early.groups.len() <= 33 && early.bytes() >= 310, "{} {}", early.groups.len(), early.bytes());
        // A shortcut that grows with every ack.
        (0..10_000).for_each(|i| early.on_acked(at(10_000), MS * (320 + i * 100), 1));
        assert_eq!(early.groups.len(), GROUPS_MAX);
        assert_eq!(early.bytes(), early.groups.iter().map(|(_, bytes)| bytes).sum());
    }
}
