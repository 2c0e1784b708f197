//! Packet keys of one QUIC version from the traffic secrets of a session that began in another (RFC 9369 3.3.2), and
//! packet keys with nonces of another form than rustls makes.
//!
//! rustls keeps its own derivation to itself, except for Initial keys: secrets extracted from a connection id, expanded
//! with a version's labels. Here the extraction step is replaced by one that hands out given secrets; everything after
//! it, labels and ciphers, stays that of rustls.

use std::sync::LazyLock;

use rustls::crypto::hash::HashAlgorithm;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{CipherSuiteCommon, hmac};
use rustls::{SupportedCipherSuite, Tls13CipherSuite, quic};

use crate::backend::tls::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};
use crate::keys::{OpenKey, SealKey};
use crate::nonce::{Nonces, cipher};

/// Traffic secrets of both directions, and the version whose keys they give.
#[derive(Clone)]
pub(crate) struct VersionedSecrets {
    version: quic::Version,
    side: rustls::Side,
    local: &'static dyn quic::Algorithm,
    remote: &'static dyn quic::Algorithm,
    given: &'static Tls13CipherSuite,
    client: OkmBlock,
    server: OkmBlock,
}

impl VersionedSecrets {
    /// None for a suite that QUIC cannot use, or whose hash we do not know.
    pub(crate) fn new(
        version: quic::Version,
        side: rustls::Side,
        suite: SupportedCipherSuite,
        (client, server): (OkmBlock, OkmBlock),
    ) -> Option<Self> {
        let suite = suite.tls13()?;
        let given = match suite.common.hash_provider.algorithm() {
            HashAlgorithm::SHA256 => GIVEN_SHA256.as_ref()?,
            HashAlgorithm::SHA384 => GIVEN_SHA384.as_ref()?,
            _ => return None,
        };
        let cipher = suite.quic?;
        Some(Self { version, side, local: cipher, remote: cipher, given, client, server })
    }

    /// The same with nonces of these forms.
    pub(crate) fn with_nonces(self, suite: SupportedCipherSuite, nonces: Nonces) -> Option<Self> {
        Some(Self { local: cipher(suite, nonces.local)?, remote: cipher(suite, nonces.remote)?, ..self })
    }

    /// Packet and header keys of both directions.
    pub(crate) fn keys(&self) -> quic::Keys {
        let mut both = [0; 2 * OkmBlock::MAX_LEN];
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let end = client.len() + server.len();
        both[..client.len()].copy_from_slice(client);
        both[client.len()..end].copy_from_slice(server);
        let keys = |cipher| quic::Keys::initial(self.version, self.given, cipher, &both[..end], self.side);
        if std::ptr::addr_eq(self.local, self.remote) {
            return keys(self.local);
        }
        quic::Keys { local: keys(self.local).local, remote: keys(self.remote).remote }
    }

    /// The next phase's packet keys (RFC 9001 6.1).
    pub(crate) fn next(&mut self) -> (SealKey, OpenKey) {
        for secret in [&mut self.client, &mut self.server] {
            *secret = updated(self.given.hkdf_provider, secret, self.version);
        }
        let keys = self.keys();
        (SealKey::tls(keys.local.packet), OpenKey::tls(keys.remote.packet))
    }
}

/// HKDF-Expand-Label of RFC 8446 7.1, for the one label that key updates need.
fn updated(hkdf: &dyn Hkdf, secret: &OkmBlock, version: quic::Version) -> OkmBlock {
    let label: &[u8] = match version {
        quic::Version::V2 => b"tls13 quicv2 ku",
        _ => b"tls13 quic ku",
    };
    let expander = hkdf.expander_for_okm(secret);
    let length = (expander.hash_len() as u16).to_be_bytes();
    expander.expand_block(&[&length, &[label.len() as u8], label, &[0]])
}

/// An HKDF whose extraction returns what it is given: the secrets of client and server, one after the other.
struct Given(&'static dyn Hkdf);

static HKDF_SHA256: LazyLock<Option<Given>> = LazyLock::new(|| Given::of(&TLS13_AES_128_GCM_SHA256));
static HKDF_SHA384: LazyLock<Option<Given>> = LazyLock::new(|| Given::of(&TLS13_AES_256_GCM_SHA384));
static GIVEN_SHA256: LazyLock<Option<Tls13CipherSuite>> =
    LazyLock::new(|| HKDF_SHA256.as_ref()?.stand_in(&TLS13_AES_128_GCM_SHA256));
static GIVEN_SHA384: LazyLock<Option<Tls13CipherSuite>> =
    LazyLock::new(|| HKDF_SHA384.as_ref()?.stand_in(&TLS13_AES_256_GCM_SHA384));

impl Given {
    fn of(suite: &'static SupportedCipherSuite) -> Option<Self> {
        Some(Self(suite.tls13()?.hkdf_provider))
    }

    /// `suite` with this HKDF in place of its own.
    fn stand_in(&'static self, suite: &'static SupportedCipherSuite) -> Option<Tls13CipherSuite> {
        let real = suite.tls13()?;
        let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = real.common;
        let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit };
        Some(Tls13CipherSuite { common, hkdf_provider: self, aead_alg: real.aead_alg, quic: real.quic })
    }
}

impl Hkdf for Given {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, _salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        let (client, server) = secret.split_at(secret.len() / 2);
        Box::new(GivenSecrets { client: OkmBlock::new(client), server: OkmBlock::new(server) })
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.0.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> hmac::Tag {
        self.0.hmac_sign(key, message)
    }
}

struct GivenSecrets {
    client: OkmBlock,
    server: OkmBlock,
}

impl HkdfExpander for GivenSecrets {
    fn expand_slice(&self, _info: &[&[u8]], _output: &mut [u8]) -> Result<(), OutputLengthError> {
        Err(OutputLengthError)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        // RFC 9001 5.2: the labels of the two Initial secrets
        if info.contains(&&b"server in"[..]) { self.server.clone() } else { self.client.clone() }
    }

    fn hash_len(&self) -> usize {
        self.client.as_ref().len()
    }
}
