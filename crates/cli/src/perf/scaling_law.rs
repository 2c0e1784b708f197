//! How a rate grows with the number of threads: the universal scalability law (Gunther 1993), fitted to what was measured.
//!
//! X(n) = X(1) n / (1 + s (n - 1) + k n (n - 1)), where s is contention and k coherence. N / X(n) is linear in all three, so
//! that least squares over it need no search.

use plait_base::Random;
use plait_sim::stats::Sorted;
use serde::Serialize;

/// Rates of several runs with one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ThreadRates {
    pub(crate) threads: u32,
    pub(crate) rates: Vec<f64>,
}

/// The law with its three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ScalingLaw {
    /// The rate of one thread.
    pub(crate) first: f64,
    /// Share of the work that is done one after the other.
    pub(crate) contention: f64,
    /// What each thread costs each other one.
    pub(crate) coherence: f64,
}

/// A figure and where it lies in 95 % of the resamplings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) best: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The law fitted to runs, with how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct FittedLaw {
    pub(crate) first: Estimate,
    pub(crate) contention: Estimate,
    pub(crate) coherence: Estimate,
    /// Threads beyond which the rate falls; none where it never does.
    pub(crate) knee_threads: Option<f64>,
}

/// Fewest numbers of threads to which the law's three can be fitted with something left to judge them by.
pub(crate) const MIN_POINTS: usize = 4;
const RESAMPLINGS: usize = 1000;

impl ScalingLaw {
    /// By least squares; no contention and no coherence below zero. None without two points, or with a rate that is none.
    pub(crate) fn fit(points: &[(u32, f64)]) -> Option<Self> {
        if points.len() < 2 || points.iter().any(|&(threads, rate)| threads == 0 || rate <= 0.0) {
            return None;
        }
        let mut kept = vec![0, 1, 2];
        loop {
            let found = least_squares(points, &kept)?;
            // What would be negative is zero, the last first.
            let below = kept.iter().zip(&found).rposition(|(&column, &value)| column > 0 && value < 0.0);
            let Some(below) = below else {
                let value = |column| kept.iter().position(|&k| k == column).map_or(0.0, |at| found[at]);
                let first = 1.0 / value(0);
                let is_law = first.is_finite() && first > 0.0;
                return is_law.then(|| Self { first, contention: value(1) * first, coherence: value(2) * first });
            };
            kept.remove(below);
        }
    }

    /// The law of the medians of what is drawn of each number's rates.
    fn of_medians(measured: &[ThreadRates], mut draw: impl FnMut(&[f64]) -> Vec<f64>) -> Option<Self> {
        let points = measured.iter().map(|of| Some((of.threads, Sorted::new(draw(&of.rates)).median()?)));
        Self::fit(&points.collect::<Option<Vec<_>>>()?)
    }

    /// The rate of so many threads.
    pub(crate) fn rate(&self, threads: u32) -> f64 {
        let n = f64::from(threads);
        self.first * n / (1.0 + self.contention * (n - 1.0) + self.coherence * n * (n - 1.0))
    }

    /// Threads beyond which the rate falls.
    pub(crate) fn knee(&self) -> Option<f64> {
        (self.coherence > 0.0 && self.contention < 1.0).then(|| ((1.0 - self.contention) / self.coherence).sqrt())
    }
}

impl FittedLaw {
    /// The law of the medians, and how far it moves when the runs are drawn again. None where [`ScalingLaw::fit`] finds none.
    pub(crate) fn new(measured: &[ThreadRates], random: &mut Random) -> Option<Self> {
        let best = ScalingLaw::of_medians(measured, <[f64]>::to_vec)?;
        let mut draw_again =
            |rates: &[f64]| (0..rates.len()).map(|_| rates[random.below(rates.len() as u64) as usize]).collect();
        let again: Vec<ScalingLaw> =
            (0..RESAMPLINGS).filter_map(|_| ScalingLaw::of_medians(measured, &mut draw_again)).collect();
        let estimate = |of: fn(&ScalingLaw) -> f64| {
            let (best, values) = (of(&best), Sorted::new(again.iter().map(of)));
            let at = |share| values.quantile(share).unwrap_or(best);
            Estimate { best, low: at(0.025), high: at(0.975) }
        };
        let (first, contention) = (estimate(|law| law.first), estimate(|law| law.contention));
        let coherence = estimate(|law| law.coherence);
        Some(Self { first, contention, coherence, knee_threads: best.knee() })
    }

    /// The law of the medians.
    pub(crate) fn law(&self) -> ScalingLaw {
        ScalingLaw { first: self.first.best, contention: self.contention.best, coherence: self.coherence.best }
    }
}

/// What multiplies each of the three numbers in n / X(n).
fn columns(threads: u32) -> [f64; 3] {
    let n = f64::from(threads);
    [1.0, n - 1.0, n * (n - 1.0)]
}

/// The coefficients of the `kept` columns; none where they are not determined.
fn least_squares(points: &[(u32, f64)], kept: &[usize]) -> Option<Vec<f64>> {
    let size = kept.len();
    let mut system = vec![vec![0.0; size + 1]; size];
    for &(threads, rate) in points {
        let all = columns(threads);
        let line: Vec<f64> = kept.iter().map(|&column| all[column]).collect();
        for (row, &left) in system.iter_mut().zip(&line) {
            line.iter().chain([&(f64::from(threads) / rate)]).zip(row).for_each(|(right, sum)| *sum += left * right);
        }
    }
    for at in 0..size {
        let pivot = (at..size).max_by(|&a, &b| system[a][at].abs().total_cmp(&system[b][at].abs()))?;
        system.swap(at, pivot);
        let head = system[at].clone();
        if head[at].abs() < 1e-12 {
            return None;
        }
        for (_, line) in system.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let factor = line[at] / head[at];
            line.iter_mut().zip(&head).for_each(|(value, of_head)| *value -= factor * of_head);
        }
    }
    Some((0..size).map(|at| system[at][size] / system[at][at]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(law: &ScalingLaw) -> Vec<(u32, f64)> {
        [1, 2, 3, 4, 6, 8].map(|threads| (threads, law.rate(threads))).to_vec()
    }

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn what_follows_the_law_is_found() {
        for (contention, coherence) in [(0.0, 0.0), (0.05, 0.0), (0.0, 0.004), (0.03, 0.002)] {
            let law = ScalingLaw { first: 9.0, contention, coherence };
            let found = ScalingLaw::fit(&points(&law)).unwrap();
            assert!(is_close(found.first, 9.0), "{found:?}");
            assert!(is_close(found.contention, contention) && is_close(found.coherence, coherence), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_below_zero() {
        // Better than linear: neither number can be negative.
        let found = ScalingLaw::fit(&[(1, 1.0), (2, 2.2), (3, 3.5), (4, 5.0)]).unwrap();
        assert_eq!((found.contention, found.coherence), (0.0, 0.0));
        assert!(found.first > 1.0 && found.knee().is_none());
        assert_eq!(ScalingLaw::fit(&[(1, 1.0)]), None);
        assert_eq!(ScalingLaw::fit(&[(1, 1.0), (2, 0.0), (3, 1.0)]), None);
    }

    #[test]
    fn the_knee_is_where_more_threads_bring_less() {
        let law = ScalingLaw { first: 1.0, contention: 0.02, coherence: 0.01 };
        let knee = law.knee().unwrap();
        assert!((9.8..10.0).contains(&knee), "{knee}");
        assert!(law.rate(9) < law.rate(10) && law.rate(10) > law.rate(11));
    }

    #[test]
    fn intervals_hold_what_was_drawn_from_the_law() {
        let (law, mut random) = (ScalingLaw { first: 10.0, contention: 0.05, coherence: 0.002 }, Random::from_u64(3));
        let measured: Vec<ThreadRates> = points(&law)
            .into_iter()
            .map(|(threads, rate)| {
                let rates = (0..9).map(|_| rate * (0.97 + 0.06 * random.unit())).collect();
                ThreadRates { threads, rates }
            })
            .collect();
        let told = FittedLaw::new(&measured, &mut random).unwrap();
        assert!((told.law().first - 10.0).abs() < 0.5, "{told:?}");
        for (estimate, truth) in [(told.first, 10.0), (told.contention, 0.05), (told.coherence, 0.002)] {
            assert!(estimate.low <= estimate.best && estimate.best <= estimate.high, "{told:?}");
            assert!((estimate.low - 0.02..estimate.high + 0.02).contains(&truth), "{told:?}");
        }
    }
}
