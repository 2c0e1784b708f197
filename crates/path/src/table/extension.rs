//! What a connection has beyond one path.

use plait_base::PathId;
use plait_base::limits::MAX_PATHS;
use plait_wire::frame::{AckForm, CidForm};

use super::credit::PathCredit;
use crate::pairing::Pairing;

/// The extension in effect; chosen once, when the handshake is complete.
#[derive(Clone, Debug)]
pub(super) enum Negotiated {
    /// None, or not yet.
    None,
    /// Multiple paths, RFC 10069.
    Multipath(PathCredit),
    /// Uniflows, Multiflow QUIC.
    Multiflow(UniflowLimits),
}

/// How many uniflows each side allows (Multiflow 3.1); they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UniflowLimits {
    /// Our max_sending_uniflow_id: the largest id for which the peer may give us connection ids.
    pub(super) sending_max: PathId,
    /// The largest id for which we give the peer connection ids: no more than its max_sending_uniflow_id.
    pub(super) receiving_max: PathId,
}

impl UniflowLimits {
    /// From what both sides announced. As many flows are received as are sent, where the peer wants as many.
    pub(super) fn new(ours: u32, peers: u32) -> Self {
        let ours = ours.min(MAX_PATHS as u32 - 1);
        Self { sending_max: PathId(ours), receiving_max: PathId(peers.min(ours)) }
    }
}

impl Negotiated {
    #[inline]
    pub(super) fn credit(&self) -> Option<&PathCredit> {
        if let Self::Multipath(credit) = self { Some(credit) } else { None }
    }

    pub(super) fn credit_mut(&mut self) -> Option<&mut PathCredit> {
        if let Self::Multipath(credit) = self { Some(credit) } else { None }
    }

    pub(super) fn uniflows(&self) -> Option<&UniflowLimits> {
        if let Self::Multiflow(limits) = self { Some(limits) } else { None }
    }

    /// Largest id for which we issue connection ids ahead of use.
    pub(super) fn issued_max(&self) -> Option<PathId> {
        match self {
            Self::None => None,
            Self::Multipath(credit) => Some(credit.allowed_max()),
            Self::Multiflow(limits) => Some(limits.receiving_max),
        }
    }

    /// In which frames connection ids travel.
    pub(super) fn cid_form(&self) -> CidForm {
        match self {
            Self::None => CidForm::Plain,
            Self::Multipath(_) => CidForm::Path,
            Self::Multiflow(_) => CidForm::Uniflow,
        }
    }

    /// In which frames acks of 1-RTT packets travel.
    pub(super) fn ack_form(&self) -> AckForm {
        match self {
            Self::None => AckForm::Plain,
            Self::Multipath(_) => AckForm::Path,
            Self::Multiflow(_) => AckForm::Uniflow,
        }
    }

    pub(super) fn pairing(&self) -> Pairing {
        match self {
            Self::None | Self::Multipath(_) => Pairing::Paths,
            Self::Multiflow(_) => Pairing::Uniflows,
        }
    }
}
