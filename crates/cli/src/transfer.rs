//! A transfer while it runs: looked at ten times a second, so that people, programs and results know of it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use plait::Connection;

use crate::http::meter::Meter;
use crate::output::progress::{ProgressDisplay, Snapshot};
use crate::output::summary::PathSummary;
use crate::paths::PathTable;

/// Time between two looks.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Awaits `work`, showing how `connection` fares meanwhile; the paths at its end are in the book.
pub(crate) async fn watched<T>(
    work: impl Future<Output = T>,
    connection: &Connection,
    meter: &Meter,
    progress: &mut ProgressDisplay,
) -> (T, Vec<PathSummary>) {
    let mut book = PathTable::default();
    let mut looks = tokio::time::interval(LOOK_PERIOD);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut work = pin!(work);
    loop {
        tokio::select! {
            out = &mut work => {
                book.sample(connection);
                progress.finish();
                return (out, book.paths());
            }
            _ = looks.tick() => {
                book.sample(connection);
                progress.on_tick(&Snapshot { at_s: meter.seconds(), bytes: meter.bytes(), paths: book.paths() });
            }
        }
    }
}
