//! How long a load took, and what a client says of it.

use std::io::Write;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// A load that is being measured.
pub struct Measured {
    began: Instant,
    cpu_seconds: f64,
}

impl Measured {
    /// It begins now, which is said: `ready`.
    #[allow(clippy::disallowed_methods, reason = "it measures")]
    pub fn start() -> Self {
        say("ready");
        Self { began: Instant::now(), cpu_seconds: cpu_seconds() }
    }

    /// Says how long it took and how much of a core, then the 50th, the 99th and the 99.9th of 100 `delays` in microseconds
    /// where there are any, and waits to be killed.
    pub fn finish(self, mut delays: Vec<Duration>) -> ! {
        let (seconds, cpu) = (self.began.elapsed().as_secs_f64(), cpu_seconds() - self.cpu_seconds);
        delays.sort_unstable();
        let quantiles = [0.5, 0.99, 0.999].map(|share| quantile(&delays, share));
        let quantiles: String =
            quantiles.iter().flatten().map(|delay| format!(" {}", delay.as_secs_f64() * 1e6)).collect();
        say(&format!("{seconds} {cpu}{quantiles}"));
        loop {
            std::thread::park();
        }
    }
}

/// The smallest of sorted values that is no smaller than this share of them; none of none.
fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("times");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// Prints a line for who started this program.
pub(crate) fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("standard output");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::quantile;

    #[test]
    fn quantiles_are_values_of_the_list() {
        let delays: Vec<_> = (1..=1_000).map(Duration::from_micros).collect();
        let micros = |share| quantile(&delays, share).map(|delay| delay.as_micros());
        assert_eq!([0.5, 0.99, 0.999, 1.0].map(micros), [Some(500), Some(990), Some(999), Some(1_000)]);
        assert_eq!(quantile(&delays[..1], 0.999), Some(Duration::from_micros(1)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
