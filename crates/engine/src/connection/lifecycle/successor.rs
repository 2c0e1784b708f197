//! The connection that goes on in the place of an attempt that was given up, as the reason phrase of its close names it.
//!
//! The name is a connection id that the server gave the one that goes on, in hex. It need not be secret: that it comes in a packet which only
//! a client can make that receives at the address is the client's consent to get there what the other connection sends.

use plait_base::{CloseCode, ConnectionId, TransportError};

use super::CloseFrame;

const BEFORE_THE_NAME: &str = "succeeded by ";

impl CloseFrame {
    /// The close of an attempt that was given up, in favour of the connection to which an id of the peer leads.
    pub(crate) fn withdrawn(successor: Option<ConnectionId>) -> Self {
        let successor = successor.filter(|cid| !cid.is_empty());
        let reason = successor.map_or_else(String::new, |cid| format!("{BEFORE_THE_NAME}{cid}"));
        Self::Transport(TransportError::new(CloseCode::NO_ERROR, reason))
    }
}

/// The id that a reason phrase names.
pub(crate) fn successor_in(reason: &[u8]) -> Option<ConnectionId> {
    let name = reason.strip_prefix(BEFORE_THE_NAME.as_bytes())?;
    let digit = |ascii: u8| char::from(ascii).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = name.as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    ConnectionId::new(&bytes?).filter(|cid| rest.is_empty() && !cid.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(cid: &[u8]) -> String {
        match CloseFrame::withdrawn(ConnectionId::new(cid)) {
            CloseFrame::Transport(error) => error.reason,
            CloseFrame::Application(_) => String::new(),
        }
    }

    #[test]
    fn a_name_is_read_as_it_was_written() {
        assert_eq!(reason(&[0x0a, 0xff]), "succeeded by 0aff");
        for len in 1..=20 {
            let cid: Vec<u8> = (0..len).map(|n| n * 13).collect();
            assert_eq!(successor_in(reason(&cid).as_bytes()), ConnectionId::new(&cid));
        }
    }

    #[test]
    fn whatever_else_names_nobody() {
        let long = format!("{BEFORE_THE_NAME}{}", "00".repeat(21));
        for other in ["", "bye", "succeeded by ", "succeeded by 0", "succeeded by 0g", "succeeded by 00 ", &long] {
            assert_eq!(successor_in(other.as_bytes()), None, "{other}");
        }
        assert_eq!(reason(&[]), "");
    }
}
