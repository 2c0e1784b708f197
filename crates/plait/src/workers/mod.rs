//! One connection on many cores: threads that serve the paths that it lends, and what they and its task tell each other.
//!
//! ```text
//!   application -- State (Coordinator) -- task of the connection: LentPaths          a thread of WorkerPool: Holder -- socket
//!                                              |  -- ring of orders (ToPath) ------>  |  (LentPath, its send queue)
//!                                              |  <------ ring of news (FromPath) --  |
//!                                              |  <-- and at last the path itself --  |
//! ```
//!
//! A lent path is a task of its own on the thread that serves it. Each loan has two rings of its own, which end with it: whoever
//! finds the other's half gone knows that it fell. Nobody waits for room in a ring.
//!
//! A server's connection lives on the thread whose socket brought its first datagram: its task runs there (`connection/resident.rs`), until it lends
//! a path. The thread finds it in a directory of its own, without the endpoint's lock.

mod bell;
mod directory;
mod fault;
mod holder;
mod lent_paths;
mod pin;
mod pool;
mod reader;
mod routes;
mod seat;
mod source;
mod steer;
mod sync;
mod tally;

pub(crate) use directory::Directory;
pub(crate) use lent_paths::LentPaths;
pub(crate) use pool::WorkerPool;
pub(crate) use reader::read_group;
pub(crate) use routes::Routes;
pub(crate) use seat::Seat;
pub(crate) use steer::steer;
pub use tally::WorkerFigures;

#[cfg(test)]
mod chaos;
#[cfg(test)]
mod tests;
