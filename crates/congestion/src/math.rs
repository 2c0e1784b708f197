//! Arithmetic that must give the same bits everywhere: only exact IEEE 754 operations, no library functions.

/// The real cube root of a finite `x`, within one unit in the last place or two.
pub(crate) fn cbrt(x: f64) -> f64 {
    if x < 0.0 {
        return -cbrt(-x);
    }
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    // A third of the exponent is a guess within 6 %; each Newton step squares the error.
    let mut y = f64::from_bits(x.to_bits() / 3 + 0x2A9F_7893_0000_0000);
    for _ in 0..5 {
        y -= (y * y * y - x) / (3.0 * y * y);
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for (x, root) in [(0.0, 0.0), (1.0, 1.0), (8.0, 2.0), (27.0, 3.0), (1e-9, 1e-3), (1e18, 1e6), (-64.0, -4.0)] {
            assert!((cbrt(x) - root).abs() <= 1e-12 * f64::abs(root), "{x}: {}", cbrt(x));
        }
        for i in 1..2000 {
            let x = f64::from(i) * 0.37;
            let root = cbrt(x);
            assert!((root * root * root - x).abs() <= 1e-13 * x, "{x}");
        }
    }
}
