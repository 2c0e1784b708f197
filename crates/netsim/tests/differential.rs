//! plait against other implementations and itself, in random worlds with random faults, byte for byte.
//!
//! PLAIT_SEED=n runs one seed, PLAIT_SEEDS=n so many; PLAIT_TRACE=1 prints what plait's ends observe.

mod peers;
mod trial;

use trial::campaign::hold;

#[test]
fn plait_plait() {
    hold("plait_plait");
}

#[test]
fn plait_quinn() {
    hold("plait_quinn");
}

#[test]
fn quinn_plait() {
    hold("quinn_plait");
}

#[test]
fn plait_noq() {
    hold("plait_noq");
}

#[test]
fn noq_plait() {
    hold("noq_plait");
}

#[test]
fn plait_plait_paths() {
    hold("plait_plait_paths");
}

#[test]
fn plait_noq_paths() {
    hold("plait_noq_paths");
}

#[test]
fn noq_plait_paths() {
    hold("noq_plait_paths");
}
