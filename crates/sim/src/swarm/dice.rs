//! What the swarm draws with: choices, and numbers short enough to read.

use std::fmt::Write;

use plait_base::Random;

/// One of these.
pub(super) fn pick<'a, T>(random: &mut Random, items: &'a [T]) -> &'a T {
    &items[random.below(items.len() as u64) as usize]
}

/// Between two values, evenly on a log scale, three digits.
pub(super) fn log(random: &mut Random, low: f64, high: f64) -> f64 {
    round((low.ln() + random.unit() * (high / low).ln()).exp())
}

/// The number rounded to three significant digits.
pub(super) fn round(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let mut text = String::new();
    let _ = write!(text, "{value:.2e}");
    text.parse().unwrap_or(value)
}
