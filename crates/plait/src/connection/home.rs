//! Where a connection's tasks run.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;

/// The runtimes that a connection's own task runs on, and tasks of the application that belong to it.
#[derive(Debug)]
pub(crate) struct Home {
    application: Handle,
    /// The thread of the endpoint that it began on, where its datagrams are to arrive.
    thread: Option<(usize, Handle)>,
    /// Its task runs on that thread.
    lives_there: AtomicBool,
}

impl Home {
    /// It begins on this thread, with its runtime, or on the runtime of the application.
    pub(crate) fn new(application: &Handle, thread: Option<(usize, &Handle)>) -> Self {
        let thread = thread.map(|(thread, runtime)| (thread, runtime.clone()));
        Self { application: application.clone(), lives_there: AtomicBool::new(thread.is_some()), thread }
    }

    /// The thread of the endpoint that it began on, on a server that has such threads.
    pub(crate) fn thread(&self) -> Option<usize> {
        self.thread.as_ref().map(|(thread, _)| *thread)
    }

    /// The thread of the endpoint that its task runs on, with its runtime.
    fn resides(&self) -> Option<&(usize, Handle)> {
        self.thread.as_ref().filter(|_| self.lives_there.load(Ordering::Relaxed))
    }

    /// The thread of the endpoint that its task runs on.
    pub(crate) fn residence(&self) -> Option<usize> {
        self.resides().map(|(thread, _)| *thread)
    }

    /// From now on its task runs on the application's runtime.
    pub(super) fn leave_thread(&self) {
        self.lives_there.store(false, Ordering::Relaxed);
    }

    /// Its task's runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        self.resides().map_or(&self.application, |(_, runtime)| runtime)
    }

    /// The runtime that the endpoint was made in.
    pub(super) fn application(&self) -> &Handle {
        &self.application
    }
}
