//! A set of stream offsets that always knows how many bytes it holds.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-touching half-open ranges; each operation costs O(log n) for each range it touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteRanges {
    ends: BTreeMap<u64, u64>,
    bytes: u64,
}

impl ByteRanges {
    /// Bytes in the set.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of disjoint ranges.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.ends.first_key_value().map(|(&s, &e)| s..e)
    }

    /// The range that holds `x` or, when none does, the first one above it.
    pub(crate) fn at_or_after(&self, x: u64) -> Option<Range<u64>> {
        // Mostly the lowest: what is before it is dealt with.
        if let Some(first) = self.first().filter(|first| first.end > x) {
            return Some(first);
        }
        let below = self.ends.range(..=x).next_back().filter(|&(_, &e)| e > x);
        below.or_else(|| self.ends.range(x..).next()).map(|(&s, &e)| s..e)
    }

    /// Adds `range`; the number of bytes that were new.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        if let Some(added) = self.insert_last(&range) {
            return added;
        }
        let (mut start, mut end, mut held) = (range.start, range.end, 0);
        if let Some((&s, e)) = self.ends.range_mut(..=start).next_back() {
            if *e >= end {
                return 0;
            }
            if *e >= start {
                (start, held) = (s, *e - s);
            }
        }
        while let Some((&s, &e)) = self.ends.range(start + 1..=end).next() {
            self.ends.remove(&s);
            held += e - s;
            end = end.max(e);
        }
        self.ends.insert(start, end);
        let added = end - start - held;
        self.bytes += added;
        added
    }

    /// The same for what begins in the last range or behind it, as most does; none where it begins before.
    fn insert_last(&mut self, range: &Range<u64>) -> Option<u64> {
        let added = match self.ends.last_entry() {
            Some(last) if range.start < *last.key() => return None,
            Some(mut last) if range.start <= *last.get() => {
                let added = range.end.saturating_sub(*last.get());
                *last.get_mut() += added;
                added
            }
            _ => {
                self.ends.insert(range.start, range.end);
                range.end - range.start
            }
        };
        self.bytes += added;
        Some(added)
    }

    /// Removes `range`; the number of bytes that were there.
    pub(crate) fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        while let Some(found) = self.at_or_after(range.start) {
            if found.start >= range.end {
                break;
            }
            let cut = found.start.max(range.start)..found.end.min(range.end);
            if cut.is_empty() {
                break;
            }
            if cut.start > found.start {
                self.ends.insert(found.start, cut.start);
            } else {
                self.ends.remove(&found.start);
            }
            if cut.end < found.end {
                self.ends.insert(cut.end, found.end);
            }
            removed += cut.end - cut.start;
        }
        self.bytes -= removed;
        removed
    }

    /// The first part of `range` that is not in the set.
    pub(crate) fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut start = range.start;
        while start < range.end {
            match self.at_or_after(start) {
                Some(found) if found.start <= start => start = found.end,
                Some(found) => return Some(start..range.end.min(found.start)),
                None => return Some(start..range.end),
            }
        }
        None
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.bytes = 0;
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
            let (mut set, mut model) = (ByteRanges::default(), BTreeSet::new());
            for (add, start, len) in ops {
                let range = start..start + len;
                let before = model.len();
                if add {
                    model.extend(range.clone());
                    prop_assert_eq!(set.insert(range.clone()), (model.len() - before) as u64);
                } else {
                    model.retain(|x| !range.contains(x));
                    prop_assert_eq!(set.remove(range.clone()), (before - model.len()) as u64);
                }
                let flat: Vec<u64> = set.ends.iter().flat_map(|(&s, &e)| s..e).collect();
                prop_assert_eq!(flat, model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.bytes(), model.len() as u64);
                let gap = set.first_gap(start..start + len);
                let first_missing = (start..start + len).find(|x| !model.contains(x));
                prop_assert_eq!(gap.clone().map(|g| g.start), first_missing);
                if let Some(gap) = gap {
                    prop_assert!(gap.clone().all(|x| !model.contains(&x)));
                    prop_assert!(gap.end == start + len || model.contains(&gap.end));
                }
                let ends: Vec<_> = set.ends.iter().collect();
                prop_assert!(ends.windows(2).all(|p| p[0].1 < p[1].0));
            }
        }
    }
}
