//! What a flow tells of packets whose fate it learned: the frames that arrived and those that did not.

use plait_base::Space;
use plait_base::observe::LossTrigger;
use plait_wire::SentFrame;

/// One packet that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its number space.
    pub space: Space,
    /// Its packet number.
    pub number: u64,
    /// Why it counts as lost.
    pub trigger: LossTrigger,
    /// Its size, bytes of UDP payload.
    pub bytes: u16,
}

/// The frames whose fate became known; the caller hands each to its home, then clears this for the next use.
///
/// A frame may be reported lost and later acked (a spurious loss), and acked more than once.
#[derive(Clone, Debug, Default)]
pub struct Feedback {
    /// Frames in packets that the peer acknowledged.
    pub acked: Vec<SentFrame>,
    /// Frames in packets that were declared lost, except those handed over before by
    /// [`hand_over_in_flight`](crate::Path::hand_over_in_flight).
    pub lost: Vec<SentFrame>,
    /// The packets declared lost or discarded, for observers.
    pub lost_packets: Vec<LostPacket>,
}

impl Feedback {
    /// Adds a frame that arrived; data of a stream that goes on where the frame before it ended becomes one with it, so that a
    /// stream hears once of a run of packets.
    #[inline]
    pub(crate) fn add_acked(&mut self, frame: SentFrame) {
        if let (
            SentFrame::Stream { id, offset, len, fin },
            Some(SentFrame::Stream { id: last_id, offset: last_offset, len: last_len, fin: last_fin }),
        ) = (frame, self.acked.last_mut())
            && id == *last_id
            && !*last_fin
            && last_offset.checked_add(u64::from(*last_len)) == Some(offset)
            && let Some(joined) = last_len.checked_add(len)
        {
            (*last_len, *last_fin) = (joined, fin);
            return;
        }
        self.acked.push(frame);
    }

    /// Empties the report, keeping its memory.
    pub fn clear(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.lost_packets.clear();
    }

    /// Gives back the memory that it does not use.
    pub fn shrink_to_fit(&mut self) {
        self.acked.shrink_to_fit();
        self.lost.shrink_to_fit();
        self.lost_packets.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use plait_base::StreamId;
    use plait_wire::SentFrame;

    use super::Feedback;

    fn stream(id: u64, offset: u64, len: u32, fin: bool) -> SentFrame {
        SentFrame::Stream { id: StreamId(id), offset, len, fin }
    }

    #[test]
    fn data_that_goes_on_is_one_report() {
        let (most, all) = (u32::MAX, u64::MAX);
        let rows: [(&[SentFrame], &[SentFrame]); 7] = [
            (&[stream(4, 10, 5, false), stream(4, 15, 5, false)], &[stream(4, 10, 10, false)]),
            (&[stream(4, 10, 5, false), stream(4, 15, 0, true)], &[stream(4, 10, 5, true)]),
            (&[stream(4, 10, 5, true), stream(4, 15, 5, false)], &[stream(4, 10, 5, true), stream(4, 15, 5, false)]),
            (&[stream(4, 10, 5, false), stream(8, 15, 5, false)], &[stream(4, 10, 5, false), stream(8, 15, 5, false)]),
            (&[stream(4, 10, 5, false), stream(4, 16, 5, false)], &[stream(4, 10, 5, false), stream(4, 16, 5, false)]),
            // Sums that no number holds stay apart.
            (
                &[stream(4, 0, most, false), stream(4, most.into(), 1, false)],
                &[stream(4, 0, most, false), stream(4, most.into(), 1, false)],
            ),
            (&[stream(4, all, 1, false), stream(4, 0, 1, false)], &[stream(4, all, 1, false), stream(4, 0, 1, false)]),
        ];
        for (frames, expected) in rows {
            let mut feedback = Feedback::default();
            frames.iter().for_each(|frame| feedback.add_acked(*frame));
            assert_eq!(feedback.acked, expected, "{frames:?}");
        }
    }
}
