//! One path: its addresses, its largest datagram, its two flows and how it fares.

use plait_base::{ConnectionId, Instant, PathId};

use crate::addresses::{FourTupleRole, PathAddresses};
use crate::receive::ReceiveFlow;
use crate::send::SendFlow;
use crate::send::mtu::{Mtu, MtuConfig};
use crate::spin::SpinBit;
use crate::stats::PathCounters;

/// How a path fares, beyond loss and delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It works as far as we know.
    #[default]
    Good,
    /// Potentially failed: a probe time-out passed and nothing was heard since.
    Failed {
        /// When that was noticed.
        since: Instant,
    },
}

/// One path of a connection: a send flow and a receive flow of the same id, on one route.
#[derive(Debug)]
pub struct Path {
    /// Its id.
    pub id: PathId,
    /// Its addresses and their validation.
    pub addresses: PathAddresses,
    /// Its largest datagram.
    pub mtu: Mtu,
    /// What we send: numbers, sent packets, RTT, loss, window.
    pub send: SendFlow,
    /// What we receive: numbers seen and acks owed.
    pub receive: ReceiveFlow,
    /// What went over it.
    pub counters: PathCounters,
    /// When something last left on it; for keep-alive, since silence lets NATs forget (RFC 9000 10.1.2).
    pub sent_at: Option<Instant>,
    /// When to ask the peer whether it still reaches us here, since what it was sending has stopped.
    pub pause_ping_at: Option<Instant>,
    /// When it last brought stream data or a datagram of the application.
    pub payload_at: Option<Instant>,
    /// The spin bit of what we send.
    pub spin: SpinBit,
    /// Our connection id to which the peer's newest packet at its present addresses came.
    pub heard_cid: Option<ConnectionId>,
    health: Health,
}

impl Path {
    /// A path on `route`.
    pub fn new(id: PathId, addresses: PathAddresses, mtu: MtuConfig, send: SendFlow, receive: ReceiveFlow) -> Self {
        let counters = PathCounters::default();
        Self {
            id,
            addresses,
            mtu: Mtu::new(mtu),
            send,
            receive,
            counters,
            sent_at: None,
            pause_ping_at: None,
            payload_at: None,
            spin: SpinBit::default(),
            heard_cid: None,
            health: Health::Good,
        }
    }

    /// How it fares.
    pub fn health(&self) -> Health {
        self.health
    }

    /// True while potentially failed.
    pub fn is_failed(&self) -> bool {
        self.health != Health::Good
    }

    /// A probe time-out passed with nothing heard since the last packet; true when that is news.
    pub fn on_silence(&mut self, now: Instant) -> bool {
        let news = !self.is_failed();
        if news {
            self.health = Health::Failed { since: now };
        }
        news
    }

    /// A packet or an ack for the path arrived; true when the path recovers by it.
    pub fn on_heard(&mut self) -> bool {
        std::mem::take(&mut self.health) != Health::Good
    }

    /// A packet left by one of the path's addresses.
    pub fn on_sent(&mut self, role: FourTupleRole, bytes: u64) {
        self.addresses.on_sent(role, bytes);
        if role == FourTupleRole::Current {
            self.counters.sent_bytes += bytes;
        }
    }
}
