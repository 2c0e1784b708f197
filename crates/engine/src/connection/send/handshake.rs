//! Datagrams of the handshake: Initial and Handshake packets, coalesced, on path 0, and a 1-RTT packet behind them; a copy of the
//! last of them on paths that are being opened.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{Instant, PathId, Space};
use plait_path::{Departure, FourTupleRole, Padding, Path};

use crate::connection::Connection;
use crate::connection::send::assemble::{Outline, padding_of};
use crate::connection::send::purpose::{Choice, Purpose};
use crate::connection::send::sockets::SMALLEST_PACKET_BYTES;
use crate::io::Transmit;

/// Room for a 1-RTT packet that is worth its header, its tag and a few frames, bytes.
const RIDER_BYTES: usize = 64;

/// Whether a 1-RTT packet is to leave behind those of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rider {
    None,
    Waits,
}

impl Connection {
    /// Initial and Handshake packets, coalesced, on path 0; what waits for a 1-RTT packet rides in the room behind them.
    #[cold]
    pub(crate) fn poll_handshake(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if self.scheduling.full_sockets.hold_path(&self.paths.table, PathId::ZERO) {
            return None;
        }
        let place = self.paths.table.place(PathId::ZERO)?;
        let path = self.paths.table.path_at(place)?;
        let wants = |space| (space, self.handshake.wants_packet(now, space, path));
        let mut spaces = [Space::Initial, Space::Handshake].map(wants);
        let Departure { tuple, ecn, credit_bytes } = path.departure(FourTupleRole::Current)?;
        let end = credit_bytes.min(usize::from(path.mtu()));
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
        // RFC 9000 12.2: what waits for a 1-RTT packet and may leave now
        let has_window = path.has_window_for(MIN_DATAGRAM_BYTES as u64);
        let waits = self.keys.is_some() && has_window && self.demand(now).is_some();
        let rider = if waits { Rider::Waits } else { Rider::None };
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
            let outline = Outline { ecn, ..Outline::unmarked(place, space, end, purpose) };
            append_packet(self, now, &outline, buf, padding, rider);
        }
        if buf.is_empty() {
            return None;
        }
        let least_bytes = if has_initial && full_sized { MIN_DATAGRAM_BYTES } else { 0 };
        if rider == Rider::Waits && (buf.len() < least_bytes || end.saturating_sub(buf.len()) >= RIDER_BYTES) {
            let outline = Outline { ecn, ..Outline::unmarked(place, Space::Data, end, Purpose::Data) };
            // Wishes about a packet that was not built say nothing about this one.
            self.scheduling.copy_to.clear();
            let start = buf.len();
            self.assemble(now, &outline, buf, |connection, w| {
                let pad = connection.fill(now, &outline, w);
                if least_bytes > 0 { Padding::UpTo(least_bytes) } else { padding_of(pad, start, end) }
            });
        }
        debug_assert!(buf.len() >= least_bytes || !self.lifecycle.is_open(), "an Initial in a small datagram");
        Some(Transmit { ecn, ..Transmit::single(tuple, buf.len()) })
    }

    /// Begins a datagram of a path that is being opened with the end of a client's handshake, if a time-out passed on path 0 while it
    /// waits for an ack: that path may be dead, and without it the server reads nothing of what comes by another one. Only where
    /// the server bears such paths (`plait_unconfirmed_paths`), and if it fits; not to an address that is nothing but the server's
    /// word, nor with each of the datagrams that a window allows, of which it is no part. True where the datagram holds it.
    #[cold]
    pub(crate) fn copy_handshake(&mut self, now: Instant, choice: Choice, buf: &mut Vec<u8>) -> bool {
        buf.clear();
        let Choice { path: id, purpose } = choice;
        let table = &self.paths.table;
        let is_due = self.side().is_client() && self.handshake.is_complete() && !self.paths.holds_openings();
        let takes_along = |path: &Path| {
            let is_asked = matches!(purpose, Purpose::Validation | Purpose::Ping) || path.owes_validation();
            is_asked && path.is_opening() && !path.takes_only_probes()
        };
        let is_opening = table.path(id).is_some_and(takes_along);
        let is_silent = table.path(PathId::ZERO).is_some_and(Path::is_silent);
        let Some(place) = table.place(PathId::ZERO).filter(|_| is_due && is_opening && is_silent) else { return false };
        let end = MIN_DATAGRAM_BYTES - RIDER_BYTES;
        let outline = Outline::unmarked(place, Space::Handshake, end, Purpose::HandshakeCopy(id));
        let built = self.assemble(now, &outline, buf, |connection, w| {
            if let Some(level) = connection.handshake.level(Space::Handshake) {
                level.crypto.fill_copy(w);
            }
            Padding::Least
        });
        built.is_some()
    }
}

/// Appends an Initial or Handshake packet to `buf`, if there is something to say in one.
fn append_packet(
    connection: &mut Connection,
    now: Instant,
    outline: &Outline,
    buf: &mut Vec<u8>,
    padding: Padding,
    rider: Rider,
) {
    let space = outline.space;
    let is_probe = connection.paths.owes_probe(space);
    let built = connection.assemble(now, outline, buf, |connection, w| {
        if let Some(level) = connection.handshake.level(space) {
            level.fill(now, w);
            if is_probe && !w.is_ack_eliciting() {
                // RFC 9002 6.2.4: the second probe carries data too; a server does not answer a first packet without
                level.crypto.resend_unacked();
                level.crypto.fill(w);
            }
        }
        if is_probe && !w.is_ack_eliciting() {
            w.write_ping();
        }
        // What rides behind pads the datagram, where it has room.
        let is_padded_behind = rider == Rider::Waits && w.remaining() >= RIDER_BYTES;
        if is_padded_behind { Padding::Least } else { padding }
    });
    if space == Space::Handshake && connection.side().is_client() && built.is_some() {
        // RFC 9001 4.9.1: a client is done with Initial keys once it sends a Handshake packet
        connection.discard_space(now, Space::Initial);
    }
}
