//! qlog: what a connection did, as records that other tools read. An observer only; nothing depends on it.
//!
//! Files are JSON text sequences (RFC 7464) of draft-ietf-quic-qlog-main-schema and -quic-events: a header, then an
//! event a record. Times are milliseconds of the engine's clock since the connection began, so that the same run in
//! virtual time writes the same bytes. Paths of RFC 10069 are tuples named `p0`, `p1`, ..., and the header of each
//! packet carries its `path_id`.
//!
//! ```
//! use plait_base::observe::{TraceEvent, Observer};
//! use plait_base::{Instant, PathId};
//! let shared = plait_qlog::Memory::default();
//! let mut observer = plait_qlog::QlogObserver::to_writer(Box::new(shared.clone()));
//! observer.on_event(Instant::ZERO, &TraceEvent::Mtu { path: PathId(1), bytes: 1452 });
//! drop(observer);
//! assert_eq!(shared.records().len(), 2);
//! ```

mod folder;
mod memory;
mod observer;
mod record;
mod words;

pub use folder::QlogFolder;
pub use memory::Memory;
pub use observer::QlogObserver;

#[cfg(test)]
mod tests;
