//! A socket that shares a server's address with others, read on the thread that it belongs to.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use crate::endpoint::{EndpointShared, deliver};
use crate::net::ReceiveBatch;
use crate::sockets::SharedSocket;

/// Receive calls before others get a turn.
const MAX_BATCHES: usize = 8;

/// Lets each thread read its socket of a group.
pub(crate) fn read_group(endpoint: &Arc<EndpointShared>, group: Vec<Arc<SharedSocket>>) {
    let Some(pool) = endpoint.workers() else { return };
    for socket in group {
        let Some(worker) = socket.worker().and_then(|index| pool.worker(index)) else { continue };
        let local = socket.local();
        let batch = ReceiveBatch::new(worker.spare_buffers.clone());
        let reader = worker.runtime.spawn(GroupReader::new(socket, batch, endpoint));
        pool.keep_reader(local, reader.abort_handle());
    }
}

/// Reads a socket for its endpoint, until either is gone.
struct GroupReader {
    socket: Arc<SharedSocket>,
    batch: ReceiveBatch,
    /// The threads end with the endpoint, which must not live because they do.
    endpoint: Weak<EndpointShared>,
}

impl GroupReader {
    /// Nobody else reads the socket from now on.
    fn new(socket: Arc<SharedSocket>, batch: ReceiveBatch, endpoint: &Arc<EndpointShared>) -> Self {
        socket.claim();
        Self { socket, batch, endpoint: Arc::downgrade(endpoint) }
    }
}

impl Future for GroupReader {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { socket, batch, endpoint } = self.get_mut();
        let Some(endpoint) = endpoint.upgrade() else { return Poll::Ready(()) };
        for _ in 0..MAX_BATCHES {
            if let Err(error) = ready!(socket.poll_receive_claimed(cx, batch)) {
                tracing::error!(%error, local = %socket.local(), "socket cannot receive and is given up");
                endpoint.change_sockets(|list| list.without(socket.local()));
                return Poll::Ready(());
            }
            deliver(&endpoint, socket, batch, |_, input| Some(input));
        }
        // The paths that this thread serves get a turn, then it goes on.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
