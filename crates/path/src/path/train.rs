//! Packets of stream data that leave at one moment on one path: filled, sealed and booked in one loop.
//!
//! What holds for all of them is looked up once: connection id, header, keys. What each of them changes is looked at for
//! each: window, pace, packet number, what is left to send.

use plait_base::{ConnectionId, Ecn, Instant, Space};
use plait_crypto::{OneRttKeys, SealError};
use plait_wire::header::FixedBit;
use plait_wire::{FrameWriter, SentFrame};

use super::Path;
use crate::addresses::FourTupleRole;
use crate::send::{Built, PacketInfo, Padding, Sealer};

/// A packet that is smaller than its train's segments by no more than this is padded to keep the train going.
pub const TRAIN_PADDING_BYTES: usize = 64;

/// Where the packets of a train have their stream data from.
pub trait TrainSource {
    /// True while stream data waits, and nothing that should go before it.
    fn has_more(&self) -> bool;

    /// True while bytes of streams wait.
    fn has_unsent(&self) -> bool;

    /// The second bit of the next packet.
    fn fixed_bit(&mut self) -> FixedBit;

    /// Writes STREAM frames, as many as fit.
    fn fill(&mut self, w: &mut FrameWriter<'_>);

    /// A packet was sealed and booked on its path.
    fn on_sent(&mut self, built: Built);
}

/// What the packets of a train have in common.
#[derive(Clone, Copy, Debug)]
pub struct TrainPlan {
    /// The peer's connection id that they go to.
    pub dcid: ConnectionId,
    /// The mark of their datagrams.
    pub ecn: Option<Ecn>,
    /// Bytes of each, though the last one may be shorter.
    pub segment_bytes: usize,
    /// How many there may be.
    pub count: usize,
}

/// Why a train has no further packet of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainEnd {
    /// The path has no room or the streams have no data, or something else goes first: another kind of packet may follow.
    Open,
    /// It is full, or its last packet is shorter than the others, or the next one would bear another mark.
    Closed,
}

impl Path {
    /// Appends packets of stream data to `buf`, as long as window and pace admit them; the address must be proven. `frames`
    /// is memory to work in.
    ///
    /// # Errors
    /// The keys are used up or refuse. The packets before the one that could not be sealed are in `buf`.
    #[inline(never)]
    pub fn fill_train(
        &mut self,
        now: Instant,
        plan: &TrainPlan,
        keys: &mut OneRttKeys,
        source: &mut impl TrainSource,
        frames: &mut Vec<SentFrame>,
        buf: &mut Vec<u8>,
    ) -> Result<TrainEnd, SealError> {
        let header = self.short_header(plan.dcid);
        self.send.prepare_books(now, Space::Data);
        for _ in 0..plan.count {
            if !source.has_more() || !self.admits_datagram(now) {
                return Ok(TrainEnd::Open);
            }
            if self.send.ecn() != plan.ecn {
                return Ok(TrainEnd::Closed);
            }
            let end = buf.len() + plan.segment_bytes;
            let fixed_bit = source.fixed_bit();
            let Some(builder) = self.begin_packet(Space::Data, buf, &header, end, fixed_bit) else {
                return Ok(TrainEnd::Closed);
            };
            frames.clear();
            source.fill(&mut builder.writer(buf, frames));
            if frames.is_empty() {
                builder.abandon(buf);
                return Ok(TrainEnd::Closed);
            }
            let has_unsent = source.has_unsent();
            let padding = match has_unsent {
                true => Padding::Nearly { end, missing_bytes: TRAIN_PADDING_BYTES },
                false => Padding::Least,
            };
            let built = self.finish_packet(builder, buf, Sealer::OneRtt(keys), padding)?;
            let packet = PacketInfo {
                bytes: built.bytes as u16,
                ack_eliciting: true,
                in_flight: true,
                ecn_marked: plan.ecn.is_some(),
                app_limited: !has_unsent,
                ..PacketInfo::default()
            };
            self.send.book(now, Space::Data, &packet, frames);
            self.count_sent(now, FourTupleRole::Current, &packet);
            source.on_sent(built);
            if built.bytes < plan.segment_bytes {
                return Ok(TrainEnd::Closed);
            }
        }
        Ok(TrainEnd::Closed)
    }
}
