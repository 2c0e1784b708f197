//! A path found once: what is done to it for one packet, or one train, goes there without another look-up.

use plait_base::PathId;

use super::{Paths, Slot};
use crate::path::Path;

/// Where in the table a path id stood when it was looked up. It leads there as long as the id is in the table, also when
/// others came or went meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    id: PathId,
    at: usize,
}

impl SlotPlace {
    /// Where in the order of ids it stood.
    #[inline]
    pub fn index(self) -> usize {
        self.at
    }

    /// The path id that was looked up.
    #[inline]
    pub fn id(self) -> PathId {
        self.id
    }
}

impl Paths {
    /// Looks an id up.
    #[inline]
    pub fn place(&self, id: PathId) -> Option<SlotPlace> {
        self.index(id).map(|at| SlotPlace { id, at })
    }

    /// The first slot from index `from` on that is wanted, by id.
    pub fn next_slot(&self, from: usize, is_wanted: impl Fn(&Slot) -> bool) -> Option<SlotPlace> {
        let found = self.slots().enumerate().skip(from).find(|(_, slot)| is_wanted(slot));
        found.map(|(at, slot)| SlotPlace { id: slot.id, at })
    }

    /// The slot that was found.
    #[inline]
    pub fn slot_at(&self, place: SlotPlace) -> Option<&Slot> {
        match self.slots.get(place.at) {
            Some(slot) if slot.id == place.id => Some(slot),
            // Others came or went before it.
            _ => self.slots.get(self.search(place.id)?),
        }
    }

    /// The slot that was found, to change.
    #[inline]
    pub fn slot_at_mut(&mut self, place: SlotPlace) -> Option<&mut Slot> {
        let at = match self.slots.get(place.at) {
            Some(slot) if slot.id == place.id => place.at,
            _ => self.search(place.id)?,
        };
        self.slots.get_mut(at)
    }

    /// The path that was found, open or closing.
    #[inline]
    pub fn path_at(&self, place: SlotPlace) -> Option<&Path> {
        self.slot_at(place)?.path.as_deref()
    }

    /// The path that was found, open or closing, to change.
    #[inline]
    pub fn path_at_mut(&mut self, place: SlotPlace) -> Option<&mut Path> {
        self.slot_at_mut(place)?.path.as_deref_mut()
    }
}
