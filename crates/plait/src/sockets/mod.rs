//! The sockets of an endpoint: how they are bound, which one a datagram leaves by, and what waits while one is full.

mod bind;
mod jam;
mod list;
mod outbox;
mod reports;
mod shared;

pub use bind::Bind;
pub(crate) use list::SocketList;
pub(crate) use outbox::Outboxes;
pub(crate) use reports::Listener;
pub(crate) use shared::{SharedSocket, ecn_from_socket};
