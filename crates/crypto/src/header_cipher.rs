//! Header protection by AES, where the library of the handshake keeps twice as much for a key as the masks need: aws-lc has a key
//! schedule for decryption as well, of 0.3 kB a key, and header protection only encrypts (RFC 9001 5.4.3).

use ring::aead::quic::{AES_128, AES_256, Algorithm, HeaderProtectionKey};
use rustls::crypto::cipher::AeadKey;
use rustls::{CipherSuite, Error, quic};

use crate::keys::SAMPLE_BYTES;

const LONG_FORM: u8 = 0x80;

/// Masks headers by ring.
pub(crate) struct AesHeaderKey(HeaderProtectionKey);

/// Whether the first byte is masked already; the packet number's length is read from it where it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Plain,
    Masked,
}

/// The header protection of a suite; none for one without AES.
pub(crate) fn algorithm(suite: CipherSuite) -> Option<&'static Algorithm> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(&AES_128),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(&AES_256),
        _ => None,
    }
}

impl AesHeaderKey {
    /// None for a key of another length than the algorithm's.
    pub(crate) fn new(key: &AeadKey, algorithm: &'static Algorithm) -> Option<Self> {
        HeaderProtectionKey::new(algorithm, key.as_ref()).ok().map(Self)
    }

    /// RFC 9001 5.4.1.
    fn apply(&self, sample: &[u8], first: &mut u8, number: &mut [u8], state: First) -> Result<(), Error> {
        let mask = self.0.new_mask(sample).map_err(|_| Error::General("a sample of another length".into()))?;
        let [first_mask, number_mask @ ..] = mask;
        if number.len() > number_mask.len() {
            return Err(Error::General("a packet number of more than four bytes".into()));
        }
        let bits = if *first & LONG_FORM != 0 { 0x0f } else { 0x1f };
        let masked = *first ^ (first_mask & bits);
        let plain = if state == First::Plain { *first } else { masked };
        *first = masked;
        let pn_len = usize::from(plain & 0x03) + 1;
        number.iter_mut().zip(number_mask).take(pn_len).for_each(|(byte, mask)| *byte ^= mask);
        Ok(())
    }
}

impl quic::HeaderProtectionKey for AesHeaderKey {
    fn encrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.apply(sample, first, packet_number, First::Plain)
    }

    fn decrypt_in_place(&self, sample: &[u8], first: &mut u8, packet_number: &mut [u8]) -> Result<(), Error> {
        self.apply(sample, first, packet_number, First::Masked)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use rustls::quic::HeaderProtectionKey as _;

    use super::*;
    use crate::backend::tls::cipher_suite::TLS13_AES_256_GCM_SHA384;

    /// Keys of AES-256, ours and the provider's: rustls gives out no key of 16 bytes. Whole connections with other stacks show
    /// that of AES-128.
    fn keys() -> (AesHeaderKey, Box<dyn quic::HeaderProtectionKey>) {
        let provider = TLS13_AES_256_GCM_SHA384.tls13().unwrap().quic.unwrap();
        let key = || AeadKey::from([7; 32]);
        (AesHeaderKey::new(&key(), &AES_256).unwrap(), provider.header_protection_key(key()))
    }

    #[test]
    fn masks_are_those_of_the_provider() {
        let (ours, theirs) = keys();
        for n in 0..=255_u8 {
            let sample: Vec<u8> = (0..SAMPLE_BYTES as u8).map(|i| i.wrapping_mul(n) ^ n).collect();
            let plain = (n, [n, 1, 2, 3]);
            let masked = |key: &dyn quic::HeaderProtectionKey| {
                let (mut first, mut number) = plain;
                key.encrypt_in_place(&sample, &mut first, &mut number).unwrap();
                (first, number)
            };
            let (mut first, mut number) = masked(&ours);
            assert_eq!((first, number), masked(&*theirs), "first byte {n}");
            ours.decrypt_in_place(&sample, &mut first, &mut number).unwrap();
            assert_eq!((first, number), plain);
        }
    }

    #[test]
    fn what_has_another_length_is_refused_untouched() {
        let (ours, theirs) = keys();
        assert_eq!(ours.sample_len(), theirs.sample_len());
        let (mut first, mut number) = (0x43, [1, 2, 3, 4, 5]);
        assert!(ours.encrypt_in_place(&[0; 15], &mut first, &mut number[..4]).is_err());
        assert!(ours.encrypt_in_place(&[0; 16], &mut first, &mut number).is_err());
        assert_eq!((first, number), (0x43, [1, 2, 3, 4, 5]));
        assert!(AesHeaderKey::new(&AeadKey::from([7; 32]), &AES_128).is_none());
    }
}
