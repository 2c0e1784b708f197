//! A path's part in what the paths of one queue deliver together.

use plait_base::shared_metrics::DeliveryRates;

use super::model::{MaxBandwidth, share};
use crate::controller::RateSample;

/// What one path and those that share its queue deliver.
///
/// A largest rate is one that chance made large, the more so the fewer datagrams it is of: two paths that each believe theirs
/// believe more than the two ever delivered at a time. So what is believed of all is the largest of their sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    /// The newest sample of this path.
    newest: u64,
    /// What the others deliver: sums of all of them.
    pub(super) others: DeliveryRates,
    /// The largest sum of newest samples, over as long as the path's own largest.
    largest: MaxBandwidth,
    /// Packets that left before so many bytes were delivered were of a larger share.
    since_bytes: u64,
}

impl Together {
    /// True for a sample of packets that left with the share that the path has now.
    pub(super) fn is_of_this_share(&self, delivery: &RateSample) -> bool {
        delivery.prior_bytes >= self.since_bytes
    }

    /// A rate of this path, bytes per second; 0 is none.
    pub(super) fn on_sample(&mut self, rate: u64) {
        if rate > 0 {
            self.newest = rate;
        }
    }

    /// The newest rate was one that counts for the largest.
    pub(super) fn count(&mut self, rate: u64) {
        if rate > 0 {
            self.largest.on_sample(rate + self.others.newest_bytes_per_s);
        }
    }

    /// A cycle of the path's largest rate ends.
    pub(super) fn advance(&mut self) {
        self.largest.advance();
    }

    /// The path gave up a part of its share when so many bytes were delivered.
    pub(super) fn on_given(&mut self, delivered_bytes: u64) {
        self.since_bytes = delivered_bytes;
    }

    /// What a path whose own largest rate this is may believe of it.
    pub(super) fn part(&self, largest: u64) -> u64 {
        let (sum, together) = (largest + self.others.largest_bytes_per_s, self.largest.get());
        if self.others.largest_bytes_per_s == 0 || together == 0 || together >= sum {
            return largest;
        }
        share(largest, together as f64 / sum as f64)
    }

    /// What siblings are told.
    pub(super) fn rates(&self, largest: u64) -> DeliveryRates {
        DeliveryRates { newest_bytes_per_s: self.newest, largest_bytes_per_s: largest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(newest_bytes_per_s: u64, largest_bytes_per_s: u64) -> Together {
        Together { others: DeliveryRates { newest_bytes_per_s, largest_bytes_per_s }, ..Together::default() }
    }

    #[test]
    fn all_believe_no_more_than_they_delivered_at_one_time() {
        let mut path = beside(400, 600);
        path.count(500);
        path.count(450);
        // 900 together at one time, where the largest of each are 500 and 600.
        assert_eq!(path.part(500), 500 * 900 / 1100);
        path.others.newest_bytes_per_s = 700;
        path.count(500);
        assert_eq!(path.part(500), 500, "they did deliver more than that");
    }

    #[test]
    fn the_largest_sum_lasts_as_long_as_the_largest_rate() {
        let mut path = beside(400, 600);
        path.count(500);
        path.advance();
        path.count(300);
        assert_eq!(path.part(500), 500 * 900 / 1100);
        path.advance();
        path.advance();
        assert_eq!(path.part(500), 500 * 700 / 1100, "a cycle without a sample forgets nothing");
    }

    #[test]
    fn alone_it_believes_its_own() {
        let mut path = Together::default();
        assert_eq!(path.part(500), 500);
        path.count(300);
        assert_eq!(path.part(500), 500);
        let mut path = beside(400, 600);
        assert_eq!(path.part(500), 500, "nothing was delivered yet");
        path.count(0);
        assert_eq!(path.part(500), 500, "no sample is none");
    }
}
