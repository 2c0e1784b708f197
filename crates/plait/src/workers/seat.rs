//! The places of connections on threads, and how those find them.

use std::sync::Arc;

use plait_base::ConnectionId;
use plait_engine::{ConnectionHandle, EndpointEvent};
use tokio::runtime::Handle;

use super::directory::Directory;
use super::fault::WorkerFault;
use super::pool::WorkerPool;
use super::tally::WorkerTally;
use crate::connection::Shared;
use crate::net::SpareBuffers;

/// The place of a connection on a thread.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) thread: usize,
    pub(crate) runtime: Handle,
    pub(crate) spare_buffers: Arc<SpareBuffers>,
    tally: Arc<WorkerTally>,
    fault: WorkerFault,
}

impl Seat {
    /// The connection received so many bytes there.
    pub(crate) fn on_received(&self, bytes: usize) {
        self.tally.on_received(bytes);
    }

    /// A test may let the task of a connection fall that has its turn there.
    pub(crate) fn strike(&self) {
        self.fault.strike_connection();
    }

    /// The connection sent so many bytes from there.
    pub(crate) fn on_sent(&self, bytes: usize) {
        self.tally.on_sent(bytes);
    }
}

impl WorkerPool {
    /// A place on a thread for a connection that begins.
    pub(crate) fn seat(&self, thread: usize) -> Option<Seat> {
        let worker = self.worker(thread)?;
        worker.tally.on_connection();
        Some(Seat {
            thread: thread % self.len(),
            runtime: worker.runtime.clone(),
            spare_buffers: worker.spare_buffers.clone(),
            tally: worker.tally.clone(),
            fault: worker.fault.clone(),
        })
    }

    /// What the thread finds connections by whose socket brought a datagram.
    pub(crate) fn directory(&self, thread: usize) -> Option<&Directory> {
        self.worker(thread).map(|worker| &worker.directory)
    }

    /// Datagrams of a connection that lives on `thread` came by the socket of another.
    pub(crate) fn on_handed_over(&self, thread: usize, datagrams: usize) {
        if let Some(worker) = self.worker(thread) {
            worker.tally.on_handed_over(datagrams);
        }
    }

    /// The threads learn what a connection tells the endpoint: before the endpoint, where something goes.
    pub(crate) fn on_connection_events(
        &self,
        (handle, shared): (ConnectionHandle, &Arc<Shared>),
        events: &[EndpointEvent],
    ) {
        // Those without a thread are found by the endpoint.
        let Some(home) = shared.home.thread() else { return };
        let directory = |cid: &ConnectionId| self.directory(self.thread_of(cid).unwrap_or(home)).map(Directory::lock);
        for event in events {
            match *event {
                EndpointEvent::Register { cid, path } => {
                    if let Some(mut directory) = directory(&cid) {
                        directory.enter((handle, shared), (cid, path));
                    }
                }
                EndpointEvent::Retire { cid } => {
                    if let Some(mut directory) = directory(&cid) {
                        directory.retire(handle, cid);
                    }
                }
                EndpointEvent::Drained => self.forget(handle, home),
                EndpointEvent::ResetToken { .. }
                | EndpointEvent::ForgetToken { .. }
                | EndpointEvent::Established
                | EndpointEvent::AddressProven { .. }
                | EndpointEvent::Draining { .. } => {}
            }
        }
    }

    /// A connection that began on `home` is over.
    fn forget(&self, handle: ConnectionHandle, home: usize) {
        let threads = if self.is_steered() { 0..self.len() } else { home..home + 1 };
        for directory in threads.filter_map(|thread| self.directory(thread)) {
            directory.lock().forget(handle);
        }
    }
}
