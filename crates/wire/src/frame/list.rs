//! Lists of entries that a frame counts: borrowed from the packet, checked once, read again by whoever asks.

use std::iter::FusedIterator;
use std::marker::PhantomData;

use plait_base::Violation;

use crate::varint::Reader;

/// What a frame may hold a list of.
pub trait ListEntry: Copy {
    /// Bytes of the shortest entry, at least 1.
    const LEAST_BYTES: usize;

    /// Reads one entry.
    ///
    /// # Errors
    /// The bytes end too early, or a field has a value that its specification forbids.
    fn read(r: &mut Reader<'_>) -> Result<Self, Violation>;

    /// Appends the entry.
    fn put(&self, out: &mut Vec<u8>);
}

/// The entries of a frame, in the order of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a, T> {
    count: u64,
    /// The entries, checked.
    bytes: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: ListEntry> List<'a, T> {
    /// A list to send: the entries are written at the end of `buf`, which keeps them.
    pub fn of(entries: impl IntoIterator<Item = T>, buf: &'a mut Vec<u8>) -> Self {
        let start = buf.len();
        let count = entries.into_iter().map(|entry| entry.put(buf)).count() as u64;
        Self { count, bytes: buf.get(start..).unwrap_or_default(), of: PhantomData }
    }

    /// Reads `count` entries, for whose number there must be bytes before any of them is looked at.
    pub(super) fn decode(r: &mut Reader<'a>, count: u64) -> Result<Self, Violation> {
        if count > (r.remaining() / T::LEAST_BYTES) as u64 {
            return Err(Violation::TruncatedFrame);
        }
        let from = r.peek();
        for _ in 0..count {
            T::read(r)?;
        }
        let bytes = from.get(..from.len() - r.remaining()).unwrap_or_default();
        Ok(Self { count, bytes, of: PhantomData })
    }

    /// The entries, one after the other.
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter { left: self.count, bytes: Reader::new(self.bytes), of: PhantomData }
    }
}

impl<'a, T> List<'a, T> {
    /// How many entries there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The entries as they stand in the frame.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a, T: ListEntry> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// The walk over a [`List`].
#[derive(Clone, Debug)]
pub struct ListIter<'a, T> {
    left: u64,
    bytes: Reader<'a>,
    of: PhantomData<T>,
}

impl<T: ListEntry> Iterator for ListIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        T::read(&mut self.bytes).ok()
    }
}

impl<T: ListEntry> FusedIterator for ListIter<'_, T> {}
