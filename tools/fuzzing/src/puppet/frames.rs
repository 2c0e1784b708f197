//! Frames that a peer may send, chosen by a tape: mostly near the rules' edges rather than far beyond them.

use plait_base::units::VARINT_MAX;
use plait_base::{CloseCode, ConnectionId, Dir, EcnCounts, PathId, RangeSet, ResetToken, Side, StreamId};
use plait_wire::Encode;
use plait_wire::frame::{
    AckForm, AckFrequency, CidForm, Close, Crypto, DataBlocked, Datagram, Frame, MaxData, MaxPathId, MaxStreamData,
    MaxStreams, NewCid, NewToken, OutAck, PathAbandon, PathChallenge, PathCidsBlocked, PathResponse, PathStatus,
    PathStatusUpdate, PathsBlocked, ResetStream, RetireCid, StopSending, Stream, StreamDataBlocked, StreamsBlocked,
};

use crate::Tape;

/// Path ids that the frames name: within the limit that the ends announce, and one beyond.
const PATHS: usize = 5;

/// Appends frames until the tape says stop or `max_bytes` are written.
pub fn put_some(tape: &mut Tape<'_>, out: &mut Vec<u8>, max_bytes: usize) {
    loop {
        put_one(tape, out);
        if out.len() >= max_bytes || tape.is_over() || tape.one_in(3) {
            return;
        }
    }
}

/// Appends one frame.
pub fn put_one(tape: &mut Tape<'_>, out: &mut Vec<u8>) {
    match tape.byte() % 6 {
        0 => put_ack(tape, out),
        1 => stream(tape).encode(out),
        2 => cid(tape).encode(out),
        3 => path(tape).encode(out),
        4 => limit(tape).encode(out),
        _ => other(tape).encode(out),
    }
}

/// A number on the wire: small, or of any size.
fn number(tape: &mut Tape<'_>) -> u64 {
    tape.number() & VARINT_MAX
}

/// A path id.
pub fn path_id(tape: &mut Tape<'_>) -> PathId {
    PathId(tape.below(PATHS) as u32)
}

fn stream_id(tape: &mut Tape<'_>) -> StreamId {
    let side = if tape.flag() { Side::Server } else { Side::Client };
    let dir = if tape.flag() { Dir::Uni } else { Dir::Bi };
    StreamId::new(side, dir, tape.below(6) as u64)
}

fn put_ack(tape: &mut Tape<'_>, out: &mut Vec<u8>) {
    let form = if tape.flag() { AckForm::Path } else { AckForm::Plain };
    let path = if form == AckForm::Path { path_id(tape) } else { PathId::ZERO };
    let mut ranges = RangeSet::new();
    for _ in 0..=tape.below(4) {
        let start = number(tape);
        ranges.insert(start..start.saturating_add(1 + u64::from(tape.byte())).min(VARINT_MAX));
    }
    let ecn = (tape.one_in(4)).then(|| EcnCounts { ect0: number(tape), ect1: number(tape), ce: number(tape) });
    OutAck { form, path, ranges: &ranges, delay: number(tape), ecn }.encode(500, out);
}

fn stream<'a>(tape: &mut Tape<'a>) -> Frame<'a> {
    let id = stream_id(tape);
    match tape.byte() % 8 {
        0 => Frame::ResetStream(ResetStream { id, code: number(tape), final_size: number(tape) }),
        1 => Frame::StopSending(StopSending { id, code: number(tape) }),
        2 => Frame::StreamDataBlocked(StreamDataBlocked { id, limit: number(tape) }),
        3 => Frame::MaxStreamData(MaxStreamData { id, limit: number(tape) }),
        kind => {
            let (offset, fin) = (number(tape), tape.one_in(8));
            let data = if kind == 4 { tape.piece() } else { &FILL[..usize::from(tape.byte()) * 4] };
            let offset = offset.min(VARINT_MAX - data.len() as u64);
            Frame::Stream(Stream { id, offset, fin, data })
        }
    }
}

/// Stream data that costs no input.
const FILL: &[u8] = &[0x5a; 1_024];

fn cid(tape: &mut Tape<'_>) -> Frame<'static> {
    let form = if tape.one_in(4) { CidForm::Plain } else { CidForm::Path };
    let path = if form == CidForm::Path { path_id(tape) } else { PathId::ZERO };
    if tape.one_in(3) {
        return Frame::RetireCid(RetireCid { form, path, sequence: number(tape) });
    }
    let sequence = number(tape);
    let retire_prior_to = u64::from(tape.byte() % 8).min(sequence);
    let (name, len) = (tape.byte(), if tape.one_in(8) { 1 + tape.below(20) } else { 8 });
    let cid = ConnectionId::new(&[name; 20][..len]).unwrap_or(ConnectionId::EMPTY);
    Frame::NewCid(NewCid { form, path, sequence, retire_prior_to, cid, token: ResetToken([name; 16]) })
}

fn path(tape: &mut Tape<'_>) -> Frame<'static> {
    let path = path_id(tape);
    let status = if tape.flag() { PathStatus::Backup } else { PathStatus::Available };
    match tape.byte() % 8 {
        0 => Frame::PathAbandon(PathAbandon { path, code: CloseCode(number(tape)) }),
        1 | 2 => Frame::PathStatus(PathStatusUpdate { path, sequence: number(tape), status }),
        3 => Frame::MaxPathId(MaxPathId { limit: PathId(number(tape) as u32) }),
        4 => Frame::PathsBlocked(PathsBlocked { limit: path }),
        5 => Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: number(tape) }),
        6 => Frame::PathResponse(PathResponse { data: [tape.byte(); 8] }),
        _ => Frame::PathChallenge(PathChallenge { data: [tape.byte(); 8] }),
    }
}

fn limit(tape: &mut Tape<'_>) -> Frame<'static> {
    let (limit, dir) = (number(tape), if tape.flag() { Dir::Uni } else { Dir::Bi });
    match tape.byte() % 5 {
        0 => Frame::MaxData(MaxData { limit }),
        1 => Frame::MaxStreams(MaxStreams { dir, limit: limit.min(1 << 60) }),
        2 => Frame::DataBlocked(DataBlocked { limit }),
        3 => Frame::StreamsBlocked(StreamsBlocked { dir, limit: limit.min(1 << 60) }),
        _ => Frame::AckFrequency(AckFrequency {
            sequence: limit,
            ack_eliciting_threshold: number(tape),
            max_ack_delay_us: number(tape),
            reordering_threshold: number(tape),
        }),
    }
}

fn other<'a>(tape: &mut Tape<'a>) -> Frame<'a> {
    match tape.byte() % 16 {
        0 => Frame::HandshakeDone,
        1 => Frame::ImmediateAck,
        2 => {
            let data = tape.piece();
            Frame::Crypto(Crypto { offset: number(tape).min(VARINT_MAX - 255), data })
        }
        3 => Frame::NewToken(NewToken { token: b"token" }),
        4 => Frame::Close(Close::Application { code: number(tape), reason: b"" }),
        5 => Frame::Close(Close::Transport { code: CloseCode(number(tape)), frame_type: 0, reason: b"" }),
        6 | 7 => Frame::Datagram(Datagram::new(tape.piece())),
        8 => Frame::Padding(1 + tape.below(200)),
        _ => Frame::Ping,
    }
}
