//! Small datagrams of several connections to the same address, which leave by one call.
//!
//! What one batch brings for several connections is answered by each of them, with an acknowledgement above all. Sent one by one,
//! these wake a peer that reads them on one socket as often as there are connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::net::{EcnCodepoint, Outgoing};

/// Larger datagrams leave alone: it is calls that are saved.
const MAX_SMALL_BYTES: usize = 128;
/// Datagrams of one call, at most: more save little, and wait longer.
const MAX_GATHERED: usize = 16;

/// Small datagrams that wait until all connections had their turn to answer.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    kept: Mutex<SmallTrain>,
    /// False while nothing waits and nothing is to wait, to look at without the lock.
    is_open: AtomicBool,
}

#[derive(Debug, Default)]
struct SmallTrain {
    sender: Sender,
    /// What they have in common; none while there are none.
    head: Option<Common>,
    bytes: Vec<u8>,
}

/// Who is to send what waits.
#[derive(Debug, Default)]
enum Sender {
    /// Nobody: nothing may wait.
    #[default]
    Over,
    /// The endpoint's task, once the first datagram wakes it.
    Begun(Waker),
    /// The endpoint's task, which was woken.
    Ending,
}

/// What datagrams that leave by one call have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Common {
    remote: SocketAddr,
    source: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
    segment_bytes: usize,
}

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, SmallTrain> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on small datagrams wait for each other. The first of them wakes `sender`, which is to call [`Self::end_turn`].
    pub(super) fn begin_turn(&self, sender: &Waker) {
        let mut kept = self.lock();
        if matches!(kept.sender, Sender::Over) {
            kept.sender = Sender::Begun(sender.clone());
            self.is_open.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps a datagram until the turn ends: false where it must be sent at once. `send` takes what waits and cannot be joined.
    pub(super) fn keep(
        &self,
        out: &Outgoing<'_>,
        max_segments: usize,
        send: impl FnOnce(&Outgoing<'_>) -> Poll<()>,
    ) -> bool {
        let is_small = out.segment_bytes.is_none() && (1..=MAX_SMALL_BYTES).contains(&out.bytes.len());
        if !is_small || max_segments < 2 || !self.is_open.load(Ordering::Relaxed) {
            return false;
        }
        let mut kept = self.lock();
        match std::mem::take(&mut kept.sender) {
            Sender::Over => return false,
            Sender::Begun(sender) => sender.wake(),
            Sender::Ending => {}
        }
        kept.sender = Sender::Ending;
        let head = Common { remote: out.remote, source: out.source, ecn: out.ecn, segment_bytes: out.bytes.len() };
        let room = max_segments.min(MAX_GATHERED) * head.segment_bytes;
        let fits = kept.head.is_none_or(|first| first == head && kept.bytes.len() < room);
        if !fits && kept.send(send).is_pending() {
            return false;
        }
        kept.head = Some(head);
        kept.bytes.extend_from_slice(out.bytes);
        true
    }

    /// Sends what waits, before anything else leaves: pending while `send` is.
    pub(super) fn flush(&self, send: impl FnOnce(&Outgoing<'_>) -> Poll<()>) -> Poll<()> {
        if self.is_open.load(Ordering::Relaxed) { self.lock().send(send) } else { Poll::Ready(()) }
    }

    /// True while something waits. Where the sender was woken and finds nothing any more, nothing more waits for it.
    pub(super) fn has_any(&self) -> bool {
        if !self.is_open.load(Ordering::Relaxed) {
            return false;
        }
        let mut kept = self.lock();
        if kept.head.is_none() && matches!(kept.sender, Sender::Ending) {
            kept.close(&self.is_open);
        }
        kept.head.is_some()
    }

    /// Sends what waits, and lets nothing wait any more.
    pub(super) fn end_turn(&self, send: impl FnOnce(&Outgoing<'_>) -> Poll<()>) -> Poll<()> {
        if !self.is_open.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut kept = self.lock();
        let sent = kept.send(send);
        if sent.is_ready() {
            kept.close(&self.is_open);
        }
        sent
    }
}

impl SmallTrain {
    fn close(&mut self, is_open: &AtomicBool) {
        self.sender = Sender::Over;
        is_open.store(false, Ordering::Relaxed);
    }

    fn send(&mut self, send: impl FnOnce(&Outgoing<'_>) -> Poll<()>) -> Poll<()> {
        let Some(head) = self.head else { return Poll::Ready(()) };
        let sent = send(&Outgoing {
            remote: head.remote,
            source: head.source,
            ecn: head.ecn,
            bytes: &self.bytes,
            segment_bytes: Some(head.segment_bytes).filter(|bytes| *bytes < self.bytes.len()),
        });
        if sent.is_ready() {
            self.head = None;
            self.bytes.clear();
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRIEND: &str = "192.0.2.1:4433";

    /// A gatherer whose turn has begun, and what it sends: each call with the sizes of its datagrams.
    #[derive(Default)]
    struct Trial {
        gathered: Gathered,
        calls: Vec<(SocketAddr, Vec<usize>)>,
        is_full: bool,
    }

    impl Trial {
        fn begun() -> Self {
            let trial = Self::default();
            trial.gathered.begin_turn(Waker::noop());
            trial
        }

        fn take(calls: &mut Vec<(SocketAddr, Vec<usize>)>, is_full: bool, out: &Outgoing<'_>) -> Poll<()> {
            if is_full {
                return Poll::Pending;
            }
            let sizes = out.bytes.chunks(out.segment_bytes.unwrap_or(out.bytes.len())).map(<[u8]>::len).collect();
            calls.push((out.remote, sizes));
            Poll::Ready(())
        }

        fn keep(&mut self, remote: &str, bytes: usize) -> bool {
            let (remote, bytes) = (remote.parse().unwrap(), vec![0; bytes]);
            let out = Outgoing { remote, source: None, ecn: None, bytes: &bytes, segment_bytes: None };
            self.gathered.keep(&out, 64, |out| Self::take(&mut self.calls, self.is_full, out))
        }

        fn end_turn(&mut self) -> Poll<()> {
            self.gathered.end_turn(|out| Self::take(&mut self.calls, self.is_full, out))
        }

        fn sizes(&self) -> Vec<&[usize]> {
            self.calls.iter().map(|(_, sizes)| &sizes[..]).collect()
        }
    }

    #[test]
    fn what_is_alike_leaves_by_one_call_when_the_turn_ends() {
        let mut trial = Trial::begun();
        assert!(trial.keep(FRIEND, 40) && trial.keep(FRIEND, 40) && trial.keep(FRIEND, 40));
        assert!(trial.calls.is_empty() && trial.gathered.has_any());
        assert!(trial.end_turn().is_ready());
        assert_eq!(trial.sizes(), [&[40; 3][..]]);
        assert!(!trial.gathered.has_any() && !trial.keep(FRIEND, 40), "the turn is over");
    }

    #[test]
    fn what_differs_leaves_in_order() {
        let mut trial = Trial::begun();
        for (remote, bytes) in [(FRIEND, 40), (FRIEND, 41), ("192.0.2.2:4433", 41), ("192.0.2.2:4433", 41)] {
            assert!(trial.keep(remote, bytes));
        }
        assert!(trial.end_turn().is_ready());
        assert_eq!(trial.sizes(), [&[40][..], &[41], &[41, 41]]);
        assert_eq!(trial.calls[2].0.to_string(), "192.0.2.2:4433");
    }

    #[test]
    fn large_ones_and_those_outside_a_turn_leave_at_once() {
        assert!(!Trial::default().keep(FRIEND, 40));
        let mut trial = Trial::begun();
        assert!(trial.keep(FRIEND, MAX_SMALL_BYTES) && !trial.keep(FRIEND, MAX_SMALL_BYTES + 1));
        // Who sends alone sends first what waits.
        assert!(trial.gathered.flush(|out| Trial::take(&mut trial.calls, false, out)).is_ready());
        assert_eq!(trial.sizes(), [[MAX_SMALL_BYTES]]);
        assert!(trial.keep(FRIEND, 1), "the turn goes on");
    }

    #[test]
    fn what_waits_has_somebody_who_sends_it() {
        let mut trial = Trial::begun();
        assert!(!trial.gathered.has_any(), "nothing yet");
        assert!(trial.keep(FRIEND, 40), "the first wakes the sender");
        assert!(trial.gathered.flush(|out| Trial::take(&mut trial.calls, false, out)).is_ready());
        // It comes, finds nothing, and will not come again.
        assert!(!trial.gathered.has_any());
        assert!(!trial.keep(FRIEND, 40));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut trial = Trial::begun();
        for _ in 0..3 * MAX_GATHERED {
            assert!(trial.keep(FRIEND, 100));
        }
        assert_eq!(trial.sizes(), [[100; MAX_GATHERED]; 2]);
        assert!(trial.gathered.lock().bytes.len() <= MAX_GATHERED * MAX_SMALL_BYTES);
    }

    #[test]
    fn a_full_socket_loses_nothing() {
        let mut trial = Trial::begun();
        trial.is_full = true;
        assert!(trial.keep(FRIEND, 40) && !trial.keep(FRIEND, 41));
        assert!(trial.end_turn().is_pending() && trial.gathered.has_any());
        trial.is_full = false;
        assert!(trial.end_turn().is_ready());
        assert_eq!(trial.sizes(), [[40]]);
    }
}
