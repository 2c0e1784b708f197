//! Doing the runs of a plan: side by side as far as there is room, kept as they come, gone on with after an interruption.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use plait_sim::campaign::store::stamp_of;
use plait_sim::campaign::{Row, Shard, Store};

use super::plan::{Company, Job, Plan};
use super::room::{Room, Seat};
use super::row::{self, Circumstances};
use crate::error::LabError;
use crate::host::Family;
use crate::machine::Machine;
use crate::run::{self, Bench, Ran, Wiring};

/// A run that the machine was too busy for is done again so often, alone.
const RETRIES_MAX: u32 = 2;

/// How a plan is done.
pub(crate) struct Doing<'a> {
    /// Runs side by side at most.
    pub(crate) jobs: usize,
    /// What the emulator may carry in sum, Mbit/s; a run with more has the machine for itself.
    pub(crate) budget_mbps: f64,
    /// Seed of the order.
    pub(crate) seed: u64,
    /// What results belong to.
    pub(crate) commit: &'a str,
    /// Where rows are kept.
    pub(crate) out: Option<&'a Path>,
    /// A folder for the runs' files, which go with each run.
    pub(crate) scratch: &'a Path,
    /// Set it to end early.
    pub(crate) stop: &'a AtomicBool,
    /// Hears of runs done and runs in all.
    pub(crate) progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Plan {
    /// Does every run that has no row yet; gives all rows in order of their numbers.
    ///
    /// # Errors
    /// The machine refuses something, rows cannot be kept, or it was interrupted: what was done is kept.
    pub(crate) fn run(&self, doing: &Doing<'_>, machine: &Machine) -> Result<Vec<Row>, LabError> {
        let stamp = stamp_of(self.hash(), self.jobs.len(), doing.commit);
        let store = doing.out.map(|out| Store::with_stamp(out, stamp, Shard::WHOLE)).transpose()?;
        let kept = store.as_ref().map(Store::load).transpose()?.unwrap_or_default();
        let mut todo: VecDeque<Job> = self.order(doing.seed).into();
        todo.retain(|job| !kept.contains_key(&job.index));
        let (done, total) = (AtomicUsize::new(self.jobs.len() - todo.len()), self.jobs.len());
        (doing.progress)(done.load(Ordering::Relaxed), total);
        let room = Room::new(doing.jobs, doing.budget_mbps);
        let (todo, rows, failed) = (Mutex::new(todo), Mutex::new(kept), Mutex::new(None));
        let halt = AtomicBool::new(false);
        let worker = || {
            while !halt.load(Ordering::Relaxed) {
                // Who takes a run waits for its place with the list in hand, so that runs begin in their order.
                let mut list = todo.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(job) = list.front().copied() else { return };
                let Some(place) = self.enter(&room, &job, doing.stop) else { return };
                list.pop_front();
                drop(list);
                match self.attempt(&job, place, &room, doing, machine, store.as_ref()) {
                    Ok(row) => {
                        rows.lock().unwrap_or_else(PoisonError::into_inner).insert(row.index, row);
                        (doing.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
                    }
                    Err(error) => {
                        halt.store(true, Ordering::Relaxed);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..doing.jobs.max(1) {
                scope.spawn(worker);
            }
            worker();
        });
        let rows: BTreeMap<usize, Row> = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(LabError::Stopped) | None if rows.len() < total => {
                let kept = doing.out.is_some();
                Err(plait_sim::campaign::CampaignError::Interrupted { done: rows.len(), total, kept }.into())
            }
            Some(error) => Err(error),
            None => {
                let rows: Vec<Row> = rows.into_values().collect();
                store.map(|store| store.write(&rows)).transpose()?;
                Ok(rows)
            }
        }
    }

    /// The rows that a folder has of this plan, whatever program did the runs.
    ///
    /// # Errors
    /// There are none, or they are of another plan.
    pub(crate) fn rows_so_far(&self, out: &Path) -> Result<Vec<Row>, LabError> {
        let stamp = Store::stamp_in(out).map_err(|error| {
            LabError::Usage(format!("{error}; --so-far wants the --out of a figure that was begun"))
        })?;
        if !stamp.starts_with(&stamp_of(self.hash(), self.jobs.len(), "")) {
            let place = out.display();
            return Err(LabError::Usage(format!(
                "{place} holds runs of another figure, or with other points, repetitions, contenders, scheduling or settings"
            )));
        }
        let rows = Store::with_stamp(out, stamp, Shard::WHOLE)?.load()?;
        Ok(rows.into_values().collect())
    }

    fn enter<'a>(&self, room: &'a Room, job: &Job, stop: &AtomicBool) -> Option<Seat<'a>> {
        match job.company {
            Company::Beside => room.enter(self.load_mbps(job), stop),
            Company::Alone => room.enter_alone(stop),
        }
    }

    /// Runs a job, again and alone where the machine was too busy, and keeps its row.
    fn attempt(
        &self,
        job: &Job,
        place: Seat<'_>,
        room: &Room,
        doing: &Doing<'_>,
        machine: &Machine,
        store: Option<&Store>,
    ) -> Result<Row, LabError> {
        let mut circumstances = Circumstances { beside: place.beside, retries: 0 };
        let mut found = self.once(job, doing, machine)?;
        drop(place);
        while found.is_late && circumstances.retries < RETRIES_MAX {
            let place = room.enter_alone(doing.stop).ok_or(LabError::Stopped)?;
            found = self.once(job, doing, machine)?;
            circumstances = Circumstances { beside: place.beside, retries: circumstances.retries + 1 };
        }
        let row = row::row(self, job, doing.commit, &found, circumstances)?;
        store.map(|store| store.keep(&row)).transpose()?;
        Ok(row)
    }

    fn once(&self, job: &Job, doing: &Doing<'_>, machine: &Machine) -> Result<Ran, LabError> {
        let (scenario, seed) = self.scenario(job)?;
        let contender = self.contenders.get(job.contender).ok_or(LabError::Stopped)?;
        let files: PathBuf = doing.scratch.join(format!("run-{}", job.index));
        let (wiring, scheduling) = (Wiring::Namespaces(Family::V4), self.scheduling);
        let bench = Bench { machine, wiring, scheduling, files: &files, qlog: None, stop: doing.stop };
        run::run(&scenario, seed, contender.as_ref(), &bench)
    }
}
