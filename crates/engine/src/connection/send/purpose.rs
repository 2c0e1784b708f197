//! What a packet is for, and which path it leaves on.

use plait_base::PathId;
use plait_wire::SentFrame;
use smallvec::SmallVec;

/// Why a packet leaves on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A probe after a probe time-out: any window, something that asks for an ack.
    PtoProbe,
    /// A challenge or response that only this path can carry.
    Validation,
    /// The same on addresses that the path does not use yet, or no longer.
    OtherAddress,
    /// What the scheduler was asked about: control frames, datagrams, stream data.
    Data,
    /// Control frames, where the scheduler waits for a faster path with stream data.
    Control,
    /// Frames that were sent elsewhere already.
    Copies,
    /// Acks and nothing else.
    Acks,
    /// A larger datagram, to learn whether it passes.
    MtuProbe(u16),
    /// A PING for keep-alive or to show new keys.
    Ping,
    /// The last word of a path or of the connection: no part of what the scheduler spreads.
    End,
    /// A copy of the end of a client's handshake, in a datagram of this path.
    HandshakeCopy(PathId),
}

impl Purpose {
    /// True for packets that may follow others in one train.
    pub(crate) fn joins_trains(self) -> bool {
        matches!(self, Self::PtoProbe | Self::Data | Self::Copies)
    }

    /// True for what the scheduler was asked about.
    pub(crate) fn is_scheduled(self) -> bool {
        matches!(self, Self::Data | Self::Control | Self::MtuProbe(_))
    }

    /// True for packets that no timer waits for: what they say is due until it is acknowledged, or left by another packet too.
    pub(crate) fn is_on_the_side(self) -> bool {
        matches!(self, Self::End | Self::HandshakeCopy(_))
    }

    /// True where a packet that asks for no ack would miss the point.
    pub(crate) fn must_elicit(self) -> bool {
        matches!(self, Self::PtoProbe | Self::MtuProbe(_) | Self::Ping)
    }
}

/// The next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) path: PathId,
    pub(crate) purpose: Purpose,
}

/// Choices of one poll that came to nothing, such as a copy of what is acked by now. They are not made again, so that
/// whoever else has something to send has its turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmptyChoices {
    made: SmallVec<[Choice; 4]>,
}

impl EmptyChoices {
    pub(crate) fn push(&mut self, choice: Choice) {
        self.made.push(choice);
    }

    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }

    pub(crate) fn holds(&self, path: PathId, purpose: Purpose) -> bool {
        self.made.contains(&Choice { path, purpose })
    }

    /// True where the scheduler was asked: it would choose the same again.
    pub(crate) fn has_scheduled(&self) -> bool {
        self.made.iter().any(|choice| choice.purpose.is_scheduled())
    }

    pub(crate) fn has_mtu_probe(&self) -> bool {
        self.made.iter().any(|choice| matches!(choice.purpose, Purpose::MtuProbe(_)))
    }
}

/// True for frames of which a copy may go on another path.
pub(crate) fn is_copied(frame: &SentFrame) -> bool {
    matches!(
        frame,
        SentFrame::Stream { .. }
            | SentFrame::MaxData(_)
            | SentFrame::MaxStreamData(..)
            | SentFrame::MaxStreams(..)
            | SentFrame::ResetStream(_)
            | SentFrame::StopSending(_)
    )
}
