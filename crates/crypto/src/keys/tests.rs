//! Vectors and edge cases of packet protection.

use plait_base::{PathId, Random, Side, Violation};
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};

use super::*;
use crate::backend::{aead, tls};
use crate::initial::{V1, V2, initial_keys};

/// Bytes of a hex string; white space is skipped.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digit = |b: u8| (b as char).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// The ClientHello of RFC 9001 A.2 and RFC 9369 A.2 in its CRYPTO frame, padded to 1162 bytes.
fn client_payload() -> Vec<u8> {
    let mut payload = hex("060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
        04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
        616d706c652e636f6dff01000100000a00080006001d00170018001000070005
        04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
        baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
        0d0010000e0403050306030203080408050806002d00020101001c0002400100
        3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
        75300901100f088394c8f03e51570806048000ffff");
    payload.resize(1162, 0);
    payload
}

/// The ServerHello of RFC 9001 A.3 and RFC 9369 A.3 with its ACK.
fn server_payload() -> Vec<u8> {
    hex("02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739
        88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94
        0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00
        020304")
}

/// Seals `payload` under `header`, checks start and end of the result, then opens it on the other side.
fn check_initial(version: u32, sender: Side, header: &str, pn_len: usize, payload: &[u8], starts: &str, ends: &str) {
    let keys = initial_keys(version, &DCID, sender).unwrap();
    let header = hex(header);
    let (pn_at, pn) = (header.len() - pn_len, u64::from(*header.last().unwrap()));
    // Something lies before the packet, as in a coalesced datagram.
    let mut buf = [&[0xee; 3], &header[..], payload].concat();
    let layout = Layout { start: 3, pn_at: 3 + pn_at, pn_len };
    keys.local.seal_packet(&mut buf, layout, PathId::ZERO, pn).unwrap();
    assert_eq!(buf[..3], [0xee; 3]);
    let packet = &mut buf[3..];
    assert!(packet.starts_with(&hex(starts)), "{version} {sender:?}");
    assert!(packet.ends_with(&hex(ends)), "{version} {sender:?}");

    let mut alike = [&header[..], payload, &[0; TAG_BYTES]].concat();
    let layout = Layout { start: 0, pn_at, pn_len };
    seal_slice(&keys.local.packet, &keys.local.header, &mut alike, layout, PathId::ZERO, pn).unwrap();
    assert_eq!(alike, packet);

    let peer = initial_keys(version, &DCID, sender.peer()).unwrap();
    let unmasked = peer.remote.unmask(packet, pn_at).unwrap();
    assert_eq!(unmasked, Unmasked { first: header[0], truncated: pn, pn_len });
    let range = peer.remote.open(packet, header.len(), PathId::ZERO, pn).unwrap();
    assert_eq!(packet[range], *payload);
}

#[test]
fn initial_vectors_of_version_1() {
    // RFC 9001 5.2
    // RFC 9001 A.2
    check_initial(
        V1,
        Side::Client,
        "c300000001088394c8f03e5157080000449e00000002",
        4,
        &client_payload(),
        "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9bd8bab936b47d92ec356c",
        "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241e221af44860018ab0856972e194cd934",
    );
    // RFC 9001 A.3
    check_initial(
        V1,
        Side::Server,
        "c1000000010008f067a5502a4262b50040750001",
        2,
        &server_payload(),
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a",
        "022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
    );
}

#[test]
fn initial_vectors_of_version_2() {
    // RFC 9369 A.2
    check_initial(
        V2,
        Side::Client,
        "d36b3343cf088394c8f03e5157080000449e00000002",
        4,
        &client_payload(),
        "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
        "9a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96ba18b2faa745b6fe189cf772a9f84cbfc",
    );
    // RFC 9369 A.3
    check_initial(
        V2,
        Side::Server,
        "d16b3343cf0008f067a5502a4262b50040750001",
        2,
        &server_payload(),
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698",
        "c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca84bed8521e2e140",
    );
    assert!(initial_keys(0xff00_001d, &DCID, Side::Client).is_none());
}

/// ChaCha20 keys from raw bytes, both directions alike.
fn chacha(key: &str, iv: &str, hp: &str) -> (SealKeys, OpenKeys) {
    let suite = tls::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256.tls13().unwrap().quic_suite().unwrap();
    let raw = |text: &str| AeadKey::from(<[u8; 32]>::try_from(hex(text)).unwrap());
    let packet = || suite.quic.packet_key(raw(key), Iv::from(<[u8; 12]>::try_from(hex(iv)).unwrap()));
    let header = || suite.quic.header_protection_key(raw(hp));
    (
        SealKeys { header: HeaderKey::tls(header()), packet: SealKey::tls(packet()) },
        OpenKeys { header: HeaderKey::tls(header()), packet: OpenKey::tls(packet()) },
    )
}

const V1_KEY: &str = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8";
const V1_IV: &str = "e0459b3474bdd0e44a41c144";
const V1_HP: &str = "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";

#[test]
fn chacha20_short_header_vectors() {
    let v2_key = "3bfcddd72bcf02541d7fa0dd1f5f9eeea817e09a6963a0e6c7df0f9a1bab90f2";
    let v2_hp = "d659760d2ba434a226fd37b35c69e2da8211d10c4f12538787d65645d5d1b8e2";
    let cases = [
        // RFC 9001 A.5
        (V1_KEY, V1_IV, V1_HP, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"),
        // RFC 9369 A.5
        (v2_key, "a6b5bc6ab7dafce30ffff5dd", v2_hp, "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"),
    ];
    for (key, iv, hp, sealed) in cases {
        let (seal, open) = chacha(key, iv, hp);
        let mut packet = hex("4200bff401");
        let layout = Layout { start: 0, pn_at: 1, pn_len: 3 };
        seal.seal_packet(&mut packet, layout, PathId::ZERO, 654_360_564).unwrap();
        assert_eq!(packet, hex(sealed));
        let unmasked = open.unmask(&mut packet, 1).unwrap();
        assert_eq!(unmasked, Unmasked { first: 0x42, truncated: 0xbff4, pn_len: 3 });
        let range = open.open(&mut packet, 4, PathId::ZERO, 654_360_564).unwrap();
        assert_eq!(packet[range], [1]);
    }
}

#[test]
fn multipath_nonce_vector() {
    // RFC 10069 2.4: IV xor (path id, packet number)
    let iv: [u8; 12] = hex("6b26114b9cba2b63a9e8dd4f").try_into().unwrap();
    let expected: [u8; 12] = hex("6b2611489cba2b63a9e8097e").try_into().unwrap();
    assert_eq!(Nonce::for_path(3, &Iv::from(iv), 54321).0, expected);
    assert_eq!(Nonce::for_path(3, &Iv::from(iv), 0xaead).0.to_vec(), hex("6b2611489cba2b63a9e873e2"));

    // What we seal is what a bare AEAD gives with that nonce.
    let (seal, _) = chacha(V1_KEY, "6b26114b9cba2b63a9e8dd4f", V1_HP);
    let mut packet = hex("4000112233445566");
    packet.resize(packet.len() + TAG_BYTES, 0);
    let bare_packet = packet.clone();
    seal.packet.seal(&mut packet, 2, PathId(3), 54321).unwrap();
    let bare = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &hex(V1_KEY)).unwrap());
    let mut payload = bare_packet[2..8].to_vec();
    let nonce = aead::Nonce::assume_unique_for_key(expected);
    let tag = bare.seal_in_place_separate_tag(nonce, aead::Aad::from(&bare_packet[..2]), &mut payload).unwrap();
    assert_eq!(packet[2..], [&payload[..], tag.as_ref()].concat());
}

#[test]
fn path_and_number_and_every_byte_count() {
    let (seal, open) = chacha(V1_KEY, V1_IV, V1_HP);
    let mut good = hex("4007aabbccdd");
    seal.seal_packet(&mut good, Layout { start: 0, pn_at: 1, pn_len: 1 }, PathId(5), 7).unwrap();
    let attempt = |packet: &[u8], path, pn| {
        let mut packet = packet.to_vec();
        open.unmask(&mut packet, 1).unwrap();
        open.open(&mut packet, 2, PathId(path), pn).map(|range| packet[range].to_vec())
    };
    assert_eq!(attempt(&good, 5, 7), Ok(hex("aabbccdd")));
    for (path, pn) in [(0, 7), (4, 7), (u32::MAX, 7), (5, 8), (5, 7 + (1 << 32))] {
        assert_eq!(attempt(&good, path, pn), Err(OpenError::Forged));
    }
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x40;
        assert!(attempt(&bad, 5, 7).is_err(), "byte {i}");
    }
}

#[test]
fn failing_to_open_keeps_the_last_bytes() {
    // RFC 9000 10.3.1: they may be a stateless reset token.
    for keys in [chacha(V1_KEY, V1_IV, V1_HP).1, initial_keys(V1, &DCID, Side::Client).unwrap().remote] {
        let mut packet = vec![0; 40];
        Random::from_u64(1).fill(&mut packet);
        let token = packet[24..].to_vec();
        assert_eq!(keys.open(&mut packet, 9, PathId::ZERO, 1), Err(OpenError::Forged));
        assert_eq!(packet[24..], token);
    }
}

#[test]
fn short_packets_are_refused_whole() {
    // RFC 9001 5.4.2
    let (seal, open) = chacha(V1_KEY, V1_IV, V1_HP);
    for pn_len in 1..=4 {
        let mut packet = vec![0x40 | (pn_len as u8 - 1); 1 + pn_len];
        let layout = Layout { start: 0, pn_at: 1, pn_len };
        packet.resize(1 + pn_len + min_payload_bytes(pn_len), 0);
        if min_payload_bytes(pn_len) > 0 {
            let mut shorter = packet[..packet.len() - 1].to_vec();
            let before = shorter.clone();
            assert_eq!(seal.seal_packet(&mut shorter, layout, PathId::ZERO, 0), Err(SealError::TooShort));
            assert_eq!(shorter, before);
        }
        seal.seal_packet(&mut packet, layout, PathId::ZERO, 0).unwrap();
        open.unmask(&mut packet, 1).unwrap();
        open.open(&mut packet, 1 + pn_len, PathId::ZERO, 0).unwrap();
    }
    // Nothing that a peer sends may panic.
    for len in 0..64 {
        for at in [0, 1, 2, len, len + 1, usize::MAX - 2, usize::MAX] {
            let mut packet = vec![0x43; len];
            let _ = open.unmask(&mut packet, at);
            let _ = open.open(&mut packet, at, PathId::MAX, u64::MAX);
            for pn_len in [4, 5] {
                let layout = Layout { start: 0, pn_at: at, pn_len };
                let _ = seal_slice(&seal.packet, &seal.header, &mut packet, layout, PathId::MAX, u64::MAX);
            }
        }
    }
}

#[test]
fn reserved_bits_of_genuine_packets_are_a_violation() {
    // RFC 9000 17.2-7
    let (seal, open) = chacha(V1_KEY, V1_IV, V1_HP);
    for (first, wrong) in [(0x40, false), (0x48, true), (0x50, true), (0xc0, false), (0xc4, true), (0xc8, true)] {
        let mut packet = vec![first, 0, 1, 2, 3, 4];
        seal.seal_packet(&mut packet, Layout { start: 0, pn_at: 1, pn_len: 1 }, PathId::ZERO, 0).unwrap();
        open.unmask(&mut packet, 1).unwrap();
        let opened = open.open(&mut packet, 2, PathId::ZERO, 0);
        let expected = if wrong { Err(OpenError::Violation(Violation::ReservedBitsSet)) } else { Ok(2..6) };
        assert_eq!(opened, expected, "{first:x}");
    }
}

#[test]
fn null_tag_sees_changes() {
    let key = crate::null::NullKey::new(Side::Client, 0);
    let body: Vec<u8> = (0..100).collect();
    let tag = key.tag(PathId(1), 2, &body[..9], &body[9..]);
    assert_eq!(tag, key.tag(PathId(1), 2, &body[..9], &body[9..]));
    assert_ne!(tag, key.tag(PathId(0), 2, &body[..9], &body[9..]));
    assert_ne!(tag, key.tag(PathId(1), 3, &body[..9], &body[9..]));
    assert_ne!(tag, key.tag(PathId(1), 2, &body[..10], &body[10..]));
    assert_ne!(tag, crate::null::NullKey::new(Side::Server, 0).tag(PathId(1), 2, &body[..9], &body[9..]));
    assert_ne!(tag, crate::null::NullKey::new(Side::Client, 1).tag(PathId(1), 2, &body[..9], &body[9..]));
    for i in 0..body.len() * 8 {
        let mut bad = body.clone();
        bad[i / 8] ^= 1 << (i % 8);
        assert_ne!(tag, key.tag(PathId(1), 2, &bad[..9], &bad[9..]), "bit {i}");
    }
}
