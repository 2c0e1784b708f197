//! What the world observed: counters, a digest, and a list of records for debugging.

use bytes::{Bytes, BytesMut};
use plait_base::{Ecn, Instant};

use crate::digest::{Depth, Digest};
use crate::host::Datagram;
use crate::ids::{BoxId, LinkId, NatId};
use crate::link::DropCause;

/// Where and why a datagram was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// On a link.
    Link(LinkId, DropCause),
    /// Damaged on a link, and the world drops what is damaged.
    Checksum(LinkId),
    /// No route from its source to its destination.
    NoRoute,
    /// Nobody has its destination address.
    NoHost,
    /// An interface at either end is down.
    InterfaceDown,
    /// A NAT has no mapping for it, or filters it.
    Nat(NatId),
    /// A middlebox dropped it.
    Middlebox(BoxId),
}

/// What happened to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A host sent it.
    Sent,
    /// A host got it.
    Arrived,
    /// It is gone.
    Lost(Lost),
}

/// One line of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it happened.
    pub at: Instant,
    /// What became of the datagram.
    pub fate: Fate,
    /// The datagram as it was then; its payload is empty unless payloads are captured.
    pub datagram: Datagram,
    /// Bytes of UDP payload.
    pub bytes: usize,
}

impl Record {
    /// One line for people.
    pub fn line(&self) -> String {
        let Datagram { src, dst, ecn, .. } = &self.datagram;
        let mark = ecn.map_or(String::new(), |mark: Ecn| format!(" {mark:?}"));
        format!("{} {src} > {dst} {} bytes{mark} {:?}", self.at, self.bytes, self.fate)
    }

    /// The payload, where it was captured.
    pub fn payload(&self) -> Bytes {
        self.datagram.payload.clone().freeze()
    }
}

/// How much is kept; recording ends when the limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// No records are kept.
    #[default]
    Off,
    /// At most so many records, without payloads.
    Headers(usize),
    /// At most so many records, with payloads.
    Payloads(usize),
}

/// Datagrams counted over the whole world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent by hosts.
    pub sent: u64,
    /// Given to hosts, duplicates included.
    pub arrived: u64,
    /// Datagrams that were lost, wherever that was.
    pub lost: u64,
    /// Copies made by links and middleboxes.
    pub doubled: u64,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Payload bytes given to hosts.
    pub arrived_bytes: u64,
}

/// Digest, counters and records of a world.
#[derive(Debug, Default)]
pub(crate) struct WorldLog {
    pub(crate) digest: Digest,
    pub(crate) depth: Depth,
    pub(crate) totals: Totals,
    pub(crate) capture: Capture,
    pub(crate) records: Vec<Record>,
}

impl WorldLog {
    pub(crate) fn note(&mut self, at: Instant, fate: Fate, datagram: &Datagram) {
        let bytes = datagram.payload.len();
        let kind = match fate {
            Fate::Sent => {
                self.totals.sent += 1;
                self.totals.sent_bytes += bytes as u64;
                1
            }
            Fate::Arrived => {
                self.totals.arrived += 1;
                self.totals.arrived_bytes += bytes as u64;
                2
            }
            Fate::Lost(lost) => {
                self.totals.lost += 1;
                16 + lost_code(lost)
            }
        };
        let mark = datagram.ecn.map_or(0, |ecn| ecn as u64);
        self.digest.word(at.as_nanos());
        self.digest.word(kind << 32 | (bytes as u64) << 2 | mark);
        self.digest.address(datagram.src);
        self.digest.address(datagram.dst);
        if self.depth == Depth::Payload && fate == Fate::Arrived {
            self.digest.bytes(&datagram.payload);
        }
        self.record(at, fate, datagram);
    }

    fn record(&mut self, at: Instant, fate: Fate, datagram: &Datagram) {
        let bytes = datagram.payload.len();
        let (Capture::Headers(limit) | Capture::Payloads(limit)) = self.capture else { return };
        if self.records.len() >= limit {
            return;
        }
        let payload = match self.capture {
            Capture::Payloads(_) => datagram.payload.clone(),
            Capture::Off | Capture::Headers(_) => BytesMut::new(),
        };
        self.records.push(Record { at, fate, datagram: Datagram { payload, ..*datagram }, bytes });
    }
}

fn lost_code(lost: Lost) -> u64 {
    match lost {
        Lost::Link(link, cause) => u64::from(link.0) << 8 | cause as u64,
        Lost::Checksum(link) => u64::from(link.0) << 8 | 0x10,
        Lost::NoRoute => 0x11,
        Lost::NoHost => 0x12,
        Lost::InterfaceDown => 0x13,
        Lost::Nat(nat) => u64::from(nat.0) << 8 | 0x14,
        Lost::Middlebox(middlebox) => u64::from(middlebox.0) << 8 | 0x15,
    }
}
