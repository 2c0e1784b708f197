//! The slots of a table by id, of which those at the end that nobody uses are passed over: a connection has ids for several paths
//! from the start and mostly uses one, and the others need not be looked at with each packet.

use std::ops::Deref;

use super::Slot;

/// Slots, sorted by id.
#[derive(Debug)]
pub(super) struct Slots {
    all: Vec<Slot>,
    /// From here on all are dormant. Whoever gets hold of a slot to change it moves this behind the slot.
    awake: usize,
}

impl Slots {
    pub(super) fn new(first: Slot) -> Self {
        Self { all: vec![first], awake: 1 }
    }

    /// All but dormant ones at the end.
    #[inline]
    pub(super) fn awake(&self) -> &[Slot] {
        self.check();
        self.all.get(..self.awake).unwrap_or(&self.all)
    }

    fn check(&self) {
        let dormant = || self.all.iter().skip(self.awake);
        debug_assert!(dormant().all(Slot::is_dormant), "changed without being awake");
    }

    /// The same, to change.
    #[inline]
    pub(super) fn awake_mut(&mut self) -> &mut [Slot] {
        self.check();
        let awake = self.awake.min(self.all.len());
        self.all.get_mut(..awake).unwrap_or_default()
    }

    /// One of them, to change; it is awake from now on, and so are those before it.
    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Slot> {
        let slot = self.all.get_mut(at)?;
        self.awake = self.awake.max(at + 1);
        Some(slot)
    }

    /// All of them, to change.
    pub(super) fn all_mut(&mut self) -> &mut [Slot] {
        self.awake = self.all.len();
        &mut self.all
    }

    pub(super) fn insert(&mut self, at: usize, slot: Slot) {
        self.all.insert(at, slot);
        self.awake = self.all.len();
    }

    pub(super) fn remove(&mut self, at: usize) -> Slot {
        let slot = self.all.remove(at);
        self.awake = self.awake.min(self.all.len());
        slot
    }

    /// Looks how many are awake.
    #[inline]
    pub(super) fn settle(&mut self) {
        while let Some(last) = self.awake.checked_sub(1)
            && self.all.get(last).is_some_and(Slot::is_dormant)
        {
            self.awake = last;
        }
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.all.shrink_to_fit();
    }
}

impl Deref for Slots {
    type Target = [Slot];

    fn deref(&self) -> &[Slot] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use plait_base::{Instant, PathId};

    use super::{Slot, Slots};

    #[test]
    fn only_dormant_slots_at_the_end_are_passed_over() {
        let mut slots = Slots::new(Slot::new(PathId::ZERO, 2, 2));
        (1..5).for_each(|id| slots.insert(id, Slot::new(PathId(id as u32), 2, 2)));
        assert_eq!(slots.awake().len(), 5, "what comes in may be anything");
        slots.settle();
        assert_eq!((slots.awake().len(), slots.len()), (0, 5));
        slots.get_mut(3).unwrap().wanted_since = Some(Instant::ZERO);
        assert_eq!(slots.awake().len(), 4);
        slots.settle();
        assert_eq!(slots.awake_mut().len(), 4, "the last of them waits for something");
        assert_eq!(slots.remove(0).id, PathId::ZERO);
        slots.settle();
        assert_eq!(slots.awake().last().map(|slot| slot.id), Some(PathId(3)));
        assert!(slots.get_mut(4).is_none());
        slots.all_mut()[2].wanted_since = None;
        slots.settle();
        assert!(slots.awake().is_empty());
    }
}
