//! One packet, from its header to the books: whatever leaves on a connection is built, sealed and remembered here.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::observe::TraceEvent;
use plait_base::{Ecn, Instant, Space};
use plait_path::table::SlotPlace;
use plait_path::{Built, FourTupleRole, PacketBuilder, PacketInfo, Pad, Padding, Sealer};
use plait_wire::{FrameWriter, SentFrame};

use crate::connection::Connection;
use crate::connection::send::bulk::draw_fixed_bit;
use crate::connection::send::purpose::Purpose;

/// What is known of a packet before its frames are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    /// The path that it leaves on, found once.
    pub(crate) place: SlotPlace,
    /// Which of the path's addresses it leaves by.
    pub(crate) role: FourTupleRole,
    pub(crate) space: Space,
    /// Index in the buffer at which it must end, which the caller has cut to the largest datagram and the amplification room.
    pub(crate) end: usize,
    /// The mark of its datagram.
    pub(crate) ecn: Option<Ecn>,
    pub(crate) purpose: Purpose,
}

impl Outline {
    /// A packet without an ECN mark on the path's own addresses.
    pub(crate) fn unmarked(place: SlotPlace, space: Space, end: usize, purpose: Purpose) -> Self {
        Self { place, role: FourTupleRole::Current, space, end, ecn: None, purpose }
    }
}

/// Padding of a packet that may have to show that full-sized datagrams pass (RFC 9000 8.2.1).
pub(crate) fn padding_of(pad: Pad, start: usize, end: usize) -> Padding {
    match pad {
        Pad::Full => Padding::UpTo((start + MIN_DATAGRAM_BYTES).min(end)),
        Pad::No => Padding::Least,
    }
}

impl Connection {
    /// Appends a packet to `buf` with the frames that `fill` writes, padded as it says, and books it as sent. None, with
    /// nothing appended, where there is no frame, no room, no connection id or no key.
    pub(crate) fn assemble(
        &mut self,
        now: Instant,
        outline: &Outline,
        buf: &mut Vec<u8>,
        fill: impl FnOnce(&mut Self, &mut FrameWriter<'_>) -> Padding,
    ) -> Option<Built> {
        let builder = self.begin_packet(outline, buf)?;
        let mut frames = std::mem::take(&mut self.scheduling.frames);
        frames.clear();
        let mut w = builder.writer(buf, &mut frames);
        let padding = fill(self, &mut w);
        let ack_eliciting = w.is_ack_eliciting() && !outline.purpose.is_on_the_side();
        let built = if builder.is_empty(buf) && !matches!(padding, Padding::UpTo(_)) {
            builder.abandon(buf);
            None
        } else {
            let built = self.seal(now, outline, builder, buf, padding);
            built.and_then(|built| self.book(now, outline, built, ack_eliciting, &frames))
        };
        self.scheduling.frames = frames;
        built
    }

    /// Writes the header.
    fn begin_packet(&mut self, outline: &Outline, buf: &mut Vec<u8>) -> Option<PacketBuilder> {
        let &Outline { place, role, space, end, purpose, .. } = outline;
        let slot = self.paths.table.slot_at(place)?;
        let dcid = match purpose {
            // The last packet where no path is open goes to the id that was in use last.
            Purpose::End => slot.dcid(role).or(slot.last_remote_cid())?,
            // RFC 9000 12.2: that of the packet behind it
            Purpose::HandshakeCopy(path) => self.paths.table.slot(path)?.dcid(role)?,
            _ => slot.dcid(role)?,
        };
        let path = slot.path.as_deref()?;
        // RFC 9000 17.2.3: 1-RTT packets as soon as they can be made, their numbers going on from those of 0-RTT
        let header = if space == Space::Data && self.keys.is_some() {
            path.short_header(dcid)
        } else {
            self.handshake.long_header(space, dcid)?
        };
        // RFC 9287 3: peers that allow it get the bit at random
        let may_clear = space == Space::Data && self.handshake.may_clear_fixed_bit(self.settings.transport.wire.grease);
        let fixed = draw_fixed_bit(may_clear.then_some(&mut self.random));
        path.begin_packet(space, buf, &header, end, fixed)
    }

    /// Pads and seals; a seal that fails closes the connection.
    fn seal(
        &mut self,
        now: Instant,
        outline: &Outline,
        builder: PacketBuilder,
        buf: &mut Vec<u8>,
        padding: Padding,
    ) -> Option<Built> {
        let path = self.paths.table.path_at_mut(outline.place)?;
        let sealer = match (outline.space, self.keys.as_deref_mut()) {
            (Space::Data, Some(keys)) => Sealer::OneRtt(keys),
            (space, _) => Sealer::Level(self.handshake.seal_keys(space)?),
        };
        match path.finish_packet(builder, buf, sealer, padding) {
            Ok(built) => Some(built),
            Err(error) => {
                self.close_with(now, error.into());
                None
            }
        }
    }

    /// Remembers a sealed packet: its path for loss recovery and credit, the policies, the timers, and observers.
    fn book(
        &mut self,
        now: Instant,
        outline: &Outline,
        built: Built,
        ack_eliciting: bool,
        frames: &[SentFrame],
    ) -> Option<Built> {
        let &Outline { place, role, space, ecn, purpose, .. } = outline;
        let id = place.id();
        let app_limited = !self.streams.has_unsent(self.scheduling.lanes(id));
        let repeats = purpose == Purpose::Copies || self.scheduling.copies.doubles(&self.paths.table, place);
        let (number, bytes) = (built.number, built.bytes as u16);
        let path = self.paths.table.path_at_mut(place)?;
        let packet = PacketInfo {
            bytes,
            ack_eliciting,
            in_flight: ack_eliciting || built.padding_bytes > 0,
            ecn_marked: ecn.is_some(),
            mtu_probe: matches!(purpose, Purpose::MtuProbe(_)),
            app_limited,
            repeats,
            elsewhere: matches!(purpose, Purpose::OtherAddress | Purpose::HandshakeCopy(_)),
        };
        let pruned = path.on_packet_sent(now, (space, role), &packet, frames, &mut self.paths.feedback);
        let is_validation = |frame: &SentFrame| matches!(frame, SentFrame::PathChallenge(_) | SentFrame::PathResponse);
        let is_start = role == FourTupleRole::Current && path.is_starting() && frames.iter().any(is_validation);
        self.scheduling.views.on_sent(place);
        if is_start {
            self.paths.ping(id);
        }
        if frames.iter().any(|frame| matches!(frame, SentFrame::AckFrequency(_))) {
            // Every path allows for the delay that was asked for.
            self.scheduling.views.expire();
        }
        if pruned {
            self.scheduling.views.expire();
            let feedback = self.paths.take_feedback();
            self.process_acked_and_lost(now, id, feedback);
        }
        if matches!(purpose, Purpose::Data | Purpose::Control) && space == Space::Data {
            self.scheduling.scheduler.on_sent(id, u64::from(bytes), now);
        }
        if !purpose.is_on_the_side() {
            self.scheduling.reinjector.on_sent(u64::from(bytes), purpose, now);
        }
        if ack_eliciting {
            self.lifecycle.on_sent_eliciting(now, || self.paths.table.max_pto());
        }
        self.events.observe(now, || TraceEvent::PacketSent { path: id, space, number, bytes, ack_eliciting });
        if space == Space::Data && role == FourTupleRole::Current && purpose != Purpose::Copies {
            self.scheduling.copy_elsewhere(&self.paths.table, place, frames);
        }
        Some(built)
    }
}
