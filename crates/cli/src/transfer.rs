//! A transfer while it runs: looked at ten times a second, so that people, programs and results know of it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use crate::output::progress::{ProgressDisplay, Snapshot};

/// Time between two looks.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Awaits `work`, showing by `look` how it fares meanwhile. The last look is at its end.
pub(crate) async fn watched<T>(
    work: impl Future<Output = T>,
    look: &mut impl FnMut() -> Snapshot,
    progress: &mut ProgressDisplay,
) -> T {
    let mut looks = tokio::time::interval(LOOK_PERIOD);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            out = &mut work => {
                look();
                progress.finish();
                return out;
            }
            _ = looks.tick() => progress.on_tick(&look()),
        }
    }
}
