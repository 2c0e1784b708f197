//! Being told to stop: Ctrl-C, and the termination signal where there is one.

/// Waits until the user or the system wants the process to end.
pub(crate) async fn asked() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals nobody can ask.
        std::future::pending::<()>().await;
    }
}
