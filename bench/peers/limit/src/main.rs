//! What a machine allows: UDP with GSO and GRO, AES-128-GCM and header protection of each datagram, one copy in and one out;
//! nothing else. The AEAD is the faster one of aws-lc's and ring's. Losses do not happen: the sender has no more on its way than the receiver said that it has taken.

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use aws_lc_rs::aead::quic::{AES_128, HeaderProtectionKey};
use peer_common::{CHUNK_BYTES, ClientTask, Load, Measured, Role, WINDOW_BYTES, announce};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::SockRef;

const HEADER_BYTES: usize = 13;
const TAG_BYTES: usize = 16;
/// What of a datagram is no payload.
const OVERHEAD_BYTES: usize = HEADER_BYTES + TAG_BYTES;
/// Where the sample of header protection lies behind the header (RFC 9001 5.4.2), with packet numbers of four bytes.
const SAMPLE_BYTES: usize = 16;
const SOCKET_BUFFER_BYTES: usize = 2 * WINDOW_BYTES as usize;
/// The receiver tells how far it is so often.
const CREDIT_BYTES: u64 = WINDOW_BYTES as u64 / 4;

/// AES-128-GCM of one library or the other.
enum Aead {
    AwsLc(aws_lc_rs::aead::LessSafeKey),
    Ring(ring::aead::LessSafeKey),
}

impl Aead {
    /// The faster one on this processor.
    fn new() -> Self {
        let (ours, theirs) = (Self::aws_lc(), Self::ring());
        let mut body = vec![0; datagram_bytes() - OVERHEAD_BYTES];
        let mut seconds = |aead: &Self| {
            let begin = Instant::now();
            for number in 0..2_000 {
                aead.seal(nonce(number), &[0; HEADER_BYTES], &mut body);
            }
            begin.elapsed()
        };
        let least = |aead: &Self, seconds: &mut dyn FnMut(&Self) -> Duration| (0..5).map(|_| seconds(aead)).min();
        if least(&theirs, &mut seconds) < least(&ours, &mut seconds) { theirs } else { ours }
    }

    fn aws_lc() -> Self {
        use aws_lc_rs::aead::{AES_128_GCM, LessSafeKey, UnboundKey};
        Self::AwsLc(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[1; 16]).expect("a key")))
    }

    fn ring() -> Self {
        use ring::aead::{AES_128_GCM, LessSafeKey, UnboundKey};
        Self::Ring(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[1; 16]).expect("a key")))
    }

    /// Seals in place; the tag.
    fn seal(&self, nonce: [u8; 12], header: &[u8], body: &mut [u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        match self {
            Self::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(header), body).expect("a seal");
                tag.copy_from_slice(sealed.as_ref());
            }
            Self::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(header), body).expect("a seal");
                tag.copy_from_slice(sealed.as_ref());
            }
        }
        tag
    }

    /// Opens in place; the plaintext.
    fn open<'a>(&self, nonce: [u8; 12], header: &[u8], body: &'a mut [u8]) -> &'a [u8] {
        match self {
            Self::AwsLc(key) => {
                use aws_lc_rs::aead::{Aad, Nonce};
                key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(header), body)
                    .expect("a true datagram")
            }
            Self::Ring(key) => {
                use ring::aead::{Aad, Nonce};
                key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(header), body)
                    .expect("a true datagram")
            }
        }
    }
}

/// UDP payload of a datagram.
fn datagram_bytes() -> usize {
    peer_common::datagram_bytes().into()
}

fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [3; 12];
    for (byte, with) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= with;
    }
    nonce
}

/// The same on both sides: there is no handshake.
struct Keys {
    aead: Aead,
    header: HeaderProtectionKey,
}

impl Keys {
    fn new() -> Self {
        Self { aead: Aead::new(), header: HeaderProtectionKey::new(&AES_128, &[2; 16]).expect("a key") }
    }

    fn mask(&self, datagram: &mut [u8]) {
        let sample = &datagram[HEADER_BYTES..HEADER_BYTES + SAMPLE_BYTES];
        let mask = self.header.new_mask(sample).expect("a sample");
        datagram[0] ^= mask[0] & 0x1f;
        for (byte, with) in datagram[HEADER_BYTES - 4..HEADER_BYTES].iter_mut().zip(&mask[1..]) {
            *byte ^= with;
        }
    }

    fn seal(&self, number: u64, payload: &[u8], datagram: &mut [u8]) {
        let (header, rest) = datagram.split_at_mut(HEADER_BYTES);
        header[0] = 0x43;
        header[HEADER_BYTES - 4..].copy_from_slice(&(number as u32).to_be_bytes());
        let (body, tag) = rest.split_at_mut(payload.len());
        body.copy_from_slice(payload);
        tag.copy_from_slice(&self.aead.seal(nonce(number), header, body));
        self.mask(datagram);
    }

    /// Opens it in place and copies what was in it.
    fn open(&self, number: u64, datagram: &mut [u8], into: &mut [u8]) -> usize {
        self.mask(datagram);
        let (header, body) = datagram.split_at_mut(HEADER_BYTES);
        let opened = self.aead.open(nonce(number), header, body);
        into[..opened.len()].copy_from_slice(opened);
        opened.len()
    }
}

fn socket() -> (UdpSocket, UdpSocketState) {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
    let state = UdpSocketState::new((&socket).into()).expect("a socket");
    let reference = SockRef::from(&socket);
    // As much as the system allows.
    let _ = reference.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = reference.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.set_nonblocking(false).expect("a socket that waits");
    (socket, state)
}

fn main() {
    match Role::from_args() {
        Role::Server(_) => send(),
        Role::Client(task) => receive(&task),
    }
}

/// Sends what the first datagram asks for.
fn send() {
    let (socket, state) = socket();
    announce(socket.local_addr().expect("an address"));
    let mut word = [0; 8];
    let (_, peer) = socket.recv_from(&mut word).expect("a request");
    let bytes = u64::from_be_bytes(word);
    let (keys, payload) = (Keys::new(), vec![7; CHUNK_BYTES]);
    let datagram_bytes = datagram_bytes();
    let payload_bytes = datagram_bytes - OVERHEAD_BYTES;
    let segments = state.max_gso_segments().min(65_507 / datagram_bytes).max(1);
    let mut train = vec![0; segments * datagram_bytes];
    let (mut sent, mut taken, mut number) = (0, 0, 0);
    let window =
        SockRef::from(&socket).recv_buffer_size().map_or(CREDIT_BYTES, |size| size as u64 / 4).min(CREDIT_BYTES * 4);
    while sent < bytes {
        while sent - taken + (segments * payload_bytes) as u64 > window && taken < sent {
            socket.recv_from(&mut word).expect("credit");
            taken = u64::from_be_bytes(word);
        }
        let mut len = 0;
        for datagram in train.chunks_mut(datagram_bytes) {
            let part = payload_bytes.min((bytes - sent) as usize);
            if part == 0 {
                break;
            }
            let datagram = &mut datagram[..HEADER_BYTES + part.max(SAMPLE_BYTES) + TAG_BYTES];
            keys.seal(number, &payload[..part.max(SAMPLE_BYTES)], datagram);
            (len, number, sent) = (len + datagram.len(), number + 1, sent + part as u64);
        }
        transmit(&socket, &state, peer, &train[..len]);
    }
    loop {
        std::thread::park();
    }
}

fn transmit(socket: &UdpSocket, state: &UdpSocketState, destination: SocketAddr, contents: &[u8]) {
    let segment_size = Some(datagram_bytes()).filter(|bytes| contents.len() > *bytes);
    let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
    while state.try_send(socket.into(), &transmit).is_err() {
        std::thread::yield_now();
    }
}

fn receive(task: &ClientTask) {
    let Load::Bytes { bytes, .. } = task.load else { panic!("it moves bytes and nothing else") };
    let (socket, state) = socket();
    let measured = Measured::start();
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    socket.send_to(&bytes.to_be_bytes(), task.server).expect("a request");
    let keys = Keys::new();
    let datagram_bytes = datagram_bytes();
    let payload_bytes = datagram_bytes - OVERHEAD_BYTES;
    let mut buffer = vec![0_u8; 65_536];
    let mut meta = [RecvMeta::default()];
    let mut into = vec![0; CHUNK_BYTES];
    let (mut number, mut got, mut told) = (0, 0_u64, 0);
    while got < bytes {
        // One train a call: a socket that waits would wait until all of several are there.
        let mut slices = [IoSliceMut::new(&mut buffer)];
        state.recv((&socket).into(), &mut slices, &mut meta).expect("nothing was lost");
        for datagram in buffer[..meta[0].len].chunks_mut(meta[0].stride.max(1)) {
            let place = (number as usize * payload_bytes) % (CHUNK_BYTES - datagram_bytes);
            got += keys.open(number, datagram, &mut into[place..]) as u64;
            number += 1;
        }
        if got - told >= CREDIT_BYTES / 4 {
            socket.send_to(&got.to_be_bytes(), task.server).expect("credit");
            told = got;
        }
    }
    measured.finish(Vec::new());
}
