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
    pub(crate) fn on_path_news(&mut self, now: Instant) {
        self.scheduling.views.expire();
        while let Some(news) = self.paths.poll_news() {
            match news {
                PathNews::Application(event) => self.events.path(event),
                PathNews::Endpoint(event) => self.events.tell_endpoint(event),
                PathNews::State { id, tuple, state } => {
                    self.paths.table.review_report(now);
                    self.events.observe(now, || TraceEvent::Path { path: id, tuple, state });
                }
                PathNews::Reported { id, report } => {
                    self.events.observe(now, || TraceEvent::PeerReport { path: id, report });
                }
                PathNews::Mtu { id, bytes } => self.events.observe(now, || TraceEvent::Mtu { path: id, bytes }),
                PathNews::ProbeTimeout { id, count } => {
                    self.events.observe(now, || TraceEvent::ProbeTimeout { path: id, count });
                }
                PathNews::SendAgain { id, frames } => {
                    frames.iter().for_each(|frame| self.on_frame_lost(now, id, frame));
                }
                PathNews::Undelivered { id, feedback } => {
                    self.process_acked_and_lost(now, id, feedback);
                }
                PathNews::RoomShrank => drop_unfit_datagrams(&mut self.datagrams, &self.paths.table),
                PathNews::Closing { id } => self.scheduling.on_path_closing(id),
                PathNews::HostProven => self.issue_tokens(now),
                PathNews::Close(error) => self.close_with(now, error),
            }
        }
    }
}
