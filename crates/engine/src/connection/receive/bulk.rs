//! Packets of a train that bring stream data and nothing else, in order: what holds for the first of them holds for those
//! behind it, and what they say of their path is taken in once.

use bytes::Bytes;
use plait_base::TransportError;
use plait_base::observe::TraceEvent;
use plait_path::Eliciting;
use plait_path::table::{Admission, Pairing};
use plait_wire::frame::{Frame, Stream};

use super::Arrival;
use super::opened::TrainPacket;
use crate::connection::Connection;

impl Connection {
    /// Reads packets from the first on, as long as each is one STREAM frame and numbered above all before it, and came to
    /// where the path is. Says how many; others are read one by one.
    pub(super) fn read_bulk(&mut self, at: &mut Arrival, packets: &[TrainPacket], memory: &Bytes) -> usize {
        let table = &mut self.paths.table;
        if !self.lifecycle.is_open() || table.pairing() != Pairing::Paths {
            return 0;
        }
        at.admission = table.admission_at(at.place);
        let is_open = at.admission == Admission::Open;
        let Some(path) = at.place.filter(|_| is_open).and_then(|place| table.path_at_mut(place)) else { return 0 };
        if !path.is_at(&at.tuple) {
            return 0;
        }
        let is_observed = self.events.is_observed();
        let (mut count, mut ask, mut fault) = (0, false, None);
        for packet in packets {
            let Some((number, datagram, payload)) = packet.read(memory) else { break };
            let Some(frame) = Stream::alone_in(payload) else { break };
            if path.receive.largest().is_some_and(|largest| number <= largest) {
                break;
            }
            count += 1;
            (at.number, at.bytes) = (number, datagram.len() as u64);
            at.take_spin(datagram);
            if is_observed {
                let (path, space, bytes) = (at.path, at.space, datagram.len() as u16);
                self.events.observe(at.now, || TraceEvent::PacketReceived { path, space, number, bytes });
            }
            if let Err(violation) = self.streams.on_stream(frame.id, frame.offset, frame.fin, memory.slice_ref(frame.data))
            {
                let frame_type = Frame::Stream(frame).frame_type();
                fault = Some(TransportError::from(violation).in_frame(frame_type));
                break;
            }
            let bytes = Some(frame.data.len() as u64);
            ask |= path.on_packet_received(at.now, number, Eliciting::Yes, at.ecn, at.bytes, bytes);
        }
        let read_well = count - usize::from(fault.is_some());
        if read_well > 0 {
            at.newest = true;
            self.paths.on_bulk_received(at, ask);
            self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
            self.paths.on_newest_packet(at);
            self.on_path_news(at.now);
        }
        if let Some(error) = fault {
            self.close_with(at.now, error);
        }
        count
    }
}
