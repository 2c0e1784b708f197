//! Frames: every payload is frames or a named violation, and each frame is written and read again unchanged.

use std::net::SocketAddr;

use plait_base::{CloseCode, ConnectionId, Dir, PathId, ResetToken, StreamId};
use plait_wire::Encode;
use plait_wire::frame::{
    Ack, AckFrequency, AddAddress, AdditionalAddresses, AddressForm, CidForm, Close, Crypto, DataBlocked, Datagram,
    Frame, Frames, InterfaceType, List, MaxData, MaxPathId, MaxStreamData, MaxStreams, NewCid, NewToken, PathAbandon,
    PathChallenge, PathCidsBlocked, PathCondition, PathInfo, PathResponse, PathStatus, PathStatusUpdate, PathsBlocked,
    PathsInfo, ReachOut, RemoveAddress, ResetStream, RetireCid, StopSending, Stream, StreamDataBlocked, StreamsBlocked,
    UniflowInfo, Uniflows, is_allowed, is_multiflow, is_multipath, name,
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
        let is_extension = is_multipath(frame.frame_type()) || is_multiflow(frame.frame_type());
        assert!(!is_extension || kind.is_none_or(|kind| kind == PacketKind::OneRtt), "{frame:?} in {kind:?}");
        match &frame {
            Frame::Ack(ack) => descend(ack),
            Frame::AdditionalAddresses(f) => assert_eq!(f.addresses.count(), f.addresses.iter().count() as u64),
            Frame::Uniflows(f) => {
                assert_eq!(f.receiving.count(), f.receiving.iter().count() as u64);
                assert_eq!(f.sending.count(), f.sending.iter().count() as u64);
            }
            Frame::PathsInfo(f) => assert_eq!(f.paths.count(), f.paths.iter().count() as u64),
            _ => {}
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
    let mut lists = Default::default();
    let mut all: Vec<Frame<'_>> = all_frames();
    all.extend(frames_of_other_extensions(&mut lists));
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
fn frames_of_other_extensions(lists: &mut [Vec<u8>; 4]) -> Vec<Frame<'_>> {
    let path = PathId(1);
    let cid = ConnectionId::new(&[8; 8]).unwrap_or(ConnectionId::EMPTY);
    let token = ResetToken([4; 16]);
    let v4 = SocketAddr::from(([192, 0, 2, 1], 4433));
    let v6 = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 4433));
    let added = |form, addr: SocketAddr| {
        Frame::AddAddress(AddAddress {
            form,
            id: 1,
            sequence: 0,
            ip: addr.ip(),
            port: Some(addr.port()),
            interface: InterfaceType::Wlan,
            status: PathStatus::Backup,
            metered: true,
        })
    };
    let removed = |form| Frame::RemoveAddress(RemoveAddress { form, id: 1, sequence: 1 });
    let uniflow = UniflowInfo { uniflow: path, address: 1 };
    let info = |condition| PathInfo {
        path,
        condition,
        srtt_us: 20_000,
        rttvar_us: 1_000,
        delivered_bytes_per_s: 1 << 20,
        loss_ppm: 100,
    };
    let [addresses, receiving, sending, paths] = lists;
    let addresses = List::of([v4, v6], addresses);
    let (receiving, sending) = (List::of([uniflow, uniflow], receiving), List::of([uniflow], sending));
    let paths = List::of([info(PathCondition::Active), info(PathCondition::PotentiallyFailed)], paths);
    vec![
        added(AddressForm::Multiflow, v4),
        added(AddressForm::Multiflow, v6),
        added(AddressForm::Private, v4),
        added(AddressForm::NatTraversal, v6),
        removed(AddressForm::Multiflow),
        removed(AddressForm::Private),
        removed(AddressForm::NatTraversal),
        Frame::ReachOut(ReachOut { round: 2, addr: v4 }),
        Frame::AdditionalAddresses(AdditionalAddresses { sequence: 1, addresses }),
        Frame::Uniflows(Uniflows { sequence: 3, receiving, sending }),
        Frame::PathsInfo(PathsInfo { sequence: 4, paths }),
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
