//! A datagram on its way out: which path, which packets, sealed into trains of one size.

pub(crate) mod assemble;
pub(crate) mod datagram_size;
pub(crate) mod fill;
pub(crate) mod pending_copies;
pub(crate) mod purpose;
pub(crate) mod reinject;
pub(crate) mod scheduling;
pub(crate) mod sockets;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::time::earliest;
use plait_base::{Instant, PathId, Space};
use plait_path::{AckNeed, Built, FourTupleRole, Pad, Padding, Path, SendRoom, TakeOver};
use plait_schedule::{Decision, Demand, DemandKind};
use plait_wire::SentFrame;

use crate::config::Switch;
use crate::connection::Connection;
use crate::connection::send::assemble::{Outline, padding_of};
use crate::connection::send::pending_copies::Target;
use crate::connection::send::purpose::{Purpose, is_copied};
use crate::connection::send::scheduling::Scheduling;
use crate::io::Transmit;

/// A packet that is smaller than its train's segments by no more than this is padded to keep the train going.
const TRAIN_PADDING_BYTES: usize = 64;
/// Choices that may come to nothing before a poll gives up; no poll makes the same one twice.
const MAX_EMPTY_CHOICES: usize = 32;
/// Credit below which nothing is sent to an address that is not proven: no packet of use is smaller, bytes.
const SMALLEST_PACKET_BYTES: u64 = 60;
/// Bytes of one train, at most: what a UDP send call takes.
const MAX_TRAIN_BYTES: usize = 65_000;

/// Choices of one poll that came to nothing, such as a copy of what is acked by now.
type EmptyChoices = smallvec::SmallVec<[(PathId, Purpose); 4]>;

impl Connection {
    /// The next datagram, or train of up to `max_segments` datagrams of one size, written into `buf` (cleared first).
    /// None when nothing can leave now.
    pub fn poll_transmit(&mut self, now: Instant, max_segments: usize, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if let Some(transmit) = self.poll_close(now, buf) {
            return Some(transmit);
        }
        if !self.lifecycle.is_open() {
            return None;
        }
        let transmit = self.poll_handshake(now, buf);
        let transmit = transmit.or_else(|| self.poll_other_addresses(now, buf));
        let mut transmit = transmit.or_else(|| self.poll_final_packet(now, buf));
        // A choice that comes to nothing is not made again: whoever else has something to send has its turn.
        let mut empty = EmptyChoices::new();
        while transmit.is_none() && empty.len() < MAX_EMPTY_CHOICES {
            let Some(choice) = self.next_packet(now, &empty) else { break };
            transmit = self.poll_train(now, max_segments.max(1), buf, choice);
            empty.push(choice);
        }
        if transmit.is_none() {
            self.update_keys_near_limit(now);
        }
        transmit
    }

    /// Initial and Handshake packets, coalesced, on path 0.
    fn poll_handshake(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if self.handshake.levels().all(|level| level.keys.is_none()) {
            return None;
        }
        if self.is_held(PathId::ZERO) {
            return None;
        }
        let mut spaces = [Space::Initial, Space::Handshake].map(|s| (s, self.wants_handshake(now, s)));
        let path = self.paths.table.path_mut(PathId::ZERO)?;
        let (route, ecn) = (path.addresses.send_tuple(), path.send.ecn());
        let room = usize::try_from(path.addresses.amplification_room()).unwrap_or(usize::MAX);
        let end = room.min(usize::from(path.mtu()));
        // RFC 9000 14.1: a datagram with an ack-eliciting Initial is full-sized; without credit for that it waits,
        // and what credit is left serves Handshake packets
        spaces[0].1 &= end >= MIN_DATAGRAM_BYTES;
        spaces[1].1 &= end as u64 >= SMALLEST_PACKET_BYTES;
        if spaces.iter().all(|(_, wants)| !wants) {
            return None;
        }
        // RFC 9000 14.1, RFC 9001 9.3: every Initial of a client, of a server only those that ask for an ack
        let full_sized = self.side().is_client()
            || self.paths.owes_probe(Space::Initial)
            || self.handshake.crypto(Space::Initial).is_some_and(|stream| stream.wants_send());
        let mut has_initial = false;
        for (i, &(space, wants)) in spaces.iter().enumerate() {
            let rides_along = space == Space::Handshake && has_initial && self.handshake.has_keys(Space::Handshake);
            if !wants && !rides_along {
                continue;
            }
            let last = i == 1 || !spaces[1].1;
            has_initial |= space == Space::Initial;
            let padding =
                if last && has_initial && full_sized { Padding::UpTo(MIN_DATAGRAM_BYTES) } else { Padding::Least };
            let purpose = Purpose::Data;
            let outline = Outline { ecn, ..Outline::unmarked(PathId::ZERO, space, end, purpose) };
            self.handshake_packet(now, &outline, buf, padding);
        }
        if buf.is_empty() {
            return None;
        }
        Some(Transmit { route, ecn, size: buf.len(), segment_size: None })
    }

    /// True while the 3x rule holds back whatever this path would send next: its probe timer rests (RFC 9002 6.2.2.1).
    pub(crate) fn is_starved(&self, id: PathId) -> bool {
        let least = self.least_credit(id);
        self.paths.table.path(id).is_some_and(|path| !path.may_send(least))
    }

    /// Bytes of the smallest datagram that this path would send next.
    pub(crate) fn least_credit(&self, id: PathId) -> u64 {
        let full_sized = id == PathId::ZERO && self.handshake.has_keys(Space::Initial);
        if full_sized { MIN_DATAGRAM_BYTES as u64 } else { SMALLEST_PACKET_BYTES }
    }

    fn wants_handshake(&mut self, now: Instant, space: Space) -> bool {
        let probe = self.paths.owes_probe(space);
        let Some(level) = self.handshake.level(space) else { return false };
        if level.keys.is_none() {
            return false;
        }
        if probe || level.receive.ack_need(now) == AckNeed::Now {
            return true;
        }
        let wants = level.crypto.wants_send();
        let path = self.paths.table.path_mut(PathId::ZERO);
        wants && path.is_some_and(|path| path.has_window_for(1200))
    }

    fn handshake_packet(&mut self, now: Instant, outline: &Outline, buf: &mut Vec<u8>, padding: Padding) {
        let space = outline.space;
        let is_probe = self.paths.owes_probe(space);
        let built = self.assemble(now, outline, buf, |connection, w| {
            if let Some(level) = connection.handshake.level(space) {
                level.fill(now, w);
                if is_probe && !w.is_ack_eliciting() {
                    // RFC 9002 6.2.4: the second probe carries data too; a server does not answer a first packet without
                    level.crypto.resend_unacked();
                    level.crypto.fill(w);
                }
            }
            if is_probe && !w.is_ack_eliciting() {
                fill::ping(w);
            }
            padding
        });
        if space == Space::Handshake && self.side().is_client() && built.is_some() {
            // RFC 9001 4.9.1: a client is done with Initial keys once it sends a Handshake packet
            self.discard_space(now, Space::Initial);
        }
    }

    /// Challenges and responses on addresses other than the path's own.
    fn poll_other_addresses(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if !self.handshake.is_complete() {
            return None;
        }
        let due = |s: &plait_path::table::Slot| {
            let (route, full) = (&s.path.as_ref()?.addresses, &self.scheduling.full_sockets);
            let admits = |l: &plait_path::addresses::FourTupleState| {
                l.wants_probe() && l.amplification_room() >= SMALLEST_PACKET_BYTES && !full.hold(&l.tuple())
            };
            let other = [FourTupleRole::Candidate, FourTupleRole::Previous].into_iter();
            other.filter(|role| s.dcid(*role).is_some()).find(|role| route.get(*role).is_some_and(admits))
        };
        let (id, role) = self.paths.table.open_slots().find_map(|s| Some((s.id, due(s)?)))?;
        let tuple = self.paths.table.path(id)?.addresses.get(role)?.send_tuple();
        let room = self.paths.table.path(id)?.addresses.get(role)?.amplification_room();
        let end = usize::try_from(room).unwrap_or(usize::MAX).min(MIN_DATAGRAM_BYTES);
        let outline = Outline { role, ..Outline::unmarked(id, Space::Data, end, Purpose::OtherAddress) };
        self.assemble(now, &outline, buf, |connection, w| {
            let Connection { paths, random, .. } = connection;
            let pad = paths.table.path_mut(id).map_or(Pad::No, |path| path.addresses.fill(role, random, w));
            padding_of(pad, 0, end)
        })?;
        Some(Transmit::single(tuple, buf.len()))
    }

    /// Packets of the data space, several in one train when the scheduler keeps to one path.
    fn poll_train(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut Vec<u8>,
        (id, mut purpose): (PathId, Purpose),
    ) -> Option<Transmit> {
        let path = self.paths.table.path_mut(id)?;
        let (route, ecn) = (path.addresses.send_tuple(), path.send.ecn());
        let mut segment = usize::from(path.mtu());
        if purpose == Purpose::Ping {
            self.paths.pings.retain(|p| *p != id);
        }
        if let Purpose::Mtu(size) = purpose {
            segment = usize::from(size);
        }
        let max_segments = match self.settings.transport.wire.segmentation_offload {
            Switch::On => max_segments.min(MAX_TRAIN_BYTES / segment).max(1),
            Switch::Off => 1,
        };
        let mut count = 0;
        loop {
            let start = buf.len();
            let room = self.paths.table.path(id)?.addresses.amplification_room();
            let end = start + segment.min(usize::try_from(room).unwrap_or(usize::MAX));
            let outline = Outline { ecn, ..Outline::unmarked(id, Space::Data, end, purpose) };
            let Some(built) = self.data_packet(now, &outline, buf, start) else { break };
            count += 1;
            if count == 1 {
                segment = built.bytes;
            }
            let single = matches!(purpose, Purpose::Mtu(_) | Purpose::Acks | Purpose::Ping);
            let stunted = count == 1 && self.would_stunt(id, built.bytes);
            if built.bytes < segment || count >= max_segments || single || stunted {
                break;
            }
            match self.next_packet(now, &[]) {
                Some((same, next)) if same == id && next.joins_trains() => purpose = next,
                _ => break,
            }
            if self.paths.table.path(id)?.send.ecn() != ecn {
                break;
            }
        }
        if buf.is_empty() {
            return None;
        }
        Some(Transmit { route, ecn, size: buf.len(), segment_size: (count > 1).then_some(segment) })
    }

    /// True for a first packet so small that what follows would be cut to its size for no good: all but datagrams of
    /// the application that are as small themselves.
    fn would_stunt(&self, id: PathId, bytes: usize) -> bool {
        let mtu = self.paths.table.path(id).map_or(0, |path| usize::from(path.mtu()));
        let next = self.datagrams.next_size_within(self.room_on(id));
        bytes + TRAIN_PADDING_BYTES < mtu && next.is_none_or(|next| next > bytes || next + TRAIN_PADDING_BYTES < bytes)
    }

    /// Which path sends next, and what for: no choice that is among the `empty` ones.
    fn next_packet(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        // Wishes about a packet that was not built after all say nothing about the next one.
        self.scheduling.copy_to.clear();
        if self.keys.is_none() && self.handshake.early_seal_keys().is_none() {
            return None;
        }
        if self.keys.is_some()
            && let Some(found) = self.next_bound(now, empty)
        {
            return Some(found);
        }
        // The scheduler would choose the same again.
        let is_spent = empty.iter().any(|(_, purpose)| purpose.is_scheduled());
        let demand = self.demand(now);
        if let Some(demand) = demand.filter(|_| !is_spent) {
            if self.streams.send_credit() == 0 && self.streams.unsent_bytes() > 0 {
                self.scheduling.scheduler.on_credit_blocked(now);
            }
            match self.decide(&demand) {
                Decision::Send(id) => return Some((id, self.data_or_probe(now, id))),
                Decision::SendAlso { primary, copies } => {
                    self.scheduling.copy_to = copies.ids(&self.scheduling.views).collect();
                    return Some((primary, Purpose::Data));
                }
                Decision::Wait(_) => {}
            }
        } else if !is_spent {
            self.scheduling.paced_until = None;
        }
        self.keys.as_ref()?;
        let rest = self.next_reinjection(now, empty).or_else(|| self.next_ack(now, empty));
        rest.or_else(|| self.next_idle_search(now, empty))
    }

    /// A larger datagram instead of data, while data flows and a probe is due.
    fn data_or_probe(&mut self, now: Instant, id: PathId) -> Purpose {
        if !self.handshake.is_confirmed() {
            return Purpose::Data;
        }
        let Some(path) = self.paths.table.path_mut(id) else { return Purpose::Data };
        path.mtu_probe_beside_data(now).map_or(Purpose::Data, Purpose::Mtu)
    }

    /// Packets bound to one path: probes, validation, copies, pings.
    fn next_bound(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        let is_new = |id: PathId, purpose: Purpose| !empty.contains(&(id, purpose));
        let found = {
            // A path to which the peer gave no id can send nothing, whatever it owes.
            let mut open = self.paths.table.slots().filter_map(|slot| Some((slot.id, slot.sendable()?)));
            let full = &self.scheduling.full_sockets;
            let has_room = |path: &Path| path.may_send(SMALLEST_PACKET_BYTES) && !full.hold(&path.addresses.tuple());
            let owes = |path: &Path| path.send.probes_due(Space::Data) > 0 && has_room(path);
            open.find(|(id, p)| is_new(*id, Purpose::Probe) && owes(p)).map(|(id, _)| (id, Purpose::Probe))
        };
        let found = found.or_else(|| self.next_validation(now, empty).map(|id| (id, Purpose::Validation)));
        if found.is_some() {
            return found;
        }
        let mut pings = self.paths.pings.iter().rev().copied();
        if let Some(id) = pings.find(|id| is_new(*id, Purpose::Ping) && self.can_carry(*id)) {
            return Some((id, Purpose::Ping));
        }
        self.next_copy(now, empty)
    }

    /// A path that owes a challenge or a response on its own addresses. Challenges of ours are few and have a clock of
    /// their own; responses are as many as the peer likes: window and pacer hold them too (RFC 9000 8.2.2).
    fn next_validation(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<PathId> {
        let held = self.paths.holds_openings();
        let Scheduling { answers_at, full_sockets: full, .. } = &mut self.scheduling;
        *answers_at = None;
        for slot in self.paths.table.slots_mut().filter(|slot| slot.sendable().is_some()) {
            let Some(path) = slot.path.as_mut() else { continue };
            let admits = path.may_send(SMALLEST_PACKET_BYTES) && !full.hold(&path.addresses.tuple());
            let must_wait = held && path.is_fresh();
            let is_spent = empty.contains(&(slot.id, Purpose::Validation));
            if !admits || must_wait || is_spent || !path.owes_validation() {
                continue;
            }
            if path.owes_challenge() {
                return Some(slot.id);
            }
            path.send.prepare_to_send(now, MIN_DATAGRAM_BYTES as u64);
            match path.send.room(now, MIN_DATAGRAM_BYTES as u64) {
                SendRoom::Open => return Some(slot.id),
                SendRoom::Paced(at) => *answers_at = earliest(*answers_at, Some(at)),
                SendRoom::Window => {}
            }
        }
        None
    }

    fn next_copy(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        if self.scheduling.copies.is_empty() {
            return None;
        }
        let side = self.side();
        self.scheduling.look(&mut self.paths.table, now, side);
        let Self { scheduling, .. } = self;
        let open = plait_schedule::candidates(&scheduling.views).filter(|v| scheduling.copies.wants(v.id));
        let new = open.filter(|v| !empty.contains(&(v.id, Purpose::Copies)));
        let best = new.min_by_key(|v| (v.rtt_or_max(), v.id))?;
        Some((best.id, Purpose::Copies))
    }

    /// True where at least a small packet can leave: the peer gave an id, its address is proven or gave credit, and our
    /// socket has room.
    fn can_carry(&self, id: PathId) -> bool {
        let path = self.paths.table.slot(id).filter(|slot| slot.dcid(FourTupleRole::Current).is_some());
        let path = path.and_then(|slot| slot.path.as_deref());
        path.is_some_and(|path| path.may_send(SMALLEST_PACKET_BYTES)) && !self.is_held(id)
    }

    /// An ack that is due, on the path that the policy wants it on.
    fn next_ack(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        let is_new = |id: PathId| !empty.contains(&(id, Purpose::Acks));
        while let Some(&(carrier, _)) = self.scheduling.ack_copies.first() {
            if is_new(carrier) && self.can_carry(carrier) {
                return Some((carrier, Purpose::Acks));
            }
            self.scheduling.ack_copies.remove(0);
        }
        let mut due: smallvec::SmallVec<[PathId; 8]> = smallvec::SmallVec::new();
        for slot in self.paths.table.slots() {
            let need = slot.path.as_ref().map_or(AckNeed::None, |p| p.receive.ack_need(now));
            if need == AckNeed::Now {
                due.push(slot.id);
            }
        }
        for of in due {
            if let Some(&carrier) =
                self.scheduling.ack_paths(now, &self.paths.table, of).first().filter(|id| is_new(**id))
            {
                return Some((carrier, Purpose::Acks));
            }
        }
        None
    }

    /// What waits for the scheduler; none when nothing does.
    pub(crate) fn demand(&self, now: Instant) -> Option<Demand> {
        let control = self.wants_control();
        let (stream, datagram) = (self.streams.unsent_bytes(), self.datagrams.unsent_bytes());
        if !control && stream == 0 && datagram == 0 {
            return None;
        }
        let kind = match (control, datagram > 0) {
            (true, _) => DemandKind::Control,
            (false, true) => DemandKind::Datagram,
            (false, false) => DemandKind::Stream,
        };
        let send_credit_bytes = self.streams.send_credit();
        Some(Demand { now, kind, unsent_bytes: stream + datagram, send_credit_bytes })
    }

    fn data_packet(&mut self, now: Instant, outline: &Outline, buf: &mut Vec<u8>, start: usize) -> Option<Built> {
        let &Outline { path, end, purpose, .. } = outline;
        self.assemble(now, outline, buf, |connection, w| {
            let pad = connection.fill(now, path, purpose, w);
            if purpose.must_elicit() && !w.is_ack_eliciting() {
                fill::ping(w);
            }
            match (purpose, pad) {
                (Purpose::Mtu(_), _) => Padding::UpTo(end),
                (Purpose::Data, Pad::No) if connection.streams.unsent_bytes() > 0 => {
                    Padding::Nearly { end, missing_bytes: TRAIN_PADDING_BYTES }
                }
                _ => padding_of(pad, start, end),
            }
        })
    }

    /// While a path's RTT is unknown its frames go on another path too (CoNEXT 2017, section 4.1); what the scheduler
    /// wants on further paths goes there as well.
    pub(crate) fn copy_elsewhere(&mut self, id: PathId, carried: &[SentFrame]) {
        let targets = std::mem::take(&mut self.scheduling.copy_to);
        for &target in targets.iter().filter(|t| **t != id) {
            carried.iter().filter(|c| is_copied(c)).for_each(|c| self.scheduling.copies.push(*c, Target::On(target)));
        }
        if self.is_doubled(id) {
            carried.iter().filter(|c| is_copied(c)).for_each(|c| self.scheduling.copies.push(*c, Target::NotOn(id)));
        }
    }

    /// True while what leaves on this path goes on another one too.
    pub(crate) fn is_doubled(&self, id: PathId) -> bool {
        if self.settings.transport.paths.duplicate_until_rtt == Switch::Off || !self.paths.table.is_multipath() {
            return false;
        }
        let measured = self.paths.table.path(id).is_none_or(|p| p.send.rtt().measured().is_some());
        !measured && self.paths.table.take_over_from(id) == TakeOver::Possible
    }

    /// Starts a key update when the AEAD's limit comes near (RFC 9001 6.6) or the keys are as old as configured.
    fn update_keys_near_limit(&mut self, now: Instant) {
        let interval = self.settings.transport.timing.key_update_interval;
        let age = self.keys.as_ref().map_or(std::time::Duration::ZERO, |keys| keys.age(now));
        let is_old = interval.is_some_and(|longest| age >= longest);
        if is_old || self.keys.as_ref().is_some_and(|k| k.key_usage() != plait_crypto::KeyUsage::Fine) {
            // Refused while the peer has not confirmed the last one; it is tried again with the next packets.
            let _ = self.update_keys(now);
        }
    }
}
