//! The walk over a packet's payload: one frame after the other, up to the first that breaks a rule.

use std::iter::FusedIterator;

use plait_base::{Dir, TransportError, Violation};

use super::{
    Ack, AckForm, AckFrequency, AddAddress, AdditionalAddresses, AddressForm, CidForm, Close, Crypto, DataBlocked,
    Datagram, Frame, MaxData, MaxPathId, MaxStreamData, MaxStreams, NewCid, NewToken, PathAbandon, PathChallenge,
    PathCidsBlocked, PathResponse, PathStatus, PathStatusUpdate, PathsBlocked, PathsInfo, ReachOut, RemoveAddress,
    ResetStream, RetireCid, StopSending, Stream, StreamDataBlocked, StreamsBlocked, Uniflows, types,
};
use crate::header::PacketKind;
use crate::varint::{self, Reader};

/// A frame that closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError {
    /// Type of the frame at fault; 0 when it could not be read.
    pub(crate) frame_type: u64,
    /// The rule that it breaks.
    pub violation: Violation,
}

impl From<FrameError> for TransportError {
    fn from(error: FrameError) -> Self {
        Self::from(error.violation).in_frame(error.frame_type)
    }
}

/// The frames of one packet, in order; ends after the first error. A payload without frames gives
/// [`Violation::EmptyPacket`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: Reader<'a>,
    kind: Option<PacketKind>,
    state: Walk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    Start,
    Inside,
    Over,
}

impl<'a> Frames<'a> {
    /// Walks over `payload`, whatever packet it came in.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: Reader::new(payload), kind: None, state: Walk::Start }
    }

    /// Walks over the `payload` of a packet of this kind: frames that it may not carry are
    /// [`Violation::FrameNotAllowedHere`].
    #[inline]
    pub fn in_packet(payload: &'a [u8], kind: PacketKind) -> Self {
        Self { kind: Some(kind), ..Self::new(payload) }
    }

    fn read(&mut self) -> Result<Frame<'a>, FrameError> {
        let fault = |frame_type| move |violation| FrameError { frame_type, violation };
        // Nearly all types take one byte.
        let frame_type = match self.rest.one_byte_varint() {
            Some(frame_type) => frame_type,
            None => self.long_type()?,
        };
        if self.kind.is_some_and(|kind| !types::is_allowed(frame_type, kind)) {
            let violation =
                if types::is_known(frame_type) { Violation::FrameNotAllowedHere } else { Violation::UnknownFrame };
            return Err(fault(frame_type)(violation));
        }
        self.body(frame_type).map_err(fault(frame_type))
    }

    #[cold]
    fn long_type(&mut self) -> Result<u64, FrameError> {
        let before = self.rest.remaining();
        let read = self.rest.varint();
        let frame_type = read.map_err(|why| FrameError { frame_type: types::PADDING, violation: why.into() })?;
        // RFC 9000 12.4: a frame type takes the fewest bytes.
        if before - self.rest.remaining() != varint::size(frame_type) {
            return Err(FrameError { frame_type, violation: Violation::FrameTypeNotMinimal });
        }
        Ok(frame_type)
    }

    fn body(&mut self, frame_type: u64) -> Result<Frame<'a>, Violation> {
        let r = &mut self.rest;
        Ok(match frame_type {
            types::PADDING => Frame::Padding(1 + skip_zeros(r)),
            types::PING => Frame::Ping,
            types::ACK | types::ACK_ECN => Frame::Ack(Ack::decode(r, AckForm::Plain, frame_type)?),
            types::PATH_ACK | types::PATH_ACK_ECN => Frame::Ack(Ack::decode(r, AckForm::Path, frame_type)?),
            types::RESET_STREAM => Frame::ResetStream(ResetStream::decode(r)?),
            types::STOP_SENDING => Frame::StopSending(StopSending::decode(r)?),
            types::CRYPTO => Frame::Crypto(Crypto::decode(r)?),
            types::NEW_TOKEN => Frame::NewToken(NewToken::decode(r)?),
            types::STREAM..=types::STREAM_LAST => Frame::Stream(Stream::decode(r, frame_type)?),
            types::MAX_DATA => Frame::MaxData(MaxData::decode(r)?),
            types::MAX_STREAM_DATA => Frame::MaxStreamData(MaxStreamData::decode(r)?),
            types::MAX_STREAMS_BIDI => Frame::MaxStreams(MaxStreams::decode(r, Dir::Bi)?),
            types::MAX_STREAMS_UNI => Frame::MaxStreams(MaxStreams::decode(r, Dir::Uni)?),
            types::DATA_BLOCKED => Frame::DataBlocked(DataBlocked::decode(r)?),
            types::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked(StreamDataBlocked::decode(r)?),
            types::STREAMS_BLOCKED_BIDI => Frame::StreamsBlocked(StreamsBlocked::decode(r, Dir::Bi)?),
            types::STREAMS_BLOCKED_UNI => Frame::StreamsBlocked(StreamsBlocked::decode(r, Dir::Uni)?),
            types::NEW_CONNECTION_ID => Frame::NewCid(NewCid::decode(r, CidForm::Plain)?),
            types::RETIRE_CONNECTION_ID => Frame::RetireCid(RetireCid::decode(r, CidForm::Plain)?),
            types::PATH_CHALLENGE => Frame::PathChallenge(PathChallenge::decode(r)?),
            types::PATH_RESPONSE => Frame::PathResponse(PathResponse::decode(r)?),
            types::CONNECTION_CLOSE | types::APPLICATION_CLOSE => Frame::Close(Close::decode(r, frame_type)?),
            types::HANDSHAKE_DONE => Frame::HandshakeDone,
            types::DATAGRAM | types::DATAGRAM_LEN => Frame::Datagram(Datagram::decode(r, frame_type)?),
            types::IMMEDIATE_ACK => Frame::ImmediateAck,
            types::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency::decode(r)?),
            _ => return multipath_body(r, frame_type),
        })
    }
}

/// The control frames of RFC 10069 4.
fn multipath_body<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, Violation> {
    Ok(match frame_type {
        types::PATH_ABANDON => Frame::PathAbandon(PathAbandon::decode(r)?),
        types::PATH_STATUS_BACKUP => Frame::PathStatus(PathStatusUpdate::decode(r, PathStatus::Backup)?),
        types::PATH_STATUS_AVAILABLE => Frame::PathStatus(PathStatusUpdate::decode(r, PathStatus::Available)?),
        types::PATH_NEW_CONNECTION_ID => Frame::NewCid(NewCid::decode(r, CidForm::Path)?),
        types::PATH_RETIRE_CONNECTION_ID => Frame::RetireCid(RetireCid::decode(r, CidForm::Path)?),
        types::MAX_PATH_ID => Frame::MaxPathId(MaxPathId::decode(r)?),
        types::PATHS_BLOCKED => Frame::PathsBlocked(PathsBlocked::decode(r)?),
        types::PATH_CIDS_BLOCKED => Frame::PathCidsBlocked(PathCidsBlocked::decode(r)?),
        _ => return multiflow_body(r, frame_type),
    })
}

/// The frames of Multiflow.
fn multiflow_body<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, Violation> {
    Ok(match frame_type {
        types::MP_NEW_CONNECTION_ID => Frame::NewCid(NewCid::decode(r, CidForm::Uniflow)?),
        types::MP_RETIRE_CONNECTION_ID => Frame::RetireCid(RetireCid::decode(r, CidForm::Uniflow)?),
        types::MP_ACK | types::MP_ACK_ECN => Frame::Ack(Ack::decode(r, AckForm::Uniflow, frame_type)?),
        types::ADD_ADDRESS => Frame::AddAddress(AddAddress::decode(r, AddressForm::Multiflow, frame_type)?),
        types::REMOVE_ADDRESS => Frame::RemoveAddress(RemoveAddress::decode(r, AddressForm::Multiflow)?),
        types::UNIFLOWS => Frame::Uniflows(Uniflows::decode(r)?),
        _ => return announcement_body(r, frame_type),
    })
}

/// Frames about addresses and paths of further extensions.
fn announcement_body<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, Violation> {
    use AddressForm::{NatTraversal, Private};
    Ok(match frame_type {
        types::MPX_ADD_ADDRESS => Frame::AddAddress(AddAddress::decode(r, Private, frame_type)?),
        types::MPX_REMOVE_ADDRESS => Frame::RemoveAddress(RemoveAddress::decode(r, Private)?),
        types::MPX_PATHS => Frame::PathsInfo(PathsInfo::decode(r)?),
        types::NAT_ADD_ADDRESS_V4 | types::NAT_ADD_ADDRESS_V6 => {
            Frame::AddAddress(AddAddress::decode(r, NatTraversal, frame_type)?)
        }
        types::NAT_REACH_OUT_V4 | types::NAT_REACH_OUT_V6 => Frame::ReachOut(ReachOut::decode(r, frame_type)?),
        types::NAT_REMOVE_ADDRESS => Frame::RemoveAddress(RemoveAddress::decode(r, NatTraversal)?),
        types::ADDITIONAL_ADDRESSES => Frame::AdditionalAddresses(AdditionalAddresses::decode(r)?),
        _ => return Err(Violation::UnknownFrame),
    })
}

/// Takes the zeros at the front; how many there were.
fn skip_zeros(r: &mut Reader<'_>) -> usize {
    // Initial packets hold a thousand of them.
    const STRIDE: usize = 32;
    let rest = r.peek();
    let whole = STRIDE * rest.chunks_exact(STRIDE).take_while(|chunk| **chunk == [0; STRIDE]).count();
    let count = rest.iter().skip(whole).position(|&byte| byte != 0).map_or(rest.len(), |at| whole + at);
    let _ = r.bytes(count);
    count
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.state {
            Walk::Over => return None,
            Walk::Start if self.rest.is_empty() => {
                self.state = Walk::Over;
                // RFC 9000 12.4: a packet contains at least one frame.
                return Some(Err(FrameError { frame_type: types::PADDING, violation: Violation::EmptyPacket }));
            }
            _ if self.rest.is_empty() => {
                self.state = Walk::Over;
                return None;
            }
            _ => self.state = Walk::Inside,
        }
        let frame = self.read();
        if frame.is_err() {
            self.state = Walk::Over;
        }
        Some(frame)
    }
}

impl FusedIterator for Frames<'_> {}
