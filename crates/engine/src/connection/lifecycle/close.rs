//! The end of a connection: our close, the peer's close, a reset, silence (RFC 9000 10).

use bytes::Bytes;
use plait_base::probe::TraceEvent;
use plait_base::{CloseCode, Instant, PathId, Space};
use plait_path::Padding;
use plait_wire::frame::Close;

use crate::connection::Connection;
use crate::connection::events::Event;
use crate::connection::lifecycle::{CloseFrame, ConnectionError};
use crate::connection::send::assemble::Outline;
use crate::connection::send::purpose::Purpose;
use crate::io::{EndpointEvent, Transmit};

/// How long a connection that ends stays around, in probe time-outs (RFC 9000 10.2).
const CLOSING_PTOS: u32 = 3;

impl Connection {
    /// Closes, says so to the peer on every path, and tells the application why.
    pub(crate) fn begin_closing(&mut self, now: Instant, frame: CloseFrame, why: ConnectionError) {
        if !self.lifecycle.is_open() {
            return;
        }
        let until = now + self.paths.table.max_pto() * CLOSING_PTOS;
        let (code, reason) = match &frame {
            CloseFrame::Transport(e) => (e.code, e.reason.clone()),
            CloseFrame::Application(c) => (CloseCode(c.code), String::from_utf8_lossy(&c.reason).into_owned()),
        };
        self.events.observe(now, || TraceEvent::Closed { locally: true, code, reason });
        self.lifecycle.close(frame, until);
        self.settle_loans();
        self.scheduling.pings.clear();
        self.events.push(Event::ConnectionLost(why));
    }

    /// The peer closed.
    pub(crate) fn on_peer_closed(&mut self, now: Instant, why: ConnectionError) {
        if !self.lifecycle.is_open() {
            return;
        }
        let (code, reason) = match &why {
            ConnectionError::ConnectionClosed(e) => (e.code, e.reason.clone()),
            ConnectionError::ApplicationClosed(c) => {
                (CloseCode(c.code), String::from_utf8_lossy(&c.reason).into_owned())
            }
            other => (CloseCode::NO_ERROR, other.to_string()),
        };
        self.events.observe(now, || TraceEvent::Closed { locally: false, code, reason });
        self.begin_draining(now);
        self.events.push(Event::ConnectionLost(why));
    }

    pub(crate) fn begin_draining(&mut self, now: Instant) {
        let until = now + self.paths.table.max_pto() * CLOSING_PTOS;
        self.lifecycle.drain(until);
    }

    /// The endpoint recognized a reset token of ours (RFC 9000 10.3.1): a reset on any path ends everything.
    pub(crate) fn on_stateless_reset(&mut self, now: Instant) {
        if self.lifecycle.is_open() {
            self.events.push(Event::ConnectionLost(ConnectionError::Reset));
        }
        self.begin_draining(now);
    }

    /// Ends at once and silently: idle, or nobody there.
    pub(crate) fn abort(&mut self, why: ConnectionError) {
        if self.lifecycle.is_open() {
            self.events.push(Event::ConnectionLost(why));
        }
        self.lifecycle.finish();
        self.settle_loans();
        self.events.tell_endpoint(EndpointEvent::Drained);
    }

    /// A datagram with our close, as long as one is due on some path.
    pub(crate) fn poll_close(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.lifecycle.due_close()?;
        if self.lifecycle.closes_due.is_empty() {
            // One close on each path that may be heard, since some may be dead.
            let mut targets: Vec<PathId> = self.paths.table.open_slots().map(|slot| slot.id).collect();
            if targets.is_empty() {
                // RFC 10069 2.6: any path may carry it, the one that ended last where none is left.
                targets =
                    self.paths.table.slots().filter(|s| s.last_remote_cid().is_some()).map(|slot| slot.id).collect();
            }
            targets.reverse();
            self.lifecycle.closes_due = targets;
        }
        // Where a socket is full the close waits for it, as long as this connection lasts.
        while let Some(place) = self.lifecycle.closes_due.iter().rposition(|id| !self.is_held(*id)) {
            let id = self.lifecycle.closes_due.remove(place);
            let transmit = self.build_close(now, id, buf);
            if self.lifecycle.closes_due.is_empty() {
                self.lifecycle.on_close_sent();
            }
            if transmit.is_some() {
                return transmit;
            }
        }
        if self.lifecycle.closes_due.is_empty() {
            self.lifecycle.on_close_sent();
        }
        None
    }

    fn build_close(&mut self, now: Instant, id: PathId, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        let route = self.paths.table.path(id)?.addresses.send_tuple();
        let room = self.paths.table.path(id)?.addresses.amplification_room();
        let end = usize::try_from(room).unwrap_or(usize::MAX).min(plait_base::limits::MIN_DATAGRAM_BYTES);
        // RFC 9000 10.2.3: at every level that the peer may read
        let spaces: &[Space] =
            match (self.handshake.is_confirmed(), self.keys.is_some() && self.handshake.is_complete()) {
                (true, _) => &[Space::Data],
                (false, true) => &[Space::Handshake, Space::Data],
                (false, false) => &[Space::Initial, Space::Handshake],
            };
        for &space in spaces.iter().filter(|s| id == PathId::ZERO || **s == Space::Data) {
            let has_handshake = self.handshake.has_keys(Space::Handshake);
            let padding = match space {
                // RFC 9000 14.1: a client's datagrams with an Initial are full-sized, the last packet carries the
                // padding; a server's Initial that asks for no ack stays as it is
                Space::Initial if self.side().is_client() && !has_handshake => Padding::UpTo(end),
                Space::Handshake if self.side().is_client() && !buf.is_empty() => Padding::UpTo(end),
                _ => Padding::Least,
            };
            self.close_packet(now, &Outline::unmarked(id, space, end, Purpose::End), buf, padding);
        }
        if buf.is_empty() {
            return None;
        }
        Some(Transmit::single(route, buf.len()))
    }

    fn close_packet(&mut self, now: Instant, outline: &Outline, buf: &mut Vec<u8>, padding: Padding) {
        let space = outline.space;
        let Some(frame) = self.lifecycle.due_close().cloned() else { return };
        self.assemble(now, outline, buf, |_, w| {
            let early;
            let close = match (&frame, space) {
                (CloseFrame::Application(c), Space::Data) => Close::Application { code: c.code, reason: &c.reason },
                (frame, _) => {
                    early = frame.for_handshake();
                    let reason = early.reason.as_bytes();
                    let reason = &reason[..reason.len().min(plait_base::limits::MAX_REASON_BYTES)];
                    Close::Transport { code: early.code, frame_type: early.frame.unwrap_or(0), reason }
                }
            };
            // What does not fit is not padded either.
            if w.write_close(close) { padding } else { Padding::Least }
        });
    }

    /// PATH_ABANDON of the last path, on that path itself: the last packet there but for our close. Where another
    /// path opened by now it leaves there, as all others do (RFC 10069 3.4).
    pub(crate) fn poll_final_packet(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let id = self.paths.no_path.as_ref()?.abandon_unsent?;
        if self.is_held(id) {
            return None;
        }
        self.paths.no_path.as_mut()?.abandon_unsent = None;
        let path = self.paths.table.path(id)?;
        let route = path.addresses.send_tuple();
        let room = usize::try_from(path.addresses.amplification_room()).unwrap_or(usize::MAX);
        let end = room.min(plait_base::limits::MIN_DATAGRAM_BYTES);
        let outline = Outline::unmarked(id, Space::Data, end, Purpose::End);
        self.assemble(now, &outline, buf, |connection, w| {
            connection.paths.table.fill_abandon(id, w);
            Padding::Least
        })?;
        Some(Transmit::single(route, buf.len()))
    }

    /// Version Negotiation answered a client's first packet (RFC 9000 6.2).
    pub(crate) fn on_version_negotiation(&mut self, now: Instant, versions: &[u8]) {
        let ids = &self.handshake.ids;
        let heard = self.handshake.peer_scid.is_some() || ids.retry_scid.is_some();
        // RFC 9000 6.2: any packet processed before, another Version Negotiation included, makes this one void
        if self.side().is_server() || heard || self.handshake.versions.was_negotiated() {
            return;
        }
        let offered: Vec<u32> =
            versions.chunks_exact(4).map(|v| u32::from_be_bytes([v[0], v[1], v[2], v[3]])).collect();
        // RFC 9000 6.2: a list with the version in use is to be ignored, and so is one that offers nothing
        if offered.is_empty() || offered.contains(&self.handshake.versions.original.0) {
            return;
        }
        let ours = self.settings.endpoint.versions.iter().copied().find(|v| offered.contains(&v.0));
        match ours {
            Some(version) => self.restart_with(now, version),
            None => self.abort(ConnectionError::VersionMismatch),
        }
    }

    /// A Retry asks for a token (RFC 9000 17.2.5).
    pub(crate) fn on_retry(
        &mut self,
        now: Instant,
        version: plait_wire::Version,
        scid: plait_base::ConnectionId,
        token: Bytes,
        packet: &[u8],
    ) {
        let ids = &self.handshake.ids;
        let unwanted = self.side().is_server()
            || version != self.handshake.versions.original
            || self.handshake.peer_scid.is_some()
            || ids.retry_scid.is_some()
            || token.is_empty()
            || scid == ids.remote;
        // RFC 9001 5.8: only a genuine one counts
        if unwanted || !plait_crypto::retry::verify(version.0, &ids.original_dcid, packet) {
            return;
        }
        self.handshake.on_retry(scid, token);
        self.paths.table.set_remote_initial(scid, None);
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
            path.send.requeue_in_flight(now, Space::Initial, &mut self.paths.feedback);
            path.send.requeue_in_flight(now, Space::Data, &mut self.paths.feedback);
        }
        self.handshake.crypto(Space::Initial).into_iter().for_each(|stream| stream.resend_unacked());
        self.process_acked_and_lost(now, PathId::ZERO);
    }
}
