//! Frames: one value for each type, decoded in place from a packet's payload.

mod ack;
mod additional_addresses;
mod address;
mod cid;
mod close;
pub(crate) mod crypto;
pub(crate) mod data;
pub(crate) mod datagram;
mod decode;
mod flow_control;
mod ip;
mod list;
mod path;
mod paths_info;
mod reach_out;
mod stream;
mod token;
pub mod types;
mod uniflows;

#[cfg(test)]
mod tests;

pub use ack::{Ack, AckForm, AckFrequency, AckRanges, OutAck};
pub use additional_addresses::AdditionalAddresses;
pub use address::{AddAddress, AddressForm, InterfaceType, RemoveAddress};
pub use cid::{CidForm, NewCid, RetireCid};
pub use close::Close;
pub use crypto::Crypto;
pub use datagram::Datagram;
pub use decode::{FrameError, Frames};
pub use flow_control::{DataBlocked, MaxData, MaxStreamData, MaxStreams, StreamDataBlocked, StreamsBlocked};
pub use list::{List, ListIter};
pub use path::{
    MaxPathId, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatus, PathStatusUpdate, PathsBlocked,
};
pub use paths_info::{PathCondition, PathInfo, PathsInfo};
pub use reach_out::ReachOut;
pub(crate) use stream::StreamHead;
pub use stream::{OutStream, ResetStream, StopSending, Stream};
pub use token::NewToken;
pub use types::{is_ack_eliciting, is_allowed, is_multiflow, is_multipath, is_probing, name};
pub use uniflows::{UniflowInfo, Uniflows};

use plait_base::{PathId, Violation};

use crate::varint::{self, Reader};

/// A frame; data is borrowed from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is the frame that its value describes
pub enum Frame<'a> {
    /// This many PADDING frames in a row.
    Padding(usize),
    Ping,
    /// ACK, PATH_ACK or MP_ACK.
    Ack(Ack<'a>),
    ResetStream(ResetStream),
    StopSending(StopSending),
    Crypto(Crypto<'a>),
    NewToken(NewToken<'a>),
    Stream(Stream<'a>),
    MaxData(MaxData),
    MaxStreamData(MaxStreamData),
    MaxStreams(MaxStreams),
    DataBlocked(DataBlocked),
    StreamDataBlocked(StreamDataBlocked),
    StreamsBlocked(StreamsBlocked),
    /// NEW_CONNECTION_ID, PATH_NEW_CONNECTION_ID or MP_NEW_CONNECTION_ID.
    NewCid(NewCid),
    /// RETIRE_CONNECTION_ID, PATH_RETIRE_CONNECTION_ID or MP_RETIRE_CONNECTION_ID.
    RetireCid(RetireCid),
    PathChallenge(PathChallenge),
    PathResponse(PathResponse),
    Close(Close<'a>),
    HandshakeDone,
    Datagram(Datagram<'a>),
    AckFrequency(AckFrequency),
    ImmediateAck,
    PathAbandon(PathAbandon),
    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP.
    PathStatus(PathStatusUpdate),
    MaxPathId(MaxPathId),
    PathsBlocked(PathsBlocked),
    PathCidsBlocked(PathCidsBlocked),
    /// ADD_ADDRESS of one of three extensions.
    AddAddress(AddAddress),
    /// REMOVE_ADDRESS of one of three extensions.
    RemoveAddress(RemoveAddress),
    ReachOut(ReachOut),
    AdditionalAddresses(AdditionalAddresses<'a>),
    Uniflows(Uniflows<'a>),
    /// MPX_PATHS, an extension of plait's.
    PathsInfo(PathsInfo<'a>),
}

impl Frame<'_> {
    /// The type that [`Encode::encode`] writes; a STREAM or DATAGRAM may have arrived without its length.
    pub fn frame_type(&self) -> u64 {
        match self {
            Self::Padding(_) => types::PADDING,
            Self::Ping => types::PING,
            Self::Ack(f) => f.frame_type(),
            Self::ResetStream(_) => types::RESET_STREAM,
            Self::StopSending(_) => types::STOP_SENDING,
            Self::Crypto(_) => types::CRYPTO,
            Self::NewToken(_) => types::NEW_TOKEN,
            Self::Stream(f) => f.frame_type(),
            Self::MaxData(_) => types::MAX_DATA,
            Self::MaxStreamData(_) => types::MAX_STREAM_DATA,
            Self::MaxStreams(f) => f.frame_type(),
            Self::DataBlocked(_) => types::DATA_BLOCKED,
            Self::StreamDataBlocked(_) => types::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked(f) => f.frame_type(),
            Self::NewCid(f) => f.frame_type(),
            Self::RetireCid(f) => f.frame_type(),
            Self::PathChallenge(_) => types::PATH_CHALLENGE,
            Self::PathResponse(_) => types::PATH_RESPONSE,
            Self::Close(f) => f.frame_type(),
            Self::HandshakeDone => types::HANDSHAKE_DONE,
            Self::Datagram(_) => types::DATAGRAM_LEN,
            Self::AckFrequency(_) => types::ACK_FREQUENCY,
            Self::ImmediateAck => types::IMMEDIATE_ACK,
            Self::PathAbandon(_) => types::PATH_ABANDON,
            Self::PathStatus(f) => f.frame_type(),
            Self::MaxPathId(_) => types::MAX_PATH_ID,
            Self::PathsBlocked(_) => types::PATHS_BLOCKED,
            Self::PathCidsBlocked(_) => types::PATH_CIDS_BLOCKED,
            Self::AddAddress(f) => f.frame_type(),
            Self::RemoveAddress(f) => f.frame_type(),
            Self::ReachOut(f) => f.frame_type(),
            Self::AdditionalAddresses(_) => types::ADDITIONAL_ADDRESSES,
            Self::Uniflows(_) => types::UNIFLOWS,
            Self::PathsInfo(_) => types::MPX_PATHS,
        }
    }
}

/// A frame that can be written.
pub trait Encode {
    /// Bytes that [`Self::encode`] appends.
    fn size(&self) -> usize;
    /// Appends the frame, its type first, in a form that says where it ends.
    fn encode(&self, out: &mut Vec<u8>);
}

impl Encode for Frame<'_> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding(count) => data::put_padding(out, *count),
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => varint::put(out, self.frame_type()),
            Self::Ack(f) => f.encode(out),
            Self::ResetStream(f) => f.encode(out),
            Self::StopSending(f) => f.encode(out),
            Self::Crypto(f) => f.encode(out),
            Self::NewToken(f) => f.encode(out),
            Self::Stream(f) => f.encode(out),
            Self::MaxData(f) => f.encode(out),
            Self::MaxStreamData(f) => f.encode(out),
            Self::MaxStreams(f) => f.encode(out),
            Self::DataBlocked(f) => f.encode(out),
            Self::StreamDataBlocked(f) => f.encode(out),
            Self::StreamsBlocked(f) => f.encode(out),
            Self::NewCid(f) => f.encode(out),
            Self::RetireCid(f) => f.encode(out),
            Self::PathChallenge(f) => f.encode(out),
            Self::PathResponse(f) => f.encode(out),
            Self::Close(f) => f.encode(out),
            Self::Datagram(f) => f.encode(out),
            Self::AckFrequency(f) => f.encode(out),
            Self::PathAbandon(f) => f.encode(out),
            Self::PathStatus(f) => f.encode(out),
            Self::MaxPathId(f) => f.encode(out),
            Self::PathsBlocked(f) => f.encode(out),
            Self::PathCidsBlocked(f) => f.encode(out),
            Self::AddAddress(f) => f.encode(out),
            Self::RemoveAddress(f) => f.encode(out),
            Self::ReachOut(f) => f.encode(out),
            Self::AdditionalAddresses(f) => f.encode(out),
            Self::Uniflows(f) => f.encode(out),
            Self::PathsInfo(f) => f.encode(out),
        }
    }

    #[inline]
    fn size(&self) -> usize {
        match self {
            Self::Padding(count) => *count,
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => 1,
            Self::Ack(f) => f.size(),
            Self::ResetStream(f) => f.size(),
            Self::StopSending(f) => f.size(),
            Self::Crypto(f) => f.size(),
            Self::NewToken(f) => f.size(),
            Self::Stream(f) => f.size(),
            Self::MaxData(f) => f.size(),
            Self::MaxStreamData(f) => f.size(),
            Self::MaxStreams(f) => f.size(),
            Self::DataBlocked(f) => f.size(),
            Self::StreamDataBlocked(f) => f.size(),
            Self::StreamsBlocked(f) => f.size(),
            Self::NewCid(f) => f.size(),
            Self::RetireCid(f) => f.size(),
            Self::PathChallenge(f) => f.size(),
            Self::PathResponse(f) => f.size(),
            Self::Close(f) => f.size(),
            Self::Datagram(f) => f.size(),
            Self::AckFrequency(f) => f.size(),
            Self::PathAbandon(f) => f.size(),
            Self::PathStatus(f) => f.size(),
            Self::MaxPathId(f) => f.size(),
            Self::PathsBlocked(f) => f.size(),
            Self::PathCidsBlocked(f) => f.size(),
            Self::AddAddress(f) => f.size(),
            Self::RemoveAddress(f) => f.size(),
            Self::ReachOut(f) => f.size(),
            Self::AdditionalAddresses(f) => f.size(),
            Self::Uniflows(f) => f.size(),
            Self::PathsInfo(f) => f.size(),
        }
    }
}

/// A path id, or Multiflow's uniflow id; none above 2^32 - 1 can be within a limit that was announced (RFC 10069 4).
#[inline]
fn read_path_id(r: &mut Reader<'_>) -> Result<PathId, Violation> {
    u32::try_from(r.varint()?).map(PathId).map_err(|_| Violation::PathIdAboveLimit)
}

#[inline]
fn put_varints(out: &mut Vec<u8>, fields: &[u64]) {
    fields.iter().for_each(|&f| varint::put(out, f));
}

#[inline]
fn varints_size(fields: &[u64]) -> usize {
    fields.iter().map(|&f| varint::size(f)).sum()
}

/// Encodes a frame that is nothing but varints, its type first.
macro_rules! varint_frame {
    ($name:ident, |$frame:ident| $fields:expr) => {
        impl $crate::frame::Encode for $name {
            #[inline]
            fn size(&self) -> usize {
                let $frame = self;
                $crate::frame::varints_size(&$fields)
            }

            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let $frame = self;
                $crate::frame::put_varints(out, &$fields);
            }
        }
    };
}
use varint_frame;
