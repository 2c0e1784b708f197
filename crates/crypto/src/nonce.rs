//! How the nonce of a packet is made of the IV, a path or uniflow, and the packet number.

use std::sync::OnceLock;

use plait_base::PathId;
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::{Error, SupportedCipherSuite, quic};

use crate::backend::tls::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use crate::keys::NONCE_BYTES;
use crate::tls::CipherSuite;

/// How one end makes the nonces of the 1-RTT packets that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonceForm {
    /// The path id in 32 bits and the packet number in 64, xor the IV (RFC 10069 2.4). On path 0 it is that of RFC 9001 5.3.
    #[default]
    PathAndPacketNumber,
    /// The uniflow id in the top bits, in place of the IV's; below them the IV xor the packet number
    /// (draft-deconinck-quic-multipath-07). It differs from RFC 9001 also on uniflow 0.
    TopBits {
        /// The sender's max_sending_uniflow_id, which tells how many bits: at least 2.
        max_id: PathId,
    },
}

/// Forms of both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nonces {
    pub(crate) local: NonceForm,
    pub(crate) remote: NonceForm,
}

/// Fewest bits that a uniflow id takes.
const LEAST_BITS: u32 = 2;
/// Bits of a nonce.
const NONCE_BITS: u32 = 8 * NONCE_BYTES as u32;

impl NonceForm {
    /// The nonce; none for a uniflow id above the maximum, whose nonce could be another's.
    fn nonce(self, iv: [u8; NONCE_BYTES], path: PathId, pn: u64) -> Option<[u8; NONCE_BYTES]> {
        let [path_bits, number, iv] = [path.0.into(), pn.into(), iv.iter().fold(0, |n, b| n << 8 | u128::from(*b))];
        let nonce: u128 = match self {
            Self::PathAndPacketNumber => iv ^ (path_bits << 64 | number),
            Self::TopBits { max_id } if path > max_id => return None,
            Self::TopBits { max_id } => {
                let low_bits = NONCE_BITS - id_bits(max_id);
                path_bits << low_bits | (iv ^ number) & ((1 << low_bits) - 1)
            }
        };
        nonce.to_be_bytes().last_chunk().copied()
    }
}

/// Bits that ids up to this one take.
fn id_bits(max_id: PathId) -> u32 {
    (u32::BITS - max_id.0.leading_zeros()).max(LEAST_BITS)
}

/// A cipher of rustls with nonces of another form. rustls xors what it is given with the IV: over an IV of zeros it takes
/// any nonce.
struct Cipher {
    of: &'static dyn quic::Algorithm,
    form: NonceForm,
}

/// One for each suite and each number of bits, made when first wanted; rustls asks for ciphers that live for ever.
static CIPHERS: [[OnceLock<Option<Cipher>>; SIZES]; SUITES.len()] =
    [const { [const { OnceLock::new() }; SIZES] }; SUITES.len()];
/// 2 to 32 bits.
const SIZES: usize = (u32::BITS - LEAST_BITS + 1) as usize;
const SUITES: [CipherSuite; 3] = CipherSuite::ALL;

/// The QUIC cipher of a suite with nonces of this form; none for a suite that QUIC cannot use.
pub(crate) fn cipher(suite: SupportedCipherSuite, form: NonceForm) -> Option<&'static dyn quic::Algorithm> {
    let NonceForm::TopBits { max_id } = form else { return suite.tls13()?.quic };
    let suite = CipherSuite::from_tls(suite)?;
    let bits = id_bits(max_id);
    let of_suite = CIPHERS.get(SUITES.iter().position(|s| *s == suite)?)?;
    let made = of_suite.get((bits - LEAST_BITS) as usize)?.get_or_init(|| {
        let max_id = PathId(u32::MAX >> (u32::BITS - bits));
        Some(Cipher { of: of(suite)?, form: NonceForm::TopBits { max_id } })
    });
    made.as_ref().map(|cipher| cipher as &dyn quic::Algorithm)
}

fn of(suite: CipherSuite) -> Option<&'static dyn quic::Algorithm> {
    let suite = match suite {
        CipherSuite::Aes128Gcm => &TLS13_AES_128_GCM_SHA256,
        CipherSuite::Aes256Gcm => &TLS13_AES_256_GCM_SHA384,
        CipherSuite::ChaCha20Poly1305 => &TLS13_CHACHA20_POLY1305_SHA256,
    };
    suite.tls13()?.quic
}

impl quic::Algorithm for Cipher {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn quic::PacketKey> {
        let inner = self.of.packet_key(key, Iv::from([0; NONCE_BYTES]));
        // An IV tells its bytes only as the nonce of packet 0.
        Box::new(Key { inner, iv: Nonce::new(&iv, 0).0, form: self.form })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        self.of.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.of.aead_key_len()
    }

    fn fips(&self) -> bool {
        self.of.fips()
    }
}

struct Key {
    inner: Box<dyn quic::PacketKey>,
    iv: [u8; NONCE_BYTES],
    form: NonceForm,
}

impl Key {
    /// The path id and packet number by which the inner key, over zeros, has the nonce of these.
    fn stand_in(&self, path: u32, pn: u64) -> Option<(u32, u64)> {
        let nonce = self.form.nonce(self.iv, PathId(path), pn)?;
        let (top, rest) = nonce.split_first_chunk()?;
        Some((u32::from_be_bytes(*top), u64::from_be_bytes(*rest.first_chunk()?)))
    }
}

impl quic::PacketKey for Key {
    fn encrypt_in_place(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<quic::Tag, Error> {
        self.encrypt_in_place_for_path(0, pn, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        pn: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        let (path, pn) = self.stand_in(path, pn).ok_or(Error::EncryptError)?;
        self.inner.encrypt_in_place_for_path(path, pn, header, payload)
    }

    fn decrypt_in_place<'a>(&self, pn: u64, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        self.decrypt_in_place_for_path(0, pn, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        pn: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let (path, pn) = self.stand_in(path, pn).ok_or(Error::DecryptError)?;
        self.inner.decrypt_in_place_for_path(path, pn, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::aead;

    const IV: [u8; NONCE_BYTES] = [0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x07, 0x18, 0x29, 0x3a, 0x4b, 0x5c];

    fn hex(text: &str) -> Option<[u8; NONCE_BYTES]> {
        crate::keys::tests::hex(text).try_into().ok()
    }

    #[test]
    fn nonces_of_paths_are_those_of_rustls() {
        // RFC 10069 2.4
        let form = NonceForm::PathAndPacketNumber;
        for (path, pn) in [(0, 0), (0, 1), (3, 54_321), (u32::MAX, (1 << 62) - 1)] {
            let expected = Nonce::for_path(path, &Iv::from(IV), pn).0;
            assert_eq!(form.nonce(IV, PathId(path), pn), Some(expected));
        }
    }

    #[test]
    fn nonces_of_uniflows() {
        let nonce = |most, uniflow, pn| NonceForm::TopBits { max_id: PathId(most) }.nonce(IV, PathId(uniflow), pn);
        // 0xa1 is 10100001: two bits go, with a maximum of 0 to 3
        assert_eq!(nonce(0, 0, 0), hex("21b2c3d4 e5f60718 293a4b5c"));
        assert_eq!(nonce(1, 1, 0), hex("61b2c3d4 e5f60718 293a4b5c"));
        assert_eq!(nonce(2, 2, 0x1234), hex("a1b2c3d4 e5f60718 293a5968"));
        assert_eq!(nonce(3, 3, 0), hex("e1b2c3d4 e5f60718 293a4b5c"));
        // Three bits, eight, and all 32 that a uniflow id can have
        assert_eq!(nonce(4, 4, 0), hex("81b2c3d4 e5f60718 293a4b5c"));
        assert_eq!(nonce(255, 0x5a, 0xff), hex("5ab2c3d4 e5f60718 293a4ba3"));
        assert_eq!(nonce(u32::MAX, 7, (1 << 62) - 1), hex("00000007 da09f8e7 d6c5b4a3"));
        assert_eq!((nonce(2, 3, 0), nonce(0, 1, 0)), (None, None), "beyond what was announced");
    }

    #[test]
    fn keys_use_the_nonce_of_their_form() {
        let suite = TLS13_CHACHA20_POLY1305_SHA256;
        let form = NonceForm::TopBits { max_id: PathId(2) };
        let key = cipher(suite, form).unwrap().packet_key(AeadKey::from([7; 32]), Iv::from(IV));
        let mut sealed = *b"payload";
        let tag = key.encrypt_in_place_for_path(2, 0x1234, b"header", &mut sealed).unwrap();
        let nonce = aead::Nonce::assume_unique_for_key(form.nonce(IV, PathId(2), 0x1234).unwrap());
        let plain = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &[7; 32]).unwrap());
        let mut whole = [&sealed[..], tag.as_ref()].concat();
        let opened = plain.open_in_place(nonce, aead::Aad::from(b"header"), &mut whole).unwrap();
        assert_eq!(opened, b"payload");
        assert!(key.encrypt_in_place_for_path(4, 0, b"header", &mut sealed).is_err());
        assert!(key.decrypt_in_place_for_path(4, 0, b"header", &mut [0; 20]).is_err());
        // One cipher serves all maxima of as many bits.
        let at = |max_id| std::ptr::from_ref(cipher(suite, NonceForm::TopBits { max_id: PathId(max_id) }).unwrap());
        assert!(std::ptr::addr_eq(at(0), at(3)) && !std::ptr::addr_eq(at(3), at(4)));
        let limits = |key: &dyn quic::PacketKey| (key.tag_len(), key.confidentiality_limit(), key.integrity_limit());
        let own = of(CipherSuite::ChaCha20Poly1305).unwrap().packet_key(AeadKey::from([7; 32]), Iv::from(IV));
        assert_eq!(limits(&*key), limits(&*own));
    }
}
