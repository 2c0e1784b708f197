//! A socket whose queue is stuck, for tests: real ones cannot be filled over loopback.

/// Whether a socket takes nothing; never so in programs.
#[derive(Debug, Default)]
pub(super) struct TestFault {
    #[cfg(test)]
    jammed: std::sync::atomic::AtomicBool,
    #[cfg(test)]
    refused: std::sync::atomic::AtomicU64,
}

#[cfg(not(test))]
impl TestFault {
    /// True when nothing can be sent.
    pub(super) fn refuses(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod lever {
    use std::sync::atomic::Ordering::SeqCst;

    use super::super::SharedSocket;
    use super::TestFault;

    impl TestFault {
        /// True when nothing can be sent.
        pub(in super::super) fn refuses(&self) -> bool {
            let jammed = self.jammed.load(SeqCst);
            self.refused.fetch_add(u64::from(jammed), SeqCst);
            jammed
        }
    }

    impl SharedSocket {
        /// From now on it takes nothing.
        pub(crate) fn jam(&self) {
            self.fault.jammed.store(true, SeqCst);
        }

        /// It takes datagrams again, and those who wait learn of it. Gives the number of attempts meanwhile.
        pub(crate) fn free(&self) -> u64 {
            self.fault.jammed.store(false, SeqCst);
            self.relay.wake_by_ref();
            self.fault.refused.swap(0, SeqCst)
        }
    }
}
