//! Threads that fail, for tests: real ones do not do it when they are asked to.

/// Whether a thread that serves paths fails; never so in programs.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerFault {
    #[cfg(test)]
    lever: std::sync::Arc<lever::Lever>,
}

#[cfg(not(test))]
impl WorkerFault {
    /// True while the thread does nothing.
    pub(super) fn stalls(&self) -> bool {
        false
    }

    /// Lets the task of a connection fall.
    pub(super) fn strike_connection(&self) {}
}

#[cfg(test)]
mod lever {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;

    use super::WorkerFault;

    #[derive(Debug, Default)]
    pub(super) struct Lever {
        panics: AtomicBool,
        stalls: AtomicBool,
        strikes_connection: AtomicBool,
    }

    impl WorkerFault {
        /// True while the thread does nothing.
        pub(in super::super) fn stalls(&self) -> bool {
            assert!(!self.lever.panics.swap(false, SeqCst), "as the test wants it");
            self.lever.stalls.load(SeqCst)
        }

        /// Lets the task of a connection fall.
        pub(in super::super) fn strike_connection(&self) {
            assert!(!self.lever.strikes_connection.swap(false, SeqCst), "as the test wants it");
        }

        /// The next connection that has its turn there falls.
        pub(crate) fn panic_connection_once(&self) {
            self.lever.strikes_connection.store(true, SeqCst);
        }

        /// Whatever it serves next falls.
        pub(crate) fn panic_once(&self) {
            self.lever.panics.store(true, SeqCst);
        }

        /// Nothing falls any more; true where something was still to fall.
        pub(crate) fn spare(&self) -> bool {
            self.lever.panics.swap(false, SeqCst)
        }

        /// It does nothing from now on.
        pub(crate) fn stall(&self) {
            self.lever.stalls.store(true, SeqCst);
        }
    }
}
