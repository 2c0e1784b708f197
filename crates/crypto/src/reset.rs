//! Stateless reset tokens made from a static key (RFC 9000 10.3.2).

use std::fmt;

use plait_base::{Random, ResetToken};

use crate::backend::{aead, hmac};
use crate::keys::NONCE_BYTES;

/// Makes the same reset token for the same connection id, also after a restart with the same key.
///
/// Of a short id the token is one block of AES: the tag of GCM over nothing at all, with a nonce that is the id. Of a longer one it
/// is an HMAC, which takes several times as long: a server makes a dozen of them for each handshake.
pub struct ResetKey {
    mac: hmac::Key,
    block: Option<aead::LessSafeKey>,
}

impl ResetKey {
    /// From 32 secret bytes; endpoints behind one address share them.
    pub fn new(secret: &[u8; 32]) -> Self {
        let mac = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let block = aead::UnboundKey::new(&aead::AES_256_GCM, hmac::sign(&mac, b"short connection ids").as_ref());
        Self { mac, block: block.ok().map(aead::LessSafeKey::new) }
    }

    /// A key of its own for this endpoint.
    pub fn generate(random: &mut Random) -> Self {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Self::new(&secret)
    }

    /// The token of `cid`.
    pub fn token(&self, cid: &[u8]) -> ResetToken {
        let block = self.block_of(cid);
        match &block {
            Some(tag) => beginning(tag.as_ref()),
            None => beginning(hmac::sign(&self.mac, cid).as_ref()),
        }
    }

    /// None where the id and its length are longer than a nonce.
    fn block_of(&self, cid: &[u8]) -> Option<aead::Tag> {
        let mut nonce = [0; NONCE_BYTES];
        let (len, rest) = nonce.split_first_mut()?;
        *len = u8::try_from(cid.len()).ok()?;
        rest.get_mut(..cid.len())?.copy_from_slice(cid);
        // No nonce ever seals anything else, so that none is used for two messages.
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        self.block.as_ref()?.seal_in_place_separate_tag(nonce, aead::Aad::empty(), &mut []).ok()
    }
}

fn beginning(bytes: &[u8]) -> ResetToken {
    let mut token = [0; 16];
    for (to, from) in token.iter_mut().zip(bytes) {
        *to = *from;
    }
    ResetToken(token)
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

    #[test]
    fn ids_of_every_length_have_tokens_of_their_own() {
        let key = ResetKey::new(&[1; 32]);
        let ids = (0..=20).flat_map(|len| [vec![0; len], vec![9; len]]);
        let mut tokens: Vec<[u8; 16]> = ids.map(|id| key.token(&id).0).collect();
        tokens.sort_unstable();
        tokens.dedup();
        // The empty id was among them twice.
        assert_eq!(tokens.len(), 41);
        assert!(tokens.iter().all(|token| token != &[0; 16]));
    }
}
