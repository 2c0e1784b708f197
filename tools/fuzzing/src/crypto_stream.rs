//! CRYPTO streams: hostile pieces in, and a lossy exchange that must end with every byte delivered once.

use bytes::Bytes;
use plait_base::Space;
use plait_base::limits::MAX_CRYPTO_BUFFER_BYTES;
use plait_base::units::VARINT_MAX;
use plait_stream::CryptoStream;
use plait_wire::{Frame, FrameWriter, Frames, SentFrame};

use crate::ArbitraryInput;

/// The input: which of the two games, then its moves.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    match input.flag() {
        false => hostile(&mut input),
        true => exchange(&mut input),
    }
}

/// The byte at an offset.
fn at(offset: u64) -> u8 {
    (offset as u8).wrapping_mul(31) ^ (offset >> 8) as u8
}

fn piece(offset: u64, len: usize) -> Bytes {
    (0..len as u64).map(|i| at(offset.wrapping_add(i))).collect()
}

/// A peer that sends any pieces: what is read is right, in order, and bounded.
fn hostile(input: &mut ArbitraryInput<'_>) {
    let mut stream = CryptoStream::new(Space::Handshake);
    let mut read = 0;
    while !input.is_over() {
        let offset = match input.byte() % 4 {
            0 => read + u64::from(input.byte()),
            1 => u64::from(input.u16()),
            2 => read + MAX_CRYPTO_BUFFER_BYTES - u64::from(input.byte()),
            _ => input.number() & VARINT_MAX,
        };
        let len = usize::from(input.byte()) * if input.flag() { 9 } else { 1 };
        let end = offset + len as u64;
        let told = stream.on_crypto(offset, piece(offset, len));
        // RFC 9000 7.5: what is beyond the bound is refused.
        assert!(told.is_err() || end <= read + MAX_CRYPTO_BUFFER_BYTES);
        if told.is_err() {
            return;
        }
        while input.byte() & 3 == 0 {
            let Some(bytes) = stream.read() else { break };
            assert!(!bytes.is_empty() && bytes == piece(read, bytes.len()));
            read += bytes.len() as u64;
            assert_eq!(stream.read_offset(), read);
        }
    }
}

/// Two honest ends over a network that loses, repeats and acknowledges late.
fn exchange(input: &mut ArbitraryInput<'_>) {
    let (mut sender, mut receiver) = (CryptoStream::new(Space::Initial), CryptoStream::new(Space::Initial));
    let (mut written, mut read) = (0u64, 0u64);
    let mut flying: Vec<(SentFrame, Bytes)> = Vec::new();
    for _ in 0..input.remaining() {
        match input.byte() % 8 {
            0 | 1 => {
                let len = usize::from(input.byte()) * 4;
                sender.write(&piece(written, len));
                written += len as u64;
            }
            2..=4 => send(&mut sender, &mut flying, usize::from(input.byte()) * 6),
            5 if !flying.is_empty() => {
                let (carried, _) = flying.swap_remove(input.below(flying.len()));
                sender.on_lost(&carried);
            }
            6 if !flying.is_empty() => arrive(&mut sender, &mut receiver, &mut flying, input.below(256)),
            7 => sender.resend_unacked(),
            _ => {}
        }
        drain(&mut receiver, &mut read);
    }
    // Nothing is lost any more: all must arrive in a bounded number of rounds.
    for _ in 0..10_000 {
        for (carried, _) in std::mem::take(&mut flying) {
            sender.on_lost(&carried);
        }
        if !sender.has_unacked() && !sender.wants_send() {
            break;
        }
        send(&mut sender, &mut flying, 1_200);
        while !flying.is_empty() {
            arrive(&mut sender, &mut receiver, &mut flying, 0);
        }
        drain(&mut receiver, &mut read);
    }
    assert_eq!(read, written);
    assert!(!sender.has_unacked() && sender.unsent_bytes() == 0 && !receiver.has_unread());
}

fn send(sender: &mut CryptoStream, flying: &mut Vec<(SentFrame, Bytes)>, room: usize) {
    let (mut buf, mut carried) = (Vec::new(), Vec::new());
    sender.fill(&mut FrameWriter::new(&mut buf, room, &mut carried));
    assert!(buf.len() <= room);
    if buf.is_empty() {
        return;
    }
    let frames: Vec<_> = Frames::new(&buf).map(|frame| frame.expect("we write frames")).collect();
    assert_eq!(frames.len(), carried.len());
    for (frame, carried) in frames.iter().zip(carried) {
        let Frame::Crypto(crypto) = frame else { panic!("not a CRYPTO frame") };
        assert!(!crypto.data.is_empty());
        flying.push((carried, piece(crypto.offset, crypto.data.len())));
        assert_eq!(crypto.data, &flying[flying.len() - 1].1[..], "the right bytes");
    }
}

fn arrive(sender: &mut CryptoStream, receiver: &mut CryptoStream, flying: &mut Vec<(SentFrame, Bytes)>, pick: usize) {
    let (carried, bytes) = flying.swap_remove(pick % flying.len());
    let SentFrame::Crypto { offset, .. } = carried else { panic!("not a CRYPTO frame") };
    if receiver.on_crypto(offset, bytes).is_ok() {
        sender.on_acked(&carried);
    } else {
        sender.on_lost(&carried);
    }
}

fn drain(receiver: &mut CryptoStream, read: &mut u64) {
    while let Some(bytes) = receiver.read() {
        assert!(bytes == piece(*read, bytes.len()));
        *read += bytes.len() as u64;
    }
}

/// Pieces in and out of order, and an exchange with losses.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 0, 0, 20, 0, 0, 0, 0, 30, 10, 0, 1, 0, 0, 10, 0, 0],
        (0..80).flat_map(|i| [1, 0, i * 3, 2, 0, 1]).collect(),
        (0..60).flat_map(|i| [1, 0, 50, 2, 30, 3, 40, 6, i, 5, i, 7]).collect(),
    ]
}
