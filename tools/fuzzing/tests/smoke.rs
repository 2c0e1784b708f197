//! Every fuzz target for a moment: its seeds, then random inputs and changed seeds, the same ones each time.
//!
//! `PLAIT_FUZZ_FACTOR=100` runs a hundred times as many, where there is no fuzzer.

use plait_base::Random;
use plait_fuzzing::{TARGETS, Target, targets};

/// An input that is all chance, or a seed with a few bytes changed, cut or repeated.
fn input(target: &Target, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let noise = |random: &mut Random| {
        let most = if random.chance(0.1) { target.max_len } else { 64 };
        let mut bytes = vec![0; random.below(most as u64) as usize];
        random.fill(&mut bytes);
        bytes
    };
    if seeds.is_empty() || random.chance(0.4) {
        return noise(random);
    }
    let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => bytes.splice(at..at, noise(random).into_iter().take(8)).for_each(drop),
            _ if at < bytes.len() => bytes[at] = random.next_u32() as u8,
            _ => bytes.extend_from_within(at / 2..),
        }
    }
    bytes.truncate(target.max_len);
    bytes
}

fn smoke(name: &str) {
    let target = targets::by_name(name).expect("a target of this name");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty() && seeds.iter().all(|seed| seed.len() <= target.max_len), "seeds of {name}");
    let factor = std::env::var("PLAIT_FUZZ_FACTOR").map_or(1, |factor| factor.parse().expect("a number"));
    let mut random = Random::from_u64(factor);
    let made = (0..factor * u64::from(target.smoke_runs)).map(|_| input(target, &seeds, &mut random));
    for bytes in seeds.iter().cloned().chain(made) {
        let shown = Shown(name, &bytes);
        (target.run)(&bytes);
        std::mem::forget(shown);
    }
}

/// Prints the input that a panic unwinds through, ready for the fuzzer.
struct Shown<'a>(&'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        eprintln!("{} fails with {:?}", self.0, self.1);
    }
}

macro_rules! smoke_tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            smoke(stringify!($name));
        })*

        #[test]
        fn no_target_is_left_out() {
            assert_eq!(TARGETS.iter().map(|t| t.name).collect::<Vec<_>>(), [$(stringify!($name)),*]);
        }
    };
}

smoke_tests! {
    header frames params ack_ranges tokens range_set reassembly crypto_stream path_table endpoint connection
}
