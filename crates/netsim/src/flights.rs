//! Datagrams on their way, in slots that are used again.

use plait_base::Instant;

use crate::host::Datagram;

/// A datagram between two hops.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) datagram: Datagram,
    /// Which route it follows.
    pub(crate) route: u32,
    /// The hop it comes to next.
    pub(crate) hop: u32,
    /// The link it is on; none between other hops.
    pub(crate) link: Option<u32>,
    /// When it was offered to that link.
    pub(crate) entered: Instant,
    /// When it leaves that link's near end.
    pub(crate) departure: Instant,
}

/// All of them. A datagram stays in its slot from the first hop to the last.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// A place for a flight.
#[derive(Debug)]
enum Slot {
    Free,
    Taken(Flight),
}

impl Flights {
    #[inline]
    pub(crate) fn insert(&mut self, flight: Flight) -> u32 {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            *slot = Slot::Taken(flight);
            return index;
        }
        self.slots.push(Slot::Taken(flight));
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flight> {
        match self.slots.get_mut(index as usize)? {
            Slot::Taken(flight) => Some(flight),
            Slot::Free => None,
        }
    }

    /// Its way has ended.
    #[inline]
    pub(crate) fn take(&mut self, index: u32) -> Option<Datagram> {
        let slot = self.slots.get_mut(index as usize)?;
        let Slot::Taken(flight) = slot else { return None };
        let Datagram { src, dst, ecn, ref mut payload } = flight.datagram;
        let datagram = Datagram { src, dst, ecn, payload: std::mem::take(payload) };
        *slot = Slot::Free;
        self.free.push(index);
        Some(datagram)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
