//! Address tokens and Retry tags: nothing forged is accepted, everything of ours is.

use std::net::{IpAddr, SocketAddr};

use plait_base::limits::MAX_TOKEN_ADDRESSES;
use plait_base::{ConnectionId, Random};
use plait_crypto::{ResetKey, Token, TokenKey, retry};

use crate::ArbitraryInput;

/// The input: a token's content, a bit to change, a packet that claims to be a Retry.
pub fn run(input: &[u8]) {
    let (key, mut random) = (TokenKey::new(&[9; 32]), Random::from_u64(1));
    assert_eq!(key.open(input), None, "a forged token");
    let mut input = ArbitraryInput::new(input);
    let token = token(&mut input);
    let sealed = key.seal(&token, &mut random);
    assert_eq!(key.open(&sealed).as_ref(), Some(&token));
    let (bit, cut) = (usize::from(input.u16()) % (8 * sealed.len()), usize::from(input.u16()) % sealed.len());
    let mut bad = sealed.clone();
    bad[bit / 8] ^= 1 << (bit % 8);
    assert_eq!(key.open(&bad), None);
    assert_eq!(key.open(&sealed[..cut]), None);
    check_retry(&mut input);
}

fn check_retry(input: &mut ArbitraryInput<'_>) {
    let (version, id_len) = (if input.flag() { 1 } else { 0x6b33_43cf }, input.below(30));
    let odcid = input.bytes(id_len);
    let packet = input.rest();
    assert!(!retry::verify(version, odcid, packet), "a forged tag");
    let Some(tag) = retry::tag(version, odcid, packet) else { return assert!(odcid.len() > 20) };
    let whole = [packet, &tag].concat();
    assert!(retry::verify(version, odcid, &whole));
    assert!(!retry::verify(version ^ 1, odcid, &whole));
    let reset = ResetKey::new(&[7; 32]);
    assert!(reset.token(odcid).matches(&reset.token(odcid).0));
}

fn token(input: &mut ArbitraryInput<'_>) -> Token {
    let issued = input.number();
    if input.flag() {
        let (addr, len) = (SocketAddr::new(ip(input), input.u16()), input.below(21));
        let odcid = ConnectionId::new(input.bytes(len)).unwrap_or(ConnectionId::EMPTY);
        Token::Retry { addr, odcid, issued }
    } else {
        let count = input.below(MAX_TOKEN_ADDRESSES + 1);
        Token::Validated { addresses: (0..count).map(|_| ip(input)).collect(), issued, version: 1 }
    }
}

fn ip(input: &mut ArbitraryInput<'_>) -> IpAddr {
    let mut octets = [0; 16];
    let v6 = input.flag();
    let given = input.bytes(if v6 { 16 } else { 4 });
    octets[..given.len()].copy_from_slice(given);
    if v6 { IpAddr::from(octets) } else { IpAddr::from([octets[0], octets[1], octets[2], octets[3]]) }
}

/// A token of each kind and a Retry.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut retry = vec![7, 1, 0, 192, 0, 2, 1, 1, 187, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0, 3, 1, 4, 4, 3, 2, 1];
    retry.extend_from_slice(&[0xf0, 0, 0, 0, 1, 0, 0]);
    vec![retry, vec![9, 0, 2, 0, 10, 0, 0, 1, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3]]
}
