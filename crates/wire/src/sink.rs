//! Where frames are written: a plain buffer or the room left in a packet.

use crate::varint;
use crate::writer::FrameWriter;

/// Takes the bytes of a frame; the caller checked with the frame's `size` that they fit.
pub trait Sink {
    /// Appends a varint, at most 2^62 - 1.
    fn put_varint(&mut self, value: u64);
    /// Appends bytes.
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put_varint(&mut self, value: u64) {
        varint::put(self, value);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Sink for FrameWriter<'_> {
    fn put_varint(&mut self, value: u64) {
        FrameWriter::put_varint(self, value);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        FrameWriter::put_bytes(self, bytes);
    }
}
