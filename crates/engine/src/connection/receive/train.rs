//! Datagrams of one path that came together, each of one packet with a short header: all are opened in place, then read.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::{ConnectionId, Instant};
use plait_crypto::OpenError;
use plait_path::table::Admission;
use plait_wire::header::{FixedBitRule, PacketKind, PacketSpan};

use super::bulk::{BulkRead, Front};
use super::open::Refusal;
use super::opened::{OpenedPacket, TrainPacket};
use super::{Arrival, Ending, Envelope};
use crate::connection::Connection;
use crate::connection::paths::PathControl;
use crate::connection::paths::arrival::PathOpener;
use crate::connection::settings::Settings;

const LONG_FORM: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;

/// The part of a short header that lies open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortHeader {
    pub(crate) cid_len: usize,
    pub(crate) rule: FixedBitRule,
}

impl ShortHeader {
    /// Where the packet number of a datagram lies; none for what is no packet.
    fn span(self, datagram: &[u8]) -> Option<PacketSpan> {
        let first = datagram.first()?;
        let is_refused = first & FIXED_BIT == 0 && self.rule == FixedBitRule::MustBeSet;
        let pn_offset = 1 + self.cid_len;
        (!is_refused && datagram.len() > pn_offset).then_some(PacketSpan { pn_offset, end: datagram.len() })
    }
}

/// Where the payload of a packet lies in its `datagram`, or why it goes no further. What was read since it was opened may have
/// closed its path, or was the same packet.
fn judge(
    opened: &Result<OpenedPacket, OpenError>,
    at: &mut Arrival,
    datagram: &[u8],
    paths: &mut PathControl,
) -> Result<Range<usize>, Refusal> {
    at.bytes = datagram.len() as u64;
    at.take_spin(datagram);
    let opened = opened.as_ref().map_err(|error| *error)?;
    paths.judge(at, opened.number)?;
    Ok(opened.payload.clone())
}

/// Datagrams came for a path: that is credit for their addresses. False where its peer may not send from or to them.
pub(crate) fn is_welcome(envelope: &Envelope, paths: &mut PathControl, settings: &Settings) -> bool {
    let source = paths.on_datagram(envelope.place, &envelope.tuple, envelope.bytes);
    !source.is_elsewhere() || settings.lets_clients_move_to(envelope.tuple.local)
}

/// Takes the protection off each datagram in place, of which `on_opened` hears. A packet's number is made whole beside those
/// before it.
pub(crate) fn open_all(
    train: &mut [u8],
    segment_bytes: usize,
    short: ShortHeader,
    opener: &mut PathOpener<'_>,
    packets: &mut Vec<TrainPacket>,
    mut on_opened: impl FnMut(&mut [u8], &TrainPacket),
) {
    let mut begin = 0;
    while let Some(datagram) = train.get_mut(begin..).and_then(|rest| rest.chunks_mut(segment_bytes).next()) {
        let opened = match short.span(datagram) {
            Some(span) => opener.open(datagram, span),
            None => Err(OpenError::TooShort),
        };
        let end = begin + datagram.len();
        let packet = TrainPacket { place: begin..end, opened };
        on_opened(train, &packet);
        packets.push(packet);
        begin = end;
    }
}

/// True for a datagram that begins with a short header, as far as its first byte says.
pub(crate) fn is_short(data: &[u8]) -> bool {
    data.first().is_some_and(|first| first & LONG_FORM == 0)
}

impl Envelope {
    /// True for datagrams that are read together: with short headers, on a path that is open, after the handshake.
    pub(super) fn is_train(&self, data: &[u8], paths: &PathControl) -> bool {
        paths.is_confirmed() && is_short(data) && paths.table.admission_at(self.place) == Admission::Open
    }
}

impl Arrival {
    /// Of the datagrams of a train, whose first is in `memory`.
    pub(crate) fn of_train(now: Instant, envelope: &Envelope, memory: &[u8], short: ShortHeader) -> Self {
        let dcid = memory.get(1..1 + short.cid_len).and_then(ConnectionId::new).unwrap_or(ConnectionId::EMPTY);
        Self::new(now, envelope, PacketKind::OneRtt, dcid)
    }
}

impl Connection {
    /// Reads datagrams of `segment_bytes` each but the last. Returns the memory in which they lie, received stream data too.
    pub(super) fn read_train(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        mut train: BytesMut,
        segment_bytes: usize,
    ) -> Bytes {
        if !is_welcome(envelope, &mut self.paths, &self.settings) {
            for datagram in train.chunks(segment_bytes) {
                self.events.on_dropped(now, datagram.len(), DropReason::WrongAddress);
            }
            return Bytes::new();
        }
        let mut packets = std::mem::take(&mut self.receive.train);
        let short = ShortHeader { cid_len: self.handshake.cid_len(), rule: self.settings.fixed_bit_rule() };
        let mut at = Arrival::of_train(now, envelope, &train, short);
        let mut front = BulkRead::default();
        // A datagram that came alone has nothing to be joined with.
        let is_bulk = train.len() > segment_bytes && self.lifecycle.is_open() && self.paths.is_bulk_path(&mut at);
        if let Some(keys) = self.keys.as_deref_mut() {
            let phase = keys.phase();
            let largest = self.paths.largest_received(&at);
            if let Some(mut opener) = self.paths.one_rtt_opener(now, envelope.place, keys) {
                let mut reader = is_bulk.then(|| Front::new(&mut at, largest, &mut self.receive.bulk));
                open_all(&mut train, segment_bytes, short, &mut opener, &mut packets, |train, packet| {
                    if let Some(reader) = &mut reader {
                        reader.read(train, packet);
                    }
                });
                front = reader.map(Front::finish).unwrap_or_default();
            }
            if keys.phase() != phase {
                self.events.observe(now, || TraceEvent::KeysUpdated { locally: false });
            }
        }
        let memory = train.freeze();
        self.read_opened(at, &packets, &memory, front);
        packets.clear();
        self.receive.train = packets;
        memory
    }

    /// Reads packets of a train, which was opened; `at` tells of its datagrams. The first of them were read as `front` says.
    pub(crate) fn read_opened(
        &mut self,
        mut at: Arrival,
        packets: &[TrainPacket],
        memory: &Bytes,
        mut front: BulkRead,
    ) {
        let now = at.now;
        let mut rest = packets;
        while let Some((packet, others)) = rest.split_first().filter(|_| !self.lifecycle.is_drained()) {
            let begins_bulk = front.count > 0 || packet.begins_with_stream(memory);
            let read = if begins_bulk { self.read_bulk(&mut at, rest, memory, std::mem::take(&mut front)) } else { 0 };
            if read > 0 {
                rest = rest.get(read..).unwrap_or_default();
                continue;
            }
            rest = others;
            let datagram = memory.get(packet.place.clone()).unwrap_or_default();
            match judge(&packet.opened, &mut at, datagram, &mut self.paths) {
                Ok(payload) => self.on_opened(&at, datagram.len(), datagram.get(payload).unwrap_or_default(), memory),
                Err(Refusal::Drop(why)) => {
                    // What does not open keeps its last bytes.
                    self.on_unread(now, Ending::of(at.tuple, datagram), datagram.len(), why);
                }
                Err(Refusal::Close(error)) => self.close_with(now, error),
            }
        }
    }
}
