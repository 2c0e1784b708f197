//! Tasks that wait for the same thing.

use std::pin::pin;
use std::task::Waker;

use tokio::sync::Notify;

/// Wakers, each task's once.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn register(&mut self, waker: &Waker) {
        if !self.0.iter().any(|kept| kept.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Tries, and tries again whenever `news` comes, until there is a result. Cancel-safe where `attempt` is.
pub(crate) async fn until<T>(news: &Notify, mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut notified = pin!(news.notified());
        // Before the attempt, so that news between the two is not missed.
        notified.as_mut().enable();
        if let Some(result) = attempt() {
            return result;
        }
        notified.await;
    }
}
