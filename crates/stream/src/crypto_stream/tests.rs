//! CRYPTO data over packets, and its bounds.

use plait_wire::frame::types;

use super::*;
use crate::testing::{packet, varint as take};

fn frames(mut p: Bytes) -> Vec<(u64, Bytes)> {
    let mut out = Vec::new();
    while !p.is_empty() {
        assert_eq!(take(&mut p), types::CRYPTO);
        let offset = take(&mut p);
        let len = take(&mut p) as usize;
        out.push((offset, p.split_to(len)));
    }
    out
}

#[test]
fn data_crosses_in_packets_with_loss() {
    // RFC 9001 4.9-1
    let (mut a, mut b) = (CryptoStream::new(Space::Initial), CryptoStream::new(Space::Initial));
    let data: Vec<u8> = (0..5000).map(|i| i as u8).collect();
    a.write(&data);
    assert_eq!(a.unsent_bytes(), 5000);
    let (mut sent, mut got, mut n) = (Vec::new(), Vec::new(), 0);
    while a.wants_send() || a.has_unacked() {
        if !a.wants_send() {
            a.resend_unacked();
        }
        let (p, carried) = packet(1100, |w| a.fill(w));
        n += 1;
        if n % 3 == 0 {
            carried.iter().for_each(|c| a.on_lost(c));
        } else {
            for (offset, bytes) in frames(p) {
                b.on_crypto(offset, bytes).unwrap();
            }
            carried.iter().for_each(|c| a.on_acked(c));
        }
        sent.extend(carried);
        while let Some(bytes) = b.read() {
            got.extend_from_slice(&bytes);
        }
    }
    assert_eq!(got, data);
    assert!(!b.has_unread() && b.read_offset() == 5000);
    // Stale news, and those of another space, change nothing.
    sent.iter().for_each(|c| a.on_lost(c));
    a.on_lost(&SentFrame::Crypto { space: Space::Data, offset: 0, len: 9 });
    assert!(!a.wants_send());
}

#[test]
fn buffering_is_bounded() {
    let mut c = CryptoStream::new(Space::Handshake);
    // RFC 9000 7.5-1, 7.5-2: CRYPTO_BUFFER_EXCEEDED
    assert!(c.on_crypto(MAX_CRYPTO_BUFFER_BYTES - 1, Bytes::from_static(b"x")).is_ok());
    assert_eq!(c.on_crypto(MAX_CRYPTO_BUFFER_BYTES, Bytes::from_static(b"x")), Err(Violation::CryptoBufferExceeded));
    assert_eq!(c.on_crypto(VARINT_MAX, Bytes::from_static(b"x")), Err(Violation::OffsetTooLarge));
    assert!(c.has_unread() && c.read().is_none());
    let mut c = CryptoStream::new(Space::Handshake);
    let refused = (0..32_000).find_map(|i| c.on_crypto(1 + 2 * i, Bytes::from_static(b"x")).err());
    assert_eq!(refused, Some(Violation::CryptoBufferExceeded), "too many fragments");
}

#[test]
fn a_copy_holds_all_that_is_unacked_or_nothing_and_changes_nothing() {
    let mut c = CryptoStream::new(Space::Handshake);
    assert!(packet(1100, |w| c.fill_copy(w)).0.is_empty());
    c.write(&[7; 300]);
    let (_, carried) = packet(100, |w| c.fill(w));
    carried.iter().for_each(|frame| c.on_acked(frame));
    let state = |c: &CryptoStream| (c.wants_send(), c.unsent_bytes(), c.has_unacked());
    let before = state(&c);
    let (copy, _) = packet(1100, |w| c.fill_copy(w));
    let [(offset, data)] = &frames(copy)[..] else { panic!("not one frame") };
    assert_eq!((*offset + data.len() as u64, data.iter().all(|byte| *byte == 7)), (300, true));
    assert!(*offset > 50, "what is acked is left out");
    assert!(packet(data.len() + 10, |w| c.fill_copy(w)).0.is_empty(), "a part would help nobody");
    assert_eq!(state(&c), before);
}
