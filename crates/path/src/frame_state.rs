//! How far a frame that must arrive has come: due, under way, or delivered.

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
