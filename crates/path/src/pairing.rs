//! How the two flows of an id belong together.

/// How the send flow and the receive flow of one id belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// They are one path: both on the same pair of addresses, opened and ended together (RFC 9000, RFC 10069).
    Paths,
    /// They share nothing but the number: each has addresses of its own, and one may be there without the other
    /// (Multiflow).
    Uniflows,
}
