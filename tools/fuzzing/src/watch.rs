//! What every datagram and timer of an engine under test must obey, whatever its peer does.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use plait_base::Instant;
use plait_base::limits::{AMPLIFICATION_FACTOR, MAX_DATAGRAM_BYTES};
use plait_engine::{Connection, More, Transmit};

/// Datagrams that one input may cause; far above any window of a connection that hears little.
const MAX_BURST: usize = 20_000;
/// Timer calls in a row that may leave the deadline where it is.
const MAX_IDLE_TIMERS: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    received: u64,
    sent: u64,
    proven: bool,
}

/// Counts bytes by remote address (RFC 9000 8.1).
#[derive(Clone, Debug, Default)]
pub struct Watch {
    accounts: BTreeMap<SocketAddr, Account>,
}

impl Watch {
    /// A datagram of `bytes` came from `remote`.
    pub fn on_received(&mut self, remote: SocketAddr, bytes: usize) {
        self.accounts.entry(remote).or_default().received += bytes as u64;
    }

    /// `remote` showed that it reads what is sent to it.
    pub fn on_proven(&mut self, remote: SocketAddr) {
        self.accounts.entry(remote).or_default().proven = true;
    }

    /// A datagram goes to `remote`: never more than three times what came from there, before it is proven.
    pub fn on_sent(&mut self, remote: SocketAddr, bytes: usize) {
        let account = self.accounts.entry(remote).or_default();
        account.sent += bytes as u64;
        assert!(
            account.proven || account.sent <= AMPLIFICATION_FACTOR * account.received,
            "amplification towards {remote}: {account:?}"
        );
    }
}

/// Takes all datagrams that wait in a connection, cut out of their trains.
pub fn take_datagrams(now: Instant, connection: &mut Connection, mut each: impl FnMut(&Transmit, &[u8])) {
    let mut buf = Vec::new();
    let mut more = More::Possible;
    for burst in 0.. {
        buf.clear();
        let Some(transmit) = connection.poll_transmit(now, 8, &mut buf) else { return };
        assert_eq!(more, More::Possible, "a datagram where nothing was to follow");
        more = transmit.more;
        assert!(burst < MAX_BURST, "a connection that never stops sending");
        assert!(transmit.size > 0 && transmit.size == buf.len());
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        assert!(segment > 0 && segment <= MAX_DATAGRAM_BYTES);
        for datagram in buf.chunks(segment) {
            each(&transmit, datagram);
        }
    }
}

/// Fires the timers that are due; a timer that fires in vain for ever is a hang.
pub fn fire(now: Instant, connection: &mut Connection) {
    let mut idle = 0;
    while let Some(deadline) = connection.deadline().filter(|at| *at <= now) {
        connection.on_timeout(now);
        let moved = connection.deadline() != Some(deadline);
        idle = if moved { 0 } else { idle + 1 };
        assert!(idle < MAX_IDLE_TIMERS, "a timer at {deadline} that fires in vain at {now}");
        if !moved {
            return;
        }
    }
}
