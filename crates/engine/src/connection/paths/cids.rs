//! Connection ids of paths: ours, that the peer sends to, and the peer's.

use std::sync::Arc;

use plait_base::{ConnectionId, PathId, Random, Violation};
use plait_path::table::TableEvent;
use plait_path::{CidSource, Path, Paths};
use plait_wire::SentFrame;
use plait_wire::frame::{MaxPathId, NewCid, PathCidsBlocked, RetireCid};

use super::{PathControl, PathNews};
use crate::config::EndpointConfig;
use crate::io::EndpointEvent;

/// How connection ids of ours are made.
pub(crate) struct OwnCids {
    /// Their length, bytes; 0 where we chose to go without.
    len: usize,
    endpoint: Arc<EndpointConfig>,
    /// Which of several receivers those of path 0 lead to; those of each further path to the next.
    receiver: Option<usize>,
}

impl OwnCids {
    pub(crate) fn new(len: usize, endpoint: Arc<EndpointConfig>, receiver: Option<usize>) -> Self {
        Self { len, endpoint, receiver }
    }
}

impl PathControl {
    /// Issues the connection ids that the peer lacks.
    pub(crate) fn issue_cids(&mut self, random: &mut Random) {
        self.issue_cids_by(Paths::issue_cids, random);
    }

    /// Issues those of the paths that a client may open first: they leave with the server's first flight.
    pub(crate) fn issue_cids_in_handshake(&mut self, random: &mut Random) {
        self.issue_cids_by(Paths::issue_cids_in_handshake, random);
    }

    fn issue_cids_by(&mut self, issue: fn(&mut Paths, &mut dyn CidSource), random: &mut Random) {
        let OwnCids { len, endpoint, receiver } = &self.own_cids;
        if *len == 0 {
            return;
        }
        issue(&mut self.table, &mut |path: PathId| {
            let receiver = receiver.map(|first| first + path.0 as usize);
            let cid = endpoint.draw_cid(*len, receiver, random);
            (cid, endpoint.reset_key.token(&cid))
        });
        self.process_table_events();
    }

    pub(crate) fn on_new_cid(&mut self, frame: &NewCid) -> Result<(), Violation> {
        self.table.on_new_cid(frame)?;
        self.process_table_events();
        self.plan.on_new_cid();
        Ok(())
    }

    /// RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID, in a packet that came to `cid`.
    pub(crate) fn on_retire_cid(
        &mut self,
        frame: &RetireCid,
        cid: &ConnectionId,
        random: &mut Random,
    ) -> Result<(), Violation> {
        self.table.on_retire_cid(frame, cid)?;
        self.issue_cids(random);
        Ok(())
    }

    pub(crate) fn on_max_path_id(&mut self, frame: &MaxPathId, random: &mut Random) -> Result<(), Violation> {
        if self.table.on_max_path_id(frame)? {
            self.issue_cids(random);
            self.plan.touch();
        }
        Ok(())
    }

    pub(crate) fn on_path_cids_blocked(
        &mut self,
        frame: &PathCidsBlocked,
        random: &mut Random,
    ) -> Result<(), Violation> {
        self.table.on_path_cids_blocked(frame)?;
        self.issue_cids(random);
        Ok(())
    }

    /// A frame of ours about paths or their connection ids was acknowledged.
    pub(crate) fn on_frame_acked(&mut self, frame: &SentFrame) {
        self.table.on_acked(frame);
        if let SentFrame::NewCid { path, .. } = frame
            && self.table.slot(*path).is_some_and(|slot| slot.is_untouched())
        {
            // Now it may be opened.
            self.plan.touch();
        }
    }

    /// The same was lost: it is written again while it is still true.
    pub(crate) fn on_frame_lost(&mut self, frame: &SentFrame) {
        self.table.on_lost(frame);
    }

    /// True when a datagram from the peer ends in a reset token of one of its ids in use (RFC 9000 10.3.1).
    pub(crate) fn is_reset(&self, remote: std::net::SocketAddr, ending: &[u8; 16]) -> bool {
        self.reset_tokens.matches(remote, ending)
    }

    /// Passes on what the path table wants the endpoint to know.
    pub(super) fn process_table_events(&mut self) {
        let Self { table, reset_tokens, news, .. } = self;
        let mut tell = |event: EndpointEvent| news.push_back(PathNews::Endpoint(event));
        while let Some(event) = table.poll_event() {
            match event {
                TableEvent::CidIssued(issued) => tell(EndpointEvent::Register { cid: issued.cid, path: issued.path }),
                TableEvent::CidRetired { cid, .. } => tell(EndpointEvent::Retire { cid }),
                TableEvent::TokenInUse { path, token } => {
                    if let Some(remote) = table.path(path).map(Path::tuple).map(|tuple| tuple.remote) {
                        reset_tokens.watch(path, token, remote, &mut tell);
                    }
                }
                TableEvent::TokenForgotten { path, token } => reset_tokens.forget(path, token, &mut tell),
            }
        }
    }
}
