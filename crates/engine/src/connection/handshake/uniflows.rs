//! What an end offers of Multiflow QUIC, as far as the handshake itself goes by it.

use plait_base::PathId;
use plait_crypto::NonceForm;
use plait_wire::params::TransportParameters;

/// The parameters of one end that decide whether uniflows are used, and with which nonces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UniflowOffer {
    initial_max_path_id: Option<PathId>,
    /// Our max_sending_uniflow_id, or the peer's.
    pub(crate) sending_max: Option<PathId>,
    wants_nonces: bool,
}

/// Nonces of 1-RTT packets that both ends agreed on, other than those of RFC 10069.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UniflowNonces {
    /// Of packets that we send.
    pub(crate) local: NonceForm,
    /// Of packets that the peer sends.
    pub(crate) remote: NonceForm,
}

impl UniflowOffer {
    pub(crate) fn of(params: &TransportParameters) -> Self {
        Self {
            initial_max_path_id: params.initial_max_path_id,
            sending_max: params.max_sending_uniflow_id,
            wants_nonces: params.announcements.own.uniflow_nonces,
        }
    }

    /// True where the peer may agree to nonces that TLS must be ready for.
    pub(crate) fn may_change_nonces(&self) -> bool {
        self.sending_max.is_some() && self.wants_nonces
    }

    /// The nonces that this end and its peer agreed on: where RFC 10069 is in use, or one of them does not wish it, none.
    pub(crate) fn nonces_with(&self, peer: &Self) -> Option<UniflowNonces> {
        let is_multipath = self.initial_max_path_id.is_some() && peer.initial_max_path_id.is_some();
        if is_multipath || !self.wants_nonces || !peer.wants_nonces {
            return None;
        }
        let of = |max_id| NonceForm::TopBits { max_id };
        Some(UniflowNonces { local: of(self.sending_max?), remote: of(peer.sending_max?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_must_wish_it_and_speak_multiflow() {
        let offer = |paths: Option<u32>, flows: Option<u32>, wants_nonces| UniflowOffer {
            initial_max_path_id: paths.map(PathId),
            sending_max: flows.map(PathId),
            wants_nonces,
        };
        let ours = offer(None, Some(3), true);
        let agreed = ours.nonces_with(&offer(Some(1), Some(70), true)).unwrap();
        let of = |max_id| NonceForm::TopBits { max_id: PathId(max_id) };
        assert_eq!((agreed.local, agreed.remote), (of(3), of(70)));
        let both = offer(Some(7), Some(7), true);
        assert_eq!(both.nonces_with(&offer(Some(1), Some(7), true)), None, "RFC 10069 goes first");
        assert_eq!(ours.nonces_with(&offer(None, Some(3), false)), None);
        assert_eq!(ours.nonces_with(&offer(None, None, true)), None);
        assert!(ours.may_change_nonces() && !offer(Some(7), None, true).may_change_nonces());
    }
}
