//! Messages that one receive call brought, large GRO batches without a copy.
//!
//! Each message has a buffer of its own. One that is more than half full is handed on and replaced; a smaller
//! message is copied to an allocation of its own size. So whatever a slice keeps alive is at most twice what arrived in
//! its message, and no slice keeps the messages of others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use quinn_udp::{EcnCodepoint, RecvMeta};

use super::spare::{COPY_BELOW_BYTES, SLOT_BYTES, SpareBuffers};

/// Slots of one receive call, at most.
pub(crate) const MAX_SLOTS: usize = 8;

/// Slots of one receive call, at least.
const MIN_SLOTS: usize = 2;

/// One received message: a datagram, or several between the same addresses that the system put together (GRO).
#[derive(Debug)]
pub(crate) struct ReceivedMessage {
    /// Who sent it.
    pub(crate) remote: SocketAddr,
    /// The address it was sent to, where the platform tells.
    pub(crate) destination: Option<IpAddr>,
    /// Its ECN mark.
    /// That of each datagram.
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) bytes: BytesMut,
    /// Bytes of each datagram but the last, which may be shorter.
    pub(crate) segment_bytes: usize,
}

/// What the last receive call brought; iterate to take the datagrams out.
#[derive(Debug)]
pub(crate) struct ReceiveBatch {
    /// Empty ones are made when they are needed.
    buffers: [BytesMut; MAX_SLOTS],
    slots: usize,
    ready: VecDeque<ReceivedMessage>,
    spare: Arc<SpareBuffers>,
}

impl ReceiveBatch {
    /// An empty one, for which `spare` has buffers that were received into before.
    pub(crate) fn new(spare: Arc<SpareBuffers>) -> Self {
        Self { buffers: Default::default(), slots: MIN_SLOTS, ready: VecDeque::new(), spare }
    }

    /// The slots to receive into.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.buffers[..self.slots].iter_mut().map(|buffer| {
            if buffer.is_empty() {
                *buffer = self.spare.take().unwrap_or_else(|| BytesMut::zeroed(SLOT_BYTES));
            }
            &mut buffer[..]
        })
    }

    /// Takes what the call filled: one meta a slot.
    pub(crate) fn filled(&mut self, metas: &[RecvMeta]) {
        for (meta, buffer) in metas.iter().zip(&mut self.buffers) {
            let len = meta.len.min(buffer.len());
            let bytes = if len < COPY_BELOW_BYTES {
                BytesMut::from(&buffer[..len])
            } else {
                let mut whole = std::mem::take(buffer);
                whole.truncate(len);
                whole
            };
            if !bytes.is_empty() {
                let (remote, destination, ecn, segment_bytes) = (meta.addr, meta.dst_ip, meta.ecn, meta.stride.max(1));
                self.ready.push_back(ReceivedMessage { remote, destination, ecn, bytes, segment_bytes });
            }
        }
        // One more than came last: an empty slot says that nothing is left.
        self.slots = match metas.len() {
            n if n == self.slots => (self.slots * 2).min(MAX_SLOTS),
            n => (n + 1).clamp(MIN_SLOTS, MAX_SLOTS),
        };
    }
}

impl Iterator for ReceiveBatch {
    type Item = ReceivedMessage;
    fn next(&mut self) -> Option<ReceivedMessage> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(batch: &mut ReceiveBatch, sizes: &[(usize, usize)]) -> Vec<BytesMut> {
        let metas: Vec<RecvMeta> = batch
            .slots()
            .zip(sizes)
            .enumerate()
            .map(|(i, (slot, &(len, stride)))| {
                slot[..len].fill(i as u8 + 1);
                RecvMeta { len, stride, ..RecvMeta::default() }
            })
            .collect();
        assert_eq!(metas.len(), sizes.len());
        batch.filled(&metas);
        let cut = |mut message: ReceivedMessage| {
            let at = message.segment_bytes;
            std::iter::from_fn(move || {
                let left = message.bytes.len();
                (left > 0).then(|| message.bytes.split_to(at.min(left)))
            })
        };
        batch.flat_map(cut).collect()
    }

    /// Bytes that stay allocated for a slice of a message when all the others are gone.
    fn kept_for_the_first(mut datagrams: Vec<BytesMut>) -> usize {
        let mut first = datagrams.swap_remove(0);
        drop(datagrams);
        first.clear();
        // Alone, it can have the whole allocation back.
        (0..=17).rev().map(|shift| 1 << shift).find(|&bytes| first.try_reclaim(bytes)).unwrap_or(0)
    }

    #[test]
    fn a_datagram_keeps_at_most_twice_its_message() {
        for (len, stride) in
            [(100, 100), (1_400, 1_400), (20_000, 1_000), (32_000, 1_400), (33_000, 1_400), (65_000, 1_300)]
        {
            let mut batch = ReceiveBatch::new(Arc::default());
            // Others of the same call, which must not be kept: a call takes more messages from time to time.
            receive(&mut batch, &[(60_000, 1_000)]);
            receive(&mut batch, &[(60_000, 1_000); 2]);
            let datagrams = receive(&mut batch, &[(len, stride), (60_000, 1_000), (5, 5)]);
            assert_eq!(datagrams.len(), len.div_ceil(stride) + 60 + 1);
            assert!(datagrams[0].iter().all(|b| *b == 1) && datagrams[datagrams.len() - 1][..] == [3; 5]);
            assert!(kept_for_the_first(datagrams) <= 2 * len, "for {len} bytes");
        }
    }
}
