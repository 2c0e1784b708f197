//! Fuzz target; its body and its promises are in `plait_fuzzing::path_table`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plait_fuzzing::path_table::run(data));
