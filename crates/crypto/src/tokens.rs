//! Address tokens of Retry and NEW_TOKEN, sealed so that only their maker can read or make them (RFC 9000 8.1, 8.1.1).
//!
//! Layout: 16 random bytes, then ciphertext and tag of an AEAD whose key is derived from these bytes; hence no
//! nonce is ever used twice, however many tokens are made.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use plait_base::limits::{MAX_TOKEN_ADDRESSES, MAX_TOKEN_BYTES};
use plait_base::{ConnectionId, Random};

use crate::backend::{aead, hmac};
use crate::keys::{NONCE_BYTES, TAG_BYTES};

const SALT_BYTES: usize = 16;
const KIND_RETRY: u8 = 1;
const KIND_VALIDATED: u8 = 2;

/// What a token says. Times are whole seconds of the caller's clock, such as Unix time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// From a Retry packet: the client at `addr` answered, and first sent to `odcid`.
    Retry {
        /// The client's address and port.
        addr: SocketAddr,
        /// Destination connection id of its first Initial (RFC 9000 7.3).
        odcid: ConnectionId,
        /// When the Retry was sent, in seconds.
        issued: u64,
    },
    /// From NEW_TOKEN: a client that owned these addresses in an earlier connection.
    Validated {
        /// The addresses of its validated paths, without ports; at most 8 are kept.
        addresses: Vec<IpAddr>,
        /// When the token was made, in seconds.
        issued: u64,
        /// QUIC version of that connection; a token is good in no other (RFC 9369 5).
        version: u32,
    },
}

impl Token {
    /// When the token was made, in seconds.
    pub fn issued(&self) -> u64 {
        match self {
            Self::Retry { issued, .. } | Self::Validated { issued, .. } => *issued,
        }
    }

    /// True when the token proves that a client owns `addr` at `now` (seconds): made at most `lifetime` seconds
    /// ago and not in the future, for this address. Retry tokens bind the port too, as a client answers at once.
    pub fn proves(&self, addr: SocketAddr, now: u64, lifetime: u64) -> bool {
        let fresh = now.checked_sub(self.issued()).is_some_and(|age| age <= lifetime);
        fresh
            && match self {
                Self::Retry { addr: bound, .. } => plain(*bound) == plain(addr),
                Self::Validated { addresses, .. } => {
                    let ip = addr.ip().to_canonical();
                    addresses.iter().any(|a| a.to_canonical() == ip)
                }
            }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::Retry { addr, odcid, issued } => {
                out.push(KIND_RETRY);
                out.extend_from_slice(&issued.to_be_bytes());
                put_ip(&mut out, addr.ip());
                out.extend_from_slice(&addr.port().to_be_bytes());
                out.push(odcid.len() as u8);
                out.extend_from_slice(odcid);
            }
            Self::Validated { addresses, issued, version } => {
                out.push(KIND_VALIDATED);
                out.extend_from_slice(&issued.to_be_bytes());
                out.extend_from_slice(&version.to_be_bytes());
                let count = addresses.len().min(MAX_TOKEN_ADDRESSES);
                out.push(count as u8);
                addresses.iter().take(count).for_each(|ip| put_ip(&mut out, *ip));
            }
        }
        out
    }

    fn decode(plain: &[u8]) -> Option<Self> {
        let mut from = TokenReader(plain);
        let kind = from.array::<1>()?[0];
        let issued = u64::from_be_bytes(from.array()?);
        let token = match kind {
            KIND_RETRY => {
                let ip = from.ip()?;
                let port = u16::from_be_bytes(from.array()?);
                let len = usize::from(from.array::<1>()?[0]);
                let odcid = ConnectionId::new(from.take(len)?)?;
                Self::Retry { addr: SocketAddr::new(ip, port), odcid, issued }
            }
            KIND_VALIDATED => {
                let version = u32::from_be_bytes(from.array()?);
                let count = usize::from(from.array::<1>()?[0]);
                if count > MAX_TOKEN_ADDRESSES {
                    return None;
                }
                let addresses = (0..count).map(|_| from.ip()).collect::<Option<_>>()?;
                Self::Validated { addresses, issued, version }
            }
            _ => return None,
        };
        from.0.is_empty().then_some(token)
    }
}

/// An IPv4-mapped address is the IPv4 address; scope and flow label do not count.
fn plain(addr: SocketAddr) -> (IpAddr, u16) {
    (addr.ip().to_canonical(), addr.port())
}

fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
}

/// Cuts fields off the front.
struct TokenReader<'a>(&'a [u8]);

impl<'a> TokenReader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn ip(&mut self) -> Option<IpAddr> {
        match self.array::<1>()?[0] {
            4 => Some(IpAddr::from(self.array::<4>()?)),
            6 => Some(IpAddr::from(self.array::<16>()?)),
            _ => None,
        }
    }
}

/// Seals and opens tokens; servers that share an address share it.
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// From 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// A key of its own for this endpoint.
    pub fn generate(random: &mut Random) -> Self {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Self::new(&secret)
    }

    /// The opaque bytes of `token`; 16 of them come from `random` and tell tokens of equal content apart.
    pub fn seal(&self, token: &Token, random: &mut Random) -> Vec<u8> {
        let mut salt = [0; SALT_BYTES];
        random.fill(&mut salt);
        let mut plain = token.encode();
        let Some(key) = self.derive(&salt) else { return Vec::new() };
        let Ok(tag) = key.seal_in_place_separate_tag(zero_nonce(), aead::Aad::empty(), &mut plain) else {
            return Vec::new();
        };
        [&salt, &plain[..], tag.as_ref()].concat()
    }

    /// What `bytes` say; none when they are not ours, are changed or make no sense.
    pub fn open(&self, bytes: &[u8]) -> Option<Token> {
        if bytes.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (salt, sealed) = bytes.split_first_chunk::<SALT_BYTES>()?;
        if sealed.len() < TAG_BYTES {
            return None;
        }
        let mut sealed = sealed.to_vec();
        let key = self.derive(salt)?;
        let plain = key.open_in_place(zero_nonce(), aead::Aad::empty(), &mut sealed).ok()?;
        Token::decode(plain)
    }

    fn derive(&self, salt: &[u8; SALT_BYTES]) -> Option<aead::LessSafeKey> {
        let secret = hmac::sign(&self.0, salt);
        Some(aead::LessSafeKey::new(aead::UnboundKey::new(&aead::AES_256_GCM, secret.as_ref()).ok()?))
    }
}

/// Each salt has a key of its own, which seals once.
fn zero_nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; NONCE_BYTES])
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry() -> Token {
        let addr = "192.0.2.7:4433".parse().unwrap();
        Token::Retry { addr, odcid: ConnectionId::new(&[1; 20]).unwrap(), issued: 1000 }
    }

    fn validated(n: u8) -> Token {
        let addresses = (0..n)
            .map(|i| if i % 2 == 0 { IpAddr::from([10, 0, 0, i]) } else { IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 1]) })
            .collect();
        Token::Validated { addresses, issued: 7, version: 1 }
    }

    #[test]
    fn round_trip() {
        // RFC 9000 8.1.1, 8.1.3-3, 8.1.3-4
        let (key, mut random) = (TokenKey::new(&[9; 32]), Random::from_u64(1));
        let v6 =
            Token::Retry { addr: "[2001:db8::1]:1".parse().unwrap(), odcid: ConnectionId::EMPTY, issued: u64::MAX };
        for token in [retry(), v6, validated(0), validated(8)] {
            let (a, b) = (key.seal(&token, &mut random), key.seal(&token, &mut random));
            assert_ne!(a, b, "tokens of equal content differ");
            assert_eq!(key.open(&a).as_ref(), Some(&token));
            assert_eq!(key.open(&b), Some(token));
        }
        // limits.rs: MAX_TOKEN_ADDRESSES
        let Some(Token::Validated { addresses, .. }) = key.open(&key.seal(&validated(20), &mut random)) else {
            panic!()
        };
        assert_eq!(addresses.len(), MAX_TOKEN_ADDRESSES);
    }

    #[test]
    fn tampering_is_seen() {
        // RFC 9000 8.1.4-1, 8.1.4-2
        let (key, mut random) = (TokenKey::new(&[9; 32]), Random::from_u64(2));
        for good in [key.seal(&retry(), &mut random), key.seal(&validated(3), &mut random)] {
            for i in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[i / 8] ^= 1 << (i % 8);
                assert_eq!(key.open(&bad), None, "bit {i}");
            }
            for len in 0..good.len() {
                assert_eq!(key.open(&good[..len]), None);
            }
            assert_eq!(TokenKey::new(&[8; 32]).open(&good), None, "another server's key");
        }
        assert_eq!(key.open(&vec![0; MAX_TOKEN_BYTES + 1]), None);
        assert_eq!(key.open(&[]), None);
    }

    #[test]
    fn expiry_and_address() {
        // RFC 9000 8.1.4-3
        let addr: SocketAddr = "192.0.2.7:4433".parse().unwrap();
        let other_port: SocketAddr = "192.0.2.7:4434".parse().unwrap();
        let mapped: SocketAddr = "[::ffff:192.0.2.7]:4433".parse().unwrap();
        let token = retry();
        assert!(token.proves(addr, 1000, 15) && token.proves(addr, 1015, 15) && token.proves(mapped, 1001, 15));
        assert!(!token.proves(addr, 1016, 15), "expired");
        assert!(!token.proves(addr, 999, 15), "from the future");
        assert!(!token.proves(other_port, 1000, 15), "Retry binds the port");
        let token = validated(3);
        assert!(
            token.proves("10.0.0.0:1".parse().unwrap(), 8, 60) && token.proves("10.0.0.2:9".parse().unwrap(), 8, 60)
        );
        assert!(
            token.proves("[fe80::1]:9".parse().unwrap(), 8, 60) && !token.proves("10.0.0.1:9".parse().unwrap(), 8, 60)
        );
        assert!(!token.proves("10.0.0.0:1".parse().unwrap(), 68, 60));
    }

    #[test]
    fn decode_survives_anything() {
        let mut random = Random::from_u64(3);
        for _ in 0..20_000 {
            let mut bytes = vec![0; random.below(40) as usize];
            random.fill(&mut bytes);
            if let Some(first) = bytes.first_mut() {
                *first &= 3;
            }
            let _ = Token::decode(&bytes);
        }
    }
}
