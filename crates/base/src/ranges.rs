//! Sets of numbers kept as sorted, disjoint half-open ranges: packet numbers and stream offsets.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of `u64` as ascending, non-touching half-open ranges.
///
/// Appending at the end and removing at the front, the common cases, cost O(1); others O(log n + moves).
///
/// ```
/// use plait_base::RangeSet;
/// let mut set = RangeSet::new();
/// assert!(set.insert(3..5) && set.insert(0..3) && !set.insert(1..4));
/// assert_eq!(set.iter().collect::<Vec<_>>(), [0..5]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// An empty set.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of disjoint ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when nothing is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Index of the first range that ends at or after `x`.
    #[inline]
    fn seek(&self, x: u64) -> usize {
        match self.ranges.back() {
            Some(last) if last.end < x => self.ranges.len(),
            Some(last) if last.start <= x => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|r| r.end < x),
        }
    }

    /// True when `x` is in the set.
    #[inline]
    pub fn contains(&self, x: u64) -> bool {
        // Most are asked for at the end.
        if self.ranges.back().is_none_or(|last| last.start <= x) {
            return self.ranges.back().is_some_and(|last| x < last.end);
        }
        let i = self.ranges.partition_point(|r| r.end <= x);
        self.ranges.get(i).is_some_and(|r| r.start <= x)
    }

    /// True when every number of `range` is in the set; true for an empty range.
    #[inline]
    pub fn contains_range(&self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let holds = |r: &Range<u64>| r.start <= range.start && range.end <= r.end;
        // Most are asked for at the end.
        if self.ranges.back().is_none_or(|last| last.start <= range.start) {
            return self.ranges.back().is_some_and(holds);
        }
        let i = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges.get(i).is_some_and(holds)
    }

    /// Adds one number; false when it was there already.
    #[inline]
    pub fn insert_one(&mut self, x: u64) -> bool {
        self.insert(x..x + 1)
    }

    /// Adds `range`; false when it added nothing new.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        if let Some(last) = self.ranges.back_mut().filter(|last| last.end == range.start) {
            last.end = range.end;
            return true;
        }
        let first = self.seek(range.start);
        let Some(found) = self.ranges.get(first).cloned() else {
            self.ranges.push_back(range);
            return true;
        };
        if found.start <= range.start && range.end <= found.end {
            return false;
        }
        if range.end < found.start {
            self.ranges.insert(first, range);
            return true;
        }
        let mut last = first;
        while self.ranges.get(last + 1).is_some_and(|r| r.start <= range.end) {
            last += 1;
        }
        let merged = found.start.min(range.start)..self.ranges[last].end.max(range.end);
        self.ranges[first] = merged;
        if last > first {
            self.ranges.drain(first + 1..=last);
        }
        true
    }

    /// Removes every number of `range`; false when none was there.
    pub fn remove(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        // Most are taken off the front.
        match self.ranges.front_mut() {
            Some(first) if (first.start..first.end).contains(&range.end) && range.start <= first.start => {
                let is_change = first.start < range.end;
                first.start = range.end;
                is_change
            }
            _ => self.remove_within(range),
        }
    }

    #[inline(never)]
    fn remove_within(&mut self, range: Range<u64>) -> bool {
        let mut i = self.ranges.partition_point(|r| r.end <= range.start);
        let mut changed = false;
        while let Some(found) = self.ranges.get(i).cloned() {
            if found.start >= range.end {
                break;
            }
            changed = true;
            let left = found.start..range.start.max(found.start);
            let right = range.end.min(found.end)..found.end;
            match (left.is_empty(), right.is_empty()) {
                (true, true) => {
                    self.ranges.remove(i);
                }
                (false, true) => {
                    self.ranges[i] = left;
                    i += 1;
                }
                (true, false) => {
                    self.ranges[i] = right;
                    i += 1;
                }
                (false, false) => {
                    self.ranges[i] = left;
                    self.ranges.insert(i + 1, right);
                    i += 2;
                }
            }
        }
        changed
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// Takes the lowest range out.
    #[inline]
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// The smallest number in the set.
    #[inline]
    pub fn min(&self) -> Option<u64> {
        self.ranges.front().map(|r| r.start)
    }

    /// The largest number in the set.
    #[inline]
    pub fn max(&self) -> Option<u64> {
        self.ranges.back().map(|r| r.end - 1)
    }

    /// The ranges, ascending; reversible.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..80)) {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for (add, start, len) in ops {
                let range = start..start + len;
                let before = model.len();
                if add {
                    model.extend(range.clone());
                    prop_assert_eq!(set.insert(range), model.len() != before);
                } else {
                    model.retain(|x| !range.contains(x));
                    prop_assert_eq!(set.remove(range), model.len() != before);
                }
                let flat: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(flat, model.iter().copied().collect::<Vec<_>>());
                for pair in set.iter().collect::<Vec<_>>().windows(2) {
                    prop_assert!(pair[0].end < pair[1].start);
                }
                for x in 0..75 {
                    prop_assert_eq!(set.contains(x), model.contains(&x));
                }
                prop_assert_eq!(set.count(), model.len() as u64);
            }
        }
    }
}
