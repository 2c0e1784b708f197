//! What the driver, the application's handles and the endpoint share of one connection.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use plait_base::{ConnectionId, Dir, Instant, StreamId};
use plait_engine::Input;
use plait_engine::connection::split::Coordinator;
use plait_engine::connection::{Connection as Engine, ConnectionError, Event, PathEvent, Unreachable};
use plait_stream::StreamEvent;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::attempt::Attempt;
use super::home::Home;
use super::inbox::{Inbox, InboxBudget};
use crate::clock::Clock;
use crate::sockets::{OnUnreachable, SocketList};
use crate::wakers::Wakers;
use crate::workers::Routes;

/// Path events kept for those who listen but are late.
const MAX_KEPT_PATH_EVENTS: usize = 256;

/// One connection as all its users see it.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) inbox: Inbox,
    /// Where datagrams of paths go that threads serve.
    pub(crate) routes: Routes,
    pub(crate) notifies: Notifies,
    pub(crate) clock: Clock,
    pub(crate) home: Home,
    /// A client whose handshake is not confirmed. Beside the lock, since the endpoint looks at it under its own.
    is_beginning: AtomicBool,
    /// Beside the lock as well.
    close_sent: AtomicBool,
}

/// What futures of the application wait for.
#[derive(Debug, Default)]
pub(crate) struct Notifies {
    opened: [Notify; 2],
    available: [Notify; 2],
    pub(crate) datagram: Notify,
    pub(crate) datagram_room: Notify,
    /// The end of the connection.
    pub(crate) closed: Notify,
}

impl Notifies {
    /// The peer opened a stream.
    pub(crate) fn opened(&self, dir: Dir) -> &Notify {
        &self.opened[dir as usize]
    }

    /// We may open a stream.
    pub(crate) fn available(&self, dir: Dir) -> &Notify {
        &self.available[dir as usize]
    }

    fn all(&self) -> impl Iterator<Item = &Notify> {
        self.opened.iter().chain(&self.available).chain([&self.datagram, &self.datagram_room, &self.closed])
    }
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HandshakeProgress {
    #[default]
    Begun,
    /// The peer was heard.
    Heard,
    /// ALPN and server name are known.
    DataReady,
    /// The handshake is complete.
    Connected,
}

/// Whether a client's connection is the only one that may come of its call to connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is: when the network says that the peer is out of reach, it ends.
    #[default]
    Sole,
    /// Others may go on beside it; who called decides what follows from bad news.
    Contested,
    /// And the network said so.
    Hopeless(Unreachable),
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) engine: Coordinator,
    /// What waits until all paths are here.
    later: VecDeque<Later>,
    pub(crate) progress: HandshakeProgress,
    pub(crate) standing: Standing,
    /// Attempts that were made beside this one, and this one, in their order.
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) handshake_waiters: HandshakeWaiters,
    pub(crate) streams: StreamWaiters,
    pub(crate) paths: PathLog,
    /// Why the connection ended, once it did.
    pub(crate) error: Option<ConnectionError>,
    /// The address that the connection began with, or last had.
    pub(crate) remote: SocketAddr,
    /// Datagrams that were lost on this machine before they left.
    pub(crate) lost_locally: u64,
    driver: Option<Waker>,
}

/// A call of the connection with all its paths.
type Later = Box<dyn FnOnce(&mut Engine, Instant) + Send>;

/// Tasks that wait until the handshake has come so far, or the connection is over.
#[derive(Default)]
pub(crate) struct HandshakeWaiters(Vec<(HandshakeProgress, Waker)>);

impl HandshakeWaiters {
    /// Wakes the task once when the handshake has come so far.
    pub(crate) fn register(&mut self, wanted: HandshakeProgress, waker: &Waker) {
        match self.0.iter_mut().find(|(_, kept)| kept.will_wake(waker)) {
            Some((earliest, _)) => *earliest = wanted.min(*earliest),
            None => self.0.push((wanted, waker.clone())),
        }
    }

    fn wake(&mut self, reached: HandshakeProgress) {
        self.0.extract_if(.., |(wanted, _)| *wanted <= reached).for_each(|(_, waker)| waker.wake());
    }

    fn wake_all(&mut self) {
        self.wake(HandshakeProgress::Connected);
    }

    fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// Tasks that wait for a stream: one reader, one writer and one that waits for the end of each.
#[derive(Default)]
pub(crate) struct StreamWaiters {
    pub(crate) readers: FxHashMap<StreamId, Waker>,
    pub(crate) writers: FxHashMap<StreamId, Waker>,
    pub(crate) ends: FxHashMap<StreamId, Waker>,
    /// Codes of STOP_SENDING, each until the application drops its half of the stream: the engine forgets a stream once the reset
    /// that answers the code is acknowledged.
    pub(crate) stop_codes: FxHashMap<StreamId, u64>,
}

/// The latest path events, numbered.
#[derive(Default)]
pub(crate) struct PathLog {
    kept: VecDeque<PathEvent>,
    /// Number of the event after the last one.
    pub(crate) end: u64,
    pub(crate) waiters: Wakers,
    /// Tasks that try to open a path again when packets arrive.
    pub(crate) openers: Wakers,
}

impl PathLog {
    fn push(&mut self, event: PathEvent) {
        if self.kept.len() >= MAX_KEPT_PATH_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
        self.end += 1;
        self.waiters.wake_all();
    }

    /// The event of that number, or the oldest one kept if it is forgotten; with the number after it.
    pub(crate) fn get(&self, number: u64) -> Option<(PathEvent, u64)> {
        let first = self.end - self.kept.len() as u64;
        let number = number.max(first);
        let event = self.kept.get((number - first) as usize)?;
        Some((event.clone(), number + 1))
    }
}

impl StreamWaiters {
    fn shrink_to_fit(&mut self) {
        for map in [&mut self.readers, &mut self.writers, &mut self.ends] {
            map.shrink_to_fit();
        }
        self.stop_codes.shrink_to_fit();
    }

    fn tell(&mut self, event: StreamEvent, notifies: &Notifies) {
        let woken = match event {
            StreamEvent::Opened(dir) => return notifies.opened(dir).notify_waiters(),
            StreamEvent::Available(dir) => return notifies.available(dir).notify_waiters(),
            StreamEvent::Readable(id) => self.readers.remove(&id),
            StreamEvent::Writable(id) => self.writers.remove(&id),
            StreamEvent::Finished(id) | StreamEvent::Reset(id) => self.ends.remove(&id),
            StreamEvent::Stopped { id, code } => {
                if let Some(writer) = self.writers.remove(&id) {
                    writer.wake();
                }
                self.stop_codes.insert(id, code);
                self.ends.remove(&id)
            }
        };
        if let Some(waker) = woken {
            waker.wake();
        }
    }

    fn wake_all(&mut self) {
        for map in [&mut self.readers, &mut self.writers, &mut self.ends] {
            map.drain().for_each(|(_, waker)| waker.wake());
        }
    }
}

impl State {
    /// Gives back the memory that is kept for what may come.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.engine.shrink_to_fit();
        self.attempts.shrink_to_fit();
        self.handshake_waiters.shrink_to_fit();
        self.streams.shrink_to_fit();
        self.paths.kept.shrink_to_fit();
    }

    /// Something is to be sent, or a timer may have changed.
    pub(crate) fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    pub(crate) fn set_driver(&mut self, driver: &Waker) {
        if !self.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            self.driver = Some(driver.clone());
        }
    }

    /// Calls the connection with all its paths: at once, with what came of it, or once threads gave back those that they serve.
    pub(crate) fn now_or_later<R>(
        &mut self,
        now: Instant,
        call: impl FnOnce(&mut Engine, Instant) -> R + Send + 'static,
    ) -> Option<R> {
        if self.later.is_empty()
            && let Some(engine) = self.engine.joined()
        {
            return Some(call(engine, now));
        }
        self.later.push_back(Box::new(|engine, now| drop(call(engine, now))));
        None
    }

    /// Does what waited for all paths, if they are here.
    pub(crate) fn do_later(&mut self, now: Instant) {
        while !self.later.is_empty()
            && let Some(engine) = self.engine.joined()
            && let Some(call) = self.later.pop_front()
        {
            call(engine, now);
        }
    }

    /// Forgets what waits for all paths: nobody does it once the task is gone.
    pub(crate) fn clear_later(&mut self) {
        self.later = VecDeque::new();
    }

    /// `Err` once the connection is over.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// True when what was sent in 0-RTT has to be given up.
    pub(crate) fn is_0rtt_rejected(&self) -> bool {
        self.engine.connection().session().accepted_0rtt() == Some(false)
    }

    /// Wakes those who wait for what the engine tells.
    pub(crate) fn deliver_events(&mut self, notifies: &Notifies) {
        if self.progress == HandshakeProgress::Begun && self.engine.connection().is_heard() {
            self.advance(HandshakeProgress::Heard);
        }
        while let Some(event) = self.engine.poll() {
            match event {
                Event::Stream(event) => self.streams.tell(event, notifies),
                Event::DatagramReceived => notifies.datagram.notify_waiters(),
                Event::DatagramsUnblocked => notifies.datagram_room.notify_waiters(),
                Event::Path(event) => self.paths.push(event),
                Event::HandshakeDataReady => self.advance(HandshakeProgress::DataReady),
                Event::Connected => self.advance(HandshakeProgress::Connected),
                Event::ConnectionLost(error) => self.end(error, notifies),
                _ => {}
            }
        }
    }

    fn advance(&mut self, to: HandshakeProgress) {
        self.progress = self.progress.max(to);
        self.handshake_waiters.wake(self.progress);
        if to == HandshakeProgress::Connected {
            // Streams of a rejected 0-RTT attempt are gone: those who wait for them must hear of it.
            if self.is_0rtt_rejected() {
                self.streams.wake_all();
            }
            self.paths.openers.wake_all();
        }
    }

    pub(crate) fn end(&mut self, error: ConnectionError, notifies: &Notifies) {
        self.error.get_or_insert(error);
        self.handshake_waiters.wake_all();
        self.streams.wake_all();
        self.paths.waiters.wake_all();
        self.paths.openers.wake_all();
        notifies.all().for_each(Notify::notify_waiters);
    }

    /// From now on nothing else comes of the call that began it.
    pub(crate) fn stand_alone(&mut self, now: Instant) {
        if let Standing::Hopeless(why) = std::mem::take(&mut self.standing) {
            self.now_or_later(now, move |engine, now| engine.on_unreachable(now, why));
            self.wake_driver();
        }
    }

    /// Closes with the application's code.
    pub(crate) fn close(&mut self, now: Instant, code: u64, reason: Bytes, notifies: &Notifies) {
        if self.error.is_some() {
            return;
        }
        self.now_or_later(now, move |engine, now| engine.close(now, code, reason));
        self.deliver_events(notifies);
        // The engine tells of its own end too; without that, ours stands.
        self.end(ConnectionError::LocallyClosed, notifies);
        self.wake_driver();
    }
}

impl Shared {
    pub(crate) fn new(
        engine: Engine,
        remote: SocketAddr,
        clock: Clock,
        inboxes: Arc<InboxBudget>,
        home: Home,
    ) -> Arc<Self> {
        let is_beginning = AtomicBool::new(engine.side().is_client());
        let state = State {
            engine: Coordinator::new(engine),
            later: VecDeque::new(),
            progress: HandshakeProgress::Begun,
            standing: Standing::default(),
            attempts: Vec::new(),
            handshake_waiters: HandshakeWaiters::default(),
            streams: StreamWaiters::default(),
            paths: PathLog::default(),
            error: None,
            remote,
            lost_locally: 0,
            driver: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            inbox: Inbox::new(inboxes),
            routes: Routes::default(),
            notifies: Notifies::default(),
            clock,
            home,
            is_beginning,
            close_sent: AtomicBool::new(false),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before its task begins, a server's connection reads what came of its client so far.
    pub(crate) fn read_first(&self, now: Instant, first: Vec<Input>, sockets: &SocketList) {
        let mut state = self.lock();
        for input in first {
            state.engine.handle_datagram(now, input);
        }
        // A server too may tell its addresses, where an extension lets it.
        if let Some(engine) = state.engine.joined() {
            sockets.tell(engine, now);
        }
    }

    /// Gives up an attempt that lost, in favour of the one to which an id of the peer leads; the peer is told once it answers.
    pub(crate) fn withdraw(&self, successor: Option<ConnectionId>) {
        let mut state = self.lock();
        if state.error.is_none() {
            state.now_or_later(self.clock.now(), move |engine, now| engine.withdraw(now, successor));
            state.deliver_events(&self.notifies);
            state.end(ConnectionError::LocallyClosed, &self.notifies);
            state.wake_driver();
        }
    }

    /// A client's handshake is confirmed, or it is over. True the first time.
    pub(crate) fn on_begun(&self) -> bool {
        self.is_beginning.swap(false, Ordering::AcqRel)
    }

    /// True for a client that may not leave the address yet at which it began (RFC 9000 9).
    pub(crate) fn is_beginning(&self) -> bool {
        self.is_beginning.load(Ordering::Acquire)
    }

    /// The connection is closed and has said so. True the first time.
    pub(crate) fn on_close_sent(&self) -> bool {
        !self.close_sent.swap(true, Ordering::AcqRel)
    }

    /// True once the connection is closed and has nothing left to say.
    pub(crate) fn is_close_sent(&self) -> bool {
        self.close_sent.load(Ordering::Acquire)
    }

    /// Closes with the application's code; nothing happens when the connection is over.
    pub(crate) fn close(&self, code: u64, reason: Bytes) {
        self.lock().close(self.clock.now(), code, reason, &self.notifies);
    }
}

impl OnUnreachable for Shared {
    fn on_unreachable(&self, why: Unreachable) {
        let mut state = self.lock();
        match state.standing {
            Standing::Sole => {
                state.now_or_later(self.clock.now(), move |engine, now| engine.on_unreachable(now, why));
            }
            Standing::Contested | Standing::Hopeless(_) => {
                state.standing = Standing::Hopeless(why);
                state.handshake_waiters.wake_all();
            }
        }
        state.deliver_events(&self.notifies);
        state.wake_driver();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The application's hold on a connection; the connection closes with the last one.
#[derive(Debug)]
pub(crate) struct ConnectionRef(pub(crate) Arc<Shared>);

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        self.0.close(0, Bytes::new());
    }
}

impl std::ops::Deref for ConnectionRef {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_at_rest_keeps_no_more_than_it_did() {
        // With these it has 16 KB of resident memory at a server, as much as was promised (docs/performance.md).
        let parts = [
            ("connection", size_of::<Shared>(), 4_240),
            ("path", size_of::<plait_path::Path>(), 2_016),
            ("path id that nobody uses", size_of::<plait_path::table::Slot>(), 248),
            ("task", size_of::<crate::connection::driver::Driver>(), 352),
        ];
        for (part, bytes, most) in parts {
            assert!(
                bytes <= most,
                "a {part} takes {bytes} bytes, more than {most}: what is seldom used belongs in a box"
            );
        }
    }

    #[test]
    fn who_waits_for_the_end_of_the_handshake_is_woken_by_that_alone() {
        let counts: [Arc<Count>; 2] = Default::default();
        let [early, late] = counts.each_ref().map(|count| Waker::from(count.clone()));
        let mut waiters = HandshakeWaiters::default();
        let mut woken_by = |progress: HandshakeProgress| {
            waiters.register(HandshakeProgress::Connected, &late);
            waiters.register(HandshakeProgress::Connected, &early);
            waiters.register(HandshakeProgress::DataReady, &early);
            waiters.wake(progress);
            counts.each_ref().map(|count| count.0.swap(0, Ordering::Relaxed))
        };
        assert_eq!(woken_by(HandshakeProgress::Heard), [0, 0]);
        assert_eq!(woken_by(HandshakeProgress::DataReady), [1, 0]);
        assert_eq!(woken_by(HandshakeProgress::Connected), [1, 1]);
        waiters.wake_all();
        assert_eq!(counts.each_ref().map(|count| count.0.load(Ordering::Relaxed)), [0, 0], "each is woken once");
    }
}
