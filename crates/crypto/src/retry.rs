//! The integrity tag of Retry packets (RFC 9001 5.8, RFC 9369 3.3.3).

use crate::backend::aead;
use crate::initial::{V1, V2};
use crate::keys::{NONCE_BYTES, TAG_BYTES};

const V1_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const V1_NONCE: [u8; NONCE_BYTES] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
const V2_KEY: [u8; 16] =
    [0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92];
const V2_NONCE: [u8; NONCE_BYTES] = [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a];

/// The tag of `retry`, a Retry packet without its tag, that answers an Initial sent to `odcid` (at most 20
/// bytes). None for an unsupported version or a longer id.
pub fn tag(version: u32, odcid: &[u8], retry: &[u8]) -> Option<[u8; TAG_BYTES]> {
    let (key, nonce) = match version {
        V1 => (&V1_KEY, V1_NONCE),
        V2 => (&V2_KEY, V2_NONCE),
        _ => return None,
    };
    if odcid.len() > plait_base::limits::MAX_CID_LEN {
        return None;
    }
    // RFC 9001 5.8: the pseudo-packet is all additional data; nothing is encrypted.
    let mut pseudo = Vec::with_capacity(1 + odcid.len() + retry.len());
    pseudo.push(odcid.len() as u8);
    pseudo.extend_from_slice(odcid);
    pseudo.extend_from_slice(retry);
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_128_GCM, key).ok()?);
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, aead::Aad::from(&pseudo), &mut []).ok()?;
    tag.as_ref().try_into().ok()
}

/// True when `packet`, a whole Retry packet, carries the right tag for a client that sent its Initial to `odcid`.
pub fn verify(version: u32, odcid: &[u8], packet: &[u8]) -> bool {
    let Some((retry, carried)) = packet.split_last_chunk::<TAG_BYTES>() else { return false };
    // Keys are public: the tag only detects accidents and off-path forgeries, so time leaks nothing.
    tag(version, odcid, retry).is_some_and(|expected| expected == *carried)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::hex;

    const ODCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

    #[test]
    fn vectors() {
        // RFC 9001 A.4 and RFC 9369 A.4
        let v1 = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        let v2 = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
        assert!(verify(V1, &ODCID, &v1));
        assert!(verify(V2, &ODCID, &v2));
        assert!(!verify(V2, &ODCID, &v1) && !verify(V1, &ODCID, &v2) && !verify(7, &ODCID, &v1));
    }

    #[test]
    fn every_byte_counts() {
        let good = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            assert!(!verify(V1, &ODCID, &bad), "byte {i}");
        }
        assert!(!verify(V1, &ODCID[1..], &good) && !verify(V1, &ODCID, &good[..15]) && !verify(V1, &[], &[]));
        assert!(tag(V1, &[0; 21], &[]).is_none());
    }
}
