//! Fuzz target; its body and its promises are in `plait_fuzzing::range_set`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plait_fuzzing::range_set::run(data));
