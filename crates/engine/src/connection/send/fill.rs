//! What goes into a packet, in this order: validation, acks, handshake, control, datagrams, stream data.

use plait_base::{Instant, PathId};
use plait_path::{AckNeed, FourTupleRole, Pad};
use plait_wire::frame::AckForm;
use plait_wire::{Frame, FrameWriter, SentFrame};

use crate::connection::Connection;
use crate::connection::handshake::Owed;
use crate::connection::send::pending_copies::Target;
use crate::connection::send::purpose::Purpose;

/// Writes a PING.
pub(crate) fn ping(w: &mut FrameWriter<'_>) {
    // Where not one byte is left, the packet goes without.
    let _ = w.write(&Frame::Ping, SentFrame::Ping);
}

impl Connection {
    /// Fills one packet of the data space that leaves on path `id`. Says whether it must be full-sized.
    pub(crate) fn fill(&mut self, now: Instant, id: PathId, purpose: Purpose, w: &mut FrameWriter<'_>) -> Pad {
        if let Purpose::Mtu(size) = purpose {
            let _ = w.write(&Frame::Ping, SentFrame::MtuProbe(size));
            return Pad::No;
        }
        let one_rtt = self.keys.is_some();
        let mut pad = Pad::No;
        if one_rtt {
            if let Some(path) = self.paths.table.path_mut(id) {
                pad = path.addresses.fill(FourTupleRole::Current, &mut self.random, w);
                if self.handshake.side.is_client() && id != PathId::ZERO && !path.addresses.is_validated() {
                    self.paths.table.fill_opening(id, w);
                }
            }
            self.fill_acks(now, id, w);
        }
        match purpose {
            Purpose::Acks | Purpose::Ping => return pad,
            // The peer's address is not proven: a server keeps to what validation needs (RFC 9000 8.1).
            Purpose::Validation if !self.may_carry_data(id) => return pad,
            _ => {}
        }
        if purpose == Purpose::Probe && self.awaits_proof(id) {
            // Nothing but an ack is wanted of an address that is not proven.
            ping(w);
            return pad;
        }
        if purpose == Purpose::Probe && self.paths.table.path(id).is_some_and(|p| p.is_failed()) {
            // Nothing new goes here, and what another path took over is not repeated: is the path back?
            self.fill_probe(id, w);
            return pad;
        }
        if one_rtt {
            self.fill_control(now, w);
        }
        self.streams.fill_control(now, w);
        if purpose == Purpose::Probe {
            // After control frames: news of a failed path must not wait behind data.
            self.fill_probe(id, w);
        }
        self.copy_credit(id);
        self.scheduling.copies.fill(id, &mut self.streams, w);
        if purpose != Purpose::Copies {
            // RFC 9221 5.4: asked only where the window lets a packet leave
            self.datagrams.fill(self.room_on(id), w);
            self.streams.fill_data(w);
        }
        pad
    }

    /// RFC 10069 3.1: a server sends no data on a new path before the client's address there is proven, in probes neither.
    /// On path 0, and on one that moved, what the client sends is credit for it (RFC 9000 8.1, 9.3).
    fn awaits_proof(&self, id: PathId) -> bool {
        let unproven = |path: &plait_path::Path| !path.addresses.is_validated();
        self.handshake.side.is_server() && id != PathId::ZERO && self.paths.table.path(id).is_some_and(unproven)
    }

    /// A client's data may ride in the first packet of a new path; a server's waits for validation.
    fn may_carry_data(&mut self, id: PathId) -> bool {
        let Some(path) = self.paths.table.path_mut(id) else { return false };
        path.has_window_for(u64::from(path.mtu())) && (self.handshake.side.is_client() || path.addresses.is_validated())
    }

    /// Acks of every path whose acks the policy wants here: of 0-RTT and 1-RTT packets, in 1-RTT packets alone
    /// (RFC 9000 13.2.6, 17.2.3).
    fn fill_acks(&mut self, now: Instant, carrier: PathId, w: &mut FrameWriter<'_>) {
        // RFC 9001 5.7: a client's acks of 0.5-RTT data wait for keys, which are there
        let form = if self.paths.table.is_multipath() { AckForm::Path } else { AckForm::Plain };
        let exponent = self.settings.transport.ack.delay_exponent;
        let mut i = 0;
        while let Some(&(on, of)) = self.scheduling.ack_copies.get(i) {
            if on != carrier {
                i += 1;
                continue;
            }
            self.scheduling.ack_copies.remove(i);
            if let Some(path) = self.paths.table.path_mut(of) {
                path.receive.fill_ack(now, w, form, exponent);
            }
        }
        let due =
            |s: &plait_path::table::Slot| s.path.as_ref().is_some_and(|p| p.receive.ack_need(now) != AckNeed::None);
        let ids: smallvec::SmallVec<[PathId; 8]> = self.paths.table.slots().filter(|s| due(s)).map(|s| s.id).collect();
        for of in ids {
            let chosen = self.scheduling.ack_paths(now, &self.paths.table, of);
            if !chosen.contains(&carrier) {
                continue;
            }
            let Some(path) = self.paths.table.path_mut(of) else { continue };
            if path.receive.fill_ack(now, w, form, exponent).is_none() {
                continue;
            }
            path.receive.on_ack_sent();
            // A path that carries the acks of others is heard of once a round trip, so that its death is noticed. One PING
            // under way is enough (RFC 9000 13.2.4).
            let wanted = path.receive.wants_ping() || carrier != of;
            if wanted
                && self.paths.table.path(carrier).is_some_and(|p| !p.send.is_awaiting_ack(plait_base::Space::Data))
            {
                ping(w);
            }
            for &other in chosen.iter().filter(|c| **c != carrier) {
                if !self.scheduling.ack_copies.contains(&(other, of)) {
                    self.scheduling.ack_copies.push((other, of));
                }
            }
        }
    }

    /// Control frames that any path may carry.
    fn fill_control(&mut self, now: Instant, w: &mut FrameWriter<'_>) {
        // RFC 9000 19.20: due once the handshake is complete, and again when lost
        if self.handshake.done == Owed::Due && w.write(&Frame::HandshakeDone, SentFrame::HandshakeDone) {
            self.handshake.done = Owed::Sent;
        }
        self.handshake.data.fill(w);
        if self.handshake.is_complete() {
            self.handshake.tokens.fill(w);
            let usable = |paths: &plait_path::Paths| paths.credit().map(|c| c.usable_max());
            let before = usable(&self.paths.table);
            self.paths.table.fill_control(w);
            if usable(&self.paths.table) != before {
                // MAX_PATH_ID was just announced; connection ids for what it allows follow with the next packet.
                self.paths.issue_cids(&mut self.random);
                self.on_path_news(now);
            }
        } else {
            self.paths.table.fill_early(w);
        }
    }

    /// True when control frames wait for a packet.
    pub(crate) fn wants_control(&self) -> bool {
        let one_rtt = self.keys.is_some();
        let complete = one_rtt && self.handshake.is_complete();
        (one_rtt && (self.handshake.done == Owed::Due || self.handshake.data.wants_send()))
            || (complete && (self.handshake.tokens.wants_send() || self.paths.table.wants_control()))
            || (one_rtt && !complete && self.paths.table.wants_early())
            || self.streams.wants_control()
    }

    /// A probe carries what has waited longest for its ack (RFC 9002 6.2.4).
    fn fill_probe(&mut self, id: PathId, w: &mut FrameWriter<'_>) {
        let mut oldest = std::mem::take(&mut self.scheduling.updates);
        oldest.clear();
        if let Some(path) = self.paths.table.path(id) {
            path.send.probe_frames(plait_base::Space::Data, &mut oldest);
        }
        for frame in &oldest {
            let _ = self.streams.fill_copy(w, frame);
        }
        self.scheduling.updates = oldest;
    }

    /// Window updates just written go out on every other active path too, so that none waits for a slow one
    /// (CoNEXT 2017, section 4.2).
    fn copy_credit(&mut self, id: PathId) {
        let mut updates = std::mem::take(&mut self.scheduling.updates);
        updates.clear();
        self.streams.poll_window_updates(&mut updates);
        if !updates.is_empty() && self.paths.table.is_multipath() {
            let others = self.paths.table.open_slots().filter(|s| s.id != id && s.is_usable());
            let others: smallvec::SmallVec<[PathId; 8]> =
                others.map(|s| s.id).filter(|id| !self.is_held(*id)).collect();
            for other in others {
                updates.iter().for_each(|c| self.scheduling.copies.push(*c, Target::On(other)));
            }
        }
        self.scheduling.updates = updates;
    }
}
