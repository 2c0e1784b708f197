//! The end of a connection: our close, the peer's close, a reset, silence (RFC 9000 10).

use bytes::Bytes;
use plait_base::limits::{MAX_REASON_BYTES, MIN_DATAGRAM_BYTES};
use plait_base::units::VARINT_MAX;
use plait_base::{Instant, PathId, Space, TransportError};
use plait_path::{Departure, FourTupleRole, Padding, Path};

use crate::connection::Connection;
use crate::connection::events::Event;
use crate::connection::lifecycle::{ApplicationClose, CloseFrame, ConnectionError};
use crate::connection::send::assemble::Outline;
use crate::connection::send::purpose::Purpose;
use crate::io::{EndpointEvent, Transmit};

impl Connection {
    /// Closes the connection. `code` is the application's, at most 2^62 - 1; `reason` is cut to 512 bytes.
    pub fn close(&mut self, now: Instant, code: u64, reason: Bytes) {
        let code = code.min(VARINT_MAX);
        let reason = reason.slice(..reason.len().min(MAX_REASON_BYTES));
        let frame = CloseFrame::Application(ApplicationClose { code, reason });
        self.begin_closing(now, frame, ConnectionError::LocallyClosed);
    }

    /// Closes with a transport error of the peer's making, or of ours (RFC 9000 5.2, 11.1).
    #[cold]
    pub(crate) fn close_with(&mut self, now: Instant, error: TransportError) {
        let frame = CloseFrame::Transport(error.clone());
        self.begin_closing(now, frame, ConnectionError::TransportError(error));
    }

    /// Closes, says so to the peer on every path, and tells the application why.
    pub(crate) fn begin_closing(&mut self, now: Instant, frame: CloseFrame, why: ConnectionError) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.events.observe(now, || frame.traced());
        self.lifecycle.close(now, frame, self.paths.table.max_pto());
        self.receive.loans.end(&mut self.streams, &mut self.datagrams);
        self.paths.pings.clear();
        self.events.push(Event::ConnectionLost(why));
    }

    /// The peer closed or reset the connection, which it knows no more: silence until it drained (RFC 9000 10.2.2). Where we
    /// closed before, our close is repeated no more. A datagram that ends in a stateless reset token of the peer, found by the
    /// endpoint or `on_unread`, ends all paths (RFC 9000 10.3.1).
    pub(crate) fn drain(&mut self, now: Instant, why: ConnectionError) {
        if self.lifecycle.is_open() {
            self.events.on_lost(now, why);
        }
        if let Some(until) = self.lifecycle.drain(now, self.paths.table.max_pto()) {
            self.events.tell_endpoint(EndpointEvent::Draining { until });
        }
    }

    /// Ends at once and silently: idle, or nobody there.
    pub(crate) fn abort(&mut self, now: Instant, why: ConnectionError) {
        if self.lifecycle.is_open() {
            self.events.on_lost(now, why);
        }
        self.lifecycle.finish();
        self.receive.loans.end(&mut self.streams, &mut self.datagrams);
        self.events.tell_endpoint(EndpointEvent::Drained);
    }

    /// A datagram with our close, as long as one is due on some path.
    #[cold]
    pub(crate) fn poll_close(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.lifecycle.close_to_send()?;
        let mut transmit = None;
        self.lifecycle.begin_close_round(|| self.paths.table.close_targets());
        while transmit.is_none() {
            let Self { lifecycle, paths, scheduling, .. } = self;
            let is_held = |path: &Path| scheduling.full_sockets.hold(&path.tuple());
            // Where a socket is full the close waits for it, as long as this connection lasts.
            let target = lifecycle.take_close_target(|id| !paths.table.path(id).is_some_and(is_held));
            let Some(id) = target else { break };
            transmit = self.build_close(now, id, buf);
        }
        self.lifecycle.end_close_round();
        transmit
    }

    fn build_close(&mut self, now: Instant, id: PathId, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        let place = self.paths.table.place(id)?;
        let Departure { tuple, credit_bytes, .. } =
            self.paths.table.path_at(place)?.departure(FourTupleRole::Current)?;
        let end = credit_bytes.min(MIN_DATAGRAM_BYTES);
        let is_client = self.side().is_client();
        // RFC 9000 10.2.3: at every level that the peer may read. A server of which we have Handshake keys has them too.
        let spaces: &[Space] =
            match (self.handshake.is_confirmed(), self.keys.is_some() && self.handshake.is_complete()) {
                (true, _) => &[Space::Data],
                (false, true) => &[Space::Handshake, Space::Data],
                (false, false) if is_client && self.handshake.has_keys(Space::Handshake) => &[Space::Handshake],
                (false, false) => &[Space::Initial, Space::Handshake],
            };
        for &space in spaces.iter().filter(|s| id == PathId::ZERO || **s == Space::Data) {
            // RFC 9000 14.1: a client's datagrams with an Initial are full-sized; a server's Initial that asks for no ack stays as it is
            let is_full_sized = space == Space::Initial && is_client;
            let padding = if is_full_sized { Padding::UpTo(end) } else { Padding::Least };
            let Some(frame) = self.lifecycle.close_to_send().cloned() else { continue };
            let outline = Outline::unmarked(place, space, end, Purpose::End);
            // What does not fit is not padded either.
            self.assemble(now, &outline, buf, |_, w| if frame.write(space, w) { padding } else { Padding::Least });
        }
        if buf.is_empty() {
            return None;
        }
        Some(Transmit::single(tuple, buf.len()))
    }

    /// PATH_ABANDON of the last path, on that path itself: the last packet there but for our close. Where another
    /// path opened by now it leaves there, as all others do (RFC 10069 3.4).
    #[cold]
    pub(crate) fn poll_final_packet(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let id = self.paths.no_path.as_ref()?.abandon_unsent?;
        if self.scheduling.full_sockets.hold_path(&self.paths.table, id) {
            return None;
        }
        self.paths.no_path.as_mut()?.abandon_unsent = None;
        let place = self.paths.table.place(id)?;
        let Departure { tuple, credit_bytes, .. } =
            self.paths.table.path_at(place)?.departure(FourTupleRole::Current)?;
        let end = credit_bytes.min(MIN_DATAGRAM_BYTES);
        let outline = Outline::unmarked(place, Space::Data, end, Purpose::End);
        self.assemble(now, &outline, buf, |connection, w| {
            connection.paths.table.fill_abandon(id, w);
            Padding::Least
        })?;
        Some(Transmit::single(tuple, buf.len()))
    }
}
