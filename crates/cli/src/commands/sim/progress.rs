//! What people and programs see while runs go on.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use plait_sim::run::Headway;
use serde_json::json;

use super::args::ShowArgs;
use crate::clock::Clock;
use crate::output::{eprint_line, print_json};
use crate::units::{human_bytes, rounded};

/// Runs of a part between two lines where there is no terminal for a bar.
const RUNS_A_LINE: usize = 25;

/// Time between two lines of progress where there is no terminal, and between two objects about a single run.
const LINE_PERIOD: Duration = Duration::from_secs(10);

/// Length of the bar of a single run.
const BAR_STEPS: u64 = 1_000_000;

/// How progress is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Bar,
    Lines,
}

/// Shows how many runs are done, or how far a single one is: a bar on a terminal, a line now and then elsewhere, and an object a run for programs that
/// want them.
pub(crate) struct RunProgress {
    bar: ProgressBar,
    show: ShowArgs,
    clock: Clock,
    manner: Manner,
    /// When the next line is due.
    next: Mutex<Duration>,
}

impl RunProgress {
    pub(crate) fn new(show: ShowArgs) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
        let manner = if stderr().is_terminal() { Manner::Bar } else { Manner::Lines };
        let bar = match manner {
            Manner::Bar => ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            Manner::Lines => ProgressBar::hidden(),
        };
        Self { bar, show, clock: Clock::start(), manner, next: Mutex::new(LINE_PERIOD) }
    }

    /// The same, with a line now and then where there is neither terminal nor program.
    pub(super) fn on_step(&self, part: &str, done: usize, total: usize) {
        if self.manner == Manner::Lines && !self.show.is_json() && done.is_multiple_of(RUNS_A_LINE) {
            // What nobody reads is not missed.
            let _ = writeln!(stderr(), "{part}: {done} of at most {total} runs");
        }
        self.on_run(Some(part), done, total);
    }

    pub(crate) fn on_run(&self, part: Option<&str>, done: usize, total: usize) {
        // How long it is comes first: every change is drawn.
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(part.unwrap_or_default().to_owned());
        if let (Manner::Lines, Some(after)) = (self.manner, self.due()) {
            eprint_line(&runs_line(part, done, total, after));
        }
        if self.show.json_stream {
            // What cannot be printed now cannot be at the end either, and is told then.
            let _ = print_json(&json!({ "event": "progress", "part": part, "done": done, "total": total }));
        }
    }

    /// A single run is so far.
    pub(super) fn on_headway(&self, headway: Headway) {
        if self.bar.length() != Some(BAR_STEPS) {
            self.bar.set_length(BAR_STEPS);
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} % {eta}") {
                self.bar.set_style(style);
            }
        }
        self.bar.set_position((headway.share * BAR_STEPS as f64) as u64);
        self.bar.set_message(reached(headway));
        let Some(after) = self.due() else { return };
        if self.manner == Manner::Lines {
            eprint_line(&headway_line(headway, after));
        }
        if self.show.json_stream {
            let Headway { elapsed, verified_bytes, share } = headway;
            let (at_s, share) = (rounded(elapsed.as_secs_f64(), 3), rounded(share, 4));
            // As above.
            let _ = print_json(&json!({
                "event": "progress", "part": null, "done": 0, "total": 1,
                "at_s": at_s, "bytes": verified_bytes, "share": share,
            }));
        }
    }

    /// Prints something above the bar.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// The bar goes.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Whether a line is due: the time since the beginning, if so.
    fn due(&self) -> Option<Duration> {
        let (mut next, now) = (self.next.lock().unwrap_or_else(PoisonError::into_inner), self.clock.elapsed());
        if now < *next {
            return None;
        }
        *next = now + LINE_PERIOD;
        Some(now)
    }
}

/// How far a campaign is.
fn runs_line(part: Option<&str>, done: usize, total: usize, after: Duration) -> String {
    let part = part.map(|part| format!("{part}: ")).unwrap_or_default();
    format!("{part}{done} of {total} runs done after {:.0} s", after.as_secs_f64())
}

/// How far a single run is.
fn headway_line(headway: Headway, after: Duration) -> String {
    let percent = (headway.share * 1000.0).floor() / 10.0;
    format!("{percent:.1} % done after {:.0} s: {}", after.as_secs_f64(), reached(headway))
}

/// What a single run has behind it, in virtual time.
fn reached(headway: Headway) -> String {
    format!("{:.1} s simulated, {}", headway.elapsed.as_secs_f64(), human_bytes(headway.verified_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_a_line_now_and_then() {
        let show = ShowArgs { json: false, json_stream: false };
        let due = |at| RunProgress { next: Mutex::new(at), ..RunProgress::new(show) };
        let progress = due(Duration::ZERO);
        assert!(progress.due().is_some());
        assert_eq!((progress.due(), due(Duration::MAX).due()), (None, None));
        let after = Duration::from_secs(10);
        assert_eq!(runs_line(Some("fig"), 3, 10, after), "fig: 3 of 10 runs done after 10 s");
        let headway = Headway { elapsed: Duration::from_millis(2500), verified_bytes: 1_500_000, share: 0.1299 };
        assert_eq!(headway_line(headway, after), "12.9 % done after 10 s: 2.5 s simulated, 1.5 MB");
    }
}
