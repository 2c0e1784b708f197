//! A client's attempts at a handshake: those that end early, paths that want to begin before the server has read all of it.

use std::sync::{Arc, Mutex};

use plait_base::observe::{Observer, PathState, TraceEvent};
use plait_base::{ConnectionId, Dir, FourTuple, Instant, PathId, ResetToken, Space};
use plait_crypto::tls::rustls::client::danger::HandshakeSignatureValid;
use plait_crypto::tls::rustls::pki_types::{CertificateDer, UnixTime};
use plait_crypto::tls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use plait_crypto::tls::rustls::{self, DigitallySignedStruct, DistinguishedName, SignatureScheme};
use plait_crypto::tls::{Hello, Identity, read_client_hello, read_encrypted_extensions};
use plait_crypto::{ClientTlsConfig, ServerTlsConfig};
use plait_engine::connection::{ConnectionError, Event, Unreachable};
use plait_path::PathStatus;
use plait_wire::frame::{AckForm, CidForm};
use plait_wire::header::PacketKind;
use plait_wire::params::{PreferredAddress, UnconfirmedPaths};
use plait_wire::{Encode, Frame};

use crate::puppet::{PUPPET, Packet, Rig, Seen, Setup, Tls, addr, identity, ms, tuple};

/// Gives the transport parameters in `message` the code point that drafts of RFC 9001 used.
fn as_in_drafts(message: &mut [u8], read: fn(&[u8], usize) -> Hello<'_>) {
    let Hello::Params(params) = read(message, 1 << 14) else { panic!("no parameters in {message:?}") };
    let begin = params.as_ptr() as usize - message.as_ptr() as usize;
    message[begin - 4..begin - 2].copy_from_slice(&[0xff, 0xa5]);
}

/// A client that declares its parameters under the code point of the drafts alone.
pub fn server_hears_a_draft() -> Rig {
    let mut rig = Rig::server(Setup::default());
    as_in_drafts(rig.peer.crypto_out.get_mut(&Space::Initial).unwrap(), read_client_hello);
    rig.say_handshake();
    rig
}

/// A server that does.
pub fn client_hears_a_draft() -> Rig {
    let mut rig = Rig::client(Setup::default());
    as_in_drafts(rig.peer.crypto_out.get_mut(&Space::Handshake).unwrap(), read_encrypted_extensions);
    rig.say_handshake();
    rig
}

fn lost(rig: &Rig) -> Option<ConnectionError> {
    rig.events.iter().find_map(|event| match event {
        Event::ConnectionLost(error) => Some(error.clone()),
        _ => None,
    })
}

#[test]
fn the_network_is_believed_until_the_server_is_heard() {
    let mut rig = Rig::client(Setup::default());
    let now = rig.now;
    rig.conn().on_unreachable(now, Unreachable::Port);
    rig.pump();
    assert_eq!(lost(&rig), Some(ConnectionError::Unreachable(Unreachable::Port)));
    assert!(rig.conn().is_drained());
    let mut rig = Rig::client(Setup::default());
    rig.send(Packet::new(PacketKind::Initial, vec![1]).padded(1200));
    let now = rig.now;
    rig.conn().on_unreachable(now, Unreachable::Port);
    rig.pump();
    assert!(rig.is_open());
}

/// A client whose handshake is complete and not yet confirmed, which opens a path; the path's addresses.
fn opens_unconfirmed(unconfirmed_paths: UnconfirmedPaths) -> (Rig, FourTuple) {
    let mut setup = Setup::default();
    setup.habits.params.unconfirmed_paths = unconfirmed_paths;
    opens_unconfirmed_by(setup, PUPPET)
}

/// The same with a path to `remote`.
fn opens_unconfirmed_by(setup: Setup, remote: &str) -> (Rig, FourTuple) {
    opens_unconfirmed_after(setup, remote, |_| {})
}

fn opens_unconfirmed_after(setup: Setup, remote: &str, before: impl FnOnce(&mut Rig)) -> (Rig, FourTuple) {
    let mut rig = Rig::client(setup);
    while rig.conn().is_handshaking() {
        rig.pass(ms(5));
        assert!(rig.say_handshake());
    }
    assert!(!rig.conn().is_handshaking() && rig.conn().is_multipath());
    let mut ids = Vec::new();
    for path in 1..4 {
        rig.peer.new_cid(CidForm::Path, path, 0).encode(&mut ids);
    }
    rig.frames(ids);
    before(&mut rig);
    let tuple = FourTuple { local: addr("10.0.0.7:4000"), remote: addr(remote) };
    let now = rig.now;
    rig.conn().open_path(now, tuple, PathStatus::Available).unwrap();
    rig.pass(ms(1));
    (rig, tuple)
}

fn left_by(rig: &Rig, tuple: FourTuple) -> usize {
    rig.wire.iter().filter(|(by, ..)| *by == tuple).count()
}

#[test]
fn paths_wait_until_the_server_has_read_the_finished() {
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Unknown);
    assert_eq!(left_by(&rig, tuple), 0);
    rig.frames([0x1e]);
    assert_eq!(left_by(&rig, tuple), 2, "HANDSHAKE_DONE lets a challenge go, and a packet that tells of its loss");
    let now = rig.now;
    let state = rig.conn().path_statistics(now, PathId(1)).map(|path| path.state);
    assert_eq!(state, Some(PathState::Validating));
}

#[test]
fn paths_begin_at_once_where_the_server_bears_it() {
    let (rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    assert_eq!(left_by(&rig, tuple), 2);
}

/// Packets that left between these addresses: their kind, and whether the end of the handshake is in them.
fn kinds(rig: &Rig, tuple: FourTuple) -> Vec<(PacketKind, bool)> {
    let there = rig.seen.iter().filter(|seen| seen.tuple == tuple);
    there.map(|seen| (seen.kind, seen.has(|f| matches!(f, Frame::Crypto(_))))).collect()
}

#[test]
fn the_end_of_the_handshake_goes_by_a_path_that_opens_once_path_0_is_silent() {
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    rig.pass(ms(500));
    let (copy, alone) = ((PacketKind::Handshake, true), (PacketKind::OneRtt, false));
    let packets = kinds(&rig, tuple);
    assert_eq!(packets[..2], [alone, alone], "path 0 is not silent yet");
    let (pairs, rest) = packets[2..].as_chunks::<2>();
    assert!(pairs.len() >= 2 && pairs.iter().all(|pair| *pair == [copy, alone]) && rest.is_empty(), "{packets:?}");
    // RFC 9000 12.2
    let there: Vec<_> = rig.seen.iter().filter(|seen| seen.tuple == tuple).collect();
    assert!(there[2..].iter().all(|seen| seen.dcid == there[0].dcid));
    rig.frames([0x1e]);
    rig.seen.clear();
    rig.pass(ms(2_500));
    let later = kinds(&rig, tuple);
    assert!(!later.is_empty() && later.iter().all(|kind| *kind == alone), "the server has it: {later:?}");
}

/// Copies of the end of the handshake that left between these addresses, and the bytes of their datagrams.
fn copies(rig: &Rig, tuple: FourTuple) -> (usize, usize) {
    let there = rig.seen.iter().filter(|seen| seen.tuple == tuple && seen.kind == PacketKind::Handshake);
    there.fold((0, 0), |(count, bytes), seen| (count + 1, bytes + seen.datagram))
}

#[test]
fn data_that_is_doubled_on_a_path_that_opens_does_not_take_the_handshake_along_each_time() {
    let mut setup = Setup::default();
    setup.habits.params.unconfirmed_paths = UnconfirmedPaths::Welcome;
    let write = |rig: &mut Rig| {
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[7; 8_000]).unwrap();
        // Path 0 is silent by then.
        rig.pass(ms(300));
    };
    let (rig, tuple) = opens_unconfirmed_after(setup, PUPPET, write);
    let packets = kinds(&rig, tuple);
    let (count, _) = copies(&rig, tuple);
    assert!(packets.len() > 8 && (1..=2).contains(&count), "{packets:?}");
}

#[test]
fn a_path_full_of_copies_still_takes_the_end_of_the_handshake() {
    for written in [8_000, 9_000, 10_000, 10_500, 11_000, 11_500, 12_000, 12_500, 13_000, 14_000, 16_000] {
        let mut setup = Setup::default();
        setup.habits.params.unconfirmed_paths = UnconfirmedPaths::Welcome;
        let write = |rig: &mut Rig| {
            let id = rig.conn().streams().open(Dir::Uni).unwrap();
            rig.conn().send_stream(id).write(&vec![7; written]).unwrap();
            rig.pass(ms(1));
        };
        let (mut rig, tuple) = opens_unconfirmed_after(setup, PUPPET, write);
        let early = kinds(&rig, tuple).len();
        rig.pass(ms(1_000));
        let (count, _) = copies(&rig, tuple);
        assert!(count >= 1, "{written} bytes, {early} packets at once: {:?}", kinds(&rig, tuple));
    }
}

#[test]
fn a_number_of_the_handshake_is_used_once() {
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    for round in 0..40 {
        rig.conn().send_stream(id).write(&[7; 500]).unwrap();
        rig.pass(ms(100));
        if round % 7 == 3 {
            // Acks of a part of what was said.
            let largest = rig.peer.received[&(Space::Handshake, PathId::ZERO)].max().unwrap();
            rig.send(Packet::new(PacketKind::Handshake, encoded_ack(largest)));
        }
    }
    assert!(rig.is_open() && copies(&rig, tuple).0 > 0);
    let mut numbers: Vec<u64> =
        rig.seen.iter().filter(|seen| seen.kind == PacketKind::Handshake).map(|seen| seen.number).collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    assert!(numbers.last().unwrap() - numbers[0] < 2 * count as u64, "hardly any is left out: {numbers:?}");
}

/// An ACK frame of one number.
fn encoded_ack(number: u64) -> Vec<u8> {
    assert!(number < 64);
    vec![0x02, number as u8, 0, 0, 0]
}

#[test]
fn the_end_of_the_handshake_does_not_go_where_the_server_names_somebody() {
    let stranger = "203.0.113.5:443";
    let mut setup = Setup::default();
    setup.habits.params.unconfirmed_paths = UnconfirmedPaths::Welcome;
    let std::net::SocketAddr::V4(v4) = addr(stranger) else { panic!() };
    let (cid, token) = (ConnectionId::new(&[5; 8]).unwrap(), ResetToken([6; 16]));
    setup.habits.params.preferred_address = Some(PreferredAddress { v4: Some(v4), v6: None, cid, token });
    let (mut rig, tuple) = opens_unconfirmed_by(setup, stranger);
    rig.pass(ms(2_500));
    let there: Vec<_> = rig.seen.iter().filter(|seen| seen.tuple == tuple).collect();
    assert!(!there.is_empty());
    for seen in there {
        // RFC 9000 9.1, 21.5.3
        assert_eq!(seen.kind, PacketKind::OneRtt);
        assert!(seen.has(|f| matches!(f, Frame::PathChallenge(_))), "{:?}", seen.frames());
    }
}

#[test]
fn a_datagram_with_a_packet_of_the_handshake_on_it_has_no_mark() {
    // Path 0 would have to answer for marks that it did not put there.
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    rig.pass(ms(500));
    let with_copy = |datagram: &[u8]| datagram[0] & 0x80 != 0;
    let marked = rig.wire.iter().filter(|(by, ecn, datagram)| *by == tuple && with_copy(datagram) && ecn.is_some());
    assert_eq!(marked.count(), 0);
}

#[test]
fn a_server_that_never_confirms_draws_few_packets() {
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    rig.pass(ms(20_000));
    let there = rig.wire.iter().filter(|(by, ..)| *by == tuple).count();
    let all = rig.wire.len();
    assert!(there < 40 && all < 100, "{there} of {all}: {:?}", kinds(&rig, tuple));
}

#[test]
fn the_end_of_the_handshake_stays_on_path_0_where_the_server_is_not_known_to_bear_others() {
    let (mut rig, tuple) = opens_unconfirmed(UnconfirmedPaths::Unknown);
    rig.pass(ms(2_000));
    assert_eq!(kinds(&rig, tuple), []);
}

#[test]
fn an_opened_path_doubles_what_is_under_way_and_carries_nothing_else() {
    let mut rig = Rig::established_client(Setup::default());
    rig.ack_all();
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 5_000]).unwrap();
    rig.pass(ms(1));
    let (from, tuple) = (rig.seen.len(), FourTuple { local: addr("10.0.0.7:4000"), ..rig.tuple });
    let now = rig.now;
    rig.conn().open_path(now, tuple, PathStatus::Available).unwrap();
    rig.pass(ms(1));
    let there: Vec<_> = rig.seen[from..].iter().filter(|s| s.tuple == tuple).collect();
    assert!(there[0].has(|f| matches!(f, Frame::PathChallenge(_))) && there[0].datagram >= 1200);
    assert!(there[0].has(|f| matches!(f, Frame::Stream(_))), "the challenge takes data along");
    let bytes = |f: &Frame<'_>| if let Frame::Stream(s) = f { s.data.len() } else { 0 };
    assert_eq!(there.iter().flat_map(|s| s.frames()).map(|f| bytes(&f)).sum::<usize>(), 5_000);
    assert!(rig.seen[from..].iter().all(|s| s.tuple == tuple), "what is doubled does not come back");
    rig.conn().send_stream(id).write(&[8; 5_000]).unwrap();
    let from = rig.seen.len();
    rig.pass(ms(1));
    let new = |s: &&Seen| s.frames().iter().any(|f| matches!(f, Frame::Stream(s) if s.offset >= 5_000));
    assert!(rig.seen[from..].iter().any(|s| s.tuple == rig.tuple && new(&s)), "new data takes the path that works");
}

/// Paths of which probe time-outs passed.
#[derive(Clone, Debug, Default)]
struct TimeOuts(Arc<Mutex<Vec<PathId>>>);

impl Observer for TimeOuts {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        if let TraceEvent::ProbeTimeout { path, .. } = event {
            self.0.lock().unwrap().push(*path);
        }
    }
}

#[test]
fn no_path_has_a_probe_timer_before_the_handshake_is_confirmed() {
    // RFC 9002 6.2.1-3
    let (mut rig, _) = opens_unconfirmed(UnconfirmedPaths::Welcome);
    let seen = TimeOuts::default();
    rig.conn().observe_with(Box::new(seen.clone()));
    let passed = || std::mem::take(&mut *seen.0.lock().unwrap());
    rig.pass(ms(1_200));
    assert!(!passed().contains(&PathId(1)));
    rig.frames([0x1e]);
    rig.pass(ms(2500));
    assert!(passed().contains(&PathId(1)), "HANDSHAKE_DONE sets it");
}

/// A server that has said all it has to say, and hears the end of the handshake last; what is in that.
fn awaits_the_finished(setup: Setup) -> (Rig, Vec<u8>) {
    let mut rig = Rig::server(setup);
    for hello in rig.peer.crypto_frames(Space::Initial, 0, 1000) {
        rig.send(Packet::new(PacketKind::Initial, hello));
    }
    for _ in 0..4 {
        rig.pass(ms(5));
        let acks = rig.peer.ack(Space::Initial, 0, AckForm::Plain).unwrap();
        rig.send(Packet::new(PacketKind::Initial, acks));
    }
    let finished = rig.peer.crypto_frames(Space::Handshake, 0, 1000).concat();
    assert!(!finished.is_empty() && rig.conn().is_handshaking());
    (rig, finished)
}

const ELSEWHERE: &str = "192.0.2.9:5000";

fn sent_to(rig: &Rig, remote: &str) -> u64 {
    rig.ledger.get(&addr(remote)).map_or(0, |ledger| ledger.from_engine)
}

#[test]
fn a_server_reads_the_end_of_the_handshake_by_another_path_once() {
    let (mut rig, finished) = awaits_the_finished(Setup::default());
    let id = rig.peer.engine_cid(PathId(1)).expect("ids come before the end of the handshake");
    let mut ids = Vec::new();
    rig.peer.new_cid(CidForm::Path, 1, 0).encode(&mut ids);
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::new(PacketKind::Handshake, finished).to(id), &mut datagram);
    let challenge = [vec![0x1a, 1, 2, 3, 4, 5, 6, 7, 8], ids].concat();
    rig.peer.seal(&Packet::one_rtt(challenge).on(1).to(id).padded(1000), &mut datagram);
    let path_0 = rig.tuple;
    rig.deliver_from(tuple(ELSEWHERE), &datagram);
    assert!(rig.is_open() && !rig.conn().is_handshaking());
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId::ZERO).unwrap().tuple, path_0);
    assert_eq!(rig.conn().path_statistics(now, PathId(1)).unwrap().tuple, tuple(ELSEWHERE));
    assert!(sent_to(&rig, ELSEWHERE) > 0);
    rig.assert_amplification(ELSEWHERE);
    // Somebody on the way says it again, from there and from elsewhere.
    let before = sent_to(&rig, ELSEWHERE);
    rig.deliver_from(tuple("192.0.2.10:5000"), &datagram);
    rig.deliver_from(tuple(ELSEWHERE), &datagram);
    rig.deliver_from(path_0, &datagram);
    assert_eq!((sent_to(&rig, "192.0.2.10:5000"), sent_to(&rig, ELSEWHERE)), (0, before));
    rig.pass(ms(3_000));
    assert_eq!(sent_to(&rig, "192.0.2.10:5000"), 0);
    rig.assert_amplification(ELSEWHERE);
    assert!(rig.is_open());
}

#[test]
fn packets_of_the_handshake_by_another_path_prove_no_address_but_that_of_path_0() {
    // RFC 9000 8.1: whoever has the keys read what was sent to the address of path 0.
    let (mut rig, finished) = awaits_the_finished(Setup::default());
    let id = rig.peer.engine_cid(PathId(1)).unwrap();
    for _ in 0..50 {
        rig.send_all(tuple(ELSEWHERE), &[Packet::new(PacketKind::Handshake, [0x01]).to(id)]);
        rig.pass(ms(100));
    }
    assert!(rig.is_open() && rig.conn().is_handshaking());
    assert_eq!(sent_to(&rig, ELSEWHERE), 0);
    let now = rig.now;
    assert!(rig.conn().path_statistics(now, PathId(1)).is_none());
    rig.send_all(tuple(ELSEWHERE), &[Packet::new(PacketKind::Handshake, finished).to(id)]);
    assert!(rig.is_open() && !rig.conn().is_handshaking());
    rig.pass(ms(3_000));
    assert_eq!(sent_to(&rig, ELSEWHERE), 0, "the path was not opened there");
}

#[test]
fn packets_of_the_handshake_from_elsewhere_are_not_read_with_an_id_of_path_0() {
    for setup in [Setup::default(), Setup::single_path()] {
        let (mut rig, finished) = awaits_the_finished(setup);
        rig.send_all(tuple(ELSEWHERE), &[Packet::new(PacketKind::Handshake, finished)]);
        rig.pass(ms(50));
        assert!(rig.is_open() && rig.conn().is_handshaking());
        assert_eq!(sent_to(&rig, ELSEWHERE), 0);
    }
}

#[test]
fn an_end_of_the_handshake_that_is_wrong_ends_the_connection_by_another_path_too() {
    let (mut rig, mut finished) = awaits_the_finished(Setup::default());
    let id = rig.peer.engine_cid(PathId(1)).unwrap();
    *finished.last_mut().unwrap() ^= 1;
    rig.send_all(tuple(ELSEWHERE), &[Packet::new(PacketKind::Handshake, finished).to(id)]);
    rig.pass(ms(3_000));
    assert!(!rig.is_open());
    assert_eq!(sent_to(&rig, ELSEWHERE), 0);
}

/// Lets every client certificate in.
#[derive(Debug)]
struct AnyCertificate;

impl ClientCertVerifier for AnyCertificate {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}

/// A client that opens a path while path 0 is silent, with a certificate of its own that has a name of so many bytes.
fn with_certificate(name_bytes: usize) -> (Rig, FourTuple) {
    let label = |bytes: usize| "x".repeat(bytes);
    let name: Vec<String> = (0..name_bytes / 50).map(|_| label(49)).chain([label(name_bytes % 50 + 1)]).collect();
    let made = rcgen::generate_simple_self_signed([name.join(".")]).unwrap();
    let (chain, key) = (made.cert.pem().repeat(2), made.signing_key.serialize_pem());
    let own = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let client = ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]).no_resumption().identity(own);
    let server = ServerTlsConfig::builder(identity()).alpn(["plait"]).client_verifier(Arc::new(AnyCertificate));
    let mut setup = Setup {
        engine_tls: Some(Tls::Client(client.build().unwrap())),
        peer_tls: Some(Tls::Server(server.build().unwrap())),
        ..Setup::default()
    };
    setup.habits.params.unconfirmed_paths = UnconfirmedPaths::Welcome;
    opens_unconfirmed_after(setup, PUPPET, |rig| rig.pass(ms(300)))
}

#[test]
fn a_challenge_behind_the_end_of_the_handshake_brings_the_ids_for_its_answer() {
    // RFC 10069 3.1: those that left on path 0 may be lost like the rest.
    let (mut with_copy, mut without) = (0, 0);
    for name_bytes in (0..200).step_by(6) {
        let (mut rig, tuple) = with_certificate(name_bytes);
        rig.pass(ms(1_500));
        assert!(rig.is_open());
        match copies(&rig, tuple).0 {
            0 => without += 1,
            _ => with_copy += 1,
        }
        for seen in rig.seen.iter().filter(|seen| seen.tuple == tuple) {
            assert!(seen.datagram <= 1_200);
            if seen.has(|f| matches!(f, Frame::PathChallenge(_))) {
                let has_id = seen.has(|f| matches!(f, Frame::NewCid(new) if new.path == PathId(1)));
                assert!(seen.datagram == 1_200 && has_id, "{name_bytes}: {:?}", seen.frames());
            }
        }
    }
    assert!(with_copy > 3 && without > 3, "{with_copy} certificates fit, {without} do not");
}
