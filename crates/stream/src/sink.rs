//! Where stream data goes when its turn has come: into a packet, or into leases of which a packet is made later.

use std::ops::Range;

use plait_wire::FrameWriter;
use plait_wire::frame::OutStream;

use crate::send_buffer::SendBuffer;

/// Takes data of streams, as much as it has room for.
pub(crate) trait StreamSink {
    /// Bytes that still fit; zero where there is no use in asking further.
    fn remaining(&self) -> usize;

    /// Takes the first part of the stream's range, whose bytes lie in `buffer`: which part that was. None when too little fits.
    fn take(&mut self, stream: &OutStream, buffer: &mut SendBuffer) -> Option<Range<u64>>;
}

impl StreamSink for FrameWriter<'_> {
    #[inline]
    fn remaining(&self) -> usize {
        FrameWriter::remaining(self)
    }

    #[inline]
    fn take(&mut self, stream: &OutStream, buffer: &mut SendBuffer) -> Option<Range<u64>> {
        self.write_stream(stream, |part, packet| buffer.put(part, packet))
    }
}
