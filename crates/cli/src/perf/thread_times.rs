//! CPU time of another process by what its threads do.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Serialize;

/// How threads that serve paths are called.
const WORKERS: &str = "plait-worker";

/// CPU time of a process's threads, looked at again and again: threads end before their process does.
#[derive(Debug)]
pub(crate) struct ThreadTimes {
    process: u32,
    /// By thread, whether it serves paths, and its seconds when it was last seen.
    seen: HashMap<String, (bool, f64)>,
}

/// CPU seconds of the threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SharedOut {
    /// Of those that serve paths.
    pub(crate) workers: f64,
    /// Of all others.
    pub(crate) others: f64,
}

impl SharedOut {
    /// What came since `before`.
    pub(crate) fn less(self, before: Self) -> Self {
        Self { workers: self.workers - before.workers, others: self.others - before.others }
    }

    /// For each of so many.
    pub(crate) fn per(self, amount: f64) -> Self {
        Self { workers: self.workers / amount, others: self.others / amount }
    }
}

impl ThreadTimes {
    /// Of the process with this number, from now on.
    pub(crate) fn of(process: u32) -> Self {
        let mut times = Self { process, seen: HashMap::new() };
        times.look();
        times
    }

    /// Reads what the system says now. Where it says nothing, as on systems without /proc, nothing is known.
    pub(crate) fn look(&mut self) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.process)) else { return };
        for task in tasks.flatten() {
            if let Some((is_worker, seconds)) = times_of(task.path()) {
                self.seen.insert(task.file_name().to_string_lossy().into_owned(), (is_worker, seconds));
            }
        }
    }

    /// All that was seen; none where nothing was.
    pub(crate) fn sums(&self) -> Option<SharedOut> {
        let sum = |workers: bool| self.seen.values().filter(|(is, _)| *is == workers).map(|(_, seconds)| seconds).sum();
        (!self.seen.is_empty()).then(|| SharedOut { workers: sum(true), others: sum(false) })
    }
}

/// Whether a thread serves paths, and its CPU seconds; none where it ended.
fn times_of(task: PathBuf) -> Option<(bool, f64)> {
    let name = std::fs::read_to_string(task.join("comm")).ok()?;
    let schedule = std::fs::read_to_string(task.join("schedstat")).ok()?;
    let nanos: u64 = schedule.split_ascii_whitespace().next()?.parse().ok()?;
    Some((name.starts_with(WORKERS), nanos as f64 / 1e9))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn threads_are_told_by_their_names() {
        let ((stop, stopped), (tell, told)) = (channel::<()>(), channel());
        let worker = std::thread::Builder::new().name(format!("{WORKERS}-7")).spawn(move || {
            let sum = (0..100_000_000_u64).fold(0, |sum: u64, n| std::hint::black_box(sum.wrapping_add(n)));
            tell.send(sum).unwrap();
            // Until the other end is dropped.
            let _ = stopped.recv();
        });
        told.recv().unwrap();
        let mut times = ThreadTimes::of(std::process::id());
        let before = times.sums().unwrap();
        assert!(before.workers > 0.005, "{before:?}");
        drop(stop);
        worker.unwrap().join().unwrap();
        times.look();
        assert!(times.sums().unwrap().workers >= before.workers, "what ended counts");
        assert_eq!(ThreadTimes::of(u32::MAX).sums(), None);
    }
}
