//! Round trips of a uniflow, apart by the receive flow on which the ack came back.

use std::time::Duration;

use plait_base::PathId;
use plait_base::limits::MAX_PATHS;
use smallvec::SmallVec;

/// The average of one pair of flows.
#[derive(Clone, Copy, Debug)]
struct PairRtt {
    via: PathId,
    /// Smoothed as RFC 9002 5.3 does it.
    average: Duration,
    samples: u32,
}

/// Averages by the receive flow that brought the acks, at most one for each id.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairRtts {
    pairs: SmallVec<[PairRtt; 2]>,
}

impl PairRtts {
    /// A sample whose ack arrived on the receive flow `via`.
    pub(crate) fn on_sample(&mut self, via: PathId, sample: Duration) {
        if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.via == via) {
            pair.average = (pair.average * 7 + sample) / 8;
            pair.samples = pair.samples.saturating_add(1);
        } else if self.pairs.len() < MAX_PATHS {
            self.pairs.push(PairRtt { via, average: sample, samples: 1 });
        }
    }

    /// The mean of the averages, each with the weight of its samples; none before the first.
    pub(crate) fn aggregate(&self) -> Option<Duration> {
        let samples: u128 = self.pairs.iter().map(|pair| u128::from(pair.samples)).sum();
        let weighted: u128 = self.pairs.iter().map(|pair| pair.average.as_nanos() * u128::from(pair.samples)).sum();
        let mean = weighted.checked_div(samples)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pairs_weigh_as_much_as_they_have_samples() {
        let mut rtts = PairRtts::default();
        assert_eq!(rtts.aggregate(), None);
        (0..3).for_each(|_| rtts.on_sample(PathId(0), MS * 20));
        assert_eq!(rtts.aggregate(), Some(MS * 20));
        rtts.on_sample(PathId(1), MS * 1000);
        assert_eq!(rtts.aggregate(), Some(MS * 265));
        // a pair's own average is smoothed
        rtts.on_sample(PathId(1), MS * 200);
        assert_eq!(rtts.aggregate(), Some((MS * 60 + MS * 1800) / 5));
    }

    #[test]
    fn pairs_are_bounded() {
        let mut rtts = PairRtts::default();
        (0..1000).for_each(|id| rtts.on_sample(PathId(id), MS));
        assert_eq!(rtts.pairs.len(), MAX_PATHS);
    }
}
