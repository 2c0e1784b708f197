//! Randomness from the operating system: asked once for each endpoint and key, never after that.

use plait_base::Random;

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoEntropy;

#[cfg(feature = "aws-lc-rs")]
fn provider() -> rustls::crypto::CryptoProvider {
    rustls::crypto::aws_lc_rs::default_provider()
}

#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
fn provider() -> rustls::crypto::CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// A generator that nobody else has.
pub(crate) fn random() -> Result<Random, NoEntropy> {
    let mut seed = [0; 32];
    provider().secure_random.fill(&mut seed).map_err(|_| NoEntropy)?;
    Ok(Random::from_seed(seed))
}
