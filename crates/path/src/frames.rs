//! The frames of this floor, written whole or not at all.

use plait_wire::FrameWriter;
use plait_wire::frame::{
    MaxPathId, NewCid, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatusUpdate, PathsBlocked,
    RetireCid,
};

/// A frame that knows its size.
pub(crate) trait Whole {
    fn bytes(&self) -> usize;
    fn write(&self, w: &mut FrameWriter<'_>);
}

macro_rules! whole {
    ($($frame:ty),*) => {
        $(impl Whole for $frame {
            fn bytes(&self) -> usize {
                self.size()
            }
            fn write(&self, w: &mut FrameWriter<'_>) {
                self.encode(w);
            }
        })*
    };
}

whole!(MaxPathId, NewCid, PathAbandon, PathCidsBlocked, PathStatusUpdate, PathsBlocked, RetireCid);

impl Whole for PathChallenge {
    fn bytes(&self) -> usize {
        Self::SIZE
    }
    fn write(&self, w: &mut FrameWriter<'_>) {
        self.encode(w);
    }
}

impl Whole for PathResponse {
    fn bytes(&self) -> usize {
        Self::SIZE
    }
    fn write(&self, w: &mut FrameWriter<'_>) {
        self.encode(w);
    }
}

/// Writes a frame; false when it does not fit.
pub(crate) fn put(w: &mut FrameWriter<'_>, frame: &impl Whole) -> bool {
    let fits = frame.bytes() <= w.remaining();
    if fits {
        frame.write(w);
    }
    fits
}
