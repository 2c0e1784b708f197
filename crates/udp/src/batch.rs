//! Datagrams that one receive call brought, cut apart without copying large trains.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use quinn_udp::{EcnCodepoint, RecvMeta};

/// Largest UDP payload, and so the size of one receive slot.
pub(crate) const SLOT_BYTES: usize = 65_536;
/// Slots of one receive call, at most.
pub(crate) const MAX_SLOTS: usize = 8;
/// Shorter messages are copied out, so that the arena can be used again at once.
const COPY_BELOW_BYTES: usize = 4096;

/// One received datagram.
#[derive(Debug)]
pub struct Incoming {
    /// Who sent it.
    pub remote: SocketAddr,
    /// The address it was sent to, where the platform tells.
    pub destination: Option<IpAddr>,
    /// Its ECN mark.
    pub ecn: Option<EcnCodepoint>,
    /// Its payload.
    pub bytes: BytesMut,
}

/// What the last receive call brought; iterate to take the datagrams out.
#[derive(Debug)]
pub struct ReceiveBatch {
    arena: BytesMut,
    slots: usize,
    ready: VecDeque<Incoming>,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self { arena: BytesMut::new(), slots: 1, ready: VecDeque::new() }
    }
}

impl ReceiveBatch {
    /// True when every datagram was taken out.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// The slots to receive into.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let want = self.slots * SLOT_BYTES;
        if self.arena.len() < want {
            self.arena = BytesMut::zeroed(want);
        }
        self.arena[..want].chunks_mut(SLOT_BYTES)
    }

    /// Takes what the call filled: one meta a slot.
    pub(crate) fn filled(&mut self, metas: &[RecvMeta]) {
        let bytes: usize = metas.iter().map(|m| m.len).sum();
        // An arena full of large trains is handed on and replaced; a nearly empty one is copied from and kept.
        let copy = bytes < COPY_BELOW_BYTES * metas.len();
        let mut taken = if copy { BytesMut::new() } else { std::mem::take(&mut self.arena) };
        for (i, meta) in metas.iter().enumerate() {
            let mut rest = if copy {
                BytesMut::from(&self.arena[i * SLOT_BYTES..i * SLOT_BYTES + meta.len])
            } else {
                let mut slot = taken.split_to(SLOT_BYTES.min(taken.len()));
                slot.truncate(meta.len);
                slot
            };
            while !rest.is_empty() {
                let bytes = rest.split_to(meta.stride.max(1).min(rest.len()));
                let (remote, destination, ecn) = (meta.addr, meta.dst_ip, meta.ecn);
                self.ready.push_back(Incoming { remote, destination, ecn, bytes });
            }
        }
        self.slots = match metas.len() {
            n if n == self.slots => (self.slots * 2).min(MAX_SLOTS),
            n => n.max(1),
        };
    }
}

impl Iterator for ReceiveBatch {
    type Item = Incoming;
    fn next(&mut self) -> Option<Incoming> {
        self.ready.pop_front()
    }
}
