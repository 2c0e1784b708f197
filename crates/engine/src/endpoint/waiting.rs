//! Connections that wait for the application's decision, and the datagrams that wait with them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{Instant, limits};

use super::first::FirstKey;
use crate::io::Input;

/// Names a waiting connection; never given out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitingId(u64);

/// Bounds on what waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingLimits {
    /// Connections that may wait at once.
    pub(crate) connections: usize,
    /// Bytes of datagrams after the first, over all connections.
    pub(crate) bytes: usize,
    /// Time after which a connection loses its place to another.
    pub(crate) lifetime: Duration,
}

struct Entry {
    key: FirstKey,
    since: Instant,
    later: Vec<Input>,
    bytes: usize,
}

/// What waits, oldest first. Its memory is bounded by [`WaitingLimits`] and `limits::MAX_INCOMING_DATAGRAMS`.
#[derive(Default)]
pub(crate) struct Waiting {
    entries: BTreeMap<WaitingId, Entry>,
    next: u64,
    bytes: usize,
}

/// What became of a connection that wants to wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It waits; another that waited too long was forgotten for it.
    In {
        id: WaitingId,
        /// The forgotten one's key.
        expired: Option<FirstKey>,
    },
    /// There is no place, and nothing that waits is old enough to go.
    Full,
}

impl Waiting {
    /// Connections that wait.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Lets a connection wait.
    pub(crate) fn enter(&mut self, now: Instant, key: FirstKey, limits: &WaitingLimits) -> Queued {
        let mut expired = None;
        if self.entries.len() >= limits.connections {
            let Some((&oldest, entry)) = self.entries.first_key_value() else { return Queued::Full };
            if now.since(entry.since) < limits.lifetime {
                return Queued::Full;
            }
            expired = Some(entry.key);
            self.leave(oldest);
        }
        let id = WaitingId(self.next);
        self.next += 1;
        self.entries.insert(id, Entry { key, since: now, later: Vec::new(), bytes: 0 });
        Queued::In { id, expired }
    }

    /// Keeps a later datagram of a waiting connection, or drops it when a bound is reached.
    pub(crate) fn absorb(&mut self, id: WaitingId, mut input: Input, limits: &WaitingLimits) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        // The first datagram waits with the application and counts.
        if entry.later.len() + 1 >= limits::MAX_INCOMING_DATAGRAMS {
            return;
        }
        let bytes = input.data.len();
        if self.bytes.saturating_add(bytes) > limits.bytes {
            return;
        }
        entry.bytes += bytes;
        self.bytes += bytes;
        // Its receive buffer may be much larger.
        input.data = BytesMut::from(&*input.data);
        entry.later.push(input);
    }

    /// Ends the wait; gives the later datagrams, or none when the connection was forgotten.
    pub(crate) fn leave(&mut self, id: WaitingId) -> Option<Vec<Input>> {
        let entry = self.entries.remove(&id)?;
        self.bytes -= entry.bytes;
        Some(entry.later)
    }
}

#[cfg(test)]
mod tests {
    use plait_base::{ConnectionId, FourTuple, PathId};

    use super::*;
    use crate::io::InputKind;

    const LIMITS: WaitingLimits = WaitingLimits { connections: 2, bytes: 5_000, lifetime: Duration::from_secs(1) };

    fn key(n: u8) -> FirstKey {
        ("192.0.2.1:9".parse().unwrap(), ConnectionId::new(&[n; 8]).unwrap())
    }

    fn input(bytes: usize) -> Input {
        let any = "127.0.0.1:1".parse().unwrap();
        Input {
            kind: InputKind::Packets,
            path: PathId::ZERO,
            tuple: FourTuple { local: any, remote: any },
            ecn: None,
            arrived: Instant::ZERO,
            data: BytesMut::zeroed(bytes),
            segment_bytes: bytes,
        }
    }

    fn enter(waiting: &mut Waiting, now: Instant, n: u8) -> WaitingId {
        match waiting.enter(now, key(n), &LIMITS) {
            Queued::In { id, .. } => id,
            Queued::Full => panic!("full"),
        }
    }

    #[test]
    fn datagrams_are_bounded_in_number() {
        let mut waiting = Waiting::default();
        let id = enter(&mut waiting, Instant::ZERO, 1);
        for _ in 0..100 {
            waiting.absorb(id, input(1), &LIMITS);
        }
        assert_eq!(waiting.leave(id).unwrap().len(), limits::MAX_INCOMING_DATAGRAMS - 1);
    }

    #[test]
    fn datagrams_are_bounded_in_bytes_over_all() {
        let mut waiting = Waiting::default();
        let (a, b) = (enter(&mut waiting, Instant::ZERO, 1), enter(&mut waiting, Instant::ZERO, 2));
        for _ in 0..4 {
            waiting.absorb(a, input(1_200), &LIMITS);
            waiting.absorb(b, input(1_200), &LIMITS);
        }
        assert_eq!(waiting.bytes, 4_800);
        assert_eq!(waiting.leave(a).unwrap().len() + waiting.leave(b).unwrap().len(), 4);
        assert_eq!((waiting.bytes, waiting.len()), (0, 0));
        assert!(waiting.leave(a).is_none());
        waiting.absorb(a, input(1), &LIMITS);
        assert_eq!(waiting.bytes, 0);
    }

    #[test]
    fn a_place_is_lost_only_to_age() {
        let mut waiting = Waiting::default();
        let first = enter(&mut waiting, Instant::ZERO, 1);
        enter(&mut waiting, Instant::ZERO + Duration::from_millis(900), 2);
        assert_eq!(waiting.enter(Instant::ZERO + Duration::from_millis(999), key(3), &LIMITS), Queued::Full);
        match waiting.enter(Instant::ZERO + Duration::from_secs(1), key(3), &LIMITS) {
            Queued::In { expired, .. } => assert_eq!(expired, Some(key(1))),
            Queued::Full => panic!("the oldest should have made room"),
        }
        assert!(waiting.leave(first).is_none());
        assert_eq!(waiting.len(), 2);
    }
}
