//! What the connection tells its application, its endpoint and its observer.

use std::collections::VecDeque;

use plait_base::observe::{DropReason, Observer, TraceEvent};
use plait_base::{CloseCode, FourTuple, Instant, PathId, limits};
use plait_stream::StreamEvent;
use tracing::level_filters::LevelFilter;

use super::lifecycle::ConnectionError;
use crate::io::EndpointEvent;

/// Something the application wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// ALPN and server name are known.
    HandshakeDataReady,
    /// The handshake is complete; the connection carries data at full rights.
    Connected,
    /// A stream changed.
    Stream(StreamEvent),
    /// An application datagram waits to be read.
    DatagramReceived,
    /// There is room again in the queue of outgoing datagrams.
    DatagramsUnblocked,
    /// A path changed.
    Path(PathEvent),
    /// The connection is over.
    ConnectionLost(ConnectionError),
}

/// A change in one path's life.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The path exists; its address is being validated.
    Opened {
        /// The path that is new.
        id: PathId,
        /// The 4-tuple that it begins on.
        tuple: FourTuple,
    },
    /// The path's address is validated; it may carry data.
    Established {
        /// The path that may carry data.
        id: PathId,
    },
    /// Nothing came back for a probe time-out: other paths take over.
    Failed {
        /// The path that fell silent.
        id: PathId,
    },
    /// A failed path answers again.
    Recovered {
        /// The path that answers again.
        id: PathId,
    },
    /// The last path that worked failed as well: nothing gets through until one is restored.
    AllFailed {
        /// The path that failed last.
        last: PathId,
    },
    /// After [`Self::AllFailed`]: the peer answers again.
    Restored {
        /// The path on which it does.
        id: PathId,
    },
    /// The peer announced how it wants the path used.
    RemoteStatus {
        /// The path that it speaks of.
        id: PathId,
        /// True for PATH_STATUS_AVAILABLE, false for PATH_STATUS_BACKUP.
        available: bool,
    },
    /// The path moved to other addresses (migration or NAT rebinding).
    Migrated {
        /// The path that moved.
        id: PathId,
        /// Its new addresses.
        tuple: FourTuple,
    },
    /// One side gave the path up; late packets drain.
    Abandoned {
        /// The path that was given up.
        id: PathId,
        /// Why, as PATH_ABANDON said.
        code: CloseCode,
    },
    /// The path is gone and its state freed.
    Closed {
        /// The path that is gone.
        id: PathId,
    },
}

/// The queues out of the connection.
#[derive(Default)]
pub(crate) struct Events {
    application: VecDeque<Event>,
    endpoint: VecDeque<EndpointEvent>,
    /// Set by the last word to the endpoint: it may give our handle away after it.
    drained: bool,
    observer: Option<Box<dyn Observer>>,
}

impl Events {
    pub(crate) fn install(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Queues for the application. Path events beyond the bound are forgotten, oldest first.
    pub(crate) fn push(&mut self, event: Event) {
        if self.application.len() >= limits::MAX_QUEUED_EVENTS
            && let Some(i) = self.application.iter().position(|e| matches!(e, Event::Path(_)))
        {
            self.application.remove(i);
        }
        self.application.push_back(event);
    }

    pub(crate) fn path(&mut self, event: PathEvent) {
        self.push(Event::Path(event));
    }

    /// The connection is over by no word of ours: the application and the observer hear why.
    pub(crate) fn on_lost(&mut self, now: Instant, why: ConnectionError) {
        self.observe(now, || why.traced());
        self.push(Event::ConnectionLost(why));
    }

    /// Queues for the endpoint. Drained is said once and is the last word, for the handle may be another's after it.
    pub(crate) fn tell_endpoint(&mut self, event: EndpointEvent) {
        if !self.drained {
            self.drained = event == EndpointEvent::Drained;
            self.endpoint.push_back(event);
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Event> {
        self.application.pop_front()
    }

    pub(crate) fn poll_endpoint(&mut self) -> Option<EndpointEvent> {
        self.endpoint.pop_front()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.application.shrink_to_fit();
        self.endpoint.shrink_to_fit();
    }

    /// A packet, or the rest of a datagram, was not read.
    pub(crate) fn on_dropped(&mut self, now: Instant, bytes: usize, why: DropReason) {
        self.observe(now, || TraceEvent::PacketDropped { bytes, why });
    }

    /// True where somebody sees what [`Self::observe`] shows.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        // Whether anybody hears of this very level is asked when there is something to show.
        self.observer.is_some() || LevelFilter::current() == LevelFilter::TRACE
    }

    /// Shows an event to tracing and to the observer, if any.
    #[inline]
    pub(crate) fn observe(&mut self, now: Instant, event: impl FnOnce() -> TraceEvent) {
        if self.is_observed() {
            self.show(now, event());
        }
    }

    #[cold]
    fn show(&mut self, now: Instant, event: TraceEvent) {
        if tracing::enabled!(tracing::Level::TRACE) {
            tracing::trace!(at = ?now, ?event);
        }
        if let Some(observer) = &mut self.observer {
            observer.on_event(now, &event);
        }
    }
}
