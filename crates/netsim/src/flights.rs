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
    slots: Vec<FlightSlot>,
    free: Vec<u32>,
}

/// A place for a flight; what lies in a free one is of the last.
#[derive(Debug)]
struct FlightSlot {
    is_taken: bool,
    flight: Flight,
}

impl Flights {
    /// Takes the payload of a datagram that sets out at `now` on `route`.
    #[inline]
    pub(crate) fn begin(&mut self, datagram: &mut Datagram, route: u32, now: Instant) -> u32 {
        let Some((index, FlightSlot { is_taken, flight })) = self.free.pop().and_then(|index| self.slot(index)) else {
            let Datagram { src, dst, ecn, ref mut payload } = *datagram;
            let datagram = Datagram { src, dst, ecn, payload: std::mem::take(payload) };
            return self.add(Flight { datagram, route, hop: 0, link: None, entered: now, departure: now });
        };
        *is_taken = true;
        // Field by field: a datagram that was written just now is slow to copy as a whole.
        flight.datagram.src = datagram.src;
        flight.datagram.dst = datagram.dst;
        flight.datagram.ecn = datagram.ecn;
        std::mem::swap(&mut flight.datagram.payload, &mut datagram.payload);
        flight.route = route;
        flight.hop = 0;
        flight.link = None;
        index
    }

    /// One more copy of a flight.
    pub(crate) fn double(&mut self, flight: Flight) -> u32 {
        match self.free.pop().and_then(|index| self.slot(index)) {
            Some((index, slot)) => {
                *slot = FlightSlot { is_taken: true, flight };
                index
            }
            None => self.add(flight),
        }
    }

    fn slot(&mut self, index: u32) -> Option<(u32, &mut FlightSlot)> {
        self.slots.get_mut(index as usize).map(|slot| (index, slot))
    }

    #[cold]
    fn add(&mut self, flight: Flight) -> u32 {
        self.slots.push(FlightSlot { is_taken: true, flight });
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Flight> {
        self.slots.get_mut(index as usize).filter(|slot| slot.is_taken).map(|slot| &mut slot.flight)
    }

    /// Its way has ended.
    #[inline]
    pub(crate) fn take(&mut self, index: u32) -> Option<Datagram> {
        let slot = self.slots.get_mut(index as usize).filter(|slot| slot.is_taken)?;
        slot.is_taken = false;
        self.free.push(index);
        let Datagram { src, dst, ecn, ref mut payload } = slot.flight.datagram;
        Some(Datagram { src, dst, ecn, payload: std::mem::take(payload) })
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
