//! Randomness from the operating system: asked once for each endpoint and key, never after that.

use plait_base::Random;

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoEntropy;

/// A generator that nobody else has.
///
/// The system is asked itself: the generator of aws-lc, as it is usually built, measures the jitter of the CPU for a tenth
/// of a second before its first number.
pub(crate) fn random() -> Result<Random, NoEntropy> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|_| NoEntropy)?;
    Ok(Random::from_seed(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_has_it() {
        let draw = || random().unwrap().connection_id(20);
        assert_ne!(draw(), draw());
    }
}
