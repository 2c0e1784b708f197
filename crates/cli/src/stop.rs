//! Being told to stop: Ctrl-C, and where there are such, the signals of a system or a terminal that goes away.

use std::future::Future;
use std::time::Duration;

use crate::clock::Clock;

/// Signals that come so soon after the first are of the same request: `timeout` and others tell the process, and then its group.
const ONE_REQUEST: Duration = Duration::from_millis(300);

/// Exit code of a process that was told twice: it failed while running.
const TOLD_TWICE: i32 = 1;

/// Becomes ready when the user or the system wants the process to end. Heard from this call on, not only once awaited.
/// Whoever asks again while the process still tidies up ends it at once.
pub(crate) fn asked() -> impl Future<Output = ()> {
    let mut signals = Signals::listen();
    async move {
        signals.next().await;
        let first = Clock::start();
        tokio::spawn(async move {
            loop {
                signals.next().await;
                if first.elapsed() > ONE_REQUEST {
                    std::process::exit(TOLD_TWICE);
                }
            }
        });
    }
}

#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        if hangup_counts() {
            kinds.push(SignalKind::hangup());
        }
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        // Without signals nobody can ask: this never ends then.
        std::future::poll_fn(|context| {
            let heard = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if heard { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

/// False where whoever started us does not want us to heed the end of the terminal (`nohup`), or does not say.
#[cfg(unix)]
fn hangup_counts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals nobody can ask.
            std::future::pending::<()>().await;
        }
    }
}
