//! What seeds from [`FURTHER_FROM`] on draw besides, from randomness of their own: smaller seeds stay what they were.

use plait_base::Random;

use super::dice::{log, pick, round};

/// The first seed that draws further keys.
pub const FURTHER_FROM: u64 = 1_000_000;

/// Randomness of the further keys of a seed; none for those that draw none.
pub(super) fn random(seed: u64) -> Option<Random> {
    (seed >= FURTHER_FROM).then(|| Random::from_u64(seed ^ 0x6675_7274_6865_7201))
}

/// Queue management with settings of its own.
pub(super) fn aqm(random: &mut Random) -> String {
    let codel = |random: &mut Random| {
        let target = log(random, 1.0, 30.0);
        format!("target_ms = {target:?}, interval_ms = {:?}", round(target * log(random, 5.0, 30.0)))
    };
    let settings = match random.below(3) {
        0 => format!("kind = \"codel\", {}", codel(random)),
        1 => {
            let min = log(random, 3_000.0, 60_000.0) as u64;
            let (drop, weight) = (log(random, 0.02, 0.5), log(random, 0.0005, 0.1));
            let max = min * (2 + random.below(4));
            format!("kind = \"red\", min_bytes = {min}, max_bytes = {max}, drop_max = {drop:?}, weight = {weight:?}")
        }
        _ => {
            let (codel, device) = (codel(random), random.below(40));
            let (queues, packets) = (*pick(random, &[1, 16, 1024]), log(random, 20.0, 10_000.0) as u64);
            format!(
                "kind = \"fq-codel\", {codel}, queues = {queues}, packets = {packets}, device_packets = {device}, \
                 quantum_bytes = {}",
                log(random, 300.0, 9_000.0) as u64
            )
        }
    };
    format!("aqm = {{ {settings} }}")
}

/// Bursts of losses that count in time.
pub(super) fn bursts(random: &mut Random) -> String {
    let bad = log(random, 0.5, 200.0);
    if random.chance(0.5) {
        let mean = log(random, 0.001, 0.08);
        return format!("loss_model = {{ kind = \"bursts\", mean = {mean:?}, burst_ms = {bad:?} }}");
    }
    let good = round(bad * log(random, 12.0, 200.0));
    let lost = log(random, 0.3, 1.0);
    format!("loss_model = {{ kind = \"gilbert-elliott\", good_ms = {good:?}, bad_ms = {bad:?}, loss_bad = {lost:?} }}")
}

/// How jitter hits packets that follow each other.
pub(super) fn jitter_kind(random: &mut Random) -> String {
    format!("jitter_kind = \"{}\"", pick(random, &["ordered", "free", "drift"]))
}

/// Settings of the ends.
pub(super) fn ends(random: &mut Random) -> Vec<String> {
    let mut lines = Vec::new();
    if random.chance(0.3) {
        lines.push(format!("max_burst_bytes = {}", log(random, 1_500.0, 100_000.0) as u64));
    }
    if random.chance(0.3) {
        lines.push("tell_paths = true".to_owned());
    }
    lines
}

/// Whether the client begins on other paths too.
pub(super) fn tries_other_paths(random: &mut Random) -> bool {
    random.chance(0.3)
}

/// Which acks the ends ask each other for.
pub(super) fn asked_acks(random: &mut Random) -> Vec<String> {
    let mut lines = Vec::new();
    if random.chance(0.3) {
        lines.push(format!("ack_frequency_packets = {}", log(random, 1.0, 2_000.0) as u64));
        if random.chance(0.5) {
            lines.push(format!("ack_frequency_delay_ms = {:?}", log(random, 1.0, 1_000.0)));
        }
    }
    lines
}

/// A window of the receiver, from less than a round trip needs to more than any does.
pub(super) fn window(random: &mut Random) -> String {
    format!("receive_window_bytes = {}", log(random, 10_000.0, 64e6) as u64)
}
