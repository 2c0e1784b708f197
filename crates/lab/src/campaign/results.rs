//! The rows of a figure, asked by setup, contender and initial path.

use std::collections::BTreeMap;

use plait_sim::campaign::Row;
use plait_sim::stats::Sorted;

use super::plan::{Company, Job, Plan};
use super::setup::Setup;

/// All rows of a plan.
pub(crate) struct Results<'a> {
    pub(crate) plan: &'a Plan,
    rows: BTreeMap<usize, &'a Row>,
}

/// A setup from one of its initial paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) setup: usize,
    /// The initial path's place in the setup's list.
    pub(crate) initial: usize,
}

impl<'a> Results<'a> {
    pub(crate) fn new(plan: &'a Plan, rows: &'a [Row]) -> Self {
        Self { plan, rows: rows.iter().map(|row| (row.index, row)).collect() }
    }

    /// Every setup from each of its initial paths.
    pub(crate) fn starts(&self) -> Vec<Start> {
        let of =
            |(setup, plan): (usize, &Setup)| (0..plan.initial_paths.len()).map(move |initial| Start { setup, initial });
        self.plan.setups.iter().enumerate().flat_map(of).collect()
    }

    /// Names of the contenders, those of several paths first.
    pub(crate) fn contenders(&self) -> Vec<&'a str> {
        let of = |several: bool| {
            let contenders = self.plan.contenders.iter().filter(move |contender| contender.is_multipath() == several);
            contenders.map(|contender| contender.name())
        };
        of(true).chain(of(false)).collect()
    }

    /// Whether it took part.
    pub(crate) fn has(&self, contender: &str) -> bool {
        self.plan.contenders.iter().any(|known| known.name() == contender)
    }

    /// Jobs of a contender with their rows.
    pub(crate) fn runs(&self, contender: &str, start: Start, company: Company) -> Vec<(&'a Job, &'a Row)> {
        let is = |job: &&'a Job| {
            let named = self.plan.contenders.get(job.contender).map(|known| known.name());
            job.setup == start.setup
                && job.initial == start.initial
                && job.company == company
                && named == Some(contender)
        };
        let jobs = self.plan.jobs.iter().filter(is);
        jobs.filter_map(|job| Some((job, *self.rows.get(&job.index)?))).collect()
    }

    /// Rows of a contender from one start.
    pub(crate) fn rows(&self, contender: &str, start: Start) -> Vec<&'a Row> {
        self.runs(contender, start, Company::Beside).into_iter().map(|(_, row)| row).collect()
    }

    /// Rows of a contender from every start.
    pub(crate) fn all(&self, contender: &str) -> Vec<&'a Row> {
        self.starts().into_iter().flat_map(|start| self.rows(contender, start)).collect()
    }

    /// The median time of a contender from one start, seconds; what did not complete took for ever. None without a run.
    pub(crate) fn seconds(&self, contender: &str, start: Start) -> Option<f64> {
        median(self.rows(contender, start).into_iter().map(|row| row.seconds().unwrap_or(f64::INFINITY)))
    }

    /// The median time of each start over that of another contender, where both have one that ends.
    pub(crate) fn ratios(&self, slower: &str, faster: &str) -> Vec<f64> {
        let ratio = |start| Some(self.seconds(slower, start)? / self.seconds(faster, start)?);
        self.starts().into_iter().filter_map(ratio).filter(|ratio| !ratio.is_nan()).collect()
    }

    /// The start of the same setup from its other initial path.
    fn other(&self, start: Start) -> Option<Start> {
        let count = self.plan.setups.get(start.setup)?.initial_paths.len();
        (count == 2).then_some(Start { initial: 1 - start.initial, ..start })
    }

    /// Seconds over the initial path of a start alone and over the other, by this single-path contender.
    pub(crate) fn alone(&self, single: &str, start: Start) -> Option<[f64; 2]> {
        Some([self.seconds(single, start)?, self.seconds(single, self.other(start)?)?])
    }

    /// How much later the first byte of this single-path contender comes over the initial path of a start than over the
    /// other, seconds: medians, and none where the initial path's comes first or no run tells.
    pub(crate) fn later_first_byte(&self, single: &str, start: Start) -> f64 {
        let first_byte = |start| {
            let times = self.rows(single, start).into_iter().filter_map(|row| row.number("first_byte_ms"));
            median(times).map(|milliseconds| milliseconds / 1e3)
        };
        let later = || Some(first_byte(start)? - first_byte(self.other(start)?)?);
        later().unwrap_or(0.0).max(0.0)
    }
}

/// The middle one; of an even number the larger of the two in the middle, so that one without end counts.
fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let sorted = Sorted::new(values);
    sorted.values().get(sorted.len() / 2).copied()
}
