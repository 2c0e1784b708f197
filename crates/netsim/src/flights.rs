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
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
}

impl Flights {
    pub(crate) fn insert(&mut self, flight: Flight) -> u32 {
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index as usize)
        {
            *slot = Some(flight);
            return index;
        }
        self.slots.push(Some(flight));
        self.slots.len() as u32 - 1
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flight> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn take(&mut self, index: u32) -> Option<Flight> {
        let flight = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(flight)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
