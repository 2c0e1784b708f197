//! How far a frame that must arrive has come: due, under way, or delivered.

/// The state of one control frame that is repeated until it arrives or is superseded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Nothing to tell.
    #[default]
    Quiet,
    /// To be written into the next packet.
    Due,
    /// In a packet whose fate is unknown.
    Flying,
    /// Acknowledged.
    Done,
}

impl Delivery {
    /// True when the frame waits to be written.
    pub(crate) fn is_due(self) -> bool {
        self == Self::Due
    }

    /// The frame was written.
    pub(crate) fn on_written(&mut self) {
        *self = Self::Flying;
    }

    /// A packet with the frame was acknowledged.
    pub(crate) fn on_acked(&mut self) {
        if *self != Self::Quiet {
            *self = Self::Done;
        }
    }

    /// A packet with the frame was lost; the frame is due again unless another copy arrived.
    pub(crate) fn on_lost(&mut self) {
        if *self == Self::Flying {
            *self = Self::Due;
        }
    }
}
