//! Fuzz target; its body and its promises are in `plait_fuzzing::crypto_stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plait_fuzzing::crypto_stream::run(data));
