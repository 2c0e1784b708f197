//! Packets that arrived before their keys.

use bytes::BytesMut;
use plait_base::{Ecn, FourTuple, PathId, Space, limits};
use plait_crypto::OneRttKeys;

use crate::connection::handshake::Handshake;

/// A packet that waits for its keys.
#[derive(Debug)]
pub(crate) struct SavedPacket {
    pub(crate) path: PathId,
    pub(crate) tuple: FourTuple,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) space: Space,
    pub(crate) data: BytesMut,
}

impl SavedPacket {
    /// True for 0-RTT, the only packets of the data space with a long header.
    fn is_zero_rtt(&self) -> bool {
        self.space == Space::Data && self.data.first().is_some_and(|first| first & 0x80 != 0)
    }
}

/// Packets that wait for their keys, in the order of their arrival; a peer cannot make them more than the limits say.
#[derive(Debug, Default)]
pub(crate) struct SavedPackets {
    packets: Vec<SavedPacket>,
}

/// There is no room for one more packet, or it was not to be kept.
#[derive(Debug)]
pub(crate) struct NotSaved;

impl SavedPackets {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn push(&mut self, packet: Option<SavedPacket>) -> Result<(), NotSaved> {
        let packet = packet.ok_or(NotSaved)?;
        let held: usize = self.packets.iter().map(|saved| saved.data.len()).sum();
        if self.packets.len() >= limits::MAX_SAVED_PACKETS || held + packet.data.len() > limits::MAX_SAVED_BYTES {
            return Err(NotSaved);
        }
        self.packets.push(packet);
        Ok(())
    }

    /// Takes out the packets whose keys are there by now.
    pub(crate) fn take_ready(&mut self, handshake: &Handshake, one_rtt: Option<&OneRttKeys>) -> Vec<SavedPacket> {
        let has_keys = |packet: &mut SavedPacket| match packet.space {
            Space::Data => one_rtt.is_some() || (packet.is_zero_rtt() && handshake.open_keys(Space::Data).is_some()),
            space => handshake.open_keys(space).is_some(),
        };
        self.packets.extract_if(.., has_keys).collect()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.packets.shrink_to_fit();
    }
}
