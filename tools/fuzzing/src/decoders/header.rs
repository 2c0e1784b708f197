//! Packet headers: spans lie inside the datagram, coalesced packets end, what is read can be written again.

use plait_base::ConnectionId;
use plait_base::units::VARINT_MAX;
use plait_wire::header::{FixedBit, FixedBitRule, packet_number, stateless_reset, version_negotiation};
use plait_wire::{OutHeader, ProtectedHeader, Version};

use crate::ArbitraryInput;

/// The input: length of our ids, rule of the fixed bit, then a datagram.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let cid_len = input.below(21);
    let rule = if input.flag() { FixedBitRule::MustBeSet } else { FixedBitRule::Ignored };
    let mut datagram = input.rest();
    let _ = stateless_reset::candidate(datagram);
    numbers(datagram);
    while !datagram.is_empty() {
        let Ok((header, span)) = ProtectedHeader::parse(datagram, cid_len, rule) else { return };
        assert!(span.pn_offset <= span.end && span.end <= datagram.len() && span.end > 0);
        assert!(header.dcid(datagram).len() <= 255 && header.scid(datagram).len() <= 255);
        check(&header, datagram, cid_len);
        if let Some(out) = writable(&header, datagram) {
            rewrite(out, &header, cid_len);
        }
        datagram = &datagram[span.end..];
    }
}

/// What each kind promises of its ranges.
fn check(header: &ProtectedHeader, datagram: &[u8], cid_len: usize) {
    match header {
        ProtectedHeader::Initial { token, .. } => assert!(datagram.get(token.clone()).is_some()),
        ProtectedHeader::Retry { token, tag, .. } => {
            assert!(token.end == tag.start && tag.len() == 16 && tag.end == datagram.len());
        }
        ProtectedHeader::VersionNegotiation { versions, .. } => {
            let list = &datagram[versions.clone()];
            assert_eq!(version_negotiation::versions(list).count() * 4, list.len());
            assert!(!list.is_empty());
        }
        ProtectedHeader::Short { dcid } => assert_eq!(dcid.len(), cid_len),
        ProtectedHeader::UnknownVersion { version, .. } => assert!(!version.is_supported() && version.0 != 0),
        ProtectedHeader::ZeroRtt { .. } | ProtectedHeader::Handshake { .. } => {}
    }
}

/// The same header as one that we would send.
fn writable<'a>(header: &ProtectedHeader, datagram: &'a [u8]) -> Option<OutHeader<'a>> {
    Some(match *header {
        ProtectedHeader::Initial { version, dcid, scid, ref token } => {
            OutHeader::Initial { version, dcid, scid, token: &datagram[token.clone()] }
        }
        ProtectedHeader::ZeroRtt { version, dcid, scid } => OutHeader::ZeroRtt { version, dcid, scid },
        ProtectedHeader::Handshake { version, dcid, scid } => OutHeader::Handshake { version, dcid, scid },
        ProtectedHeader::Short { dcid } => OutHeader::Short { dcid, spin: true, key_phase: false },
        _ => return None,
    })
}

fn rewrite(out: OutHeader<'_>, read: &ProtectedHeader, cid_len: usize) {
    let mut buf = Vec::new();
    let marks = out.write(&mut buf, 0x0102_0304, 3, FixedBit::Set);
    assert_eq!(buf.len(), out.size(3));
    buf.extend_from_slice(&[7; 20]);
    let end = buf.len();
    marks.set_length(&mut buf, end);
    let (again, span) = ProtectedHeader::parse(&buf, cid_len, FixedBitRule::MustBeSet).expect("what we write is read");
    assert_eq!((span.pn_offset, span.end), (marks.pn_at, buf.len()));
    match (&again, read) {
        (ProtectedHeader::Initial { token: a, .. }, ProtectedHeader::Initial { token: b, .. }) => {
            assert_eq!(a.len(), b.len());
        }
        _ => assert_eq!(again, *read),
    }
}

/// RFC 9000 A.3: whatever is expanded is a packet number, and the one that was cut when it is near.
fn numbers(bytes: &[u8]) {
    let mut input = ArbitraryInput::new(bytes);
    let (expected, len) = (input.number() & VARINT_MAX, 1 + input.below(4));
    let truncated = input.number() as u32;
    let number = packet_number::expand(truncated, len, expected);
    assert!(number <= VARINT_MAX);
    let acked = expected.checked_sub(1);
    if packet_number::len_for(expected, acked) <= len {
        assert_eq!(packet_number::expand(packet_number::truncate(expected, len), len, expected), expected);
    }
}

/// One packet of each kind, and two in one datagram.
pub fn seeds() -> Vec<Vec<u8>> {
    let (dcid, scid) = (ConnectionId::EMPTY, ConnectionId::EMPTY);
    let long = |version| {
        [
            OutHeader::Initial { version, dcid, scid, token: b"token" },
            OutHeader::ZeroRtt { version, dcid, scid },
            OutHeader::Handshake { version, dcid, scid },
        ]
    };
    let mut all: Vec<Vec<u8>> =
        [Version::V1, Version::V2].into_iter().flat_map(long).map(|header| packet(&[header])).collect();
    all.push(packet(&long(Version::V1)));
    all.push(packet(&[OutHeader::Short { dcid, spin: false, key_phase: true }]));
    let mut negotiation = vec![0, 1];
    version_negotiation::write(&mut negotiation, &[1; 30], &[2; 9], &[Version::V1, Version::V2], 0);
    let mut retry = vec![8, 1];
    plait_wire::header::retry::write(&mut retry, Version::V1, &dcid, &scid, b"a token, then a tag of 16 bytes", 0);
    all.extend([negotiation, retry]);
    all
}

fn packet(headers: &[OutHeader<'_>]) -> Vec<u8> {
    let mut buf = vec![0, 1];
    for header in headers {
        let marks = header.write(&mut buf, 1, 2, FixedBit::Set);
        buf.extend_from_slice(&[0; 20]);
        let end = buf.len();
        marks.set_length(&mut buf, end);
    }
    buf
}
