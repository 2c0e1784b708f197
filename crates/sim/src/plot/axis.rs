//! One axis: from values to pixels, with round numbers at its ticks.

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps stand for equal differences.
    Linear,
    /// By their logarithm; values above zero only.
    Log,
}

/// Share of a logarithmic axis that is left free on either side.
const LOG_ROOM: f64 = 0.03;

/// Values between two ends laid out between two pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    pub(crate) pixels: (f64, f64),
}

impl Axis {
    pub(crate) fn new(values: &[f64], scale: Scale, pixels: (f64, f64)) -> Self {
        let usable = values.iter().copied().filter(|x| x.is_finite() && (scale == Scale::Linear || *x > 0.0));
        let (mut low, mut high) = usable.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        if low > high {
            (low, high) = (if scale == Scale::Log { 0.1 } else { 0.0 }, 1.0);
        }
        if scale == Scale::Linear {
            if low > 0.0 && low < high * 0.5 {
                low = 0.0;
            }
            if high - low < 1e-12 {
                (low, high) = (low - 0.5, high + 0.5);
            }
            let step = step(high - low);
            low = (low / step).floor() * step;
            high = (high / step).ceil() * step;
        } else if high / low < 1.0001 {
            (low, high) = (low / 2.0, high * 2.0);
        } else {
            // Steps at the least and the largest value stand beside the frame, not on it.
            let room = (high / low).powf(LOG_ROOM);
            (low, high) = (low / room, high * room);
        }
        Self { low, high, scale, pixels }
    }

    /// The pixel of a value; values that cannot be placed lie at the low end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (from, to) = self.pixels;
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        from + share * (to - from)
    }

    /// True for values between its ends.
    pub(crate) fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Exactly from the least to the largest value.
    pub(crate) fn tight(values: &[f64], pixels: (f64, f64)) -> Self {
        let usable = || values.iter().copied().filter(|x| x.is_finite());
        let (low, high) = (usable().fold(f64::MAX, f64::min), usable().fold(f64::MIN, f64::max));
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        Self { low, high, scale: Scale::Linear, pixels }
    }

    /// Values with labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let decades = self.high.log10() - self.low.log10();
        match self.scale {
            Scale::Log if decades > 0.8 => {
                let multiples: &[f64] = if decades > 3.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
                let all = decades.flat_map(|d| multiples.iter().map(move |m| m * 10f64.powi(d)));
                let inside = all.filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001);
                inside.map(|value| (value, short(value))).collect()
            }
            _ => {
                let step = step(self.high - self.low);
                let first = (self.low / step - 1e-9).ceil() * step;
                let count = ((self.high - first) / step + 1e-9).floor().max(0.0) as usize;
                let value = |i: usize| first + i as f64 * step;
                (0..=count.min(20)).map(|i| (value(i), stepped(value(i), step))).collect()
            }
        }
    }
}

/// A number with as many decimals as its step has.
fn stepped(value: f64, step: f64) -> String {
    if value.abs() < step * 1e-6 {
        return "0".into();
    }
    if value.abs() >= 1e4 {
        return short(value);
    }
    let decimals = (-(step * 1.000_001).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// A round step that makes four to eight ticks.
fn step(span: f64) -> f64 {
    let rough = (span / 6.0).max(1e-12);
    let decade = 10f64.powf(rough.log10().floor());
    let digit = rough / decade;
    decade
        * if digit < 1.5 {
            1.0
        } else if digit < 3.5 {
            2.0
        } else if digit < 7.5 {
            5.0
        } else {
            10.0
        }
}

/// A number with no more digits than a reader wants.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 1e6 {
        return format!("{}M", short(value / 1e6));
    } else if size >= 1e4 {
        return format!("{}k", short(value / 1e3));
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.01 || size == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let labels = |values: &[f64]| -> Vec<String> {
            Axis::new(values, Scale::Linear, (0.0, 1.0)).ticks().into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(&[0.0, 9.7]), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&[-0.3, 1.0])[0], "-0.4");
        assert_eq!(labels(&[0.0, 0.0098])[..3], ["0", "0.002", "0.004"]);
        assert_eq!(short(2_500_000.0), "2.5M");
        let log = Axis::new(&[0.5, 100.0], Scale::Log, (0.0, 1.0));
        assert!(log.ticks().iter().any(|(value, _)| *value == 10.0));
        let narrow = Axis::new(&[2.6, 3.4], Scale::Log, (0.0, 1.0));
        assert!(narrow.ticks().len() >= 4, "{:?}", narrow.ticks());
        assert_eq!(Axis::tight(&[0.0, 93.0], (0.0, 1.0)).place(93.0), 1.0);
        // Neither the least nor the largest value lies on the frame.
        assert!((0.01..0.05).contains(&log.place(0.5)) && (0.95..0.99).contains(&log.place(100.0)));
    }
}
