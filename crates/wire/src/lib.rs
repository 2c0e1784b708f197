//! Wire formats: varints, packet headers, frames and transport parameters; bytes in, values out, and back.
//!
//! `wire` knows no connection, no key and no clock. Decoding borrows from the packet, allocates nothing and is
//! total: every input gives a value or a named violation.

pub mod frame;
pub mod header;
pub mod params;
mod sent_frame;
pub mod varint;
mod version;
mod writer;

pub use frame::{Encode, Frame, FrameError, Frames};
pub use header::{HeaderMarks, OutHeader, PacketKind, PacketSpan, ProtectedHeader};
pub use params::TransportParameters;
pub use sent_frame::SentFrame;
pub use version::Version;
pub use writer::FrameWriter;
