//! Being told to stop: Ctrl-C, and the termination signal where there is one.

use std::future::Future;

/// Becomes ready when the user or the system wants the process to end. Heard from this call on, not only once awaited.
pub(crate) fn asked() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let (interrupt, terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    };
    async move {
        #[cfg(unix)]
        if let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signals nobody can ask.
            std::future::pending::<()>().await;
        }
    }
}
