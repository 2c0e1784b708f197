//! Threads that serve paths, as many as the endpoint is set to.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plait_base::ConnectionId;
use plait_crypto::CidSteering;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::directory::Directory;
use super::fault::WorkerFault;
use super::pin::pin_this_thread;
use super::tally::{WorkerFigures, WorkerTally};
use crate::net::{BindError, SpareBuffers};
use crate::sockets::{Bind, SharedSocket, SocketList};

/// The threads of an endpoint that serve its connections' paths. They end with it.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    workers: Vec<Worker>,
    /// What reads the sockets that share an address, by that address.
    readers: Mutex<Vec<(SocketAddr, AbortHandle)>>,
    /// By which the system deals datagrams to their sockets; none where it does so by addresses.
    steering: Option<Arc<CidSteering>>,
}

/// One thread, which runs tasks of its own and polls sockets of its own.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) runtime: Handle,
    /// Receive buffers of its sockets.
    pub(super) spare_buffers: Arc<SpareBuffers>,
    pub(super) tally: Arc<WorkerTally>,
    /// Whose datagrams its sockets bring.
    pub(super) directory: Directory,
    pub(super) fault: WorkerFault,
    /// The thread ends when this is dropped.
    _life: oneshot::Sender<Infallible>,
}

impl WorkerPool {
    /// Starts `count` threads, of an endpoint whose ids have `cid_len` bytes.
    ///
    /// # Errors
    /// The system gives no thread, or no files for its events.
    pub(crate) fn start(count: usize, cid_len: usize) -> io::Result<Self> {
        let workers = (0..count).map(|index| Worker::start((index, count), cid_len)).collect::<io::Result<_>>()?;
        Ok(Self { workers, readers: Mutex::default(), steering: None })
    }

    /// Datagrams are dealt to the threads by the ids that they bear.
    pub(crate) fn set_steering(&mut self, steering: Option<Arc<CidSteering>>) {
        self.steering = steering;
    }

    /// The thread where datagrams with this id arrive; none where their addresses decide.
    pub(super) fn thread_of(&self, cid: &ConnectionId) -> Option<usize> {
        self.steering.as_ref()?.receiver(cid)
    }

    /// True where the ids of a connection lead to several threads.
    pub(super) fn is_steered(&self) -> bool {
        self.steering.is_some()
    }

    /// How many threads there are, at least one.
    pub(super) fn len(&self) -> usize {
        self.workers.len().max(1)
    }

    pub(super) fn worker(&self, index: usize) -> Option<&Worker> {
        self.workers.get(index % self.len())
    }

    /// A socket that the `index`-th thread polls.
    pub(crate) fn open(&self, bind: Bind, index: usize) -> Result<SharedSocket, BindError> {
        let _runtime = self.worker(index).map(|worker| worker.runtime.enter());
        Ok(SharedSocket::of_worker(bind.open()?, index % self.len()))
    }

    /// A socket of this address for each thread, where the system deals to them what comes for it; else one.
    pub(crate) fn open_group(&self, bind: Bind) -> Result<Vec<Arc<SharedSocket>>, BindError> {
        let group = bind.open_group(self.len(), |index| self.worker(index).map(|worker| worker.runtime.enter()))?;
        let shared = |(index, socket)| Arc::new(SharedSocket::of_worker(socket, index));
        Ok(group.into_iter().enumerate().map(shared).collect())
    }

    /// A task of one of the threads reads a socket of this address, and ends with it.
    pub(super) fn keep_reader(&self, local: SocketAddr, reader: AbortHandle) {
        self.readers().push((local, reader));
    }

    fn readers(&self) -> MutexGuard<'_, Vec<(SocketAddr, AbortHandle)>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The endpoint has these sockets now: those that share the address of another are closed.
    pub(crate) fn follow(&self, sockets: &SocketList) {
        self.readers().retain(|(local, reader)| {
            let stays = sockets.has(*local);
            if !stays {
                reader.abort();
            }
            stays
        });
    }

    /// The levers by which tests let threads fail.
    #[cfg(test)]
    pub(crate) fn fault(&self, index: usize) -> Option<&WorkerFault> {
        self.worker(index).map(|worker| &worker.fault)
    }

    /// The thread stands still for so long, with all that it serves, as one that the system does not run.
    #[cfg(test)]
    #[expect(clippy::disallowed_methods, reason = "it is to wait, and everybody that it serves with it")]
    pub(crate) fn freeze(&self, index: usize, time: std::time::Duration) {
        self.worker(index).map(|worker| worker.runtime.spawn(async move { std::thread::sleep(time) }));
    }

    /// What each thread did.
    pub(crate) fn figures(&self) -> Vec<WorkerFigures> {
        self.workers.iter().map(|worker| worker.tally.figures()).collect()
    }
}

impl Worker {
    fn start((index, count): (usize, usize), cid_len: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (life, ended) = oneshot::channel::<Infallible>();
        let serve = move || {
            pin_this_thread(index, count);
            // Tasks run until the endpoint and all its connections are gone.
            let _ = runtime.block_on(ended);
        };
        std::thread::Builder::new().name(format!("plait-worker-{index}")).spawn(serve)?;
        Ok(Self {
            runtime: handle,
            spare_buffers: Arc::default(),
            tally: Arc::default(),
            directory: Directory::new(cid_len),
            fault: WorkerFault::default(),
            _life: life,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_runs_its_own_tasks_and_ends_with_the_pool() {
        let pool = WorkerPool::start(2, 8).unwrap();
        let names: Vec<_> = (0..4)
            .map(|index| {
                let (tell, told) = std::sync::mpsc::channel();
                pool.worker(index).unwrap().runtime.spawn(async move {
                    tell.send(std::thread::current().name().map(str::to_owned)).unwrap();
                });
                told.recv().unwrap().unwrap()
            })
            .collect();
        assert_eq!(names, ["plait-worker-0", "plait-worker-1", "plait-worker-0", "plait-worker-1"]);
        let (held, dropped) = std::sync::mpsc::channel::<Infallible>();
        pool.worker(0).unwrap().runtime.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        drop(pool);
        assert!(dropped.recv().is_err(), "its tasks are dropped");
    }
}
