//! How far a frame that must arrive has come: due, under way, or delivered.

use plait_wire::FrameWriter;
use plait_wire::SentFrame;
use plait_wire::frame::Encode;

/// The state of one control frame that is repeated until it arrives or is superseded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameState {
    /// Nothing to tell.
    #[default]
    Idle,
    /// To be written into the next packet.
    Due,
    /// In a packet whose fate is unknown.
    InFlight,
    /// A packet with it was acknowledged.
    Acked,
}

impl FrameState {
    /// True when the frame waits to be written.
    #[inline]
    pub(crate) fn is_due(self) -> bool {
        self == Self::Due
    }

    /// The frame was written.
    pub(crate) fn on_written(&mut self) {
        *self = Self::InFlight;
    }

    /// A packet with the frame was acknowledged.
    pub(crate) fn on_acked(&mut self) {
        if *self != Self::Idle {
            *self = Self::Acked;
        }
    }

    /// A packet with the frame was lost; the frame is due again unless another copy arrived.
    pub(crate) fn on_lost(&mut self) {
        if *self == Self::InFlight {
            *self = Self::Due;
        }
    }
}

/// A report whose newest number counts: one that is lost gives way to a newer one, and is never repeated as it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewestReport {
    /// Number of the next report.
    next: u64,
    delivery: FrameState,
}

impl NewestReport {
    /// There is something new to tell.
    pub(crate) fn is_due_again(&mut self) {
        self.delivery = FrameState::Due;
    }

    pub(crate) fn is_due(&self) -> bool {
        self.delivery.is_due()
    }

    /// The number that the next report has.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Writes the report with that number; true where it found room.
    pub(crate) fn write(&mut self, frame: &impl Encode, sent: SentFrame, w: &mut FrameWriter<'_>) -> bool {
        let is_written = w.write(frame, sent);
        if is_written {
            self.next += 1;
            self.delivery.on_written();
        }
        is_written
    }

    /// True for the number of the report that was written last.
    pub(crate) fn is_newest(&self, sequence: u64) -> bool {
        sequence + 1 == self.next
    }

    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if self.is_newest(sequence) && !self.is_due() {
            self.delivery = FrameState::Idle;
        }
    }

    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if self.is_newest(sequence) {
            self.delivery.on_lost();
        }
    }
}
