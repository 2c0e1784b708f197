//! One packet, from its header to the books: whatever leaves on a connection is built, sealed and remembered here.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::probe::TraceEvent;
use plait_base::{Ecn, Instant, PathId, Space};
use plait_path::{Built, FourTupleRole, PacketBuilder, PacketInfo, Pad, Padding, Sealer};
use plait_wire::header::{FixedBit, OutHeader};
use plait_wire::params::GreaseQuicBit;
use plait_wire::{FrameWriter, SentFrame};

use crate::config::Switch;
use crate::connection::Connection;
use crate::connection::send::purpose::Purpose;

/// What is known of a packet before its frames are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) path: PathId,
    /// Which of the path's addresses it leaves by.
    pub(crate) role: FourTupleRole,
    pub(crate) space: Space,
    /// Index in the buffer at which it must end.
    pub(crate) end: usize,
    /// The mark of its datagram.
    pub(crate) ecn: Option<Ecn>,
    pub(crate) purpose: Purpose,
}

impl Outline {
    /// A packet without an ECN mark on the path's own addresses.
    pub(crate) fn unmarked(path: PathId, space: Space, end: usize, purpose: Purpose) -> Self {
        Self { path, role: FourTupleRole::Current, space, end, ecn: None, purpose }
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
        // No timer waits for the last packet of a path: what it says is due until it is acknowledged.
        let ack_eliciting = w.is_ack_eliciting() && outline.purpose != Purpose::End;
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
        let &Outline { path: id, role, space, end, purpose, .. } = outline;
        let slot = self.paths.table.slot(id)?;
        // The last packet where no path is open goes to the id that was in use last.
        let last = slot.last_remote_cid().filter(|_| purpose == Purpose::End);
        let dcid = slot.dcid(role).or(last)?;
        let path = slot.path.as_ref()?;
        let handshake = &self.handshake;
        let has_keys = match space {
            Space::Data => self.keys.is_some() || handshake.early_seal_keys().is_some(),
            space => handshake.has_keys(space),
        };
        if !has_keys {
            return None;
        }
        let (versions, scid) = (&handshake.versions, handshake.ids.local);
        let header = match space {
            Space::Initial => OutHeader::Initial { version: versions.current, dcid, scid, token: &handshake.token },
            Space::Handshake => OutHeader::Handshake { version: versions.current, dcid, scid },
            // RFC 9000 17.2.3: 1-RTT packets as soon as they can be made, their numbers going on from those of 0-RTT
            Space::Data if self.keys.is_some() => OutHeader::Short { dcid, spin: path.spin.bit(), key_phase: false },
            // RFC 9369 4.1: 0-RTT stays in the version that it began in
            Space::Data => OutHeader::ZeroRtt { version: versions.original, dcid, scid },
        };
        // RFC 9287 3: peers that allow it get the bit at random
        let allows = |p: &plait_wire::TransportParameters| p.fixed_bit == GreaseQuicBit::Supported;
        let random = space == Space::Data
            && self.settings.transport.wire.grease == Switch::On
            && handshake.is_confirmed()
            && handshake.peer_params.as_ref().is_some_and(allows);
        let clear = random && self.random.next_u32() & 1 == 1;
        let fixed = if clear { FixedBit::Clear } else { FixedBit::Set };
        let (number, acked) = (path.send.next_number(space), path.send.largest_acked(space));
        PacketBuilder::begin(buf, &header, id, number, acked, end, fixed)
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
        let path = self.paths.table.path_mut(outline.path)?;
        let sealer = match (outline.space, self.keys.as_deref_mut()) {
            (Space::Data, Some(keys)) => Sealer::OneRtt(keys, path.send.seal_mark_mut()),
            (Space::Data, None) => Sealer::Level(self.handshake.early_seal_keys()?),
            (space, _) => Sealer::Level(&self.handshake.keys(space)?.local),
        };
        match builder.finish(buf, sealer, padding) {
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
        let &Outline { path: id, role, space, ecn, purpose, .. } = outline;
        let app_limited = self.streams.unsent_bytes() == 0;
        let repeats = purpose == Purpose::Copies || self.is_doubled(id);
        let (number, bytes) = (built.number, built.bytes as u16);
        let path = self.paths.table.path_mut(id)?;
        let packet = PacketInfo {
            bytes,
            ack_eliciting,
            in_flight: ack_eliciting || built.padding_bytes > 0,
            ecn_marked: ecn.is_some(),
            mtu_probe: matches!(purpose, Purpose::Mtu(_)),
            app_limited,
            repeats,
            elsewhere: purpose == Purpose::OtherAddress,
        };
        let pruned = path.on_packet_sent(now, (space, role), &packet, frames, &mut self.paths.feedback);
        if pruned {
            self.process_acked_and_lost(now, id);
        }
        if purpose != Purpose::End {
            self.scheduling.scheduler.on_sent(id, u64::from(bytes), now);
            self.scheduling.reinjector.on_sent(u64::from(bytes), purpose, now);
        }
        if ack_eliciting {
            self.lifecycle.on_sent_eliciting(now, self.paths.table.max_pto());
        }
        self.events.observe(now, || TraceEvent::PacketSent { path: id, space, number, bytes, ack_eliciting });
        if space == Space::Data && role == FourTupleRole::Current {
            self.copy_elsewhere(id, frames);
        }
        Some(built)
    }
}
