//! Headers against the vectors of RFC 9001 and RFC 9369, round trips, and arbitrary bytes.

use plait_base::{ConnectionId, Random, ResetToken};
use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn cid(text: &str) -> ConnectionId {
    ConnectionId::new(&hex(text)).unwrap()
}

fn parse(bytes: &[u8]) -> Result<(ProtectedHeader, PacketSpan), HeaderError> {
    ProtectedHeader::parse(bytes, 8, FixedBitRule::MustBeSet)
}

#[test]
fn client_initial_header_of_both_versions() {
    // RFC 9000 17.2-6
    // RFC 9001 A.2, RFC 9369 A.2
    let cases = [
        (Version::V1, "c300000001088394c8f03e5157080000449e00000002"),
        (Version::V2, "d36b3343cf088394c8f03e5157080000449e00000002"),
    ];
    for (version, expected) in cases {
        let dcid = cid("8394c8f03e515708");
        let out = OutHeader::Initial { version, dcid, scid: ConnectionId::EMPTY, token: &[] };
        let mut buf = vec![0xee; 3];
        let marks = out.write(&mut buf, 2, 4, FixedBit::Set);
        assert_eq!((marks.start, marks.pn_len, marks.header_len()), (3, 4, out.size(4)));
        marks.set_length(&mut buf, marks.pn_at + 1182);
        assert_eq!(buf[3..], hex(expected));
        buf.resize(marks.pn_at + 1182 + 5, 0);
        let (header, span) = parse(&buf[3..]).unwrap();
        assert_eq!(header, ProtectedHeader::Initial { version, dcid, scid: ConnectionId::EMPTY, token: 16..16 });
        assert_eq!(span, PacketSpan { pn_offset: 18, end: 18 + 1182 });
    }
}

#[test]
fn server_initial_and_short_headers() {
    // RFC 9000 17.2.2-1, 17.3.1-2
    // RFC 9001 A.3, RFC 9369 A.3
    for (version, expected) in [
        (Version::V1, "c1000000010008f067a5502a4262b50040750001"),
        (Version::V2, "d16b3343cf0008f067a5502a4262b50040750001"),
    ] {
        let scid = cid("f067a5502a4262b5");
        let out = OutHeader::Initial { version, dcid: ConnectionId::EMPTY, scid, token: &[] };
        let mut buf = Vec::new();
        let marks = out.write(&mut buf, 1, 2, FixedBit::Set);
        marks.set_length(&mut buf, marks.pn_at + 0x75);
        assert_eq!(buf, hex(expected));
    }
    // RFC 9001 A.5
    let short = OutHeader::Short { dcid: ConnectionId::EMPTY, spin: false, key_phase: false };
    let mut buf = Vec::new();
    short.write(&mut buf, 654_360_564, 3, FixedBit::Set);
    assert_eq!(buf, hex("4200bff4"));
}

#[test]
fn short_header_bits() {
    // RFC 9000 17.3.1-1
    let dcid = cid("0102030405060708");
    let out = OutHeader::Short { dcid, spin: true, key_phase: true };
    let mut buf = Vec::new();
    let marks = out.write(&mut buf, 7, 1, FixedBit::Clear);
    assert_eq!((buf[0], marks.length_at), (0x24, None));
    // RFC 9287 3: read only by those who announced it
    assert_eq!(parse(&buf), Err(HeaderError::FixedBitClear));
    let (header, span) = ProtectedHeader::parse(&buf, 8, FixedBitRule::Ignored).unwrap();
    assert_eq!(header, ProtectedHeader::Short { dcid });
    assert_eq!(span, PacketSpan { pn_offset: 9, end: 10 });
}

#[test]
fn retry_of_both_versions() {
    // RFC 9001 A.4, RFC 9369 A.4
    for (version, text) in [
        (Version::V1, "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba"),
        (Version::V2, "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6"),
    ] {
        let packet = hex(text);
        let (header, span) = parse(&packet).unwrap();
        let scid = cid("f067a5502a4262b5");
        let tag = packet.len() - 16..packet.len();
        assert_eq!(
            header,
            ProtectedHeader::Retry { version, dcid: ConnectionId::EMPTY, scid, token: 15..20, tag: tag.clone() }
        );
        assert_eq!(span.end, packet.len());
        let mut buf = Vec::new();
        retry::write(&mut buf, version, &ConnectionId::EMPTY, &scid, b"token", 0x0f);
        assert_eq!(buf, packet[..tag.start]);
        assert_eq!(parse(&packet[..30]), Err(HeaderError::Truncated));
    }
}

#[test]
fn types_of_both_versions() {
    // RFC 9000 table 5, RFC 9369 3.2
    for (version, bits) in [(Version::V1, [0, 1, 2, 3]), (Version::V2, [1, 2, 3, 0])] {
        for (kind, bits) in LongType::ALL.into_iter().zip(bits) {
            assert_eq!(kind.bits(version), bits << 4);
            assert_eq!(LongType::from_first_byte(0xc0 | bits << 4, version), kind);
        }
    }
}

#[test]
fn version_negotiation_round_trip() {
    let (long, versions) = ([7; 255], [Version::V1, Version(0x0a1a_2a3a)]);
    let mut buf = Vec::new();
    version_negotiation::write(&mut buf, &long, &[1], &versions, 0xff);
    assert_eq!(buf[0], 0xff);
    let (header, span) = parse(&buf).unwrap();
    let ProtectedHeader::VersionNegotiation { versions: range, .. } = &header else { panic!("{header:?}") };
    assert_eq!((header.dcid(&buf), header.scid(&buf)), (&long[..], &[1][..]));
    assert!(version_negotiation::versions(&buf[range.clone()]).eq(versions));
    assert_eq!((span.end, header.kind()), (buf.len(), None));
    // RFC 8999 6: a truncated or empty list is ignored
    assert_eq!(parse(&buf[..buf.len() - 1]), Err(HeaderError::BadVersionList));
    assert_eq!(parse(&buf[..range.start]), Err(HeaderError::BadVersionList));
}

#[test]
fn unknown_versions_and_long_ids() {
    // RFC 9000 17.2.1-5
    let mut buf = Vec::new();
    out::put_long(&mut buf, 0, Version(0x0a0a_0a0a), &[1; 21], &[2; 30]);
    let (header, _) = parse(&buf).unwrap();
    assert_eq!((header.dcid(&buf), header.scid(&buf)), (&[1; 21][..], &[2; 30][..]));
    assert_eq!(header.version(), Some(Version(0x0a0a_0a0a)));
    // RFC 9000 17.2-3, 17.2-5: version 1 stops at 20 bytes
    buf.clear();
    out::put_long(&mut buf, 0x40, Version::V1, &[1; 21], &[]);
    assert_eq!(parse(&buf), Err(HeaderError::CidTooLong));
}

#[test]
fn coalesced_packets_are_split_and_false_lengths_refused() {
    // RFC 9000 12.2-1
    let ids = (cid("01"), cid("02"));
    let mut buf = Vec::new();
    let first = OutHeader::Initial { version: Version::V1, dcid: ids.0, scid: ids.1, token: b"tok" };
    let marks = first.write(&mut buf, 0, 1, FixedBit::Set);
    buf.extend_from_slice(&[0; 40]);
    marks.set_length(&mut buf, marks.pn_at + 41);
    let second_at = buf.len();
    let second = OutHeader::Handshake { version: Version::V1, dcid: ids.0, scid: ids.1 };
    let marks = second.write(&mut buf, 0, 2, FixedBit::Set);
    buf.extend_from_slice(&[0; 30]);
    let end = buf.len();
    marks.set_length(&mut buf, end);
    let (header, span) = parse(&buf).unwrap();
    let ProtectedHeader::Initial { token, .. } = header else { panic!("{header:?}") };
    assert_eq!((&buf[token], span.end), (&b"tok"[..], second_at));
    let (header, span) = parse(&buf[second_at..]).unwrap();
    assert_eq!((header.kind(), second_at + span.end), (Some(PacketKind::Handshake), end));
    assert_eq!(second_at + span.pn_offset, marks.pn_at);
    // RFC 9000 17.2: the length field may not name more than there is
    assert_eq!(parse(&buf[second_at..end - 1]), Err(HeaderError::Truncated));
}

#[test]
fn stateless_reset_layout() {
    // RFC 9000 10.3-4
    let (mut random, token) = (Random::from_u64(5), ResetToken([9; 16]));
    for received in 0..100 {
        let Some(len) = stateless_reset::len_for(received, &mut random) else {
            assert!(received <= stateless_reset::MIN_LEN);
            continue;
        };
        // RFC 9000 10.3.3
        assert!(len < received && len >= stateless_reset::MIN_LEN);
        let mut buf = vec![1];
        stateless_reset::write(&mut buf, len, &token, &mut random);
        assert_eq!((buf.len(), buf[1] & 0xc0), (len + 1, 0x40));
        assert!(token.matches(stateless_reset::candidate(&buf[1..]).unwrap()));
    }
    assert_eq!(stateless_reset::candidate(&[0x40; 20]), None);
}

fn any_cid() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

proptest! {
    #[test]
    fn any_header_round_trip(
        kind in 0..4, v2: bool, dcid in any_cid(), scid in any_cid(),
        token in prop::collection::vec(any::<u8>(), 0..90),
        pn_len in 1usize..=4, number: u32, body in 0usize..60, spin: bool, key_phase: bool,
    ) {
        let version = if v2 { Version::V2 } else { Version::V1 };
        let (out, sent_as) = match kind {
            0 => (OutHeader::Initial { version, dcid, scid, token: &token }, PacketKind::Initial),
            1 => (OutHeader::ZeroRtt { version, dcid, scid }, PacketKind::ZeroRtt),
            2 => (OutHeader::Handshake { version, dcid, scid }, PacketKind::Handshake),
            _ => (OutHeader::Short { dcid, spin, key_phase }, PacketKind::OneRtt),
        };
        let mut buf = Vec::new();
        let marks = out.write(&mut buf, number.into(), pn_len, FixedBit::Set);
        prop_assert_eq!(buf.len(), out.size(pn_len));
        prop_assert_eq!(marks.payload_at(), buf.len());
        buf.resize(buf.len() + body, 0xaa);
        let end = buf.len();
        marks.set_length(&mut buf, end);
        let (header, span) = ProtectedHeader::parse(&buf, dcid.len(), FixedBitRule::MustBeSet).unwrap();
        prop_assert_eq!(header.kind(), Some(sent_as));
        prop_assert_eq!((span.pn_offset, span.end), (marks.pn_at, end));
        prop_assert_eq!(header.dcid(&buf), &dcid[..]);
        prop_assert_eq!(header.scid(&buf), if kind < 3 { &scid[..] } else { &[] });
        if let ProtectedHeader::Initial { token: at, .. } = header {
            prop_assert_eq!(&buf[at], &token[..]);
        }
        for cut in 0..end {
            let _ = ProtectedHeader::parse(&buf[..cut], dcid.len(), FixedBitRule::Ignored);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80), version in 0usize..4, len in 0usize..25,
    ) {
        let versions: [u32; 4] = [0, 1, Version::V2.0, 0xdead_beef];
        if let Some(field) = bytes.get_mut(1..5) {
            field.copy_from_slice(&versions[version].to_be_bytes());
        }
        if let Ok((header, span)) = ProtectedHeader::parse(&bytes, len, FixedBitRule::Ignored) {
            prop_assert!(span.pn_offset <= span.end && span.end <= bytes.len());
            let _ = (header.dcid(&bytes), header.scid(&bytes));
        }
    }
}
