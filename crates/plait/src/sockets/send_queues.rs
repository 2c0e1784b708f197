//! What a connection sends, and what waits while a socket is full.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use plait_base::FourTuple;
use plait_engine::Transmit;

use super::list::{SocketList, outgoing};
use super::socket::SharedSocket;
use crate::net::SendOutcome;

/// Buffers of batches that are kept for those to come.
const MAX_SPARE_BUFFERS: usize = 16;
/// Bytes that the system takes at once: below the largest UDP payload, IPv6 and options considered.
const MAX_GSO_BYTES: usize = 65_000;

/// The ways out of one connection: a queue for each socket, so that a slow interface holds up no other.
#[derive(Debug)]
pub(crate) struct SendQueues {
    sockets: Arc<SocketList>,
    /// The thread that sends, where it may have sockets of its own.
    thread: Option<usize>,
    queues: Vec<SocketQueue>,
    spare: Vec<Vec<u8>>,
    /// Local addresses whose socket is full, as told last.
    full: Vec<SocketAddr>,
    /// Datagrams that the system refused as too large, until they are told.
    too_large: Vec<TooLarge>,
    lost: u64,
    /// A pair of addresses between which the system sees no way, since it was asked last.
    impassable: Option<Box<FourTuple>>,
}

/// A datagram that the system refused as larger than the interface takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    /// Where it was to go.
    pub(crate) tuple: FourTuple,
    /// UDP payload bytes.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct SocketQueue {
    socket: Arc<SharedSocket>,
    /// One batch at most, as long as nothing more is made for a socket that is full.
    waiting: VecDeque<GsoBatch>,
}

#[derive(Debug)]
struct GsoBatch {
    transmit: Transmit,
    source: Option<IpAddr>,
    bytes: Vec<u8>,
    sent: usize,
}

impl SendQueues {
    pub(crate) fn new(sockets: Arc<SocketList>, thread: Option<usize>) -> Self {
        let (queues, spare, full, too_large) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { sockets, thread, queues, spare, full, too_large, lost: 0, impassable: None }
    }

    /// The sockets in use.
    pub(crate) fn sockets(&self) -> &Arc<SocketList> {
        &self.sockets
    }

    /// The endpoint's sockets changed; what waits for one that is gone is lost.
    pub(crate) fn set_sockets(&mut self, sockets: Arc<SocketList>) {
        self.queues.retain(|queue| {
            let is_kept = sockets.holds(&queue.socket);
            self.lost += if is_kept { 0 } else { queue.waiting.len() as u64 };
            is_kept
        });
        self.sockets = sockets;
    }

    /// The pair of addresses of the last datagram that the system did not take because it sees no way; told once.
    pub(crate) fn take_impassable(&mut self) -> Option<FourTuple> {
        self.impassable.take().map(|tuple| *tuple)
    }

    /// Gives back the buffers that are kept for batches to come.
    pub(crate) fn release(&mut self) {
        self.spare = Vec::new();
    }

    /// Gives back the memory that nothing is in.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.full.shrink_to_fit();
        self.too_large.shrink_to_fit();
        for queue in &mut self.queues {
            queue.waiting.shrink_to_fit();
        }
        self.queues.shrink_to_fit();
    }

    /// Takes over what waits in the queues of another, whose path is served here from now on.
    pub(crate) fn absorb(&mut self, others: Self) {
        self.lost += others.lost;
        for other in others.queues.into_iter().filter(|queue| !queue.waiting.is_empty()) {
            match self.queues.iter_mut().find(|queue| Arc::ptr_eq(&queue.socket, &other.socket)) {
                Some(queue) => queue.waiting.extend(other.waiting),
                None => self.queues.push(other),
            }
        }
    }

    /// True when nothing waits for a socket.
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.waiting.is_empty())
    }

    /// Datagrams or batches lost on this machine.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes the datagrams that were refused as too large since the last call.
    pub(crate) fn take_too_large(&mut self) -> impl Iterator<Item = TooLarge> + '_ {
        self.too_large.drain(..)
    }

    /// The local addresses among those of `tuples` whose socket is full: nothing more should be made for them.
    pub(crate) fn full(&mut self, tuples: impl Iterator<Item = FourTuple>) -> &[SocketAddr] {
        self.full.clear();
        if self.queues.iter().any(|queue| !queue.waiting.is_empty()) {
            for tuple in tuples {
                let Some(exit) = self.sockets.exit_of(self.thread, &tuple) else { continue };
                let is_full =
                    |queue: &SocketQueue| Arc::ptr_eq(&queue.socket, &exit.socket) && !queue.waiting.is_empty();
                if self.queues.iter().any(is_full) && !self.full.contains(&tuple.local) {
                    self.full.push(tuple.local);
                }
            }
        }
        &self.full
    }

    /// Sends the transmit in `buffer`, or keeps it until its socket has room; `buffer` is empty afterwards.
    pub(crate) fn send(&mut self, cx: &Context<'_>, transmit: Transmit, buffer: &mut Vec<u8>) {
        let Some(exit) = self.sockets.exit_of(self.thread, &transmit.tuple) else {
            // Its address is gone: as if lost on the way.
            tracing::debug!(tuple = %transmit.tuple, "no socket has this address");
            self.lost += 1;
            self.impassable = Some(Box::new(transmit.tuple));
            buffer.clear();
            return;
        };
        let at = self.queues.iter().position(|queue| Arc::ptr_eq(&queue.socket, &exit.socket)).unwrap_or_else(|| {
            self.queues.push(SocketQueue { socket: exit.socket, waiting: VecDeque::new() });
            self.queues.len() - 1
        });
        let queue = &mut self.queues[at];
        let mut batch = GsoBatch { transmit, source: exit.source, bytes: std::mem::take(buffer), sent: 0 };
        let left = if queue.waiting.is_empty() {
            batch.poll_send(cx, &queue.socket, &mut self.too_large)
        } else {
            Poll::Pending
        };
        if let Poll::Ready(outcome) = left {
            if outcome == SendOutcome::Unreachable {
                self.impassable = Some(Box::new(batch.transmit.tuple));
            }
            *buffer = batch.bytes;
        } else {
            queue.waiting.push_back(batch);
            *buffer = self.spare.pop().unwrap_or_default();
        }
        buffer.clear();
    }

    /// Tries again what waits.
    pub(crate) fn flush(&mut self, cx: &Context<'_>) {
        for queue in &mut self.queues {
            while let Some(batch) = queue.waiting.front_mut() {
                if batch.poll_send(cx, &queue.socket, &mut self.too_large).is_pending() {
                    break;
                }
                if let Some(batch) = queue.waiting.pop_front() {
                    self.spare.push(batch.bytes);
                }
            }
        }
        self.spare.truncate(MAX_SPARE_BUFFERS);
    }
}

impl GsoBatch {
    /// Sends the rest; ready when nothing is left to send, be it that it was lost, with what became of the last part.
    fn poll_send(
        &mut self,
        cx: &Context<'_>,
        socket: &SharedSocket,
        too_large: &mut Vec<TooLarge>,
    ) -> Poll<SendOutcome> {
        let mut last = SendOutcome::Sent;
        let size = self.transmit.size.min(self.bytes.len());
        while self.sent < size {
            let end = match self.transmit.segment_size {
                Some(segment) => size.min(self.sent + (MAX_GSO_BYTES / segment.max(1)).max(1) * segment),
                None => size,
            };
            let out = outgoing(&self.transmit, self.source, &self.bytes[self.sent..end]);
            match socket.poll_send(cx, &out) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(SendOutcome::TooLarge)) => {
                    let bytes = self.transmit.segment_size.unwrap_or(size);
                    too_large.push(TooLarge { tuple: self.transmit.tuple, bytes });
                }
                // What the network did not take is lost, as any datagram may be.
                Poll::Ready(Ok(outcome)) => last = outcome,
                Poll::Ready(Err(error)) => tracing::warn!(%error, local = %socket.local(), "socket cannot send"),
            }
            self.sent = end;
        }
        Poll::Ready(last)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::Bind;

    #[tokio::test]
    async fn what_the_system_refuses_as_too_large_is_told() {
        let socket = SharedSocket::new(Bind::address("127.0.0.1:0".parse().unwrap()).open().unwrap());
        let tuple = FourTuple { local: socket.local(), remote: "127.0.0.1:9".parse().unwrap() };
        let mut send_queues = SendQueues::new(Arc::new(SocketList::new(vec![Arc::new(socket)])), None);
        for (bytes, refused) in [(1_200, None), (65_527, Some(TooLarge { tuple, bytes: 65_527 }))] {
            let mut waiting = Some((Transmit::single(tuple, bytes), vec![0; bytes]));
            let told = poll_fn(|cx| {
                match waiting.take() {
                    Some((transmit, mut buffer)) => send_queues.send(cx, transmit, &mut buffer),
                    None => send_queues.flush(cx),
                }
                let is_gone = send_queues.full([tuple].into_iter()).is_empty();
                if is_gone { Poll::Ready(send_queues.take_too_large().next()) } else { Poll::Pending }
            });
            assert_eq!(told.await, refused);
        }
    }
}
