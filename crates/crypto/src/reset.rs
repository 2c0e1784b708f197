//! Stateless reset tokens made from a static key (RFC 9000 10.3.2).

use std::fmt;

use plait_base::{Random, ResetToken};

use crate::backend::hmac;

/// Makes the same reset token for the same connection id, also after a restart with the same key.
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// From 32 secret bytes; endpoints behind one address share them.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A key of its own for this endpoint.
    pub fn generate(random: &mut Random) -> Self {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Self::new(&secret)
    }

    /// The token of `cid`.
    pub fn token(&self, cid: &[u8]) -> ResetToken {
        let mac = hmac::sign(&self.0, cid);
        let mut token = [0; 16];
        for (to, from) in token.iter_mut().zip(mac.as_ref()) {
            *to = *from;
        }
        ResetToken(token)
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_depend_on_key_and_cid() {
        // RFC 9000 10.3.2-1, 10.3.2-5
        let (a, b) = (ResetKey::new(&[1; 32]), ResetKey::new(&[2; 32]));
        assert_eq!(a.token(&[1, 2, 3]), ResetKey::new(&[1; 32]).token(&[1, 2, 3]));
        assert_ne!(a.token(&[1, 2, 3]), b.token(&[1, 2, 3]));
        assert_ne!(a.token(&[1, 2, 3]), a.token(&[1, 2, 4]));
        assert_ne!(ResetKey::generate(&mut Random::from_u64(1)).token(&[]), a.token(&[]));
    }
}
