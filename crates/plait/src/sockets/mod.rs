//! The sockets of an endpoint: how they are bound, which one a datagram leaves by, and what waits while one is full.

mod bind;
mod claims;
mod gathered;
mod list;
mod listeners;
mod reports;
mod send_queues;
mod socket;
mod test_fault;

pub use bind::Bind;
pub(crate) use list::SocketList;
pub(crate) use listeners::OnUnreachable;
pub(crate) use reports::Listener;
pub(crate) use send_queues::SendQueues;
pub(crate) use socket::{SharedSocket, ecn_from_socket};
