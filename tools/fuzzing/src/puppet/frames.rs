//! Frames that a peer may send, chosen by an input: mostly near the rules' edges rather than far beyond them.

use plait_base::units::VARINT_MAX;
use plait_base::{CloseCode, ConnectionId, Dir, EcnCounts, PathId, RangeSet, ResetToken, Side, StreamId};
use plait_wire::Encode;
use plait_wire::frame::{
    AckForm, AckFrequency, CidForm, Close, Crypto, DataBlocked, Datagram, Frame, MaxData, MaxPathId, MaxStreamData,
    MaxStreams, NewCid, NewToken, OutAck, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatus,
    PathStatusUpdate, PathsBlocked, ResetStream, RetireCid, StopSending, Stream, StreamDataBlocked, StreamsBlocked,
};

use crate::ArbitraryInput;

/// Path ids that the frames name: within the limit that the ends announce, and one beyond.
const PATHS: usize = 5;

/// Appends frames until the input says stop or `max_bytes` are written.
pub fn put_some(input: &mut ArbitraryInput<'_>, out: &mut Vec<u8>, max_bytes: usize) {
    loop {
        put_one(input, out);
        if out.len() >= max_bytes || input.is_over() || input.one_in(3) {
            return;
        }
    }
}

/// Appends one frame.
pub fn put_one(input: &mut ArbitraryInput<'_>, out: &mut Vec<u8>) {
    match input.byte() % 6 {
        0 => put_ack(input, out),
        1 => stream(input).encode(out),
        2 => cid(input).encode(out),
        3 => path(input).encode(out),
        4 => limit(input).encode(out),
        _ => other(input).encode(out),
    }
}

/// A number on the wire: small, or of any size.
fn number(input: &mut ArbitraryInput<'_>) -> u64 {
    input.number() & VARINT_MAX
}

/// A path id.
pub fn path_id(input: &mut ArbitraryInput<'_>) -> PathId {
    PathId(input.below(PATHS) as u32)
}

fn stream_id(input: &mut ArbitraryInput<'_>) -> StreamId {
    let side = if input.flag() { Side::Server } else { Side::Client };
    let dir = if input.flag() { Dir::Uni } else { Dir::Bi };
    StreamId::new(side, dir, input.below(6) as u64)
}

fn put_ack(input: &mut ArbitraryInput<'_>, out: &mut Vec<u8>) {
    let form = if input.flag() { AckForm::Path } else { AckForm::Plain };
    let path = if form == AckForm::Path { path_id(input) } else { PathId::ZERO };
    let mut ranges = RangeSet::new();
    for _ in 0..=input.below(4) {
        let start = number(input);
        ranges.insert(start..start.saturating_add(1 + u64::from(input.byte())).min(VARINT_MAX));
    }
    let ecn = (input.one_in(4)).then(|| EcnCounts { ect0: number(input), ect1: number(input), ce: number(input) });
    OutAck { form, path, ranges: &ranges, delay: number(input), ecn }.encode(500, out);
}

fn stream<'a>(input: &mut ArbitraryInput<'a>) -> Frame<'a> {
    let id = stream_id(input);
    match input.byte() % 8 {
        0 => Frame::ResetStream(ResetStream { id, code: number(input), final_size: number(input) }),
        1 => Frame::StopSending(StopSending { id, code: number(input) }),
        2 => Frame::StreamDataBlocked(StreamDataBlocked { id, limit: number(input) }),
        3 => Frame::MaxStreamData(MaxStreamData { id, limit: number(input) }),
        kind => {
            let (offset, fin) = (number(input), input.one_in(8));
            let data = if kind == 4 { input.piece() } else { &FILL[..usize::from(input.byte()) * 4] };
            let offset = offset.min(VARINT_MAX - data.len() as u64);
            Frame::Stream(Stream { id, offset, fin, data })
        }
    }
}

/// Stream data that costs no input.
const FILL: &[u8] = &[0x5a; 1_024];

fn cid(input: &mut ArbitraryInput<'_>) -> Frame<'static> {
    let form = if input.one_in(4) { CidForm::Plain } else { CidForm::Path };
    let path = if form == CidForm::Path { path_id(input) } else { PathId::ZERO };
    if input.one_in(3) {
        return Frame::RetireCid(RetireCid { form, path, sequence: number(input) });
    }
    let sequence = number(input);
    let retire_prior_to = u64::from(input.byte() % 8).min(sequence);
    let (name, len) = (input.byte(), if input.one_in(8) { 1 + input.below(20) } else { 8 });
    let cid = ConnectionId::new(&[name; 20][..len]).unwrap_or(ConnectionId::EMPTY);
    Frame::NewCid(NewCid { form, path, sequence, retire_prior_to, cid, token: ResetToken([name; 16]) })
}

fn path(input: &mut ArbitraryInput<'_>) -> Frame<'static> {
    let path = path_id(input);
    let status = if input.flag() { PathStatus::Backup } else { PathStatus::Available };
    match input.byte() % 8 {
        0 => Frame::PathAbandon(PathAbandon { path, code: CloseCode(number(input)) }),
        1 | 2 => Frame::PathStatus(PathStatusUpdate { path, sequence: number(input), status }),
        3 => Frame::MaxPathId(MaxPathId { limit: PathId(number(input) as u32) }),
        4 => Frame::PathsBlocked(PathsBlocked { limit: path }),
        5 => Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: number(input) }),
        6 => Frame::PathResponse(PathResponse { data: [input.byte(); 8] }),
        _ => Frame::PathChallenge(PathChallenge { data: [input.byte(); 8] }),
    }
}

fn limit(input: &mut ArbitraryInput<'_>) -> Frame<'static> {
    let (limit, dir) = (number(input), if input.flag() { Dir::Uni } else { Dir::Bi });
    match input.byte() % 5 {
        0 => Frame::MaxData(MaxData { limit }),
        1 => Frame::MaxStreams(MaxStreams { dir, limit: limit.min(1 << 60) }),
        2 => Frame::DataBlocked(DataBlocked { limit }),
        3 => Frame::StreamsBlocked(StreamsBlocked { dir, limit: limit.min(1 << 60) }),
        _ => Frame::AckFrequency(AckFrequency {
            sequence: limit,
            ack_eliciting_threshold: number(input),
            max_ack_delay_us: number(input),
            reordering_threshold: number(input),
        }),
    }
}

fn other<'a>(input: &mut ArbitraryInput<'a>) -> Frame<'a> {
    match input.byte() % 16 {
        0 => Frame::HandshakeDone,
        1 => Frame::ImmediateAck,
        2 => {
            let data = input.piece();
            Frame::Crypto(Crypto { offset: number(input).min(VARINT_MAX - 255), data })
        }
        3 => Frame::NewToken(NewToken { token: b"token" }),
        4 => Frame::Close(Close::Application { code: number(input), reason: b"" }),
        5 => Frame::Close(Close::Transport { code: CloseCode(number(input)), frame_type: 0, reason: b"" }),
        6 | 7 => Frame::Datagram(Datagram::new(input.piece())),
        8 => Frame::Padding(1 + input.below(200)),
        _ => Frame::Ping,
    }
}
