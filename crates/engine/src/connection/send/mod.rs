//! A datagram on its way out: which path, which packets, sealed into trains of one size.

pub(crate) mod acks;
pub(crate) mod assemble;
pub(crate) mod bulk;
pub(crate) mod choice;
pub(crate) mod fill;
mod handshake;
pub(crate) mod pending_copies;
mod pinned;
pub(crate) mod purpose;
pub(crate) mod reinject;
pub(crate) mod scheduling;
pub(crate) mod sockets;
pub(crate) mod unfit_datagrams;
pub(crate) mod views;

use std::net::SocketAddr;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{Instant, Space};
use plait_path::table::Slot;
use plait_path::{Built, Departure, FourTupleRole, Pad, Padding, Path, TRAIN_PADDING_BYTES};
use plait_schedule::reinject::Occasion;
use plait_schedule::{Backlog, Demand, DemandKind};
use plait_stream::Datagrams;

use crate::config::Switch;
use crate::connection::Connection;
use crate::connection::send::assemble::{Outline, padding_of};
use crate::connection::send::bulk::Train;
use crate::connection::send::choice::{DataKeys, Offer, Permission};
use crate::connection::send::purpose::{Choice, EmptyChoices, Purpose};
use crate::connection::send::sockets::SMALLEST_PACKET_BYTES;
use crate::io::{More, Transmit};

/// Choices that may come to nothing before a poll gives up; no poll makes the same one twice.
const MAX_EMPTY_CHOICES: usize = 32;
/// Bytes of one train, at most: what a UDP send call takes.
pub(crate) const MAX_TRAIN_BYTES: usize = 65_000;

impl Connection {
    /// The next datagram, or train of up to `max_segments` datagrams of one size, written into `buf` (cleared first).
    /// None when nothing can leave now.
    pub fn poll_transmit(&mut self, now: Instant, max_segments: usize, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if !self.lifecycle.is_open() {
            return self.poll_close(now, buf);
        }
        let in_handshake = self.handshake.has_packet_keys();
        let transmit = if in_handshake { self.poll_handshake(now, buf) } else { None };
        let transmit = transmit.or_else(|| self.poll_other_addresses(now, buf));
        let mut transmit = match &self.paths.no_path {
            Some(_) => transmit.or_else(|| self.poll_final_packet(now, buf)),
            None => transmit,
        };
        self.scheduling.begin_poll(now);
        let mut empty = EmptyChoices::default();
        while transmit.is_none() && empty.len() < MAX_EMPTY_CHOICES {
            let Some(offer) = self.offer(now) else { break };
            let next = self.scheduling.next_packet(&mut self.paths, &mut self.streams, &self.datagrams, &offer, &empty);
            let Some(choice) = next else { break };
            let max_segments = if in_handshake && self.copy_handshake(now, choice, buf) { 1 } else { max_segments };
            transmit = self.poll_train(now, max_segments.max(1), buf, choice);
            empty.push(choice);
        }
        // RFC 9001 6.6: the AEAD's limit comes near, or the keys are as old as configured. A sender that always has more to
        // send must not put it off.
        if !self.paths.table.has_lent() && self.settings.wants_new_keys(self.keys.as_deref(), now) {
            // Refused while the peer has not confirmed the last one; it is tried again with the next packets.
            let _ = self.update_keys(now);
        }
        transmit
    }

    /// Challenges and responses on addresses other than the path's own.
    fn poll_other_addresses(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if !self.handshake.is_complete() {
            return None;
        }
        let full = &self.scheduling.full_sockets;
        let due = |slot: &Slot| slot.other_addresses_due(SMALLEST_PACKET_BYTES, |tuple| full.hold(tuple));
        let place = self.paths.table.next_slot(0, |slot| due(slot).is_some())?;
        let slot = self.paths.table.slot_at(place)?;
        let role = due(slot)?;
        let Departure { tuple, credit_bytes, .. } = slot.path.as_deref()?.departure(role)?;
        let end = credit_bytes.min(MIN_DATAGRAM_BYTES);
        let outline = Outline { role, ..Outline::unmarked(place, Space::Data, end, Purpose::OtherAddress) };
        self.assemble(now, &outline, buf, |connection, w| {
            let (side, Connection { paths, random, .. }) = (connection.side(), connection);
            let slot = paths.table.slot_at_mut(place);
            padding_of(slot.map_or(Pad::No, |slot| slot.fill_validation(now, role, side, random, w)), 0, end)
        })?;
        Some(Transmit::single(tuple, buf.len()))
    }

    /// Packets of the data space, several in one train when the scheduler keeps to one path; behind what is in `buf` already,
    /// where it is one alone. That belongs to path 0 and left no mark in its books: the datagram has none.
    fn poll_train(&mut self, now: Instant, max_segments: usize, buf: &mut Vec<u8>, choice: Choice) -> Option<Transmit> {
        let Choice { path: id, mut purpose } = choice;
        let place = self.paths.table.place(id)?;
        let path = self.paths.table.path_at(place)?;
        let ahead = buf.len();
        let Departure { tuple, ecn, .. } = path.departure(FourTupleRole::Current)?;
        let ecn = ecn.filter(|_| ahead == 0);
        if purpose == Purpose::Ping {
            self.paths.pings.retain(|p| *p != id);
        }
        let brings_streams = self.keys.is_some() && self.datagrams.unsent_bytes() == 0 && !path.owes_validation();
        let segment = match purpose {
            Purpose::MtuProbe(size) => usize::from(size),
            // Nothing waits that may need all of the room of a packet.
            _ if brings_streams => path.bulk_bytes(self.paths.table.slot_at(place)?.dcid(FourTupleRole::Current)?),
            _ => usize::from(path.mtu()),
        };
        let max_segments = match self.settings.transport.wire.segmentation_offload {
            Switch::On => max_segments.min(MAX_TRAIN_BYTES / segment).max(1),
            Switch::Off => 1,
        };
        let mut train = Train { place, ecn, segment: segment.saturating_sub(ahead), count: 0, max: max_segments };
        let mut more = More::Possible;
        loop {
            let departure = self.paths.table.path_at(place)?.departure(FourTupleRole::Current)?;
            if train.count > 0 && departure.ecn != ecn {
                break;
            }
            let end = buf.len() + train.segment.min(departure.credit_bytes);
            let outline = Outline { ecn, ..Outline::unmarked(place, Space::Data, end, purpose) };
            let Some(built) = self.data_packet(now, &outline, buf) else { break };
            train.count += 1;
            if train.count == 1 {
                train.segment = built.bytes;
            }
            let single = matches!(purpose, Purpose::MtuProbe(_) | Purpose::Acks | Purpose::Ping);
            let path = self.paths.table.path_at(place)?;
            let stunted = train.count == 1 && would_stunt(path, &self.datagrams, built.bytes);
            if built.bytes < train.segment || train.count >= train.max || single || stunted {
                break;
            }
            match train.go_on(self, now, purpose, buf) {
                Ok(next) => purpose = next,
                Err(end) => {
                    more = end;
                    break;
                }
            }
        }
        if train.count == 0 {
            buf.clear();
            return None;
        }
        let segment_size = (train.count > 1).then_some(train.segment);
        Some(Transmit { tuple, ecn, size: buf.len(), segment_size, more })
    }

    fn data_packet(&mut self, now: Instant, outline: &Outline, buf: &mut Vec<u8>) -> Option<Built> {
        let &Outline { end, purpose, .. } = outline;
        let start = buf.len();
        self.assemble(now, outline, buf, |connection, w| {
            let pad = connection.fill(now, outline, w);
            if purpose.must_elicit() && !w.is_ack_eliciting() {
                w.write_ping();
            }
            match (purpose, pad) {
                (Purpose::MtuProbe(_), _) => Padding::UpTo(end),
                (Purpose::Data, Pad::No)
                    if connection.streams.has_unsent(connection.scheduling.lanes(outline.place.id())) =>
                {
                    Padding::Nearly { end, missing_bytes: TRAIN_PADDING_BYTES }
                }
                _ => padding_of(pad, start, end),
            }
        })
    }

    /// What may leave in packets of the data space; none before there are keys for them.
    pub(crate) fn offer(&self, now: Instant) -> Option<Offer> {
        let keys = match &self.keys {
            Some(_) => DataKeys::OneRtt,
            None => self.handshake.zero_rtt.seal_keys().map(|_| DataKeys::ZeroRtt)?,
        };
        let stream_bytes = self.streams.unsent_bytes();
        let occasion = match (self.streams.is_held_back(), self.streams.is_growing()) {
            (true, _) => Occasion::Blocked,
            (false, true) => Occasion::Paused,
            (false, false) => Occasion::Drained,
        };
        Some(Offer {
            now,
            side: self.handshake.side,
            keys,
            mtu_probes: Permission::when(self.handshake.is_confirmed()),
            openings: Permission::when(!self.paths.holds_openings()),
            demand: self.demand(now),
            stream_bytes,
            is_credit_blocked: self.streams.is_credit_blocked(),
            occasion: Some(occasion).filter(|_| stream_bytes == 0 && self.streams.has_unacked()),
        })
    }

    /// What waits for the scheduler; none when nothing does.
    pub(crate) fn demand(&self, now: Instant) -> Option<Demand> {
        let table = &self.paths.table;
        let control = self.streams.wants_control()
            || self.keys.is_some() && self.handshake.wants_control()
            || self.keys.is_some()
                && if self.handshake.is_complete() {
                    table.wants_control()
                } else {
                    table.wants_control_in_handshake()
                };
        let (stream, datagram) = (self.streams.unsent_bytes(), self.datagrams.unsent_bytes());
        if !control && stream == 0 && datagram == 0 {
            return None;
        }
        let kind = match (control, datagram > 0) {
            (true, _) => DemandKind::Control,
            (false, true) => DemandKind::Datagram,
            (false, false) => DemandKind::Stream,
        };
        let send_credit_bytes = self.streams.send_room();
        let backlog = if self.streams.is_growing() { Backlog::Growing } else { Backlog::Final };
        Some(Demand { now, kind, unsent_bytes: stream + datagram, send_credit_bytes, backlog })
    }

    /// Says which of our addresses have a socket that takes nothing now, in place of what was said before. Until it is
    /// said that they have room again, [`Self::poll_transmit`] makes nothing that would leave from them.
    pub fn set_full_sockets(&mut self, now: Instant, full: &[SocketAddr]) {
        self.scheduling.full_sockets.set(now, full);
        self.scheduling.views.expire();
    }
}

/// True for a first packet so small that what follows would be cut to its size for no good: all but datagrams of the
/// application that are as small themselves.
fn would_stunt(path: &Path, datagrams: &Datagrams, bytes: usize) -> bool {
    let next = datagrams.next_size_within(path.frame_room());
    bytes + TRAIN_PADDING_BYTES < usize::from(path.mtu())
        && next.is_none_or(|next| next > bytes || next + TRAIN_PADDING_BYTES < bytes)
}
