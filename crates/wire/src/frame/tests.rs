//! Frames against their RFCs: vectors, violations, round trips, and cuts at every byte.

mod addresses;
mod multiflow;

use plait_base::{CloseCode, ConnectionId, Dir, EcnCounts, PathId, RangeSet, ResetToken, Space, StreamId, Violation};
use proptest::prelude::*;

use super::*;
use crate::header::PacketKind;
use crate::{FrameWriter, SentFrame};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    assert_eq!(out.len(), frame.size(), "{frame:?}");
    out
}

fn one(bytes: &[u8]) -> Frame<'_> {
    let mut frames = Frames::new(bytes);
    let frame = frames.next().unwrap().unwrap();
    assert_eq!(frames.next(), None);
    frame
}

fn violation(text: &str) -> Violation {
    Frames::new(&hex(text)).find_map(Result::err).unwrap().violation
}

const CID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn multipath_vectors_both_ways() {
    // RFC 9000 19.21-2, 19.21-3
    let token = *hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").first_chunk().unwrap();
    let status = |status, sequence| Frame::PathStatus(PathStatusUpdate { path: PathId(1), sequence, status });
    let new_cid = NewCid {
        form: CidForm::Path,
        path: PathId(1),
        sequence: 0,
        retire_prior_to: 0,
        cid: ConnectionId::new(&CID).unwrap(),
        token: ResetToken(token),
    };
    let cases = [
        (
            "7e75017e75",
            Frame::PathAbandon(PathAbandon { path: PathId(1), code: CloseCode::PATH_RESOURCE_LIMIT_REACHED }),
        ),
        ("7e760100", status(PathStatus::Backup, 0)),
        ("7e770101", status(PathStatus::Available, 1)),
        ("7e78010000080102030405060708f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", Frame::NewCid(new_cid)),
        ("7e790100", Frame::RetireCid(RetireCid { form: CidForm::Path, path: PathId(1), sequence: 0 })),
        ("7e7a412c", Frame::MaxPathId(MaxPathId { limit: PathId(300) })),
        ("7e7b02", Frame::PathsBlocked(PathsBlocked { limit: PathId(2) })),
        ("7e7c0300", Frame::PathCidsBlocked(PathCidsBlocked { path: PathId(3), next_sequence: 0 })),
    ];
    for (text, frame) in cases {
        assert_eq!(encoded(&frame), hex(text));
        assert_eq!(one(&hex(text)), frame);
        assert!(is_ack_eliciting(frame.frame_type()) && is_multipath(frame.frame_type()));
    }
}

#[test]
fn path_ack_vectors_both_ways() {
    // RFC 9000 19.3
    let two_ranges: RangeSet = {
        let mut set = RangeSet::new();
        set.insert(3..6);
        set.insert(8..11);
        set
    };
    let zero = {
        let mut set = RangeSet::new();
        set.insert(0..1);
        set
    };
    let counts = EcnCounts { ect0: 7, ect1: 0, ce: 1 };
    let cases = [
        ("3e010a1901020102", PathId(1), &two_ranges, 25, None),
        ("3f0200000000070001", PathId(2), &zero, 0, Some(counts)),
    ];
    for (text, path, ranges, delay, ecn) in cases {
        let mut out = Vec::new();
        let form = AckForm::Path;
        let told = OutAck { form, path, ranges, delay, ecn }.encode(100, &mut out);
        assert_eq!((out, told), (hex(text), ranges.first().zip(ranges.max()).map(|(first, max)| first.start..=max)));
        let bytes = hex(text);
        let Frame::Ack(ack) = one(&bytes) else { panic!() };
        assert_eq!((ack.path, ack.form, ack.delay, ack.ecn), (path, form, delay, ecn));
        assert!(ack.ranges().eq(ranges.iter().rev().map(|r| r.start..=r.end - 1)));
        assert_eq!(encoded(&Frame::Ack(ack)), bytes);
        assert!(!is_ack_eliciting(ack.frame_type()));
    }
}

#[test]
fn violations_by_name() {
    // RFC 9000 4.6-1
    let big_varint = "c000000100000000"; // 2^32
    let cases = [
        ("", Violation::EmptyPacket),
        ("4001", Violation::FrameTypeNotMinimal), // RFC 9000 12.4-2, 12.4-4
        ("80003e75 01 00", Violation::FrameTypeNotMinimal), // RFC 10069 4
        ("21", Violation::UnknownFrame),
        ("7e7d", Violation::UnknownFrame),
        ("02 05 00 00 06", Violation::AckRangeUnderflow), // RFC 9000 19.3.1
        ("02 05 00 01 02 02 00", Violation::AckRangeUnderflow),
        ("02 05 00 01 00 00 04", Violation::AckRangeUnderflow),
        ("0700", Violation::EmptyNewToken),                          // RFC 9000 19.7-2
        ("06 ffffffffffffffff 01 00", Violation::OffsetTooLarge),    // RFC 9000 19.6
        ("0e 00 ffffffffffffffff 01 00", Violation::OffsetTooLarge), // RFC 9000 19.8-2
        ("0c 00 ffffffffffffffff 00", Violation::OffsetTooLarge),
        ("12 d000000000000001", Violation::StreamCountTooLarge), // RFC 9000 19.11-1
        ("13 d000000000000001", Violation::StreamCountTooLarge),
        ("16 d000000000000001", Violation::StreamCountTooLarge), // RFC 9000 19.14
        ("17 d000000000000001", Violation::StreamCountTooLarge),
        ("18 00 01", Violation::RetirePriorToTooLarge), // RFC 9000 19.15-1, 19.15-6
        ("18 01 01 00", Violation::CidLength),
        ("18 01 01 15", Violation::CidLength),
        ("7e78 01 00 01", Violation::RetirePriorToTooLarge), // RFC 10069 4.4: as NEW_CONNECTION_ID
        ("7e78 01 01 01 00", Violation::CidLength),
        ("7e78 01 01 01 15", Violation::CidLength),
    ];
    for (text, expected) in cases {
        assert_eq!(violation(text), expected, "{text}");
    }
    // RFC 10069 4: no path id above 2^32 - 1 can be within an announced limit.
    for frame_type in ["3e", "3f", "7e75", "7e76", "7e77", "7e78", "7e79", "7e7c"] {
        assert_eq!(violation(&format!("{frame_type}{big_varint}")), Violation::PathIdAboveLimit);
    }
    assert_eq!(violation(&format!("7e7a{big_varint}")), Violation::MaxPathIdTooLarge);
    assert_eq!(violation(&format!("7e7b{big_varint}")), Violation::PathsBlockedAboveLimit);
    assert!(matches!(
        one(&hex("12 d000000000000000")),
        Frame::MaxStreams(MaxStreams { limit: 0x1000_0000_0000_0000, .. })
    ));
}

#[test]
fn walk_stops_at_the_first_error() {
    let bytes = hex("00 00 00 01 21 01");
    let mut frames = Frames::new(&bytes);
    assert_eq!(frames.next(), Some(Ok(Frame::Padding(3))));
    assert_eq!(frames.next(), Some(Ok(Frame::Ping)));
    let error = FrameError { frame_type: 0x21, violation: Violation::UnknownFrame };
    assert_eq!(frames.next(), Some(Err(error)));
    assert_eq!((frames.next(), frames.next()), (None, None));
    assert_eq!(plait_base::TransportError::from(error).frame, Some(0x21));
}

#[test]
fn who_may_carry_what() {
    // RFC 9000 12.5-1, 12.5-2, 17.2.4; RFC 9221 5, 6
    use PacketKind::{Handshake, Initial, OneRtt, ZeroRtt};
    // RFC 9000 12.4-3 table 3, with 0-RTT as 12.5 narrows it; RFC 10069 4-1: only 1-RTT.
    let rows: [(&[u64], &[PacketKind]); 8] = [
        (&[0x00, 0x01, 0x1c], &[Initial, Handshake, ZeroRtt, OneRtt]),
        (&[0x02, 0x03, 0x06], &[Initial, Handshake, OneRtt]),
        (
            &[0x04, 0x05, 0x08, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1a, 0x1d, 0x30, 0x31],
            &[ZeroRtt, OneRtt],
        ),
        (&[0x07, 0x19, 0x1b, 0x1e, 0x1f, 0xaf], &[OneRtt]),
        (&[0x3e, 0x3f, 0x3e75, 0x3e76, 0x3e77, 0x3e78, 0x3e79, 0x3e7a, 0x3e7b, 0x3e7c], &[OneRtt]),
        (&[0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46], &[OneRtt]),
        (&[0x3d_7f90, 0x3d_7f91, 0x3d_7f92, 0x3d_7f93, 0x3d_7f94], &[OneRtt]),
        (&[0x2d50_5810, 0x2d50_5811, 0x2d50_5812, 0x9_25ad_da04], &[OneRtt]),
    ];
    for (frame_types, kinds) in rows {
        for &frame_type in frame_types {
            for kind in [Initial, Handshake, ZeroRtt, OneRtt] {
                assert_eq!(is_allowed(frame_type, kind), kinds.contains(&kind), "{frame_type:#x} in {kind:?}");
            }
        }
    }
    let refusal = |bytes: &[u8], kind| Frames::in_packet(bytes, kind).next().unwrap().unwrap_err().violation;
    assert_eq!(refusal(&[0x1e], Handshake), Violation::FrameNotAllowedHere);
    assert_eq!(refusal(&hex("7e7b02"), ZeroRtt), Violation::FrameNotAllowedHere);
    assert_eq!(refusal(&[0x21], Initial), Violation::UnknownFrame);
    assert!(Frames::in_packet(&[0x1e], OneRtt).next().unwrap().is_ok());
    let beyond = [0x3d_7f80..0x3d_7fa0, 0x2d50_5800..0x2d50_5820, 0x9_25ad_da00..0x9_25ad_da10];
    for frame_type in (0..0x4000).chain(beyond.into_iter().flatten()) {
        assert_eq!(types::is_known(frame_type), name(frame_type) != "unknown");
        assert_eq!(types::is_known(frame_type), is_allowed(frame_type, OneRtt));
        // RFC 9000 9.1
        assert_eq!(is_probing(frame_type), [0x00, 0x18, 0x1a, 0x1b, 0x40].contains(&frame_type));
    }
}

#[test]
fn data_is_borrowed_and_may_reach_to_the_end() {
    let bytes = hex("0d 04 05 aabbcc");
    let Frame::Stream(stream) = one(&bytes) else { panic!() };
    assert_eq!((stream.id, stream.offset, stream.fin), (StreamId(4), 5, true));
    assert_eq!(stream.data.as_ptr(), bytes[3..].as_ptr());
    let head = StreamHead { id: StreamId(4), offset: 5, fin: true, len: None };
    let mut out = Vec::new();
    head.encode(&mut out);
    assert_eq!((&out[..], head.size()), (&bytes[..3], 3));
    let bytes = hex("30 aabb");
    let Frame::Datagram(datagram) = one(&bytes) else { panic!() };
    assert_eq!((datagram.data, datagram.frame_bytes), (&bytes[1..], 3));
}

/// What `write` puts into a packet with `room` bytes for frames, and what is remembered of it.
fn written(room: usize, write: impl FnOnce(&mut FrameWriter<'_>)) -> (Vec<u8>, Vec<SentFrame>) {
    let (mut packet, mut sent) = (vec![0xff], Vec::new());
    write(&mut FrameWriter::new(&mut packet, 1 + room, &mut sent));
    assert!(packet.len() <= 1 + room);
    (packet.split_off(1), sent)
}

#[test]
fn data_frames_that_ship_are_those_of_the_rfcs() {
    // RFC 9000 19.8: type bits OFF, LEN and FIN
    let data = [0xaa, 0xbb, 0xcc];
    let stream = |room, offset: u64, final_size| {
        let stream = OutStream { id: StreamId(4), range: offset..offset + 3, final_size };
        written(room, |w| _ = w.write_stream(&stream, |part, out| put_part(&data, offset, part, out)))
    };
    let sent = |offset, fin| vec![SentFrame::Stream { id: StreamId(4), offset, len: 3, fin }];
    assert_eq!(stream(40, 0, None), (hex("0a 04 03 aabbcc"), sent(0, false)));
    assert_eq!(stream(40, 5, None), (hex("0e 04 05 03 aabbcc"), sent(5, false)));
    assert_eq!(stream(40, 5, Some(8)), (hex("0f 04 05 03 aabbcc"), sent(5, true)));
    assert_eq!(stream(40, 5, Some(9)), (hex("0e 04 05 03 aabbcc"), sent(5, false)), "not yet at its end");
    assert_eq!(stream(6, 5, Some(8)), (hex("0d 04 05 aabbcc"), sent(5, true)), "to the end of the packet");
    assert_eq!(stream(5, 5, Some(8)), (vec![], vec![]), "not worth a frame");
    let end = OutStream { id: StreamId(4), range: 3..3, final_size: Some(3) };
    let lone = written(40, |w| _ = w.write_stream(&end, |_, _| ()));
    assert_eq!(lone, (hex("0f 04 03 00"), vec![SentFrame::Stream { id: StreamId(4), offset: 3, len: 0, fin: true }]));
    // RFC 9000 19.6
    let crypto =
        |room| written(room, |w| _ = w.write_crypto(Space::Initial, 5..8, |part, out| put_part(&data, 5, part, out)));
    assert_eq!(
        crypto(6),
        (hex("06 05 03 aabbcc"), vec![SentFrame::Crypto { space: Space::Initial, offset: 5, len: 3 }])
    );
    assert_eq!(crypto(5), (vec![], vec![]));
    // RFC 9221 4
    let datagram = |room| written(room, |w| _ = w.write_datagram(&data));
    let sent = vec![SentFrame::Datagram { len: 3 }];
    assert_eq!(datagram(40), (hex("31 03 aabbcc"), sent.clone()));
    assert_eq!(datagram(4), (hex("30 aabbcc"), sent));
    assert_eq!(datagram(3), (vec![], vec![]));
    // RFC 9000 19.19: nothing of a close is remembered
    let close = Close::Application { code: 1, reason: &data };
    assert_eq!(written(5, |w| assert!(w.write_close(close))), (hex("1d 01 02 aabb"), vec![]));
    assert_eq!(written(2, |w| assert!(!w.write_close(close))), (vec![], vec![]));
}

/// Appends the bytes at the offsets `part` of data that begins at offset `start`.
fn put_part(data: &[u8], start: u64, part: std::ops::Range<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(&data[(part.start - start) as usize..(part.end - start) as usize]);
}

proptest! {
    #[test]
    fn data_fills_the_room(offset in varints(), wanted in 1usize..20_000, room in 0usize..20_000) {
        let offset = offset >> 1;
        let data: Vec<u8> = (0..wanted).map(|i| i as u8).collect();
        let range = offset..offset + wanted as u64;
        let put = |part, out: &mut Vec<u8>| put_part(&data, offset, part, out);
        let stream = OutStream { id: StreamId(9), range: range.clone(), final_size: Some(range.end) };
        let (bytes, sent) = written(room, |w| _ = w.write_stream(&stream, put));
        let read: Vec<_> = Frames::new(&bytes).flatten().filter(|f| !matches!(f, Frame::Padding(_))).collect();
        if let [Frame::Stream(f)] = read[..] {
            prop_assert!((f.id, f.offset, f.data) == (StreamId(9), offset, &data[..f.data.len()]));
            prop_assert_eq!(f.fin, f.data.len() == wanted);
            prop_assert!(f.fin || bytes.len() == room, "a part that leaves room");
            prop_assert_eq!(sent, [SentFrame::Stream { id: f.id, offset, len: f.data.len() as u32, fin: f.fin }]);
        } else {
            prop_assert!(bytes.is_empty() && sent.is_empty() && room < 10 + 16);
        }
        let (bytes, sent) = written(room, |w| _ = w.write_crypto(Space::Data, range.clone(), put));
        if let Some(Frame::Crypto(f)) = one_or_none(&bytes) {
            prop_assert!(f.offset == offset && f.data == &data[..f.data.len()]);
            prop_assert!(f.data.len() == wanted || bytes.len() + 4 > room);
            prop_assert_eq!(sent, [SentFrame::Crypto { space: Space::Data, offset, len: f.data.len() as u32 }]);
        } else {
            prop_assert!(bytes.is_empty() && sent.is_empty() && room < 10 + 16);
        }
        let (bytes, sent) = written(room, |w| _ = w.write_datagram(&data));
        let read: Vec<_> = Frames::new(&bytes).flatten().filter(|f| !matches!(f, Frame::Padding(_))).collect();
        if let [Frame::Datagram(f)] = read[..] {
            prop_assert_eq!((f.data, sent), (&data[..], vec![SentFrame::Datagram { len: wanted as u32 }]));
        } else {
            prop_assert!(bytes.is_empty() && sent.is_empty() && room < 1 + wanted);
        }
        let close = Close::Transport { code: CloseCode::NO_ERROR, frame_type: 0, reason: &data };
        prop_assert_eq!(close.fit(room).is_some(), room >= 4);
        prop_assert!(close.fit(room).is_none_or(|c| c.size() <= room));
    }

    #[test]
    fn acks_report_the_newest_that_fit(
        starts in prop::collection::btree_set(0u64..5000, 1..100), delay in varints(),
        budget in 0usize..300, form in ack_forms(), ecn in ecn(),
    ) {
        let mut ranges = RangeSet::new();
        starts.iter().for_each(|&n| { ranges.insert(n..n + 1 + n % 3); });
        let path = if form == AckForm::Plain { PathId::ZERO } else { PathId(70) };
        let ack = OutAck { form, path, ranges: &ranges, delay, ecn };
        let mut out = Vec::new();
        let Some(said) = ack.encode(budget, &mut out) else {
            prop_assert!(out.is_empty() && budget < 50);
            return Ok(());
        };
        prop_assert!(out.len() <= budget);
        let Frame::Ack(read) = one(&out) else { panic!() };
        prop_assert_eq!((read.largest, read.delay, read.ecn), (ranges.max().unwrap(), delay, ecn));
        let all: Vec<_> = ranges.iter().rev().map(|r| r.start..=r.end - 1).collect();
        let told: Vec<_> = read.ranges().collect();
        prop_assert_eq!(told.len() as u64, read.range_count());
        prop_assert_eq!(said, *told[told.len() - 1].start()..=read.largest);
        prop_assert_eq!(&told[..], &all[..told.len()]);
        // What was left out would not have fitted.
        prop_assert!(told.len() == all.len() || out.len() + 6 > budget);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for frame in Frames::new(&bytes).map_while(Result::ok) {
            let again = encoded(&frame);
            let read = one_or_none(&again);
            let same = match (frame, read) {
                (Frame::Datagram(a), Some(Frame::Datagram(b))) => a.data == b.data,
                (Frame::Padding(_), _) => true,
                (a, b) => Some(a) == b,
            };
            prop_assert!(same, "{:?} became {:?}", frame, read);
        }
    }

    /// RFC 9000 12.4: a packet of one STREAM frame is read at a glance, and as the walk over its frames would read it.
    #[test]
    fn a_lone_stream_frame_is_found_at_a_glance(seed in seeds(), behind in prop::collection::vec(any::<u8>(), 0..3)) {
        for kind in 0..FRAMES {
            let ack = seed.ack();
            let packet = [encoded(&seed.frame(kind, &ack)), behind.clone()].concat();
            let frames: Vec<_> = Frames::new(&packet).collect();
            let walked = match frames[..] {
                [Ok(Frame::Stream(frame))] => Some(frame),
                _ => None,
            };
            prop_assert_eq!(Stream::alone_in(&packet), walked);
        }
    }

    #[test]
    fn every_frame_round_trips_and_may_be_cut_anywhere(seed in seeds()) {
        // RFC 9000 12.4-5
        for kind in 0..FRAMES {
            let ack = seed.ack();
            round_trips_and_may_be_cut(seed.frame(kind, &ack));
        }
    }
}

fn round_trips_and_may_be_cut(frame: Frame<'_>) {
    let bytes = encoded(&frame);
    assert_eq!(one(&bytes), frame);
    // Into a packet goes the same, or nothing where a byte is missing.
    let ping = SentFrame::Ping;
    assert_eq!(written(bytes.len(), |w| assert!(w.write(&frame, ping))), (bytes.clone(), vec![ping]));
    assert_eq!(written(bytes.len() - 1, |w| assert!(!w.write(&frame, ping))), (vec![], vec![]));
    assert_eq!(varint::Reader::new(&bytes).varint(), Ok(frame.frame_type()));
    assert!(Frames::in_packet(&bytes, PacketKind::OneRtt).next().unwrap().is_ok());
    // Two in a row stay apart.
    let twice = [&bytes[..], &[1], &bytes[..]].concat();
    let read: Vec<_> = Frames::new(&twice).map(Result::unwrap).collect();
    assert_eq!(read, [frame, Frame::Ping, frame]);
    for cut in 1..bytes.len() {
        let error = Frames::new(&bytes[..cut]).find_map(Result::err).unwrap();
        assert_eq!(error.violation, Violation::TruncatedFrame);
    }
}

fn one_or_none(bytes: &[u8]) -> Option<Frame<'_>> {
    Frames::new(bytes).next().and_then(Result::ok)
}

fn varints() -> impl Strategy<Value = u64> {
    (0..=plait_base::units::VARINT_MAX, 0u32..62).prop_map(|(value, shift)| value >> shift)
}

fn ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    prop::option::of((varints(), varints(), varints()).prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }))
}

fn ack_forms() -> impl Strategy<Value = AckForm> {
    prop::sample::select(vec![AckForm::Plain, AckForm::Path, AckForm::Uniflow])
}

fn seeds() -> impl Strategy<Value = Seed> {
    let numbers = [varints(), varints(), varints(), varints()];
    let bytes = prop::collection::vec(any::<u8>(), 20..100);
    let acked = prop::collection::vec((0u64..1 << 40, 1u64..50), 1..20);
    let flags = (any::<bool>(), ack_forms());
    (numbers, any::<u32>(), bytes, acked, ecn(), flags).prop_map(|(n, path, bytes, acked, ecn, (flag, ack_form))| {
        Seed { n, path: PathId(path), bytes, acked, ecn, ack_form, flag }
    })
}

/// The material of one frame of each kind.
#[derive(Debug)]
struct Seed {
    n: [u64; 4],
    path: PathId,
    bytes: Vec<u8>,
    acked: Vec<(u64, u64)>,
    ecn: Option<EcnCounts>,
    ack_form: AckForm,
    flag: bool,
}

/// How many kinds [`Seed::frame`] makes.
const FRAMES: u32 = 30;

impl Seed {
    fn ack(&self) -> Vec<u8> {
        let form = self.ack_form;
        let path = if form == AckForm::Plain { PathId::ZERO } else { self.path };
        let mut ranges = RangeSet::new();
        self.acked.iter().for_each(|&(start, len)| {
            ranges.insert(start..start + len);
        });
        let mut out = Vec::new();
        OutAck { form, path, ranges: &ranges, delay: self.n[0], ecn: self.ecn }.encode(1000, &mut out);
        out
    }

    fn frame<'a>(&'a self, kind: u32, ack: &'a [u8]) -> Frame<'a> {
        let ([a, b, c, d], path, data) = (self.n, self.path, &self.bytes[..]);
        let (id, small, count) = (StreamId(a), b >> 1, c >> 2);
        let dir = if self.flag { Dir::Bi } else { Dir::Uni };
        match kind {
            0 => one_or_none(ack).unwrap(),
            1 => Frame::Ping,
            2 => Frame::ResetStream(ResetStream { id, code: b, final_size: c }),
            3 => Frame::StopSending(StopSending { id, code: b }),
            4 => Frame::Crypto(Crypto { offset: small, data }),
            5 => Frame::NewToken(NewToken { token: data }),
            6 => Frame::Stream(Stream { id, offset: small, fin: self.flag, data }),
            7 => Frame::MaxData(MaxData { limit: a }),
            8 => Frame::MaxStreamData(MaxStreamData { id, limit: b }),
            9 => Frame::MaxStreams(MaxStreams { dir, limit: count }),
            10 => Frame::DataBlocked(DataBlocked { limit: a }),
            11 => Frame::StreamDataBlocked(StreamDataBlocked { id, limit: b }),
            12 => Frame::StreamsBlocked(StreamsBlocked { dir, limit: count }),
            13 => self.new_cid(CidForm::Plain, PathId::ZERO),
            14 => self.new_cid(CidForm::Path, path),
            15 => Frame::RetireCid(RetireCid { form: CidForm::Plain, path: PathId::ZERO, sequence: a }),
            16 => Frame::RetireCid(RetireCid { form: CidForm::Path, path, sequence: a }),
            17 => Frame::PathChallenge(PathChallenge { data: *data.first_chunk().unwrap() }),
            18 => Frame::PathResponse(PathResponse { data: *data.first_chunk().unwrap() }),
            19 => Frame::Close(Close::Transport { code: CloseCode(a), frame_type: b, reason: data }),
            20 => Frame::Close(Close::Application { code: a, reason: data }),
            21 => Frame::HandshakeDone,
            22 => Frame::Datagram(Datagram::new(data)),
            23 => Frame::AckFrequency(AckFrequency {
                sequence: a,
                ack_eliciting_threshold: b,
                max_ack_delay_us: c,
                reordering_threshold: d,
            }),
            24 => Frame::ImmediateAck,
            25 => Frame::PathAbandon(PathAbandon { path, code: CloseCode(b) }),
            26 => {
                let status = if self.flag { PathStatus::Available } else { PathStatus::Backup };
                Frame::PathStatus(PathStatusUpdate { path, sequence: b, status })
            }
            27 if self.flag => Frame::MaxPathId(MaxPathId { limit: path }),
            27 if a % 2 == 0 => Frame::PathsBlocked(PathsBlocked { limit: path }),
            27 => Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: b }),
            28 => self.new_cid(CidForm::Uniflow, path),
            _ => Frame::RetireCid(RetireCid { form: CidForm::Uniflow, path, sequence: a }),
        }
    }

    fn new_cid(&self, form: CidForm, path: PathId) -> Frame<'_> {
        let len = 1 + (self.n[0] % 20) as usize;
        Frame::NewCid(NewCid {
            form,
            path,
            sequence: self.n[1],
            retire_prior_to: self.n[2].min(self.n[1]),
            cid: ConnectionId::new(&self.bytes[..len]).unwrap(),
            token: ResetToken(*self.bytes.last_chunk().unwrap()),
        })
    }
}
