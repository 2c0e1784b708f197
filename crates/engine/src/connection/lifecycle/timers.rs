//! Time: the earliest deadline of all parts, and what happens when it comes.

use plait_base::time::earliest;
use plait_base::{Instant, Space};
use plait_path::{Path, PathIds, TimerFired};

use crate::connection::Connection;
use crate::connection::lifecycle::{ConnectionError, LifecycleTimer};
use crate::io::EndpointEvent;

impl Connection {
    /// When [`Self::on_timeout`] wants to be called; none when only a datagram or the application can change anything.
    pub fn deadline(&self) -> Option<Instant> {
        let mut at = self.lifecycle.deadline();
        if !self.lifecycle.is_open() {
            return at;
        }
        at = earliest(at, self.paths.deadline());
        for level in self.handshake.levels() {
            at = earliest(at, level.receive.deadline().filter(|_| level.keys.is_some()));
        }
        at = earliest(at, self.keys.as_ref().and_then(|k| k.deadline()));
        at = earliest(at, self.scheduling.held_until);
        at = earliest(at, self.scheduling.responses_at);
        at = earliest(at, self.scheduling.reinjector.next_look());
        at = earliest(at, self.handshake.zero_rtt.deadline());
        earliest(at, self.receive.loans.deadline(&self.streams, &self.datagrams))
    }

    /// Does what is due at `now`. Poll for datagrams afterwards.
    pub fn on_timeout(&mut self, now: Instant) {
        match self.lifecycle.on_timeout(now) {
            LifecycleTimer::Idle => self.abort(now, ConnectionError::TimedOut),
            LifecycleTimer::Drained => self.events.tell_endpoint(EndpointEvent::Drained),
            LifecycleTimer::KeepAlive => {
                let next = self.paths.keep_alive(now);
                next.into_iter().for_each(|at| self.lifecycle.set_keep_alive(at));
            }
            LifecycleTimer::None => {}
        }
        if !self.lifecycle.is_open() {
            return;
        }
        if let Some(at) = self.scheduling.held_until.filter(|at| *at < now) {
            self.paths.table.open_paths_mut().for_each(|path| path.on_late(now.since(at)));
        }
        for held in [&mut self.scheduling.held_until, &mut self.scheduling.responses_at] {
            *held = held.filter(|at| *at > now);
        }
        self.scheduling.reinjector.on_timeout(now);
        if let Some(keys) = &mut self.keys {
            keys.on_timeout(now);
        }
        self.handshake.zero_rtt.on_timeout(now);
        self.receive.loans.on_timeout(now, &mut self.streams, &mut self.datagrams);
        // Acks whose time has come wait for the next chance to leave, without a timer: it may be that no path has room.
        self.paths.table.on_ack_timeouts(now);
        self.handshake.on_ack_timeouts(now);
        self.paths.ping_after_pauses(now, || self.streams.expects_data());
        self.poll_packet_timers(now);
        self.paths.check_no_path(now);
        self.on_path_news(now);
        if !self.lifecycle.is_open() {
            return;
        }
        self.paths.on_timeout(now, &mut self.random);
        self.on_path_news(now);
        self.maintain_paths(now);
    }

    /// Loss and probe timers of all paths.
    fn poll_packet_timers(&mut self, now: Instant) {
        let ids: PathIds = self.paths.table.open_paths().map(Path::id).collect();
        for id in ids {
            // A few rounds at most: a loss timer may give way to a probe timer that is due as well.
            for _ in 0..4 {
                let fired = self.paths.on_packet_timer(now, id, self.handshake.least_datagram(id));
                let feedback = self.paths.take_feedback();
                self.process_acked_and_lost(now, id, feedback);
                match fired {
                    TimerFired::None => break,
                    TimerFired::Lost => {}
                    TimerFired::Pto { space: Space::Data, .. } => {
                        self.paths.on_probe_timeout(now, id, &mut self.random);
                    }
                    TimerFired::Pto { space, .. } => {
                        // A server that confirmed the handshake has no keys for Handshake packets any more: 1-RTT packets
                        // make it say so again.
                        if self.keys.is_some() {
                            self.paths.request_data_probe(id);
                            self.paths.ping_openings();
                        }
                        self.handshake.crypto(space).into_iter().for_each(|stream| stream.resend_unacked());
                        self.paths.suspect_size(now, id);
                    }
                }
                self.on_path_news(now);
            }
        }
    }
}
