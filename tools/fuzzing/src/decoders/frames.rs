//! Frames: every payload is frames or a named violation, and each frame is written and read again unchanged.

use plait_base::{CloseCode, ConnectionId, Dir, PathId, ResetToken, StreamId};
use plait_wire::Encode;
use plait_wire::frame::{
    Ack, AckFrequency, CidForm, Close, Crypto, DataBlocked, Datagram, Frame, Frames, MaxData, MaxPathId, MaxStreamData,
    MaxStreams, NewCid, NewToken, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatus,
    PathStatusUpdate, PathsBlocked, ResetStream, RetireCid, StopSending, Stream, StreamDataBlocked, StreamsBlocked,
    is_allowed, name,
};
use plait_wire::header::PacketKind;

use crate::ArbitraryInput;

const KINDS: [PacketKind; 4] = [PacketKind::Initial, PacketKind::ZeroRtt, PacketKind::Handshake, PacketKind::OneRtt];

/// The input: the kind of packet, then its payload.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let kind = KINDS.get(input.below(5)).copied();
    let payload = input.rest();
    let frames = match kind {
        Some(kind) => Frames::in_packet(payload, kind),
        None => Frames::new(payload),
    };
    let mut count = 0;
    for frame in frames {
        count += 1;
        let Ok(frame) = frame else { break };
        assert!(kind.is_none_or(|kind| is_allowed(frame.frame_type(), kind)), "{frame:?} in {kind:?}");
        let _ = name(frame.frame_type());
        if let Frame::Ack(ack) = &frame {
            descend(ack);
        }
        again(&frame);
    }
    assert!(count > 0 && count <= payload.len().max(1));
}

fn again(frame: &Frame<'_>) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    assert_eq!(bytes.len(), frame.size(), "{frame:?}");
    let mut read = Frames::new(&bytes);
    let frame = match frame {
        // It remembers how large the frame was that brought it.
        Frame::Datagram(datagram) => Frame::Datagram(Datagram::new(datagram.data)),
        other => *other,
    };
    assert_eq!(read.next(), Some(Ok(frame)));
    assert_eq!(read.next(), None);
}

/// Ranges of an ack descend and never touch.
fn descend(ack: &Ack<'_>) {
    let (mut count, mut below) = (0, ack.largest.saturating_add(2));
    for range in ack.ranges() {
        assert!(range.start() <= range.end() && range.end() + 1 < below);
        below = *range.start();
        count += 1;
    }
    assert_eq!(count, ack.range_count());
}

/// Each frame once in a payload of its own, and all together.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut all = all_frames();
    all.extend(frames_of_other_extensions());
    let mut seeds: Vec<Vec<u8>> = all.iter().map(|frame| payload(std::slice::from_ref(frame))).collect();
    seeds.push(payload(&all));
    // ACK with ECN counts, PATH_ACK and MP_ACK, three ranges each.
    seeds.push(vec![4, 0x03, 30, 5, 2, 3, 1, 2, 0, 4, 7, 8, 9]);
    seeds.push(vec![4, 0x3e, 2, 30, 5, 2, 3, 1, 2, 0, 4]);
    seeds.push(vec![4, 0x40, 0x42, 2, 30, 5, 2, 3, 1, 2, 0, 4]);
    seeds
}

fn payload(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = vec![3];
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

/// One of each frame that is refused unless an extension was negotiated which the other targets do not speak.
fn frames_of_other_extensions() -> Vec<Frame<'static>> {
    let path = PathId(1);
    let cid = ConnectionId::new(&[8; 8]).unwrap_or(ConnectionId::EMPTY);
    let token = ResetToken([4; 16]);
    vec![
        Frame::NewCid(NewCid { form: CidForm::Uniflow, path, sequence: 1, retire_prior_to: 0, cid, token }),
        Frame::RetireCid(RetireCid { form: CidForm::Uniflow, path, sequence: 0 }),
    ]
}

/// One of each frame that 1-RTT packets carry, for seeds of other targets too.
pub(crate) fn all_frames() -> Vec<Frame<'static>> {
    let (id, path) = (StreamId(4), PathId(1));
    let cid = ConnectionId::new(&[9; 8]).unwrap_or(ConnectionId::EMPTY);
    let new = NewCid { form: CidForm::Path, path, sequence: 2, retire_prior_to: 1, cid, token: ResetToken([3; 16]) };
    let status = |status| Frame::PathStatus(PathStatusUpdate { path, sequence: 1, status });
    vec![
        Frame::Padding(3),
        Frame::Ping,
        Frame::ResetStream(ResetStream { id, code: 1, final_size: 10 }),
        Frame::StopSending(StopSending { id, code: 2 }),
        Frame::Crypto(Crypto { offset: 5, data: b"hello" }),
        Frame::NewToken(NewToken { token: b"token" }),
        Frame::Stream(Stream { id, offset: 3, fin: true, data: b"stream data" }),
        Frame::MaxData(MaxData { limit: 100_000 }),
        Frame::MaxStreamData(MaxStreamData { id, limit: 70_000 }),
        Frame::MaxStreams(MaxStreams { dir: Dir::Uni, limit: 9 }),
        Frame::DataBlocked(DataBlocked { limit: 9 }),
        Frame::StreamDataBlocked(StreamDataBlocked { id, limit: 9 }),
        Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Bi, limit: 9 }),
        Frame::NewCid(new),
        Frame::NewCid(NewCid { form: CidForm::Plain, path: PathId::ZERO, ..new }),
        Frame::RetireCid(RetireCid { form: CidForm::Path, path, sequence: 0 }),
        Frame::RetireCid(RetireCid { form: CidForm::Plain, path: PathId::ZERO, sequence: 0 }),
        Frame::PathChallenge(PathChallenge { data: [5; 8] }),
        Frame::PathResponse(PathResponse { data: [6; 8] }),
        Frame::HandshakeDone,
        Frame::Datagram(Datagram::new(b"datagram")),
        Frame::AckFrequency(AckFrequency {
            sequence: 1,
            ack_eliciting_threshold: 4,
            max_ack_delay_us: 9_000,
            reordering_threshold: 2,
        }),
        Frame::ImmediateAck,
        Frame::PathAbandon(PathAbandon { path, code: CloseCode::NO_ERROR }),
        status(PathStatus::Backup),
        status(PathStatus::Available),
        Frame::MaxPathId(MaxPathId { limit: PathId(9) }),
        Frame::PathsBlocked(PathsBlocked { limit: PathId(3) }),
        Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: 2 }),
        Frame::Close(Close::Application { code: 7, reason: b"bye" }),
    ]
}
