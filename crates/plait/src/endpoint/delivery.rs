//! Finds the connection of each received datagram.

use plait_engine::endpoint::Received;
use plait_engine::{ConnectionHandle, Input};

use super::state::{EndpointShared, State};
use crate::net::ReceiveBatch;
use crate::sockets::{SharedSocket, ecn_from_socket};

/// Brings what `socket` received to its connections, or to those who serve their paths. `first_choice` keeps what it wants.
pub(crate) fn deliver(
    shared: &EndpointShared,
    socket: &SharedSocket,
    batch: &mut ReceiveBatch,
    mut first_choice: impl FnMut(ConnectionHandle, Input) -> Option<Input>,
) {
    let now = shared.clock().now();
    let mut state = shared.lock();
    let mut arrived = false;
    for mut message in batch {
        let tuple = socket.tuple_of(&message);
        let ecn = message.ecn.map(ecn_from_socket);
        while !message.bytes.is_empty() {
            let State { engine, reply, .. } = &mut *state;
            match engine.receive_front(now, tuple, ecn, &mut message.bytes, message.segment_bytes, reply) {
                Received::Nothing => {}
                Received::Connection(handle, input) => {
                    let Some(input) = first_choice(handle, input) else { continue };
                    if let Some(connection) = state.connection(handle)
                        && let Some(input) = connection.routes.post(socket.worker(), input)
                    {
                        connection.inbox.push(input);
                    }
                }
                Received::Incoming(incoming) => {
                    state.arrive(incoming);
                    arrived = true;
                }
                Received::Reply(transmit) => state.sockets.send_or_drop(&transmit, &state.reply),
            }
        }
    }
    drop(state);
    if arrived {
        shared.arrivals.notify_waiters();
    }
}
