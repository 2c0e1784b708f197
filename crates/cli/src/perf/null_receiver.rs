//! A receiver that costs as little as one can: it counts packets and acknowledges them, and does not decrypt stream data.
//!
//! So a sender can be measured beside it on a machine of few cores. The engine is the usual one, and receives as usual; only the
//! key that opens packets answers "a PING" for one that begins with stream data, of which it decrypts the first byte. Nothing
//! about such a receiver is authentic: whoever knows its connection ids can add packets. A peer cannot ask for it.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::aead::quic as block_cipher;
use rustls::crypto::aws_lc_rs as library;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{Error, SupportedCipherSuite, Tls13CipherSuite};

/// The first byte of a long header has it (RFC 9000 17.2): the handshake's packets are opened.
const LONG_FORM: u8 = 0x80;
/// The frame that a packet which was not opened is said to be (RFC 9000 19.2): it elicits an acknowledgement.
const PING: u8 = 0x01;
/// The types of STREAM frames that end no stream (RFC 9000 19.8).
const STREAM: [u8; 4] = [0x08, 0x0a, 0x0c, 0x0e];
/// Payloads up to so many bytes are opened, whatever they are: questions above all.
const OPENED_BYTES_MAX: usize = 300;
/// The counter of the first block that GCM encrypts, behind a nonce of 12 bytes (NIST SP 800-38D, 7.1).
const FIRST_COUNTER: u32 = 2;

/// TLS as usual, but for the keys of packets: of one suite, which every endpoint has (RFC 8446 9.1).
pub(crate) fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = SUITE.iter().map(SupportedCipherSuite::Tls13).collect();
    Arc::new(CryptoProvider { cipher_suites, ..library::default_provider() })
}

/// rustls asks for suites that live for ever.
static SUITE: LazyLock<Option<Tls13CipherSuite>> = LazyLock::new(|| {
    let real = TLS13_AES_128_GCM_SHA256.tls13()?;
    let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = real.common;
    let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
    let quic = CIPHER.as_ref().map(|cipher| cipher as &dyn Algorithm);
    Some(Tls13CipherSuite { common, hkdf_provider: real.hkdf_provider, aead_alg: real.aead_alg, quic })
});
static CIPHER: LazyLock<Option<CountingCipher>> = LazyLock::new(|| {
    Some(CountingCipher { of: TLS13_AES_128_GCM_SHA256.tls13()?.quic?, block: &block_cipher::AES_128 })
});

/// AES-GCM for packets, whose keys do not decrypt stream data.
struct CountingCipher {
    of: &'static dyn Algorithm,
    /// AES with keys of the same length.
    block: &'static block_cipher::Algorithm,
}

impl Algorithm for CountingCipher {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let peeping = block_cipher::HeaderProtectionKey::new(self.block, key.as_ref());
        let nonces = <[u8; 12]>::try_from(iv.as_ref()).map(Iv::from);
        let opening = self.of.packet_key(key, iv);
        match (peeping, nonces) {
            (Ok(peeping), Ok(nonces)) => Box::new(CountingKey { opening, peeping, nonces }),
            // A key of another length than the suite's.
            _ => opening,
        }
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.of.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.of.aead_key_len()
    }
}

struct CountingKey {
    opening: Box<dyn PacketKey>,
    /// The block cipher under `opening`'s key, which header protection too makes of a key.
    peeping: block_cipher::HeaderProtectionKey,
    nonces: Iv,
}

impl CountingKey {
    /// The first byte of what `payload` is decrypted to.
    fn first_byte(&self, path: u32, number: u64, payload: &[u8]) -> Option<u8> {
        let mut counter = [0; 16];
        let (nonce, count) = counter.split_at_mut(12);
        nonce.copy_from_slice(&Nonce::for_path(path, &self.nonces, number).0);
        count.copy_from_slice(&FIRST_COUNTER.to_be_bytes());
        let key_stream = self.peeping.new_mask(&counter).ok()?;
        Some(payload.first()? ^ key_stream[0])
    }
}

impl PacketKey for CountingKey {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.opening.encrypt_in_place(number, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        self.opening.encrypt_in_place_for_path(path, number, header, payload)
    }

    fn decrypt_in_place<'a>(&self, number: u64, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        self.decrypt_in_place_for_path(0, number, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let is_full = payload.len() > OPENED_BYTES_MAX && header.first().is_some_and(|first| first & LONG_FORM == 0);
        if !is_full || !self.first_byte(path, number, payload).is_some_and(|first| STREAM.contains(&first)) {
            return self.opening.decrypt_in_place_for_path(path, number, header, payload);
        }
        let place = payload.first_mut().ok_or(Error::DecryptError)?;
        *place = PING;
        Ok(std::slice::from_ref(place))
    }

    fn tag_len(&self) -> usize {
        self.opening.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.opening.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.opening.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a packet becomes, sealed by the real cipher and opened by ours; none where it does not open.
    fn opened(header: u8, payload: &[u8], flaw: u8) -> Option<Vec<u8>> {
        // rustls gives out no keys of 16 bytes.
        let of = library::cipher_suite::TLS13_AES_256_GCM_SHA384.tls13()?.quic?;
        let ours = CountingCipher { of, block: &block_cipher::AES_256 };
        let keys = [of, &ours].map(|cipher| cipher.packet_key(AeadKey::from([7; 32]), Iv::from([9; 12])));
        let mut packet = payload.to_vec();
        let tag = keys[0].encrypt_in_place_for_path(1, 7, &[header], &mut packet).unwrap();
        packet.extend_from_slice(tag.as_ref());
        *packet.last_mut()? ^= flaw;
        keys[1].decrypt_in_place_for_path(1, 7, &[header], &mut packet).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn stream_data_becomes_a_ping() {
        for frame_type in [0x08, 0x0a, 0x0c, 0x0e] {
            let payload = [frame_type; 1200];
            assert_eq!(opened(0x40, &payload, 0), Some(vec![PING]));
            assert_eq!(opened(0x40, &payload, 1), Some(vec![PING]), "nobody looks at it");
        }
    }

    #[test]
    fn all_else_is_opened() {
        for (header, frame_type, bytes) in
            [(0x40, 0x02, 1200), (0x40, 0x1a, 1200), (0x40, 0x0d, 1200), (0x40, 0x08, 100), (0xe0, 0x08, 1200)]
        {
            let payload = vec![frame_type; bytes];
            assert_eq!(opened(header, &payload, 0), Some(payload.clone()), "{frame_type:#x}, {bytes} bytes");
            assert_eq!(opened(header, &payload, 1), None, "it was changed on the way");
        }
    }

    #[test]
    fn there_is_one_suite() {
        let suites = provider().cipher_suites.clone();
        assert_eq!(
            suites.iter().map(SupportedCipherSuite::suite).collect::<Vec<_>>(),
            [rustls::CipherSuite::TLS13_AES_128_GCM_SHA256]
        );
        assert!(suites[0].tls13().unwrap().quic.is_some());
    }
}
