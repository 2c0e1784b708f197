//! A fuzz input as a list of choices: reads never fail, the end of the input reads as zeros.

/// Reads choices off the front of a fuzz input.
#[derive(Clone, Debug)]
pub struct ArbitraryInput<'a> {
    rest: &'a [u8],
}

impl<'a> ArbitraryInput<'a> {
    /// The whole input.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// True when nothing is left to choose from.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next byte, 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A number of any size: a byte says how many bytes follow (0 to 8); small numbers are the frequent ones.
    pub fn number(&mut self) -> u64 {
        let head = self.byte();
        match head {
            0..=223 => u64::from(head),
            _ => (0..=(head & 7)).fold(0, |all, _| all << 8 | u64::from(self.byte())),
        }
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = if bound <= 256 { usize::from(self.byte()) } else { usize::from(self.u16()) };
        wide % bound.max(1)
    }

    /// True for an odd byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True for one byte in `n`.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte().checked_rem(n) == Some(0)
    }

    /// The next `n` bytes, or as many as there are.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        head
    }

    /// A length byte, then so many bytes.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.bytes(len)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
