//! Which packet numbers were received, in bounded memory.

use std::ops::Range;

use plait_base::RangeSet;
use plait_base::limits::MAX_DEDUP_RANGES;

/// The numbers received. Below `floor` all count as received, so that memory stays bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dedup {
    seen: RangeSet,
    floor: u64,
}

impl Dedup {
    /// True when `number` was received or lies below the window.
    pub(crate) fn contains(&self, number: u64) -> bool {
        number < self.floor || self.seen.contains(number)
    }

    /// True when every number of `from..to` was received.
    pub(crate) fn contains_all(&self, from: u64, to: u64) -> bool {
        self.seen.contains_range(from.max(self.floor)..to.max(self.floor))
    }

    /// Takes in numbers of which none is known.
    pub(crate) fn insert(&mut self, numbers: Range<u64>) {
        self.seen.insert(numbers);
        while self.seen.len() > MAX_DEDUP_RANGES {
            if let Some(oldest) = self.seen.pop_first() {
                self.floor = oldest.end;
            }
        }
    }

    /// The first number below `below` and at or above `from` that was not received.
    pub(crate) fn first_missing(&self, from: u64, below: u64) -> Option<u64> {
        let from = from.max(self.floor);
        // Mostly it is near the end.
        let around = self.seen.iter().rev().find(|range| range.start <= from);
        let first = around.map_or(from, |range| range.end.max(from));
        (first < below).then_some(first)
    }
}
