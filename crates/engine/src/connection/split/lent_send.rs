//! What leaves on a lent path: acks, bundles, and packets of leases.

use plait_base::observe::TraceEvent;
use plait_base::{Ecn, Instant, PathId, Random, Space};
use plait_path::{
    AckNeed, Built, Departure, FourTupleRole, PacketInfo, Padding, Sealer, SendRoom, TRAIN_PADDING_BYTES, TrainPlan,
    TrainSource,
};
use plait_wire::header::FixedBit;
use plait_wire::{FrameWriter, SentFrame};

use super::lent::{Cargo, LentPath, LoanTerms, ReturnReason, ToTell};
use super::messages::Follows;
use crate::config::Switch;
use crate::connection::send::MAX_TRAIN_BYTES;
use crate::connection::send::bulk::draw_fixed_bit;
use crate::io::{More, Transmit};

/// A train that is being made.
#[derive(Clone, Copy, Debug)]
struct Train {
    ecn: Option<Ecn>,
    segment_bytes: usize,
    count: usize,
    max: usize,
}

impl Cargo {
    /// True where stream bytes wait, here or at the connection.
    fn has_unsent(&self) -> bool {
        !self.leases.is_empty() || self.follows == Some(Follows::More)
    }

    /// Writes data of leases, as much as fits.
    fn fill(&mut self, w: &mut FrameWriter<'_>) {
        while let Some(lease) = self.leases.front_mut().filter(|_| w.remaining() > 0) {
            if !lease.fill(w) {
                return;
            }
            if lease.is_over() {
                self.ended.push((lease.id(), lease.parts()));
                self.leases.pop_front();
            }
        }
    }
}

impl ToTell {
    fn trace_sent(&mut self, now: Instant, path: PathId, built: &Built, ack_eliciting: bool) {
        let (space, number, bytes) = (Space::Data, built.number, built.bytes as u16);
        self.traces.push((now, TraceEvent::PacketSent { path, space, number, bytes, ack_eliciting }));
    }
}

/// Leases, who draws the bits of their packets, and who is to hear of them.
struct Leases<'a> {
    cargo: &'a mut Cargo,
    fixed_bits: Option<&'a mut Random>,
    observed: Option<(&'a mut ToTell, PathId, Instant)>,
    count: usize,
}

impl TrainSource for Leases<'_> {
    #[inline]
    fn has_more(&self) -> bool {
        !self.cargo.leases.is_empty()
    }

    #[inline]
    fn has_unsent(&self) -> bool {
        self.cargo.has_unsent()
    }

    #[inline]
    fn fixed_bit(&mut self) -> FixedBit {
        draw_fixed_bit(self.fixed_bits.as_deref_mut())
    }

    #[inline]
    fn fill(&mut self, w: &mut FrameWriter<'_>) {
        self.cargo.fill(w);
    }

    #[inline]
    fn on_sent(&mut self, built: Built) {
        self.count += 1;
        if let Some((to_tell, path, now)) = &mut self.observed {
            to_tell.trace_sent(*now, *path, &built, true);
        }
    }
}

impl LentPath {
    /// The next datagram, or train of up to `max_segments` datagrams of one size, written into `buf` (cleared first). None
    /// when nothing can leave now. Take its messages first: what came is acknowledged once it was handed over (RFC 9000 13.1),
    /// so that nothing is lost that the peer believes to have arrived, should whoever serves the path fall.
    pub fn poll_transmit(&mut self, now: Instant, max_segments: usize, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if self.why_back.is_some() {
            return None;
        }
        let Departure { tuple, ecn, .. } = self.path.departure(FourTupleRole::Current)?;
        let segment_bytes = if self.cargo.bundles.is_empty() {
            self.path.bulk_bytes(self.terms.dcid)
        } else {
            // They may need all of the room.
            usize::from(self.path.mtu())
        };
        let max = match self.terms.segmentation {
            Switch::On => max_segments.min(MAX_TRAIN_BYTES / segment_bytes).max(1),
            Switch::Off => 1,
        };
        let mut train = Train { ecn, segment_bytes, count: 0, max };
        if self.may_fill(now) || self.first_packet(now, &mut train, buf) && self.may_fill(now) {
            self.fill_leases(now, &mut train, buf);
        }
        if train.count == 0 {
            return None;
        }
        self.to_tell.is_due = true;
        self.check_keys();
        let segment_size = (train.count > 1).then_some(train.segment_bytes);
        Some(Transmit { tuple, ecn, size: buf.len(), segment_size, more: More::Possible })
    }

    /// True where the next packets are data of leases and nothing else.
    fn may_fill(&mut self, now: Instant) -> bool {
        !self.cargo.leases.is_empty()
            && self.cargo.bundles.is_empty()
            && self.path.receive.ack_need(now) == AckNeed::None
            && self.has_room(now)
            && self.mtu_probe(now).is_none()
    }

    /// A larger size to try in place of leases.
    fn mtu_probe(&mut self, now: Instant) -> Option<u16> {
        let cargo = &self.cargo;
        self.path.mtu_probe_beside_data(now, |bytes| cargo.unsent_bytes() > bytes)
    }

    /// True where window and pace admit a packet of data; when to look again is kept.
    fn has_room(&mut self, now: Instant) -> bool {
        let room = self.path.data_room(now);
        self.held_until = if let SendRoom::Paced(at) = room { Some(at) } else { None };
        room == SendRoom::Free
    }

    /// Packets of leases, as many as the train takes.
    fn fill_leases(&mut self, now: Instant, train: &mut Train, buf: &mut Vec<u8>) {
        let Self { path, keys, terms, random, cargo, scratch, to_tell, .. } = self;
        let &mut Train { ecn, segment_bytes, count, max } = train;
        let plan = TrainPlan { dcid: terms.dcid, ecn, segment_bytes, count: max - count };
        let fixed_bits = terms.may_clear_fixed_bit.then_some(random);
        let observed = terms.is_observed.then_some((to_tell, path.id(), now));
        let mut leases = Leases { cargo, fixed_bits, observed, count: 0 };
        let end = path.fill_train(now, &plan, &mut keys.keys, &mut leases, &mut scratch.frames, buf);
        let filled = leases.count;
        scratch.frames.clear();
        if filled > 0 {
            train.count += filled;
            self.on_eliciting(now);
        }
        if let Err(error) = end {
            self.go_back(ReturnReason::Fault(error.into()));
        }
    }

    fn on_eliciting(&mut self, now: Instant) {
        self.cargo.moved_at = now;
        self.active_at = now;
        self.to_tell.eliciting_at.get_or_insert(now);
    }

    /// A packet that is more than data of leases: an ack, a bundle, a probe for larger datagrams. True where packets of leases
    /// may follow it in the same train.
    fn first_packet(&mut self, now: Instant, train: &mut Train, buf: &mut Vec<u8>) -> bool {
        let has_room = self.has_room(now);
        let has_cargo = !self.cargo.leases.is_empty() || !self.cargo.bundles.is_empty();
        let owes_ack = self.path.receive.ack_need(now) == AckNeed::Now && self.outbox.is_empty();
        let has_reason = owes_ack || has_cargo && has_room;
        if !has_reason {
            return false;
        }
        let probe = self.mtu_probe(now).filter(|_| has_room && !self.cargo.leases.is_empty() && !owes_ack);
        let end = probe.map_or(train.segment_bytes, usize::from);
        let Some(built) = self.packet(now, (end, train.ecn), (has_room, probe), buf) else { return false };
        train.count = 1;
        let is_stunted = built.bytes + TRAIN_PADDING_BYTES < train.segment_bytes;
        train.segment_bytes = built.bytes;
        !is_stunted && probe.is_none() && train.max > 1
    }

    fn packet(
        &mut self,
        now: Instant,
        (end, ecn): (usize, Option<Ecn>),
        (has_room, probe): (bool, Option<u16>),
        buf: &mut Vec<u8>,
    ) -> Option<Built> {
        let Self { path, keys, terms, random, cargo, scratch, outbox, .. } = self;
        let fixed_bit = draw_fixed_bit(terms.may_clear_fixed_bit.then_some(random));
        let builder = path.begin_packet(Space::Data, buf, &path.short_header(terms.dcid), end, fixed_bit)?;
        scratch.frames.clear();
        let mut w = builder.writer(buf, &mut scratch.frames);
        if let Some(size) = probe {
            let _ = w.write(&path.probe_prompt().frame(), SentFrame::MtuProbe(size));
        } else {
            if has_room && let Some(bundle) = cargo.bundles.front() {
                if w.write_bundle(&bundle.bytes, &bundle.frames) {
                    cargo.bundles.pop_front();
                    cargo.bundles_sent += 1;
                } else {
                    // Written for larger packets than leave now.
                    self.why_back.get_or_insert(ReturnReason::Shrunk);
                }
            }
            if outbox.is_empty() {
                fill_ack(path, now, terms, &mut w);
            }
            if has_room {
                cargo.fill(&mut w);
            }
        }
        let ack_eliciting = w.is_ack_eliciting();
        if builder.is_empty(buf) {
            builder.abandon(buf);
            return None;
        }
        let has_unsent = cargo.has_unsent();
        let padding = match (probe, ack_eliciting && has_unsent) {
            (Some(_), _) => Padding::UpTo(end),
            (None, true) => Padding::Nearly { end, missing_bytes: TRAIN_PADDING_BYTES },
            (None, false) => Padding::Least,
        };
        let built = match path.finish_packet(builder, buf, Sealer::OneRtt(&mut keys.keys), padding) {
            Ok(built) => built,
            Err(error) => {
                self.go_back(ReturnReason::Fault(error.into()));
                return None;
            }
        };
        let packet = PacketInfo {
            bytes: built.bytes as u16,
            ack_eliciting,
            in_flight: ack_eliciting || built.padding_bytes > 0,
            ecn_marked: ecn.is_some(),
            mtu_probe: probe.is_some(),
            app_limited: !has_unsent,
            ..PacketInfo::default()
        };
        let leaves = (Space::Data, FourTupleRole::Current);
        let pruned = path.on_packet_sent(now, leaves, &packet, &scratch.frames, &mut scratch.feedback);
        self.on_sent(now, &built, ack_eliciting);
        if pruned {
            self.tell_fates(now, None);
        }
        Some(built)
    }

    /// A packet that is more than data of leases has left.
    fn on_sent(&mut self, now: Instant, built: &Built, ack_eliciting: bool) {
        if self.terms.is_observed {
            let id = self.id();
            self.to_tell.trace_sent(now, id, built, ack_eliciting);
        }
        if ack_eliciting {
            self.on_eliciting(now);
        }
    }
}

/// An ack of what came on the path, where one is of use: it takes the path itself.
fn fill_ack(path: &mut plait_path::Path, now: Instant, terms: &LoanTerms, w: &mut FrameWriter<'_>) {
    if path.receive.ack_need(now) == AckNeed::None
        || path.receive.fill_ack(now, w, terms.ack_form, terms.ack_exponent).is_none()
    {
        return;
    }
    path.receive.on_ack_sent();
    // RFC 9000 13.2.4: one PING under way is enough
    if path.receive.wants_ping() && !path.is_awaiting_ack() {
        w.write_ping();
    }
}
