//! Cipher suites without the record protection of TLS, which QUIC has no use for (RFC 9001 4).
//!
//! rustls makes keys for records all the same, in every handshake, and keeps them as long as the session: 1.3 kB and four
//! key set-ups a connection. These suites make none.

use std::sync::LazyLock;

use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, OutboundOpaqueMessage,
    OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{CipherSuite, ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite};

use crate::backend::tls;

/// Those of the library underneath that QUIC can use, preferred first; rustls asks for suites that live for ever.
static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
    let mut suites: Vec<_> = tls::default_provider().cipher_suites.into_iter().filter_map(stand_in).collect();
    // Its key schedule runs on SHA-256, for which processors have instructions: a handshake takes a seventh less time.
    suites.sort_by_key(|suite| suite.common.suite != CipherSuite::TLS13_AES_128_GCM_SHA256);
    suites
});

/// The cipher suites of sessions for which nothing else is asked for.
pub(crate) fn suites() -> Vec<SupportedCipherSuite> {
    SUITES.iter().map(SupportedCipherSuite::Tls13).collect()
}

/// The suite with the fastest packet cipher and no record protection.
fn stand_in(suite: SupportedCipherSuite) -> Option<Tls13CipherSuite> {
    #[cfg(feature = "aws-lc-rs")]
    let suite = crate::packet_cipher::fastest(suite);
    let real = suite.tls13().filter(|real| real.quic.is_some())?;
    let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = real.common;
    let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
    Some(Tls13CipherSuite { common, hkdf_provider: real.hkdf_provider, aead_alg: &NoRecords, quic: real.quic })
}

/// Protects no record.
struct NoRecords;

impl Tls13AeadAlgorithm for NoRecords {
    fn encrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Self)
    }

    fn decrypter(&self, _key: AeadKey, _iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Self)
    }

    fn key_len(&self) -> usize {
        16
    }

    fn extract_keys(&self, _key: AeadKey, _iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl MessageEncrypter for NoRecords {
    fn encrypt(&mut self, _message: OutboundPlainMessage<'_>, _number: u64) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for NoRecords {
    fn decrypt<'a>(
        &mut self,
        _message: InboundOpaqueMessage<'a>,
        _number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}

#[cfg(test)]
mod tests {
    use rustls::{ContentType, ProtocolVersion};

    use super::*;

    #[test]
    fn suites_are_those_of_the_library() {
        let ids = |suites: Vec<SupportedCipherSuite>| suites.iter().map(|suite| suite.suite()).collect::<Vec<_>>();
        let (ours, mut theirs) = (ids(suites()), ids(tls::default_provider().cipher_suites));
        assert_eq!(ours.first(), Some(&CipherSuite::TLS13_AES_128_GCM_SHA256));
        theirs.retain(|id| ours.contains(id));
        assert_eq!((ours.len(), theirs.len()), (3, 3));
    }

    #[test]
    fn no_record_passes() {
        let (key, iv) = (|| AeadKey::from([7; 32]), || Iv::from([7; 12]));
        let message = rustls::internal::msgs::message::PlainMessage {
            typ: ContentType::ApplicationData,
            version: ProtocolVersion::TLSv1_2,
            payload: rustls::internal::msgs::base::Payload::Owned(vec![0; 9]),
        };
        let mut encrypter = NoRecords.encrypter(key(), iv());
        assert!(encrypter.encrypt(message.borrow_outbound(), 0).is_err());
        let mut bytes = [0; 40];
        let record = InboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, &mut bytes);
        assert!(NoRecords.decrypter(key(), iv()).decrypt(record, 0).is_err());
        assert!(NoRecords.extract_keys(key(), iv()).is_err());
    }
}
