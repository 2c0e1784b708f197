//! Keys of one direction, and how a packet is sealed and opened in place (RFC 9001 5).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use plait_base::{PathId, Violation};
use rustls::quic;

use crate::error::{OpenError, SealError};
use crate::null::NullKey;

/// Length of the tag at the end of every protected packet, in bytes.
pub const TAG_BYTES: usize = 16;
/// A block of AES and of Poly1305, in bytes. A part of one takes longer than a whole one: AES-GCM by ring seals 1425 bytes in 1.14
/// times as long as 1424, and opens them in 1.08 times as long (docs/performance.md).
pub const CIPHER_BLOCK_BYTES: usize = 16;
/// Length of the header protection sample, in bytes (RFC 9001 5.4.2).
pub(crate) const SAMPLE_BYTES: usize = 16;
/// The sample starts this many bytes after the start of the packet number.
const SAMPLE_OFFSET: usize = 4;
/// Length of the AEAD nonce of every suite, in bytes; multipath asks for at least 12 (RFC 10069 2.4).
pub(crate) const NONCE_BYTES: usize = 12;

/// Fewest payload bytes that a packet with a `pn_len` byte packet number may have before it is sealed.
pub const fn min_payload_bytes(pn_len: usize) -> usize {
    SAMPLE_OFFSET.saturating_sub(pn_len)
}

#[derive(Clone)]
enum Cipher {
    Tls(Arc<dyn quic::PacketKey>),
    Null(NullKey),
}

impl Cipher {
    fn limits(&self) -> (u64, u64) {
        match self {
            Self::Tls(key) => (key.confidentiality_limit(), key.integrity_limit()),
            Self::Null(_) => (u64::MAX, u64::MAX),
        }
    }
}

/// Seals payloads in one direction; cheap to clone, to share with other threads.
#[derive(Clone)]
pub(crate) struct SealKey(Cipher);

impl SealKey {
    pub(crate) fn tls(key: Box<dyn quic::PacketKey>) -> Self {
        Self(Cipher::Tls(key.into()))
    }

    pub(crate) fn null(key: NullKey) -> Self {
        Self(Cipher::Null(key))
    }

    /// Packets that this key may seal (RFC 9001 6.6).
    pub(crate) fn confidentiality_limit(&self) -> u64 {
        self.0.limits().0
    }

    /// Packets that may fail authentication under keys of this AEAD (RFC 9001 6.6).
    pub(crate) fn integrity_limit(&self) -> u64 {
        self.0.limits().1
    }

    /// Encrypts `packet[header_len..]` except its last 16 bytes, into which the tag goes.
    fn seal(&self, packet: &mut [u8], header_len: usize, path: PathId, pn: u64) -> Result<(), SealError> {
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(SealError::TooShort)?;
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(SealError::TooShort)?;
        match &self.0 {
            // RFC 10069 2.4: path id and packet number; path 0 equals RFC 9001 5.3.
            Cipher::Tls(key) => {
                // Looked at where it was made: moved out of its result, it would be read before its halves are written.
                match &key.encrypt_in_place_for_path(path.0, pn, header, payload) {
                    Ok(made) if made.as_ref().len() == TAG_BYTES => tag.copy_from_slice(made.as_ref()),
                    Ok(_) | Err(_) => return Err(SealError::Refused),
                }
            }
            Cipher::Null(key) => *tag = key.tag(path, pn, header, payload),
        }
        Ok(())
    }
}

/// Opens payloads of one direction; cheap to clone, to share with other threads.
#[derive(Clone)]
pub(crate) struct OpenKey(Cipher);

impl OpenKey {
    pub(crate) fn tls(key: Box<dyn quic::PacketKey>) -> Self {
        Self(Cipher::Tls(key.into()))
    }

    pub(crate) fn null(key: NullKey) -> Self {
        Self(Cipher::Null(key))
    }

    /// Decrypts the payload of `packet` in place, whose unmasked header is `header_len` bytes long including
    /// the packet number. Returns where the plaintext lies. On failure the last 16 bytes of the packet stay
    /// as they were, so that they can still be compared with stateless reset tokens.
    pub(crate) fn open(
        &self,
        packet: &mut [u8],
        header_len: usize,
        path: PathId,
        pn: u64,
    ) -> Result<Range<usize>, OpenError> {
        let bytes = self.open_payload(packet, header_len, path, pn)?;
        Ok(header_len..header_len + bytes)
    }

    /// The same; how many bytes the payload has.
    pub(crate) fn open_payload(
        &self,
        packet: &mut [u8],
        header_len: usize,
        path: PathId,
        pn: u64,
    ) -> Result<usize, OpenError> {
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(OpenError::TooShort)?;
        let Some(plain_len) = rest.len().checked_sub(TAG_BYTES) else { return Err(OpenError::TooShort) };
        let plain_len = match &self.0 {
            Cipher::Tls(key) => {
                let plain = key.decrypt_in_place_for_path(path.0, pn, header, rest).map_err(|_| OpenError::Forged)?;
                plain.len()
            }
            Cipher::Null(key) => {
                let (payload, tag) = rest.split_at(plain_len);
                if key.tag(path, pn, header, payload) != tag {
                    return Err(OpenError::Forged);
                }
                plain_len
            }
        };
        check_reserved_bits(header)?;
        Ok(plain_len)
    }
}

/// RFC 9000 17.2, 17.3.1: reserved bits that are set in a genuine packet are a violation.
fn check_reserved_bits(header: &[u8]) -> Result<(), OpenError> {
    let first = header.first().copied().unwrap_or(0);
    let reserved = if first & LONG_FORM != 0 { 0x0c } else { 0x18 };
    if first & reserved == 0 { Ok(()) } else { Err(OpenError::Violation(Violation::ReservedBitsSet)) }
}

const LONG_FORM: u8 = 0x80;
/// The key phase bit of a short header (RFC 9000 17.3.1).
pub(crate) const PHASE_BIT: u8 = 0x04;

/// Masks and unmasks headers of one direction (RFC 9001 5.4); stays the same through key updates.
#[derive(Clone)]
pub(crate) struct HeaderKey(Mask);

#[derive(Clone)]
enum Mask {
    Tls(Arc<dyn quic::HeaderProtectionKey>),
    Null,
}

/// What unmasking a header brought to light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmasked {
    /// The first byte, unmasked.
    pub first: u8,
    /// The packet number as sent, 1 to 4 bytes of it.
    pub truncated: u64,
    /// Length of the packet number, 1 to 4 bytes.
    pub pn_len: usize,
}

impl HeaderKey {
    pub(crate) fn tls(key: Box<dyn quic::HeaderProtectionKey>) -> Self {
        Self(Mask::Tls(key.into()))
    }

    pub(crate) fn null() -> Self {
        Self(Mask::Null)
    }

    /// Masks the header of a sealed packet whose packet number lies at `pn_at`.
    fn mask(&self, packet: &mut [u8], pn_at: usize, pn_len: usize) -> Result<(), SealError> {
        let Mask::Tls(key) = &self.0 else { return Ok(()) };
        let (first, number, sample) = parts(packet, pn_at).ok_or(SealError::TooShort)?;
        let number = number.get_mut(..pn_len).ok_or(SealError::TooShort)?;
        key.encrypt_in_place(sample, first, number).map_err(|_| SealError::TooShort)
    }

    #[inline]
    pub(crate) fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError> {
        let (first, number, sample) = parts(packet, pn_at).ok_or(OpenError::TooShort)?;
        if let Mask::Tls(key) = &self.0 {
            key.decrypt_in_place(sample, first, number).map_err(|_| OpenError::TooShort)?;
        }
        let pn_len = usize::from(*first & 0x03) + 1;
        let truncated = number.iter().take(pn_len).fold(0, |n, b| n << 8 | u64::from(*b));
        Ok(Unmasked { first: *first, truncated, pn_len })
    }
}

/// First byte, the four bytes from the packet number on, and the sample.
fn parts(packet: &mut [u8], pn_at: usize) -> Option<(&mut u8, &mut [u8], &[u8])> {
    let (head, tail) = packet.split_at_mut_checked(pn_at.checked_add(SAMPLE_OFFSET)?)?;
    let sample = tail.get(..SAMPLE_BYTES)?;
    let (first, rest) = head.split_first_mut()?;
    // Four bytes, the longest packet number: how long it is only its unmasked first byte tells.
    let number = rest.get_mut(pn_at.checked_sub(1)?..)?;
    Some((first, number, sample))
}

/// Where a packet lies in the buffer in which it is built; all are offsets from the buffer's start, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The packet's first byte.
    pub start: usize,
    /// The packet number.
    pub pn_at: usize,
    /// Length of the packet number, 1 to 4.
    pub pn_len: usize,
}

/// Everything to protect packets that we send: Initial, Handshake or 0-RTT.
#[derive(Clone)]
pub struct SealKeys {
    header: HeaderKey,
    packet: SealKey,
}

impl SealKeys {
    /// Seals the packet that fills `buf` from `layout.start` to its end: encrypts, appends the tag, masks the
    /// header. A Length field must already count the tag's 16 bytes, and the payload must have
    /// [`min_payload_bytes`].
    ///
    /// # Errors
    /// [`SealError::TooShort`] for a payload below [`min_payload_bytes`] or a layout outside of `buf`, [`SealError::Refused`]
    /// when the cipher refuses. `buf` is as long as before then.
    pub fn seal_packet(&self, buf: &mut Vec<u8>, layout: Layout, path: PathId, pn: u64) -> Result<(), SealError> {
        seal_packet(&self.packet, &self.header, buf, layout, path, pn)
    }
}

pub(crate) fn seal_packet(
    key: &SealKey,
    header: &HeaderKey,
    buf: &mut Vec<u8>,
    layout: Layout,
    path: PathId,
    pn: u64,
) -> Result<(), SealError> {
    let plain_end = buf.len();
    buf.extend_from_slice(&[0; TAG_BYTES]);
    let sealed = seal_slice(key, header, buf, layout, path, pn);
    if sealed.is_err() {
        buf.truncate(plain_end);
    }
    sealed
}

fn seal_slice(
    key: &SealKey,
    header: &HeaderKey,
    buf: &mut [u8],
    layout: Layout,
    path: PathId,
    pn: u64,
) -> Result<(), SealError> {
    let packet = buf.get_mut(layout.start..).ok_or(SealError::TooShort)?;
    let pn_at = layout.pn_at.checked_sub(layout.start).ok_or(SealError::TooShort)?;
    // Checked before encrypting, so that a refused packet is untouched.
    if packet.len() < pn_at.saturating_add(SAMPLE_OFFSET + SAMPLE_BYTES) || !(1..=4).contains(&layout.pn_len) {
        return Err(SealError::TooShort);
    }
    key.seal(packet, pn_at + layout.pn_len, path, pn)?;
    header.mask(packet, pn_at, layout.pn_len)
}

/// Everything to remove the protection of packets that we receive: Initial, Handshake or 0-RTT.
#[derive(Clone)]
pub struct OpenKeys {
    header: HeaderKey,
    packet: OpenKey,
}

impl OpenKeys {
    /// Unmasks the header of `packet` in place; `pn_at` is the offset of the packet number in it.
    ///
    /// # Errors
    /// [`OpenError::TooShort`] when the packet has no room for a header protection sample.
    pub fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError> {
        self.header.unmask(packet, pn_at)
    }

    /// Opens the unmasked `packet` in place. `header_len` counts the packet number. Returns where in `packet`
    /// the plaintext lies.
    ///
    /// # Errors
    /// [`OpenError::Forged`] when authentication fails, [`OpenError::TooShort`] for what is no packet, and
    /// [`OpenError::Violation`] for a genuine packet whose reserved bits are set.
    pub fn open(&self, packet: &mut [u8], header_len: usize, path: PathId, pn: u64) -> Result<Range<usize>, OpenError> {
        self.packet.open(packet, header_len, path, pn)
    }
}

/// Keys of both directions of one encryption level.
#[derive(Clone)]
pub struct PacketKeys {
    /// For what we send.
    pub local: SealKeys,
    /// For what we receive.
    pub remote: OpenKeys,
}

impl From<quic::Keys> for PacketKeys {
    fn from(keys: quic::Keys) -> Self {
        Self { local: keys.local.into(), remote: keys.remote.into() }
    }
}

impl From<quic::DirectionalKeys> for SealKeys {
    fn from(keys: quic::DirectionalKeys) -> Self {
        Self { header: HeaderKey::tls(keys.header), packet: SealKey::tls(keys.packet) }
    }
}

impl From<quic::DirectionalKeys> for OpenKeys {
    fn from(keys: quic::DirectionalKeys) -> Self {
        Self { header: HeaderKey::tls(keys.header), packet: OpenKey::tls(keys.packet) }
    }
}

/// 0-RTT keys: clients seal, servers open (RFC 9001 4.6).
#[derive(Clone, Debug)]
pub enum EarlyKeys {
    /// On the client.
    Seal(SealKeys),
    /// On the server.
    Open(OpenKeys),
}

macro_rules! opaque_debug {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )*};
}

opaque_debug!(SealKey, OpenKey, HeaderKey, SealKeys, OpenKeys, PacketKeys);

#[cfg(test)]
pub(crate) mod tests;
