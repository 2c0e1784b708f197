//! What paths tell the rest of the connection, and who hears it.

use plait_base::observe::{PathState, PeerReport, TraceEvent};
use plait_base::{FourTuple, Instant, PathId, TransportError};
use plait_path::Feedback;
use plait_wire::SentFrame;

use crate::connection::Connection;
use crate::connection::events::PathEvent;
use crate::connection::send::unfit_datagrams::drop_unfit_datagrams;
use crate::io::EndpointEvent;

/// Something that happened to paths.
#[derive(Debug)]
pub(crate) enum PathNews {
    /// The application hears of it.
    Application(PathEvent),
    /// The endpoint hears of a connection id or a reset token.
    Endpoint(EndpointEvent),
    /// The path is in this state now, for observers.
    State { id: PathId, tuple: FourTuple, state: PathState },
    /// The peer told how the path does, for observers.
    Reported { id: PathId, report: PeerReport },
    /// Its largest datagram changed, bytes of UDP payload, for observers.
    Mtu { id: PathId, bytes: u16 },
    /// The `count`th probe time-out in a row passed, for observers.
    ProbeTimeout { id: PathId, count: u32 },
    /// These frames, under way on the path, are to be sent again, there or elsewhere.
    SendAgain { id: PathId, frames: Vec<SentFrame> },
    /// These packets of the path do not arrive any more.
    Undelivered { id: PathId, feedback: Feedback },
    /// Paths became fewer, or their packets smaller: datagrams that wait may fit none any more.
    RoomShrank,
    /// Nothing is sent on the path from now on.
    Closing { id: PathId },
    /// The peer proved a host at which it was not known before.
    HostProven,
    /// The connection cannot go on.
    Close(TransportError),
}

impl Connection {
    /// Hands on what happened to paths; called after whatever may have changed them.
    #[inline]
    pub(crate) fn on_path_news(&mut self, now: Instant) {
        self.scheduling.views.expire();
        // Nearly always there is none.
        while self.paths.has_news() {
            PathNews::hand_on(self, now);
        }
    }
}

impl PathNews {
    /// Tells those whom the next news are for.
    #[cold]
    fn hand_on(connection: &mut Connection, now: Instant) {
        let Connection { paths, events, datagrams, scheduling, .. } = connection;
        let Some(news) = paths.poll_news() else { return };
        match news {
            Self::Application(event) => events.path(event),
            Self::Endpoint(event) => events.tell_endpoint(event),
            Self::State { id, tuple, state } => {
                paths.table.review_report(now);
                events.observe(now, || TraceEvent::Path { path: id, tuple, state });
            }
            Self::Reported { id, report } => events.observe(now, || TraceEvent::PeerReport { path: id, report }),
            Self::Mtu { id, bytes } => events.observe(now, || TraceEvent::Mtu { path: id, bytes }),
            Self::ProbeTimeout { id, count } => {
                events.observe(now, || TraceEvent::ProbeTimeout { path: id, count });
            }
            Self::SendAgain { id, frames } => {
                frames.iter().for_each(|frame| connection.on_frame_lost(now, id, frame));
            }
            Self::Undelivered { id, feedback } => connection.process_acked_and_lost(now, id, feedback),
            Self::RoomShrank => drop_unfit_datagrams(datagrams, &paths.table),
            Self::Closing { id } => scheduling.on_path_closing(id),
            Self::HostProven => connection.issue_tokens(now),
            Self::Close(error) => connection.close_with(now, error),
        }
    }
}
