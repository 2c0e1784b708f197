//! The task of an endpoint: receives from all sockets and finds the connection of each datagram.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::delivery::deliver;
use super::state::EndpointShared;
use crate::net::ReceiveBatch;
use crate::sockets::{SharedSocket, SocketList};

/// Receive calls to one socket before others get a turn.
const MAX_BATCHES: usize = 8;

/// Drives an endpoint until nobody needs it.
pub(crate) struct Driver {
    shared: Arc<EndpointShared>,
    list: Arc<SocketList>,
    sources: Vec<ReceiveSocket>,
}

/// A socket that is read.
struct ReceiveSocket {
    socket: Arc<SharedSocket>,
    batch: ReceiveBatch,
}

/// What reading a socket led to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Nothing is left.
    Dry,
    /// More may be there.
    More,
    /// The socket is of no use any more.
    Broken,
}

impl Driver {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        Self { shared, list: Arc::default(), sources: Vec::new() }
    }

    /// Reads the sockets of the latest list.
    fn follow(&mut self, list: &Arc<SocketList>) {
        if Arc::ptr_eq(list, &self.list) {
            return;
        }
        self.list = list.clone();
        self.sources.retain(|source| list.all().any(|s| Arc::ptr_eq(s, &source.socket)));
        for socket in list.all() {
            if !self.sources.iter().any(|source| Arc::ptr_eq(socket, &source.socket)) {
                let batch = ReceiveBatch::new(self.shared.spare_buffers.clone());
                self.sources.push(ReceiveSocket { socket: socket.clone(), batch });
            }
        }
    }
}

impl ReceiveSocket {
    fn read(&mut self, cx: &mut Context<'_>, shared: &EndpointShared) -> Read {
        for _ in 0..MAX_BATCHES {
            match self.socket.poll_receive(cx, &mut self.batch) {
                Poll::Pending => return Read::Dry,
                Poll::Ready(Ok(())) => deliver(shared, &self.socket, &mut self.batch, |_, input| Some(input)),
                Poll::Ready(Err(error)) => {
                    tracing::error!(%error, local = %self.socket.local(), "socket cannot receive and is given up");
                    return Read::Broken;
                }
            }
        }
        Read::More
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let list = {
            let mut state = this.shared.lock();
            state.set_driver(cx.waker());
            if state.is_over() {
                return Poll::Ready(());
            }
            state.sockets.clone()
        };
        this.follow(&list);
        let mut more = false;
        let mut broken = None;
        for source in &mut this.sources {
            match source.read(cx, &this.shared) {
                Read::Dry => {}
                Read::More => more = true,
                Read::Broken => broken = Some(source.socket.local()),
            }
        }
        if let Some(local) = broken {
            // The change wakes this task.
            this.shared.change_sockets(|list| list.without(local));
        }
        if more {
            // Connections get a turn, then it goes on.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
