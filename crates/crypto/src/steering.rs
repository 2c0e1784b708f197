//! Connection ids that tell us, and nobody else, which of several receivers they lead to.
//!
//! The receiver is found by a block cipher over the first eight bytes of the id, in additions, shifts and exclusive ors of 32 bits: what
//! the packet filter of a system can do before any program sees a packet. It protects nothing but that an observer cannot tell which ids
//! are of one connection (RFC 9000 5.1).

use std::fmt;

use plait_base::{ConnectionId, Random};

/// Half rounds of XTEA, as its authors have them (Needham and Wheeler, 1997).
const ROUNDS: usize = 64;
const DELTA: u32 = 0x9e37_79b9;

/// A secret by which connection ids lead to receivers.
#[derive(Clone)]
pub struct CidSteering {
    /// For each half round what its key and its number give.
    round_keys: [u32; ROUNDS],
    receivers: u32,
}

impl CidSteering {
    /// Bytes of an id that decide; a shorter one leads nowhere.
    pub const BLOCK_BYTES: usize = 8;

    /// With a key that nobody else has, for so many receivers, at least one.
    pub fn generate(receivers: usize, random: &mut Random) -> Self {
        let mut key = [0; 16];
        random.fill(&mut key);
        Self::new(u32::try_from(receivers).unwrap_or(u32::MAX).max(1), &key)
    }

    fn new(receivers: u32, key: &[u8; 16]) -> Self {
        let (words, _) = key.as_chunks::<4>();
        let word = |index: u32| words.get(index as usize & 3).map_or(0, |word| u32::from_be_bytes(*word));
        let mut sum = 0_u32;
        let round_keys = std::array::from_fn(|round| {
            if round % 2 == 0 {
                return sum.wrapping_add(word(sum));
            }
            sum = sum.wrapping_add(DELTA);
            sum.wrapping_add(word(sum >> 11))
        });
        Self { round_keys, receivers }
    }

    /// How many receivers there are.
    pub fn receivers(&self) -> u32 {
        self.receivers
    }

    /// What is mixed in, half round after half round: with the first two words of an id, big-endian, the even ones change the first
    /// word, the odd ones the second, `a += (((b << 4) ^ (b >> 5)) + b) ^ key`. The first word modulo [`Self::receivers`] is the receiver.
    pub fn round_keys(&self) -> &[u32] {
        &self.round_keys
    }

    /// The receiver that an id leads to; none where it is too short.
    pub fn receiver(&self, cid: &ConnectionId) -> Option<usize> {
        let (first, _) = self.encipher(words(cid.first_chunk()?));
        Some((first % self.receivers) as usize)
    }

    /// A random id of `len` bytes that leads to a receiver, or nowhere where it is too short. Numbers from [`Self::receivers`] on begin
    /// again with the first.
    pub fn connection_id(&self, len: usize, receiver: usize, random: &mut Random) -> ConnectionId {
        let drawn = random.connection_id(len);
        let Some(block) = drawn.first_chunk() else { return drawn };
        let (first, second) = words(block);
        // One of the numbers that this receiver has, all as likely as each other.
        let first =
            (first % (u32::MAX / self.receivers)) * self.receivers + (receiver % self.receivers as usize) as u32;
        let (first, second) = self.decipher((first, second));
        let mut bytes = [0; plait_base::limits::MAX_CID_LEN];
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        bytes[4..8].copy_from_slice(&second.to_be_bytes());
        bytes[8..drawn.len()].copy_from_slice(&drawn[8..]);
        ConnectionId::new(&bytes[..drawn.len()]).unwrap_or(drawn)
    }

    fn encipher(&self, (mut first, mut second): (u32, u32)) -> (u32, u32) {
        for (round, key) in self.round_keys.iter().enumerate() {
            if round % 2 == 0 {
                first = first.wrapping_add(mix(second) ^ key);
            } else {
                second = second.wrapping_add(mix(first) ^ key);
            }
        }
        (first, second)
    }

    fn decipher(&self, (mut first, mut second): (u32, u32)) -> (u32, u32) {
        for (round, key) in self.round_keys.iter().enumerate().rev() {
            if round % 2 == 0 {
                first = first.wrapping_sub(mix(second) ^ key);
            } else {
                second = second.wrapping_sub(mix(first) ^ key);
            }
        }
        (first, second)
    }
}

fn mix(word: u32) -> u32 {
    ((word << 4) ^ (word >> 5)).wrapping_add(word)
}

fn words(block: &[u8; CidSteering::BLOCK_BYTES]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = *block;
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}

impl fmt::Debug for CidSteering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CidSteering").field("receivers", &self.receivers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_is_xtea() {
        // The vectors that implementations of it are checked with.
        let key: [u8; 16] = std::array::from_fn(|at| at as u8);
        let steering = CidSteering::new(2, &key);
        assert_eq!(steering.encipher((0x4142_4344, 0x4546_4748)), (0x497d_f3d0, 0x7261_2cb5));
        assert_eq!(steering.encipher((0x4141_4141, 0x4141_4141)), (0xe78f_2d13, 0x7443_41d8));
        assert_eq!(steering.decipher((0x497d_f3d0, 0x7261_2cb5)), (0x4142_4344, 0x4546_4748));
        let none = CidSteering::new(2, &[0; 16]);
        assert_eq!(none.encipher((0, 0)), (0xdee9_d4d8, 0xf713_1ed9));
    }

    #[test]
    fn ids_lead_where_they_are_to_and_look_like_any() {
        // RFC 9000 5.1-1: nothing in an id tells an observer where it leads
        let mut random = Random::from_u64(7);
        for receivers in [1, 2, 3, 64, 1024] {
            let steering = CidSteering::generate(receivers, &mut random);
            let mut ones = [0_u32; 64];
            for receiver in (0..receivers).cycle().take(4096) {
                for len in [8, 20] {
                    let cid = steering.connection_id(len, receiver, &mut random);
                    assert_eq!((cid.len(), steering.receiver(&cid)), (len, Some(receiver)));
                }
                // All of one receiver: each bit is set in half of them.
                let cid = steering.connection_id(8, 0, &mut random);
                let bits = u64::from_be_bytes(*cid.first_chunk().unwrap());
                ones.iter_mut().enumerate().for_each(|(at, count)| *count += (bits >> at & 1) as u32);
            }
            assert!(ones.iter().all(|count| (1_850..2_250).contains(count)), "{receivers}: {ones:?}");
        }
        let steering = CidSteering::generate(2, &mut random);
        let short = steering.connection_id(7, 1, &mut random);
        assert_eq!((short.len(), steering.receiver(&short)), (7, None));
    }

    #[test]
    fn who_has_another_key_cannot_tell() {
        let mut random = Random::from_u64(8);
        let (ours, theirs) = (CidSteering::generate(2, &mut random), CidSteering::generate(2, &mut random));
        let guessed =
            (0..10_000).filter(|_| theirs.receiver(&ours.connection_id(8, 1, &mut random)) == Some(1)).count();
        assert!((4_800..5_200).contains(&guessed), "{guessed} of 10,000");
        assert!(!format!("{ours:?}").contains("key"));
    }
}
