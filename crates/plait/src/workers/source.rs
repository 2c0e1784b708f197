//! A socket that is read by whoever serves the path it belongs to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use plait_base::PathId;
use plait_engine::{ConnectionHandle, Input};

use crate::endpoint::{EndpointShared, deliver};
use crate::net::{ReceiveBatch, SpareBuffers};
use crate::sockets::SharedSocket;

/// Receive calls before others get a turn.
const MAX_BATCHES: usize = 8;

/// A socket that its endpoint does not read, as long as this lives.
#[derive(Debug)]
pub(super) struct Source {
    socket: Arc<SharedSocket>,
    batch: ReceiveBatch,
    endpoint: Arc<EndpointShared>,
}

/// What reading led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Nothing is left; what comes later wakes the reader.
    Dry,
    /// More may be there.
    More,
    /// The socket is of no use any more.
    Broken,
}

impl Source {
    /// None where another reads the socket.
    pub(super) fn new(
        socket: &Arc<SharedSocket>,
        spare: Arc<SpareBuffers>,
        endpoint: Arc<EndpointShared>,
    ) -> Option<Self> {
        socket.claim().then(|| Self { socket: socket.clone(), batch: ReceiveBatch::new(spare), endpoint })
    }

    /// Receives: what is for path `id` of connection `handle` goes to `inputs`, all else where the endpoint would bring it.
    pub(super) fn read(
        &mut self,
        cx: &mut Context<'_>,
        (handle, id): (ConnectionHandle, PathId),
        inputs: &mut VecDeque<Input>,
    ) -> Reading {
        for _ in 0..MAX_BATCHES {
            match self.socket.poll_receive_claimed(cx, &mut self.batch) {
                Poll::Pending => return Reading::Dry,
                Poll::Ready(Ok(())) => {
                    deliver(&self.endpoint, &self.socket, &mut self.batch, |to, input| {
                        if (to, input.path()) != (handle, id) {
                            return Some(input);
                        }
                        inputs.push_back(input);
                        None
                    });
                }
                // The endpoint finds that out as well, and gives the socket up.
                Poll::Ready(Err(_)) => return Reading::Broken,
            }
        }
        Reading::More
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.socket.unclaim();
        self.endpoint.lock().wake_driver();
    }
}
