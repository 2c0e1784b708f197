//! Writes pcapng: blocks of one section with one interface, packets with their times, and the secrets of TLS.

use std::io::{self, Write};

use plait_base::Instant;

use crate::scenario::Direction;

/// Blocks of pcapng by their type (draft-ietf-opsawg-pcapng 4).
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const ENHANCED_PACKET: u32 = 6;
pub(super) const DECRYPTION_SECRETS: u32 = 10;
/// What a section begins with, so that a reader knows the order of bytes.
pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets begin with their IP header.
pub(super) const LINKTYPE_RAW: u16 = 101;
/// Secrets are lines of an NSS key log.
pub(super) const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Options of an interface: its name, and that times are in 10^-9 seconds.
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;
/// An option of a packet: which way it went.
const EPB_FLAGS: u16 = 2;
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;

/// A file of packets in the making.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins with an interface of this name.
    pub(super) fn begin(out: W, interface: &str) -> io::Result<Self> {
        let mut writer = Self { out };
        let mut section = BYTE_ORDER.to_le_bytes().to_vec();
        section.extend([1u16, 0].iter().flat_map(|version| version.to_le_bytes()));
        // How long the section is, nobody knows yet.
        section.extend(u64::MAX.to_le_bytes());
        writer.block(SECTION_HEADER, &section)?;
        let mut described = LINKTYPE_RAW.to_le_bytes().to_vec();
        // Two reserved bytes, and packets of any length.
        described.extend([0; 6]);
        option(&mut described, IF_NAME, interface.as_bytes());
        option(&mut described, IF_TSRESOL, &[NANOSECONDS]);
        option(&mut described, 0, &[]);
        writer.block(INTERFACE, &described)?;
        Ok(writer)
    }

    /// Lines of a key log, which serve for the packets that follow.
    pub(super) fn secrets(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut body = TLS_KEY_LOG.to_le_bytes().to_vec();
        body.extend((lines.len() as u32).to_le_bytes());
        body.extend(lines);
        self.block(DECRYPTION_SECRETS, &body)
    }

    /// A packet from its IP header on, and which way it went.
    pub(super) fn packet(&mut self, at: Instant, direction: Direction, packet: &[u8]) -> io::Result<()> {
        let (nanos, length) = (at.as_nanos(), packet.len() as u32);
        let words = [0, (nanos >> 32) as u32, nanos as u32, length, length];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(packet);
        body.extend(padding(packet));
        // As seen by the client.
        let towards: u32 = if direction == Direction::Down { INBOUND } else { OUTBOUND };
        option(&mut body, EPB_FLAGS, &towards.to_le_bytes());
        option(&mut body, 0, &[]);
        self.block(ENHANCED_PACKET, &body)
    }

    /// Writes what still waits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(body)?;
        self.out.write_all(padding(body))?;
        self.out.write_all(&length.to_le_bytes())
    }
}

/// What makes a multiple of 32 bits of it.
fn padding(body: &[u8]) -> &'static [u8] {
    &[0; 4][..body.len().next_multiple_of(4) - body.len()]
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.extend(padding(value));
}
