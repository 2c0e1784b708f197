//! Whether transport parameters agree with the packets that came before, and with those remembered for 0-RTT.

use plait_base::{ConnectionId, PathId, Side, Violation};

use super::TransportParameters;

/// The ids that the packets of a handshake bore, as the receiver of the parameters saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeCids {
    /// Destination id of the client's first Initial; a server need not know it.
    pub original_dcid: ConnectionId,
    /// Source id of the peer's first Initial that was opened.
    pub peer_scid: ConnectionId,
    /// Source id of the Retry that was followed.
    pub retry_scid: Option<ConnectionId>,
}

impl TransportParameters {
    /// Checks the ids that `sender` declared against the packets' (RFC 9000 7.3).
    ///
    /// # Errors
    /// [`Violation::CidMismatch`] when an id is another than the packets bore, or is missing.
    pub fn check_cids(&self, sender: Side, seen: &HandshakeCids) -> Result<(), Violation> {
        let mut same = self.cids.initial_scid == Some(seen.peer_scid);
        if sender.is_server() {
            same &= self.cids.original_dcid == Some(seen.original_dcid) && self.cids.retry_scid == seen.retry_scid;
        }
        if same { Ok(()) } else { Err(Violation::CidMismatch) }
    }

    /// Checks the sender's connection id where Multiflow is in use: by `announced`, our own max_sending_uniflow_id, it
    /// knows on how many uniflows we wish to send to it. To its own value its own ids do not matter.
    ///
    /// # Errors
    /// [`Violation::MultiflowZeroLengthCid`] when we may send on more than one and the id is empty.
    pub fn check_uniflow_cids(&self, announced: Option<PathId>) -> Result<(), Violation> {
        let is_multiflow = self.max_sending_uniflow_id.is_some() && announced.is_some_and(|most| most > PathId::ZERO);
        let is_empty = self.cids.initial_scid.is_some_and(|cid| cid.is_empty());
        if is_multiflow && is_empty { Err(Violation::MultiflowZeroLengthCid) } else { Ok(()) }
    }

    /// The limits that 0-RTT goes by, always in this order: none of them may be lowered (RFC 9000 7.4.1, RFC 9221 3).
    pub fn early_limits(&self) -> [u64; 8] {
        [
            self.active_cid_limit,
            self.max_datagram_frame_bytes,
            self.limits.max_data,
            self.limits.max_stream_data_bidi_local,
            self.limits.max_stream_data_bidi_remote,
            self.limits.max_stream_data_uni,
            self.limits.max_streams_bidi,
            self.limits.max_streams_uni,
        ]
    }

    /// Checks that a server that accepted 0-RTT lowers none of the limits that the client remembered
    /// (RFC 9000 7.4.1, RFC 9221 3).
    ///
    /// # Errors
    /// [`Violation::ParametersReducedForEarlyData`] when a limit is lower than the one remembered.
    pub fn check_early_data(&self, remembered: &Self) -> Result<(), Violation> {
        let lowered = self.early_limits().iter().zip(remembered.early_limits()).any(|(&now, then)| now < then);
        if lowered { Err(Violation::ParametersReducedForEarlyData) } else { Ok(()) }
    }
}
