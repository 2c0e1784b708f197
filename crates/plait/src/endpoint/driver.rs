//! The task of an endpoint: receives from all sockets and finds the connection of each datagram.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::delivery::{Recipients, deliver};
use super::state::EndpointShared;
use crate::net::ReceiveBatch;
use crate::sockets::{SharedSocket, SocketList};

/// Receive calls to one socket before others get a turn.
const MAX_BATCHES: usize = 8;
/// Visits of the task, each with something received, after which small answers wait no longer for those of others.
const MAX_WAITING_VISITS: u32 = 4;

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
    /// Something came since the task last looked whether answers wait.
    heard: bool,
    /// Visits for which small answers have waited.
    waiting_visits: u32,
}

/// Whether small answers wait, and this task with them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Gone,
    Wait,
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
                self.sources.push(ReceiveSocket { socket: socket.clone(), batch, heard: false, waiting_visits: 0 });
            }
        }
    }
}

impl ReceiveSocket {
    fn read(&mut self, cx: &mut Context<'_>, shared: &EndpointShared) -> Read {
        for _ in 0..MAX_BATCHES {
            match self.socket.poll_receive(cx, &mut self.batch) {
                Poll::Pending => return Read::Dry,
                Poll::Ready(Ok(())) => {
                    self.heard = true;
                    let recipients = deliver(shared, &self.socket, &mut self.batch, |_, input| Some(input));
                    if recipients == Recipients::Several {
                        self.socket.begin_turn(cx.waker());
                    }
                }
                Poll::Ready(Err(error)) => {
                    tracing::error!(%error, local = %self.socket.local(), "socket cannot receive and is given up");
                    return Read::Broken;
                }
            }
        }
        Read::More
    }

    /// Sends small answers that wait for each other once nothing more comes that would be answered, or for long enough.
    fn send_answers(&mut self, cx: &Context<'_>) -> Answers {
        let heard = std::mem::take(&mut self.heard);
        if !self.socket.has_gathered() {
            self.waiting_visits = 0;
            return Answers::Gone;
        }
        self.waiting_visits += 1;
        // The first of them woke the task before the system was asked what came meanwhile.
        if self.waiting_visits == 1 || (heard && self.waiting_visits <= MAX_WAITING_VISITS) {
            return Answers::Wait;
        }
        self.waiting_visits = 0;
        // While the system's buffer is full they stay; room wakes this task.
        let _ = self.socket.poll_end_turn(cx);
        Answers::Gone
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
        let mut waits = false;
        for source in &mut this.sources {
            waits |= source.send_answers(cx) == Answers::Wait;
        }
        if waits {
            // Back after all tasks that are ready, and after the system was asked what came.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
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

impl Drop for Driver {
    /// Whatever ended the task, the application may not wait for it any more.
    fn drop(&mut self) {
        self.shared.on_task_ended();
    }
}
