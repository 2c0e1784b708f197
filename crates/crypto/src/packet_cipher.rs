//! AES of packets and their headers, where the library of the handshake is not the best at it.
//!
//! Processors with 256-bit AES and carry-less multiplication, but without AVX-512, have code of their own in ring and none
//! in aws-lc: a datagram of 1420 bytes takes 0.31 µs in place of 0.50 µs on one of them. Headers are masked by ring on all of them, with
//! smaller keys. Everything else stays with the provider: handshake and key schedule.

use std::sync::LazyLock;

use crate::backend::tls::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};
use crate::header_cipher::{self, AesHeaderKey};
use crate::keys::{NONCE_BYTES, TAG_BYTES};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::cipher::{self, AeadKey, Iv};
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite, quic};

/// Packets that one key of AES-GCM may seal (RFC 9001 B.1.1).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// Packets that may fail authentication with AES-GCM (RFC 9001 6.6).
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// True on processors for which ring has the faster AES-GCM.
fn is_faster() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("avx2");
        // For these aws-lc has code of its own, wider still.
        wide && !is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The suite with the packet cipher that is fastest on this processor, and with small keys for headers; all else of it is the
/// provider's.
pub(crate) fn fastest(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let ours = match suite.suite() {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => &SUITE_128,
        CipherSuite::TLS13_AES_256_GCM_SHA384 => &SUITE_256,
        _ => return suite,
    };
    ours.as_ref().map_or(suite, SupportedCipherSuite::Tls13)
}

static CIPHER_128: LazyLock<Option<GcmCipher>> =
    LazyLock::new(|| GcmCipher::of(&TLS13_AES_128_GCM_SHA256, Some(&AES_128_GCM).filter(|_| is_faster())));
static CIPHER_256: LazyLock<Option<GcmCipher>> =
    LazyLock::new(|| GcmCipher::of(&TLS13_AES_256_GCM_SHA384, Some(&AES_256_GCM).filter(|_| is_faster())));
static SUITE_128: LazyLock<Option<Tls13CipherSuite>> =
    LazyLock::new(|| CIPHER_128.as_ref()?.stand_in(&TLS13_AES_128_GCM_SHA256));
static SUITE_256: LazyLock<Option<Tls13CipherSuite>> =
    LazyLock::new(|| CIPHER_256.as_ref()?.stand_in(&TLS13_AES_256_GCM_SHA384));

/// The QUIC cipher of a suite with header keys by ring, and packet keys where it is faster.
struct GcmCipher {
    of: &'static dyn quic::Algorithm,
    /// None where the provider is the faster one.
    aead: Option<&'static ring::aead::Algorithm>,
    header: &'static ring::aead::quic::Algorithm,
}

impl GcmCipher {
    fn of(suite: &'static SupportedCipherSuite, aead: Option<&'static ring::aead::Algorithm>) -> Option<Self> {
        Some(Self { of: suite.tls13()?.quic?, aead, header: header_cipher::algorithm(suite.suite())? })
    }

    /// `suite` with this cipher in place of its own.
    fn stand_in(&'static self, suite: &'static SupportedCipherSuite) -> Option<Tls13CipherSuite> {
        let real = suite.tls13()?;
        let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = real.common;
        let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
        Some(Tls13CipherSuite { common, hkdf_provider: real.hkdf_provider, aead_alg: real.aead_alg, quic: Some(self) })
    }
}

impl quic::Algorithm for GcmCipher {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn quic::PacketKey> {
        match self.aead.map(|aead| UnboundKey::new(aead, key.as_ref())) {
            Some(Ok(key)) => Box::new(GcmKey { aead: LessSafeKey::new(key), iv: PathIv::new(&iv) }),
            // A key of another length than the suite's: the provider says what it makes of it.
            None | Some(Err(_)) => self.of.packet_key(key, iv),
        }
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        match AesHeaderKey::new(&key, self.header) {
            Some(key) => Box::new(key),
            None => self.of.header_protection_key(key),
        }
    }

    fn aead_key_len(&self) -> usize {
        self.of.aead_key_len()
    }
}

struct GcmKey {
    aead: LessSafeKey,
    iv: PathIv,
}

/// An IV, in the pieces in which ring reads a nonce: the processor waits for one that is read in other pieces than it was written.
struct PathIv {
    front: u64,
    back: u32,
}

impl PathIv {
    fn new(iv: &Iv) -> Self {
        // It tells its bytes only as the nonce of packet 0.
        let [a, b, c, d, e, f, g, h, back @ ..] = cipher::Nonce::new(iv, 0).0;
        Self { front: u64::from_be_bytes([a, b, c, d, e, f, g, h]), back: u32::from_be_bytes(back) }
    }

    /// RFC 10069 2.4: of path id and packet number; on path 0 that of RFC 9001 5.3.
    #[inline]
    fn nonce(&self, path: u32, pn: u64) -> Nonce {
        let front = self.front ^ (u64::from(path) << 32 | pn >> 32);
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&front.to_be_bytes());
        nonce[8..].copy_from_slice(&(self.back ^ pn as u32).to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

impl quic::PacketKey for GcmKey {
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
        let tag = self.aead.seal_in_place_separate_tag(self.iv.nonce(path, pn), Aad::from(header), payload);
        tag.map(|tag| quic::Tag::from(tag.as_ref())).map_err(|_| Error::EncryptError)
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
        let opened = self.aead.open_in_place(self.iv.nonce(path, pn), Aad::from(header), payload);
        opened.map(|plain| &*plain).map_err(|_| Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packet keys of AES-256, ours and the provider's: rustls gives out no key of 16 bytes. Whole connections with other
    /// stacks show that of AES-128.
    fn keys() -> [Box<dyn quic::PacketKey>; 2] {
        // On each processor, whichever is faster there.
        let cipher = GcmCipher::of(&TLS13_AES_256_GCM_SHA384, Some(&AES_256_GCM)).unwrap();
        [&cipher as &dyn quic::Algorithm, cipher.of]
            .map(|cipher| cipher.packet_key(AeadKey::from([7; 32]), Iv::from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])))
    }

    #[test]
    fn packets_are_those_of_the_provider() {
        let [ours, theirs] = keys();
        let packets =
            [(0, 0, 0), (0, 1, 1), (3, 54_321, 1_420), (9, 0xa1_b2c3_d4e5, 99), (u32::MAX, (1 << 62) - 1, 8_900)];
        for (path, pn, bytes) in packets {
            let plain: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            let seal = |key: &dyn quic::PacketKey| {
                let mut payload = plain.clone();
                let tag = key.encrypt_in_place_for_path(path, pn, b"header", &mut payload).unwrap();
                payload.extend_from_slice(tag.as_ref());
                payload
            };
            let sealed = seal(&*ours);
            assert_eq!(sealed, seal(&*theirs), "path {path}, packet {pn}, {bytes} bytes");
            for key in [&ours, &theirs] {
                let mut opened = sealed.clone();
                assert_eq!(key.decrypt_in_place_for_path(path, pn, b"header", &mut opened).unwrap(), plain);
            }
            let mut forged = sealed.clone();
            *forged.last_mut().unwrap() ^= 1;
            let tag = forged.last_chunk::<TAG_BYTES>().copied();
            assert!(ours.decrypt_in_place_for_path(path, pn, b"header", &mut forged).is_err());
            assert_eq!(forged.last_chunk(), tag.as_ref(), "it may be a stateless reset token");
        }
    }

    #[test]
    fn limits_are_those_of_the_provider() {
        let limits = |key: &dyn quic::PacketKey| (key.tag_len(), key.confidentiality_limit(), key.integrity_limit());
        let [ours, theirs] = keys();
        assert_eq!(limits(&*ours), limits(&*theirs));
    }

    #[test]
    fn suites_keep_all_but_the_ciphers_of_quic() {
        for suite in crate::backend::tls::default_provider().cipher_suites {
            let Some(before) = suite.tls13() else { continue };
            let after = fastest(suite);
            let after = after.tls13().unwrap();
            assert_eq!(before.common.suite, after.common.suite);
            let is_gcm = suite.suite() != CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
            let is_same = std::ptr::addr_eq(before.quic.unwrap(), after.quic.unwrap());
            assert_eq!(is_same, !is_gcm, "{:?}", before.common.suite);
        }
    }
}
