//! What observers write down of a connection while it runs: figures of each path and its states.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plait_base::observe::{Observer, PathState, TraceEvent};
use plait_base::{Instant, PathId};

use super::acks::AckBook;
use super::decisions::Decisions;

/// Changes of path states that are kept.
const MAX_STATE_CHANGES: usize = 10_000;

/// Figures of one path, as its sender saw them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFigures {
    /// Which path of the scenario it runs over.
    pub scenario_path: Option<usize>,
    /// Bytes sent, header to tag.
    pub sent_bytes: u64,
    /// Packets that were sent on it.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets that were received on it.
    pub packets_received: u64,
    /// Bytes received, header to tag.
    pub received_bytes: u64,
    /// Probe time-outs that fired (RFC 9002 6.2).
    pub probe_timeouts: u64,
    /// Smoothed RTT, the latest.
    pub rtt: Option<Duration>,
    /// Smallest RTT so far.
    pub rtt_min: Option<Duration>,
    /// Congestion window, the latest, bytes.
    pub window_bytes: u64,
    /// Largest congestion window, bytes.
    pub window_max_bytes: u64,
    /// Largest datagram, the latest, bytes; 0 before the first change.
    pub mtu_bytes: u16,
    /// Times that the largest datagram became smaller.
    pub mtu_falls: u32,
    /// Bytes in flight, the latest.
    pub in_flight_bytes: u64,
    /// When it became active first.
    pub active_at: Option<Instant>,
}

/// A change of a path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// When it changed.
    pub at: Instant,
    /// Id of the path.
    pub path: PathId,
    /// The path of the scenario that it ran over then.
    pub scenario_path: Option<usize>,
    /// Its new state.
    pub state: PathState,
}

/// All that is written down.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By connection, numbered as they began, and path id.
    pub paths: BTreeMap<(usize, u32), PathFigures>,
    /// The first connection whose handshake was completed: the one that a client's attempts led to.
    pub chosen: Option<usize>,
    /// The sender's decisions.
    pub decisions: Decisions,
    /// State changes in order.
    pub changes: Vec<StateChange>,
    /// When the last packet was sent.
    pub last_sent: Option<Instant>,
    /// Packet numbers and acknowledgements of each connection: a server may have begun some that nobody went on with.
    pub acks: Vec<AckBook>,
    /// Most bytes that were in flight beyond the largest window until then.
    pub beyond_window_bytes: u64,
}

/// A ledger that several observers of one connection share.
#[derive(Clone, Debug, Default)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// The ledger. A run lives on one thread: there is never anyone to wait for.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn path(&mut self, connection: usize, id: PathId) -> &mut PathFigures {
        self.paths.entry((connection, id.0)).or_default()
    }

    /// Path ids of the connection that was chosen, with their figures.
    pub fn chosen_paths(&self) -> impl DoubleEndedIterator<Item = (u32, &PathFigures)> {
        let chosen = self.chosen.unwrap_or_default();
        self.paths.range((chosen, 0)..=(chosen, u32::MAX)).map(|((_, id), figures)| (*id, figures))
    }

    fn note(&mut self, now: Instant, connection: usize, event: &TraceEvent) {
        if let Some(book) = self.acks.get_mut(connection) {
            book.note(event);
        }
        match event {
            TraceEvent::PacketSent { path, bytes, .. } => {
                let figures = self.path(connection, *path);
                figures.packets_sent += 1;
                figures.sent_bytes += u64::from(*bytes);
                self.last_sent = Some(now);
            }
            TraceEvent::PacketReceived { path, bytes, .. } => {
                let figures = self.path(connection, *path);
                figures.packets_received += 1;
                figures.received_bytes += u64::from(*bytes);
            }
            TraceEvent::PacketLost { path, .. } => self.path(connection, *path).packets_lost += 1,
            TraceEvent::Mtu { path, bytes } => {
                let figures = self.path(connection, *path);
                figures.mtu_falls += u32::from(*bytes < figures.mtu_bytes);
                figures.mtu_bytes = *bytes;
            }
            TraceEvent::ProbeTimeout { path, .. } => self.path(connection, *path).probe_timeouts += 1,
            TraceEvent::Metrics { path, rtt, rtt_min, window_bytes, in_flight_bytes, .. } => {
                let figures = self.path(connection, *path);
                figures.rtt = Some(*rtt);
                figures.rtt_min = Some(*rtt_min);
                figures.window_bytes = *window_bytes;
                figures.window_max_bytes = figures.window_max_bytes.max(*window_bytes);
                figures.in_flight_bytes = *in_flight_bytes;
                let beyond = in_flight_bytes.saturating_sub(figures.window_max_bytes);
                self.beyond_window_bytes = self.beyond_window_bytes.max(beyond);
            }
            TraceEvent::HandshakeCompleted { .. } => _ = self.chosen.get_or_insert(connection),
            TraceEvent::Started { tuple, .. } => {
                self.path(connection, PathId::ZERO).scenario_path = crate::run::network::path_of(tuple);
            }
            TraceEvent::Path { path, tuple, state } => {
                let figures = self.path(connection, *path);
                let scenario_path = crate::run::network::path_of(tuple);
                figures.scenario_path = scenario_path;
                if *state == PathState::Active {
                    figures.active_at.get_or_insert(now);
                }
                if self.changes.len() < MAX_STATE_CHANGES {
                    self.changes.push(StateChange { at: now, path: *path, scenario_path, state: *state });
                }
            }
            _ => {}
        }
    }
}

impl SharedLedger {
    /// An observer of one more connection.
    pub fn observer(&self) -> LedgerObserver {
        let mut ledger = self.lock();
        ledger.acks.push(AckBook::default());
        LedgerObserver { ledger: self.clone(), connection: ledger.acks.len() - 1 }
    }
}

/// Writes down what it hears of one connection.
#[derive(Clone, Debug)]
pub struct LedgerObserver {
    ledger: SharedLedger,
    connection: usize,
}

impl Observer for LedgerObserver {
    fn on_event(&mut self, now: Instant, event: &TraceEvent) {
        self.ledger.lock().note(now, self.connection, event);
    }
}
