//! Connections that want to hear when the network does not deliver their datagrams.

use std::net::SocketAddr;
use std::ptr;
use std::sync::Arc;

use plait_engine::connection::Unreachable;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::listeners::OnUnreachable;
use super::socket::{SharedSocket, plain};
use crate::net::{Obstacle, Reports};

/// Tells one connection of undelivered datagrams, until it is dropped. A socket keeps reports only while somebody
/// listens: on a server, dead clients would make many.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Arc<SharedSocket>,
    connection: Arc<dyn OnUnreachable>,
    task: AbortHandle,
}

impl Listener {
    /// Listens for what goes from `socket` to `remote`. None where the system keeps no reports.
    pub(crate) fn new(
        runtime: &Handle,
        socket: Arc<SharedSocket>,
        remote: SocketAddr,
        connection: Arc<dyn OnUnreachable>,
    ) -> Option<Self> {
        {
            let mut listeners = socket.listeners.lock();
            if listeners.is_empty()
                && let Err(error) = socket.inner().set_reports(Reports::Kept)
            {
                tracing::debug!(%error, "undelivered datagrams are not reported");
                return None;
            }
            listeners.push((remote, connection.clone()));
        }
        // Each listener has a task, and each report goes to one of these, which tells whom it concerns.
        let task = runtime.spawn(pass_on(socket.clone())).abort_handle();
        Some(Self { socket, connection, task })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        let mut listeners = self.socket.listeners.lock();
        if let Some(place) =
            listeners.iter().position(|(_, other)| ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(&self.connection)))
        {
            listeners.swap_remove(place);
        }
        if listeners.is_empty() {
            // What is kept for nobody takes room from what is received.
            let _ = self.socket.inner().set_reports(Reports::Ignored);
        }
    }
}

async fn pass_on(socket: Arc<SharedSocket>) {
    while let Ok(report) = socket.inner().undelivered().await {
        let remote = plain(report.remote);
        let why = match report.why {
            Obstacle::Port => Unreachable::Port,
            Obstacle::Host => Unreachable::Host,
        };
        let concerned: Vec<Arc<dyn OnUnreachable>> =
            socket.listeners.lock().iter().filter(|(to, _)| *to == remote).map(|(_, c)| c.clone()).collect();
        tracing::debug!(%remote, %why, "the network did not deliver a datagram");
        concerned.iter().for_each(|connection| connection.on_unreachable(why));
    }
}
