//! How much data goes into the room that is left in a packet, and how its frame says where the data ends.

use crate::varint;

/// Data is not split so that fewer bytes than this go into a packet's tail.
const MIN_SPLIT_BYTES: usize = 16;

/// How data goes into the room that is left, behind the head of a STREAM or DATAGRAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataFit {
    /// PADDING bytes to write before the frame, so that it ends with the packet.
    pub(crate) padding: usize,
    /// Data bytes that fit.
    pub(crate) len: usize,
    /// Whether the frame has a length field.
    pub(crate) length: LengthField,
}

/// Whether a frame says how long its data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthField {
    Present,
    /// The data reaches to the last byte of the packet.
    Absent,
}

impl DataFit {
    /// Fits up to `wanted` bytes behind a head of `head` bytes into `room`; none when too few fit to be worth a frame.
    ///
    /// A frame goes without a length only when it takes all of the room to the last byte.
    #[inline]
    pub(crate) fn new(room: usize, head: usize, wanted: u64) -> Option<Self> {
        let space = room.checked_sub(head)?;
        let Some(spare) = (space as u64).checked_sub(wanted).filter(|spare| *spare > 0) else {
            let worth = space as u64 == wanted || space >= MIN_SPLIT_BYTES;
            return worth.then_some(Self { padding: 0, len: space, length: LengthField::Absent });
        };
        let len = wanted as usize;
        if spare < varint::size(wanted) as u64 {
            // Too little is left for a length: padding in front moves the frame's end to the packet's.
            return Some(Self { padding: spare as usize, len, length: LengthField::Absent });
        }
        Some(Self { padding: 0, len, length: LengthField::Present })
    }

    /// The length to write, where there is one to write.
    #[inline]
    pub(crate) fn len_field(&self) -> Option<usize> {
        (self.length == LengthField::Present).then_some(self.len)
    }
}

/// Appends `count` PADDING frames.
#[inline]
pub(crate) fn put_padding(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, 0);
}

/// How many bytes, up to `wanted`, fit in `room` together with the varint that counts them.
pub(super) fn fit_prefixed(room: usize, wanted: usize) -> Option<usize> {
    // The most that a count of each size can name; frames end far below the largest varint.
    let sizes = [(1, 0x3f), (2, 0x3fff), (4, 0x3fff_ffff)];
    sizes.into_iter().filter_map(|(count, most)| Some(wanted.min(most).min(room.checked_sub(count)?))).max()
}

/// The same for data that can go on in the next packet; none when too few bytes fit to be worth a frame.
pub(super) fn fit_split(room: usize, wanted: usize) -> Option<usize> {
    fit_prefixed(room, wanted).filter(|len| *len == wanted || *len >= MIN_SPLIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_never_wastes_and_never_overruns() {
        for room in 0..300usize {
            for wanted in 0..300u64 {
                let head = 5;
                let Some(fit) = DataFit::new(room, head, wanted) else {
                    assert!(room < head || (room - head) < wanted as usize && room - head < MIN_SPLIT_BYTES);
                    continue;
                };
                let field = fit.len_field().map_or(0, |len| varint::size(len as u64));
                let total = fit.padding + head + field + fit.len;
                assert!(total <= room && fit.len as u64 <= wanted);
                assert!(fit.len as u64 == wanted || total == room);
                assert!(fit.length == LengthField::Present || total == room, "without a length it reaches the end");
            }
        }
    }

    #[test]
    fn data_that_counts_itself_fits() {
        for room in (0..300usize).chain(16_300..16_500) {
            for wanted in (1..200usize).chain(16_370..16_400) {
                if let Some(len) = fit_split(room, wanted) {
                    assert!(
                        len > 0 && len <= wanted && varint::size(len as u64) + len <= room,
                        "{room} {wanted} {len}"
                    );
                    let next = len + 1;
                    assert!(len == wanted || varint::size(next as u64) + next > room, "{room} {wanted} {len}");
                } else {
                    assert!(room < 2 + MIN_SPLIT_BYTES, "{room} {wanted}");
                }
            }
        }
    }
}
