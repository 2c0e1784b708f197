//! What a client's token proves, and the token of a Retry (RFC 9000 8.1).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use plait_base::{ConnectionId, Random, limits};
use plait_crypto::Token;
use plait_wire::Version;

use super::parts::AddressProof;
use crate::config::ServerConfig;

/// The judgement on the token field of an Initial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenCheck {
    /// No token, or one that says nothing: go on as without (RFC 9000 8.1.3).
    Nothing,
    /// The token of a Retry that answered an Initial with this destination connection id.
    Retry {
        /// The client's very first destination connection id.
        original_dcid: ConnectionId,
    },
    /// A token from an earlier connection that was not used yet, as far as we remember.
    Validated(TokenUse),
    /// A Retry token that is too old or another address's: the connection must not go on (RFC 9000 8.1.2).
    Invalid,
}

impl TokenCheck {
    /// What a connection will know of it.
    pub(crate) fn proof(self) -> AddressProof {
        match self {
            Self::Retry { .. } => AddressProof::Retry,
            Self::Validated(_) => AddressProof::Token,
            Self::Nothing | Self::Invalid => AddressProof::None,
        }
    }
}

/// Judges `token` as it came from `remote` in an Initial of `version` at `now_unix` seconds.
pub(crate) fn judge(
    token: &[u8],
    (remote, version): (SocketAddr, Version),
    now_unix: u64,
    config: &ServerConfig,
    used: &UsedTokens,
) -> TokenCheck {
    if token.is_empty() || token.len() > limits::MAX_TOKEN_BYTES {
        return TokenCheck::Nothing;
    }
    let Some(opened) = config.token_key.open(token) else { return TokenCheck::Nothing };
    let issued = opened.issued();
    let lifetime = match opened {
        Token::Retry { .. } => config.retry_token_lifetime,
        Token::Validated { .. } => config.validation_token_lifetime,
    };
    let proven = opened.proves(remote, now_unix, lifetime.as_secs());
    match opened {
        Token::Retry { odcid, .. } if proven => TokenCheck::Retry { original_dcid: odcid },
        Token::Retry { .. } => TokenCheck::Invalid,
        // RFC 9369 5: a token of another version counts as none
        Token::Validated { version: made_in, .. } if proven && made_in == version.0 && !lifetime.is_zero() => {
            used.first_use(token, issued).map_or(TokenCheck::Nothing, TokenCheck::Validated)
        }
        Token::Validated { .. } => TokenCheck::Nothing,
    }
}

/// Remembers tokens that were used, so that none spares validation twice (RFC 9000 8.1.4).
///
/// Bounded: when both generations are full, the older is forgotten and with it every token issued before its last
/// entry was seen. Forgetting never makes a used token good again.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens {
    current: BTreeSet<Fingerprint>,
    previous: BTreeSet<Fingerprint>,
    /// Newest issue time in each generation.
    newest: (u64, u64),
    /// Tokens issued at or before this second are no longer told apart: they count as used.
    horizon: Option<u64>,
}

/// A first use of a token, to be noted once it served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenUse {
    mark: Fingerprint,
    issued_at: u64,
}

/// The authentication tag at a token's end; unique for each token that we sealed.
type Fingerprint = [u8; 16];

/// Tokens remembered in one generation.
const GENERATION: usize = 32_768;

impl UsedTokens {
    /// The use of an authentic token, if it was not used before. It counts once it is noted.
    pub(crate) fn first_use(&self, token: &[u8], issued_at: u64) -> Option<TokenUse> {
        let mark = *token.last_chunk::<16>()?;
        let forgotten = self.horizon.is_some_and(|h| issued_at <= h);
        let used = forgotten || self.previous.contains(&mark) || self.current.contains(&mark);
        (!used).then_some(TokenUse { mark, issued_at })
    }

    /// The token spared its bearer a validation, and does so no more.
    pub(crate) fn note(&mut self, TokenUse { mark, issued_at }: TokenUse) {
        self.current.insert(mark);
        self.newest.0 = self.newest.0.max(issued_at);
        if self.current.len() >= GENERATION {
            if !self.previous.is_empty() {
                self.horizon = self.horizon.max(Some(self.newest.1));
            }
            self.previous = std::mem::take(&mut self.current);
            self.newest = (0, self.newest.0);
        }
    }
}

/// The token of a Retry for a client at `remote`.
pub(crate) fn for_retry(
    config: &ServerConfig,
    remote: SocketAddr,
    original_dcid: ConnectionId,
    now_unix: u64,
    random: &mut Random,
) -> Vec<u8> {
    config.token_key.seal(&Token::Retry { addr: remote, odcid: original_dcid, issued: now_unix }, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(n: u64) -> [u8; 16] {
        u128::from(n).to_be_bytes()
    }

    impl UsedTokens {
        /// Uses a token; true the first time.
        fn spend(&mut self, token: &[u8], issued_at: u64) -> bool {
            let first = self.first_use(token, issued_at);
            first.into_iter().for_each(|spent| self.note(spent));
            first.is_some()
        }
    }

    #[test]
    fn a_token_is_used_once() {
        // RFC 9000 8.1.4-5
        let mut used = UsedTokens::default();
        assert!(used.first_use(&mark(1), 5).is_some(), "asking does not spend it");
        assert!(used.spend(&mark(1), 5));
        assert!(!used.spend(&mark(1), 5));
        assert!(used.spend(&mark(2), 5));
        assert!(!used.spend(&[1, 2, 3], 5), "too short to be one of ours");
    }

    #[test]
    fn what_is_forgotten_stays_used() {
        let mut used = UsedTokens::default();
        let count = 3 * GENERATION as u64;
        assert!((0..count).all(|n| used.spend(&mark(n), 1_000 + n)));
        assert!(used.current.len() + used.previous.len() <= 2 * GENERATION);
        assert!((0..count).step_by(97).all(|n| !used.spend(&mark(n), 1_000 + n)));
        assert!(!used.spend(&mark(count), 1_000), "old tokens are no longer told apart");
        assert!(used.spend(&mark(count), 1_000 + count));
    }
}
