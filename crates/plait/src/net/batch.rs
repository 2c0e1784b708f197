//! Datagrams that one receive call brought, cut apart without copying large GRO batches.
//!
//! Each message has a buffer of its own. One that is more than half full is handed on in slices and replaced; a smaller
//! message is copied to an allocation of its own size. So whatever a slice keeps alive is at most twice what arrived in
//! its message, and no slice keeps the messages of others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use quinn_udp::{EcnCodepoint, RecvMeta};

/// Largest UDP payload, and so the size of one receive slot.
pub(crate) const SLOT_BYTES: usize = 65_536;
/// Slots of one receive call, at most.
pub(crate) const MAX_SLOTS: usize = 8;
/// Smaller messages are copied out, and their buffer is used again.
const COPY_BELOW_BYTES: usize = SLOT_BYTES / 2;

/// One received datagram.
#[derive(Debug)]
pub(crate) struct ReceivedDatagram {
    /// Who sent it.
    pub(crate) remote: SocketAddr,
    /// The address it was sent to, where the platform tells.
    pub(crate) destination: Option<IpAddr>,
    /// Its ECN mark.
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) bytes: BytesMut,
}

/// What the last receive call brought; iterate to take the datagrams out.
#[derive(Debug)]
pub(crate) struct ReceiveBatch {
    /// Empty ones are made when they are needed.
    buffers: [BytesMut; MAX_SLOTS],
    slots: usize,
    ready: VecDeque<ReceivedDatagram>,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self { buffers: Default::default(), slots: 1, ready: VecDeque::new() }
    }
}

impl ReceiveBatch {
    /// The slots to receive into.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.buffers[..self.slots].iter_mut().map(|buffer| {
            if buffer.is_empty() {
                *buffer = BytesMut::zeroed(SLOT_BYTES);
            }
            &mut buffer[..]
        })
    }

    /// Takes what the call filled: one meta a slot.
    pub(crate) fn filled(&mut self, metas: &[RecvMeta]) {
        for (meta, buffer) in metas.iter().zip(&mut self.buffers) {
            let len = meta.len.min(buffer.len());
            let mut rest = if len < COPY_BELOW_BYTES {
                BytesMut::from(&buffer[..len])
            } else {
                let mut whole = std::mem::take(buffer);
                whole.truncate(len);
                whole
            };
            while !rest.is_empty() {
                let bytes = rest.split_to(meta.stride.max(1).min(rest.len()));
                let (remote, destination, ecn) = (meta.addr, meta.dst_ip, meta.ecn);
                self.ready.push_back(ReceivedDatagram { remote, destination, ecn, bytes });
            }
        }
        self.slots = match metas.len() {
            n if n == self.slots => (self.slots * 2).min(MAX_SLOTS),
            n => n.max(1),
        };
    }
}

impl Iterator for ReceiveBatch {
    type Item = ReceivedDatagram;
    fn next(&mut self) -> Option<ReceivedDatagram> {
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
        batch.map(|datagram| datagram.bytes).collect()
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
            let mut batch = ReceiveBatch::default();
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
