//! The one source of randomness: a seeded generator handed down by the caller.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;

use crate::ids::ConnectionId;

/// A cryptographically strong generator with a stable stream: the same seed gives the same numbers on
/// every platform and in every release.
///
/// ```
/// use plait_base::Random;
/// let (mut a, mut b) = (Random::from_seed([7; 32]), Random::from_seed([7; 32]));
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
///
/// It keeps 256 bytes that it has made ahead until [`Self::rest`].
#[derive(Clone, Debug)]
pub struct Random {
    seed: [u8; 32],
    /// Where it came to rest, words of 4 bytes.
    position: u64,
    awake: Option<Box<ChaCha12Rng>>,
}

impl Random {
    /// A generator from 32 bytes; a runtime takes them from the operating system.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self { seed, position: 0, awake: None }
    }

    /// A generator from a small number, for simulation and tests.
    pub fn from_u64(seed: u64) -> Self {
        Self::from_seed(ChaCha12Rng::seed_from_u64(seed).get_seed())
    }

    /// Gives back memory until the next number, which stays what it would have been: thousands of idle connections have
    /// several generators each.
    pub fn rest(&mut self) {
        if let Some(generator) = self.awake.take() {
            // Nobody draws the 2^64 words whose count would need more bits.
            self.position = generator.get_word_pos() as u64;
        }
    }

    fn wake(&mut self) -> &mut ChaCha12Rng {
        self.awake.get_or_insert_with(|| {
            let mut generator = ChaCha12Rng::from_seed(self.seed);
            generator.set_word_pos(u128::from(self.position));
            Box::new(generator)
        })
    }

    /// An independent generator, seeded from this one.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.fill(&mut seed);
        Self::from_seed(seed)
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.wake().next_u64()
    }

    /// 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.wake().next_u32()
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Multiply-shift; its bias is below 2^-64 * bound.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Overwrites `bytes` with random ones.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.wake().fill_bytes(bytes);
    }

    /// A connection id of `len` random bytes; `len` is cut to 20.
    pub fn connection_id(&mut self, len: usize) -> ConnectionId {
        let mut bytes = [0; crate::limits::MAX_CID_LEN];
        let len = len.min(bytes.len());
        self.fill(&mut bytes[..len]);
        ConnectionId::new(&bytes[..len]).unwrap_or(ConnectionId::EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_stable() {
        assert_eq!(Random::from_u64(1).next_u64(), Random::from_u64(1).next_u64());
        assert_ne!(Random::from_u64(1).next_u64(), Random::from_u64(2).next_u64());
        let mut r = Random::from_u64(3);
        assert!((0..1000).all(|_| r.below(7) < 7 && (0.0..1.0).contains(&r.unit())));
    }

    #[test]
    fn rest_changes_no_number() {
        let (mut rested, mut restless) = (Random::from_u64(4), Random::from_u64(4));
        for len in (0..300).map(|n| n % 41) {
            rested.rest();
            let (mut a, mut b) = ([0; 41], [0; 41]);
            rested.fill(&mut a[..len]);
            restless.fill(&mut b[..len]);
            assert_eq!(a, b);
            rested.rest();
            assert_eq!((rested.next_u32(), rested.next_u64()), (restless.next_u32(), restless.next_u64()));
        }
        rested.rest();
        assert_eq!(rested.clone().next_u64(), restless.next_u64());
    }
}
