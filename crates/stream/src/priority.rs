//! Which stream sends next: higher priority first, round robin among equals.

use std::collections::VecDeque;

use plait_base::StreamId;

use crate::lanes::Lanes;

/// Empty levels are kept, so that steady use does not allocate, up to this many.
const KEPT_LEVELS: usize = 8;

#[derive(Debug)]
struct PriorityLevel {
    priority: i32,
    ids: VecDeque<StreamId>,
}

/// Streams with something to send, by priority.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Sorted, highest priority first.
    levels: Vec<PriorityLevel>,
}

impl ReadyQueue {
    /// Puts `id` at the back of its level; the caller sees to it that it is queued once.
    pub(crate) fn push(&mut self, id: StreamId, priority: i32) {
        let at = self.levels.partition_point(|l| l.priority > priority);
        match self.levels.get_mut(at) {
            Some(level) if level.priority == priority => level.ids.push_back(id),
            _ => {
                if self.levels.len() >= KEPT_LEVELS {
                    self.levels.retain(|l| !l.ids.is_empty());
                }
                let at = self.levels.partition_point(|l| l.priority > priority);
                self.levels.insert(at, PriorityLevel { priority, ids: VecDeque::from([id]) });
            }
        }
    }

    /// Puts `id` back at the front of its level: its turn is not over.
    pub(crate) fn push_front(&mut self, id: StreamId, priority: i32) {
        match self.levels.iter_mut().find(|l| l.priority == priority) {
            Some(level) => level.ids.push_front(id),
            None => self.push(id, priority),
        }
    }

    /// The stream whose turn it is, where no other of its level waits: its next turn comes right after this one.
    #[inline]
    pub(crate) fn sole(&self) -> Option<StreamId> {
        let level = self.levels.iter().find(|l| !l.ids.is_empty())?;
        level.ids.front().copied().filter(|_| level.ids.len() == 1)
    }

    /// Takes the stream whose turn it is among those of `lanes`.
    #[inline]
    pub(crate) fn pop(&mut self, lanes: Lanes) -> Option<StreamId> {
        if lanes == Lanes::ALL {
            return self.levels.iter_mut().find_map(|l| l.ids.pop_front());
        }
        self.levels.iter_mut().find_map(|l| {
            let at = l.ids.iter().position(|id| lanes.hold(*id))?;
            l.ids.remove(at)
        })
    }

    /// True where a stream of `lanes` waits.
    pub(crate) fn holds_any_of(&self, lanes: Lanes) -> bool {
        self.levels.iter().any(|l| l.ids.iter().any(|id| lanes.hold(*id)))
    }

    /// Takes `id` out of the level of `priority`; false when it is not there.
    pub(crate) fn remove(&mut self, id: StreamId, priority: i32) -> bool {
        let Some(level) = self.levels.iter_mut().find(|l| l.priority == priority) else { return false };
        let Some(at) = level.ids.iter().position(|&x| x == id) else { return false };
        level.ids.remove(at);
        true
    }

    /// True when no stream waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().all(|l| l.ids.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{Dir, Side};

    #[test]
    fn higher_first_and_round_robin() {
        let mut q = ReadyQueue::default();
        for i in 0..3 {
            q.push(StreamId(i), 0);
        }
        q.push(StreamId(9), 5);
        assert_eq!(q.pop(Lanes::ALL), Some(StreamId(9)));
        assert_eq!(q.pop(Lanes::ALL), Some(StreamId(0)));
        q.push(StreamId(0), 0);
        assert_eq!(q.pop(Lanes::ALL), Some(StreamId(1)));
        q.push_front(StreamId(1), 0);
        assert_eq!(q.pop(Lanes::ALL), Some(StreamId(1)));
        assert!(q.remove(StreamId(2), 0) && !q.remove(StreamId(2), 0) && !q.remove(StreamId(2), 7));
        assert_eq!(q.sole(), Some(StreamId(0)));
        q.push(StreamId(4), -1);
        assert_eq!(q.sole(), Some(StreamId(0)), "one of a lower level has to wait");
        q.push(StreamId(5), 0);
        assert_eq!((q.sole(), q.pop(Lanes::ALL), q.pop(Lanes::ALL)), (None, Some(StreamId(0)), Some(StreamId(5))));
        assert_eq!((q.pop(Lanes::ALL), q.pop(Lanes::ALL), q.sole()), (Some(StreamId(4)), None, None));
    }

    #[test]
    fn lanes_have_turns_of_their_own() {
        let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
        let [even, odd] = [0, 1].map(|part| Lanes::part(part, 2));
        let mut q = ReadyQueue::default();
        (0..4).for_each(|index| q.push(id(index), 0));
        q.push(id(6), 1);
        assert_eq!((q.pop(odd), q.pop(odd), q.pop(odd)), (Some(id(1)), Some(id(3)), None));
        assert!(q.holds_any_of(even) && !q.holds_any_of(odd));
        assert_eq!([q.pop(even), q.pop(even), q.pop(even)], [6, 0, 2].map(|index| Some(id(index))), "priority first");
    }

    #[test]
    fn levels_stay_few_and_sorted() {
        let mut q = ReadyQueue::default();
        for p in 0..100 {
            q.push(StreamId(p as u64), p);
            q.pop(Lanes::ALL);
        }
        assert!(q.levels.len() <= KEPT_LEVELS && q.is_empty());
        for p in [3, -4, 9, 0, 100, -100, 5, 1, 2, 55] {
            q.push(StreamId((p + 200) as u64), p);
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop(Lanes::ALL)).map(|id| id.0 as i32 - 200).collect();
        assert_eq!(order, [100, 55, 9, 5, 3, 2, 1, 0, -4, -100]);
    }
}
