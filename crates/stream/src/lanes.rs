//! Lanes: which streams may put their data into one packet, where not all of them may.
//!
//! Streams take lanes in turn, in the order in which they were opened. Whoever wants the data of some streams on a path of their
//! own gives each path a part of the lanes; for the streams a path stays unknown.

use plait_base::StreamId;

/// How many lanes there are: equal parts of them can be given to up to six paths, to ten, twelve, fifteen, twenty, thirty and sixty.
const LANES: u32 = 60;

/// A set of lanes.
///
/// ```
/// use plait_base::{Dir, Side, StreamId};
/// use plait_stream::Lanes;
/// let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
/// let (even, odd) = (Lanes::part(0, 2), Lanes::part(1, 2));
/// assert!(even.hold(id(4)) && !even.hold(id(5)) && odd.hold(id(5)));
/// assert!(Lanes::ALL.hold(id(5)) && !Lanes::part(2, 2).hold(id(2)), "no third half");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(u64);

impl Lanes {
    /// All of them: every stream.
    pub const ALL: Self = Self((1 << LANES) - 1);

    /// The lanes of one of `parts` equal parts, as far as they can be equal; no lane where there is no such part.
    pub fn part(part: usize, parts: usize) -> Self {
        let (part, parts) = (part as u64, parts as u64);
        if part >= parts {
            return Self(0);
        }
        let lanes = (0..u64::from(LANES)).filter(|lane| lane % parts == part);
        Self(lanes.fold(0, |set, lane| set | 1 << lane))
    }

    /// True where the lane of a stream is among them.
    #[inline]
    pub fn hold(self, id: StreamId) -> bool {
        self.0 >> (id.index() % u64::from(LANES)) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{Dir, Side};

    #[test]
    fn parts_are_disjoint_and_leave_no_stream_out() {
        for parts in 1..=70 {
            for index in 0..200 {
                let id = StreamId::new(Side::Server, Dir::Uni, index);
                let holders = (0..parts).filter(|part| Lanes::part(*part, parts).hold(id)).count();
                assert_eq!(holders, 1, "stream {index} of {parts} parts");
            }
        }
        assert_eq!(Lanes::part(0, 1), Lanes::ALL);
    }
}
