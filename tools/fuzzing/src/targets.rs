//! The list of targets: what the fuzzer runs for minutes and the plain test for a moment.

use crate::{connection, crypto_stream, decoders, endpoint, path_table, range_set, reassembly};

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, that of the binary under `fuzz/` too.
    pub name: &'static str,
    /// What it does with an input; it panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs from which to begin.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input worth trying, bytes.
    pub max_len: usize,
    /// Random inputs of the plain test.
    pub smoke_runs: u32,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "header",
        run: decoders::header::run,
        seeds: decoders::header::seeds,
        max_len: 2048,
        smoke_runs: 20_000,
    },
    Target {
        name: "frames",
        run: decoders::frames::run,
        seeds: decoders::frames::seeds,
        max_len: 2048,
        smoke_runs: 20_000,
    },
    Target {
        name: "params",
        run: decoders::params::run,
        seeds: decoders::params::seeds,
        max_len: 1024,
        smoke_runs: 10_000,
    },
    Target {
        name: "ack_ranges",
        run: decoders::ack_ranges::run,
        seeds: decoders::ack_ranges::seeds,
        max_len: 1024,
        smoke_runs: 5_000,
    },
    Target {
        name: "tokens",
        run: decoders::tokens::run,
        seeds: decoders::tokens::seeds,
        max_len: 512,
        smoke_runs: 2_000,
    },
    Target { name: "range_set", run: range_set::run, seeds: range_set::seeds, max_len: 1024, smoke_runs: 1_000 },
    Target { name: "reassembly", run: reassembly::run, seeds: reassembly::seeds, max_len: 2048, smoke_runs: 2_000 },
    Target {
        name: "crypto_stream",
        run: crypto_stream::run,
        seeds: crypto_stream::seeds,
        max_len: 1024,
        smoke_runs: 1_000,
    },
    Target { name: "path_table", run: path_table::run, seeds: path_table::seeds, max_len: 2048, smoke_runs: 1_000 },
    Target { name: "endpoint", run: endpoint::run, seeds: endpoint::seeds, max_len: 4096, smoke_runs: 150 },
    Target { name: "connection", run: connection::run, seeds: connection::seeds, max_len: 4096, smoke_runs: 100 },
];

/// The target of this name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
