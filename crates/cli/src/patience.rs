//! Noticing a peer that takes nothing of what it asked for.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

/// How often a peer's progress is looked at while it may take nothing.
const LOOKS: u32 = 4;

/// How long a peer may cost more than its connection without any progress.
#[derive(Debug)]
pub(crate) struct Patience {
    looks: Interval,
    progress: u64,
    idle_looks: u32,
}

/// How a peer stands at one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debt {
    /// It asked for nothing that it does not have.
    Idle,
    /// It is owed something, and has taken and brought so much in all.
    Owed(u64),
}

impl Patience {
    /// Patience for so long, from now on.
    pub(crate) fn new(limit: Duration) -> Self {
        let mut looks = tokio::time::interval(limit / LOOKS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { looks, progress: 0, idle_looks: 0 }
    }

    /// Becomes ready when it is time to look.
    pub(crate) async fn next(&mut self) {
        self.looks.tick().await;
    }

    /// Takes a look; true when patience has run out.
    pub(crate) fn has_run_out(&mut self, standing: Debt) -> bool {
        match standing {
            Debt::Owed(progress) if progress == self.progress => self.idle_looks += 1,
            Debt::Owed(progress) => (self.progress, self.idle_looks) = (progress, 0),
            Debt::Idle => self.idle_looks = 0,
        }
        self.idle_looks > LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_runs_out_without_progress_alone() {
        let mut patience = Patience::new(Duration::from_secs(4));
        patience.next().await;
        assert!((0..100).all(|taken| !patience.has_run_out(Debt::Owed(taken))));
        assert!((0..100).all(|_| !patience.has_run_out(Debt::Idle)));
        let looks = (0..100).take_while(|_| !patience.has_run_out(Debt::Owed(99))).count();
        assert_eq!(looks, LOOKS as usize);
    }
}
