//! Figures that describe a set of numbers: median, quartiles, bootstrap intervals.

use plait_base::Random;

/// Resamplings of a bootstrap.
const RESAMPLES: usize = 1_000;

/// Numbers in order, with what describes them.
///
/// ```
/// use plait_sim::stats::Sorted;
///
/// let seconds = Sorted::new([2.0, 1.0, f64::NAN, 4.0]);
/// assert_eq!((seconds.len(), seconds.median()), (3, Some(2.0)));
/// assert_eq!(seconds.quantile(0.75), Some(3.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Puts them in order; what is no number is left out.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|x| !x.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The numbers, smallest first.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value below which `share` of them lie, between neighbours by proportion.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let (low, high) = (self.0.get(place.floor() as usize)?, self.0.get(place.ceil() as usize)?);
        Some(low + (high - low) * place.fract())
    }

    /// The median; none without numbers.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// The arithmetic mean; none without numbers.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// Standard deviation of a sample.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.len() > 1)?;
        let sum: f64 = self.0.iter().map(|x| (x - mean) * (x - mean)).sum();
        Some((sum / (self.len() - 1) as f64).sqrt())
    }

    /// Share of those for which `test` holds; 0 without any.
    pub fn share(&self, test: impl Fn(f64) -> bool) -> f64 {
        self.0.iter().filter(|x| test(**x)).count() as f64 / self.0.len().max(1) as f64
    }

    /// 95 % interval of the median by bootstrap, the same each time.
    pub fn median_interval(&self) -> Option<(f64, f64)> {
        if self.is_empty() {
            return None;
        }
        let mut random = Random::from_u64(95);
        let mut draw = || self.0.get(random.below(self.len() as u64) as usize).copied().unwrap_or(0.0);
        let medians = (0..RESAMPLES).filter_map(|_| Self::new((0..self.len()).map(|_| draw())).median());
        let medians = Self::new(medians.collect::<Vec<_>>());
        Some((medians.quantile(0.025)?, medians.quantile(0.975)?))
    }

    /// One line: n, median, quartiles, interval; of values that are all the same, as far as shown, the one.
    pub fn summary(&self) -> String {
        let (Some(median), Some(low), Some(high), Some((a, b))) =
            (self.median(), self.quantile(0.25), self.quantile(0.75), self.median_interval())
        else {
            return "n 0".into();
        };
        let ends = [self.values().first(), self.values().last()];
        if self.len() > 1 && ends[0] == ends[1] {
            return format!("{median:.3} in each of {} runs: deterministic", self.len());
        }
        let [least, most] = ends.map(|end| format!("{:.3}", end.unwrap_or(&median)));
        if least == most {
            return format!("{least} in each of {} runs", self.len());
        }
        format!("n {}, median {median:.3} [{a:.3}, {b:.3}], IQR {low:.3} to {high:.3}", self.len())
    }
}

/// Experimental aggregation benefit (CoNEXT 2017, section 4.1): 0 like the best single path, 1 like all of them
/// together, -1 for nothing. `single` and `multipath` are goodputs.
///
/// ```
/// use plait_sim::stats::aggregation_benefit;
///
/// assert_eq!(aggregation_benefit(15.0, &[10.0, 5.0]), 1.0);
/// assert_eq!(aggregation_benefit(10.0, &[10.0, 5.0]), 0.0);
/// assert_eq!(aggregation_benefit(5.0, &[10.0, 5.0]), -0.5);
/// ```
pub fn aggregation_benefit(multipath: f64, single: &[f64]) -> f64 {
    let best = single.iter().copied().fold(0.0, f64::max);
    let gain = multipath - best;
    let rest = single.iter().sum::<f64>() - best;
    match gain >= 0.0 {
        true if rest > 0.0 => gain / rest,
        true => 0.0,
        false => gain / best,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let sorted = Sorted::new([4.0, 1.0, f64::NAN, 3.0, 2.0]);
        assert_eq!((sorted.len(), sorted.median(), sorted.mean()), (4, Some(2.5), Some(2.5)));
        assert_eq!(sorted.quantile(0.25), Some(1.75));
        let (low, high) = sorted.median_interval().unwrap();
        assert!(low >= 1.0 && high <= 4.0 && low < high);
        assert_eq!(Sorted::default().summary(), "n 0");
        assert_eq!(sorted.share(|x| x > 2.5), 0.5);
        assert_eq!(Sorted::new([1.5, 1.5]).summary(), "1.500 in each of 2 runs: deterministic");
        assert_eq!(Sorted::new([1.5, 1.5001]).summary(), "1.500 in each of 2 runs");
        assert!(sorted.summary().starts_with("n 4, median 2.500 ["));
    }

    #[test]
    fn benefit() {
        assert_eq!(aggregation_benefit(15.0, &[10.0, 5.0]), 1.0);
        assert_eq!(aggregation_benefit(10.0, &[10.0, 5.0]), 0.0);
        assert_eq!(aggregation_benefit(0.0, &[10.0, 5.0]), -1.0);
        assert_eq!(aggregation_benefit(5.0, &[10.0, 5.0]), -0.5);
    }
}
