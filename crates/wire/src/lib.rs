//! Wire formats.
pub mod carried;
pub mod varint;
pub mod writer;
pub use carried::Carried;
pub use writer::FrameWriter;
