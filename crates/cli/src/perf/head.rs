//! What a stream begins with: eight bytes that say what is wanted.

use bytes::Bytes;

/// The first number that no stream can carry (RFC 9000 4.5).
const FIRST: u64 = 1 << 62;
/// What may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// By which policies the server sends; what follows the head are wishes, as in a query.
    Policies,
    /// What the server measured: a [`ServerReport`].
    Report,
}

/// What a stream begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// So many bytes are wanted.
    Bytes(u64),
    /// This is asked.
    Question(Question),
}

impl Head {
    /// The eight bytes as a number; none where it means nothing.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        match number.checked_sub(FIRST) {
            None => Some(Self::Bytes(number)),
            Some(0) => Some(Self::Question(Question::Policies)),
            Some(1) => Some(Self::Question(Question::Report)),
            Some(_) => None,
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Question(Question::Policies) => FIRST,
            Self::Question(Question::Report) => FIRST + 1,
        }
    }

    /// As it stands on the wire.
    pub(crate) fn bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self.number().to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_stream_can_carry_are_questions() {
        for head in [
            Head::Bytes(0),
            Head::Bytes(FIRST - 1),
            Head::Question(Question::Policies),
            Head::Question(Question::Report),
        ] {
            assert_eq!(Head::from_number(head.number()), Some(head));
            assert_eq!(head.bytes()[..], head.number().to_be_bytes());
        }
        assert_eq!((Head::from_number(FIRST + 2), Head::from_number(u64::MAX)), (None, None));
    }
}
