//! What ends a load before it is done: a signal, its time, a reader of standard output that went away.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::CliError;
use crate::stop;

/// Ends work early, and says why; copies agree.
#[derive(Clone, Debug)]
pub(crate) struct Ending(Arc<watch::Sender<Option<CliError>>>);

impl Ending {
    /// Nothing has ended it yet. Signals are heard from now on.
    pub(crate) fn listen() -> Self {
        let ending = Self(Arc::new(watch::Sender::new(None)));
        let (asked, told) = (stop::asked(), ending.clone());
        tokio::spawn(async move {
            asked.await;
            told.end(CliError::Interrupted);
        });
        ending
    }

    /// Ends with `error` after so long.
    pub(crate) fn limit(&self, time: Duration, error: CliError) {
        let told = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            told.end(error);
        });
    }

    /// Ends it now; the first reason counts.
    pub(crate) fn end(&self, error: CliError) {
        self.0.send_if_modified(|reason| {
            let is_first = reason.is_none();
            reason.get_or_insert(error);
            is_first
        });
    }

    /// Awaits `work`, unless it is ended.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
        let mut told = self.0.subscribe();
        let early = async {
            match told.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone()) {
                Some(reason) => reason,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = work => result,
            reason = early => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_ends_what_goes_on() {
        let ending = Ending::listen();
        assert_eq!(ending.or(async { Ok(7) }).await, Ok(7));
        ending.limit(Duration::from_millis(5), CliError::Running("late".into()));
        let never = || std::future::pending::<Result<(), CliError>>();
        assert_eq!(ending.or(never()).await, Err(CliError::Running("late".into())));
        ending.end(CliError::Interrupted);
        assert_eq!(ending.or(never()).await, Err(CliError::Running("late".into())));
        // What is done already is not undone.
        assert_eq!(ending.or(async { Ok(8) }).await, Ok(8));
    }
}
