//! Finds the connection of each received datagram.

use plait_engine::endpoint::Received;
use plait_engine::{ConnectionHandle, Input};

use super::state::{EndpointShared, State};
use crate::connection::Shared;
use crate::net::ReceiveBatch;
use crate::sockets::{SharedSocket, ecn_from_socket};
use crate::workers::Directory;

/// For which connections a batch was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipients {
    /// At most one.
    One(Option<ConnectionHandle>),
    Several,
}

impl Recipients {
    fn add(&mut self, handle: ConnectionHandle) {
        *self = match *self {
            Self::One(before) if before.is_none_or(|before| before == handle) => Self::One(Some(handle)),
            _ => Self::Several,
        };
    }
}

/// Brings what `socket` received to its connections, or to those who serve their paths. `first_choice` keeps what it wants.
pub(crate) fn deliver(
    shared: &EndpointShared,
    socket: &SharedSocket,
    batch: &mut ReceiveBatch,
    mut first_choice: impl FnMut(ConnectionHandle, Input) -> Option<Input>,
) -> Recipients {
    let mut recipients = Recipients::One(None);
    let now = shared.clock().now();
    let thread = socket.worker();
    // Taken first, and the endpoint's only for what is not known there.
    let directory = thread.and_then(|thread| shared.workers()?.directory(thread)).map(Directory::lock);
    let mut state = None;
    let mut arrived = false;
    for mut message in batch {
        let tuple = socket.tuple_of(&message);
        let ecn = message.ecn.map(ecn_from_socket);
        while !message.bytes.is_empty() {
            let (bytes, segment_bytes) = (&mut message.bytes, message.segment_bytes);
            let known =
                directory.as_ref().and_then(|known| known.receive_front(now, (tuple, ecn), bytes, segment_bytes));
            if let Some((handle, input, connection)) = known {
                if let Some(input) = first_choice(handle, input) {
                    recipients.add(handle);
                    hand_on(shared, thread, connection, input);
                }
                continue;
            }
            let state = state.get_or_insert_with(|| shared.lock());
            let State { engine, reply, .. } = &mut **state;
            match engine.receive_front(now, tuple, ecn, bytes, segment_bytes, reply) {
                Received::Nothing => {}
                Received::Connection(handle, input) => {
                    let Some(input) = first_choice(handle, input) else { continue };
                    if let Some(connection) = state.connection(handle) {
                        recipients.add(handle);
                        hand_on(shared, thread, connection, input);
                    }
                }
                Received::Incoming(mut incoming) => {
                    incoming.set_receiver(thread);
                    state.arrive(incoming);
                    arrived = true;
                }
                Received::Reply(transmit) => state.sockets.send_or_drop(&transmit, &state.reply),
            }
        }
    }
    drop((state, directory));
    if arrived {
        shared.arrivals.notify_waiters();
    }
    recipients
}

/// Brings a datagram that came by the socket of `thread` to its connection, or to whoever serves its path.
fn hand_on(shared: &EndpointShared, thread: Option<usize>, connection: &Shared, input: Input) {
    let Some(input) = connection.routes.post(thread, input) else { return };
    if let (Some(home), Some(workers)) = (connection.home.residence(), shared.workers())
        && thread != Some(home)
    {
        workers.on_handed_over(home, input.datagrams());
    }
    connection.inbox.push(input);
}
