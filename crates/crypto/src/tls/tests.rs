//! Whole handshakes in memory: keys, resumption with 0-RTT, alerts, suites, versions, clocks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plait_base::{CloseCode, PathId, TransportError};
use rustls::RootCertStore;
use rustls::time_provider::TimeProvider;
use rustls_pki_types::{PrivateKeyDer, UnixTime};

use super::*;
use crate::error::{ConfigError, OpenError};
use crate::initial::{V1, V2};
use crate::keys::{EarlyKeys, Layout};
use crate::nonce::NonceForm;
use crate::one_rtt::{OneRttKeys, PhaseMark, SealMark};

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        Identity::new(vec![made.cert.der().clone()], key)
    })
}

fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(identity().chain[0].clone()).unwrap();
    roots
}

fn client_builder() -> ClientTlsBuilder {
    ClientTlsConfig::builder().roots(roots()).alpn(["plait"])
}

fn server_builder() -> ServerTlsBuilder {
    ServerTlsConfig::builder(identity().clone()).alpn(["other", "plait"])
}

/// Both ends of a connection.
pub(crate) struct Ends {
    pub(crate) client: TlsSession,
    pub(crate) server: TlsSession,
    pub(crate) client_keys: Option<Box<OneRttKeys>>,
    pub(crate) server_keys: Option<Box<OneRttKeys>>,
}

impl Ends {
    fn new(client: &ClientTlsConfig, server: &ServerTlsConfig, version: u32) -> Self {
        Self {
            client: TlsSession::new_client(client, version, "localhost", b"client params".to_vec()).unwrap(),
            server: TlsSession::new_server(server, version, b"server params".to_vec()).unwrap(),
            client_keys: None,
            server_keys: None,
        }
    }

    /// Moves handshake bytes until neither side has any more.
    fn drive(&mut self) -> Result<(), TransportError> {
        for _ in 0..8 {
            flow(&mut self.client, &mut self.server, &mut self.client_keys)?;
            flow(&mut self.server, &mut self.client, &mut self.server_keys)?;
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
        Ok(())
    }
}

fn flow(
    from: &mut TlsSession,
    to: &mut TlsSession,
    one_rtt: &mut Option<Box<OneRttKeys>>,
) -> Result<(), TransportError> {
    loop {
        let mut bytes = Vec::new();
        let change = from.write_crypto(&mut bytes);
        if !bytes.is_empty() {
            to.read_crypto(&bytes)?;
        }
        match change {
            None => return Ok(()),
            Some(KeyChange::Handshake(_)) => {}
            Some(KeyChange::OneRtt(keys)) => *one_rtt = Some(keys),
        }
    }
}

/// 1-RTT keys of client and server after a handshake with this cipher.
pub(crate) fn one_rtt_pair(suite: CipherSuite) -> (OneRttKeys, OneRttKeys) {
    let mut ends =
        Ends::new(&client_builder().suites([suite]).build().unwrap(), &server_builder().build().unwrap(), V1);
    ends.drive().unwrap();
    (*ends.client_keys.unwrap(), *ends.server_keys.unwrap())
}

/// Sends one packet with 1-RTT keys.
fn exchange(from: &mut OneRttKeys, to: &mut OneRttKeys) {
    let mut packet = b"\x40\x09hello".to_vec();
    let layout = Layout { start: 0, pn_at: 1, pn_len: 1 };
    from.seal_packet(&mut packet, layout, PathId(2), 9, &mut SealMark::default()).unwrap();
    to.unmask(&mut packet, 1).unwrap();
    let mut mark = PhaseMark::default();
    let opened =
        to.open(&mut packet, 2, PathId(2), 9, &mut mark, plait_base::Instant::ZERO, Duration::from_secs(1)).unwrap();
    assert_eq!(&packet[2..2 + opened.payload_bytes], b"hello");
}

#[test]
fn full_handshake() {
    // RFC 9000 7-1; RFC 9001 4.2-1
    for version in [V1, V2] {
        let mut ends = Ends::new(&client_builder().build().unwrap(), &server_builder().build().unwrap(), version);
        assert!(ends.client.early_keys().is_none() && ends.client.remembered_params().is_none());
        assert!(ends.client.peer_params().is_none() && ends.server.peer_params().is_none());
        assert!(ends.client.export_keying_material(&mut [0; 8], b"x", b"").is_err());
        ends.drive().unwrap();
        let Ends { client, server, client_keys, server_keys } = &mut ends;
        assert_eq!(client.peer_params(), Some(&b"server params"[..]));
        assert_eq!(server.peer_params(), Some(&b"client params"[..]));
        assert_eq!((client.alpn(), server.alpn()), (Some(&b"plait"[..]), Some(&b"plait"[..])));
        assert_eq!((client.server_name(), server.server_name()), (None, Some("localhost")));
        assert_eq!(client.peer_identity().unwrap(), identity().chain);
        assert!(server.peer_identity().is_none() && !client.is_resumed() && !client.early_data_accepted());
        let (mut a, mut b) = ([0; 32], [0; 32]);
        client.export_keying_material(&mut a, b"EXPORTER-x", b"c").unwrap();
        server.export_keying_material(&mut b, b"EXPORTER-x", b"c").unwrap();
        assert_eq!(a, b);
        check_retired(server);
        let (client, server) = (client_keys.as_mut().unwrap(), server_keys.as_mut().unwrap());
        exchange(client, server);
        exchange(server, client);
    }
}

/// A session that gave back its state answers as before, but for messages of its client.
fn check_retired(server: &mut TlsSession) {
    let told = |server: &TlsSession| {
        let identity = server.peer_identity().map(<[_]>::to_vec);
        let words = (server.alpn().map(<[u8]>::to_vec), server.server_name().map(str::to_owned));
        (words, identity, server.cipher_suite(), server.is_resumed(), server.early_data_accepted())
    };
    let export = |server: &TlsSession, len: usize, label: &[u8], context: &[u8]| {
        let mut out = vec![0; len];
        server.export_keying_material(&mut out, label, context).map(|()| out)
    };
    let cases: [(usize, &[u8], &[u8]); 6] = [
        (32, b"EXPORTER-x", b"c"),
        (1, b"", b""),
        (255 * 32, b"EXPORTER-long", &[7; 1_000]),
        (255 * 48 + 1, b"EXPORTER-too-long", b""),
        (70_000, b"x", b""),
        (0, b"x", b""),
    ];
    let before = (told(server), cases.map(|(len, label, context)| export(server, len, label, context)));
    assert!(server.live().is_some());
    server.retire();
    assert!(server.live().is_none() && !server.is_handshaking() && server.peer_params().is_none());
    assert_eq!((told(server), cases.map(|(len, label, context)| export(server, len, label, context))), before);
    assert!(server.write_crypto(&mut Vec::new()).is_none() && server.early_keys().is_none());
    let error = server.read_crypto(&[24, 0, 0, 1, 0]).unwrap_err();
    assert_eq!(error.code, CloseCode::crypto(10), "unexpected_message");
}

#[test]
fn only_a_server_that_is_done_retires() {
    let mut ends = Ends::new(&client_builder().build().unwrap(), &server_builder().build().unwrap(), V1);
    ends.server.retire();
    ends.drive().unwrap();
    ends.client.retire();
    assert!(ends.client.live().is_some() && ends.server.live().is_some());
    ends.server.retire();
    assert!(ends.server.live().is_none());
}

#[test]
fn every_suite_can_be_forced() {
    // RFC 9001 5.3-1, 5.3-2
    for suite in CipherSuite::ALL {
        for by_client in [true, false] {
            let (mut client, mut server) = (client_builder(), server_builder());
            if by_client {
                client = client.suites([suite]);
            } else {
                server = server.suites([suite]);
            }
            let mut ends = Ends::new(&client.build().unwrap(), &server.build().unwrap(), V1);
            ends.drive().unwrap();
            assert_eq!(ends.client.cipher_suite(), Some(suite));
            assert_eq!(ends.server.cipher_suite(), Some(suite), "{}", suite.name());
            exchange(ends.client_keys.as_mut().unwrap(), ends.server_keys.as_mut().unwrap());
        }
    }
}

#[test]
fn early_data_with_remembered_parameters() {
    // RFC 9001 5.6-3, 8.3-1
    for version in [V1, V2] {
        let client = client_builder().build().unwrap();
        let server = server_builder().early_data().build().unwrap();
        Ends::new(&client, &server, version).drive().unwrap();

        let mut ends = Ends::new(&client, &server, version);
        // RFC 9000 7.4.1: limits of the earlier connection hold until the handshake is complete.
        assert_eq!(ends.client.remembered_params(), Some(&b"server params"[..]));
        assert_eq!(ends.client.peer_params(), None);
        let Some(EarlyKeys::Seal(seal)) = ends.client.early_keys() else { panic!("no 0-RTT keys") };
        let mut hello = Vec::new();
        assert!(ends.client.write_crypto(&mut hello).is_none());
        ends.server.read_crypto(&hello).unwrap();
        let Some(EarlyKeys::Open(open)) = ends.server.early_keys() else { panic!("0-RTT refused") };
        let mut packet = b"\xd0\x00early".to_vec();
        seal.seal_packet(&mut packet, Layout { start: 0, pn_at: 1, pn_len: 1 }, PathId::ZERO, 0).unwrap();
        open.unmask(&mut packet, 1).unwrap();
        let range = open.open(&mut packet, 2, PathId::ZERO, 0).unwrap();
        assert_eq!(&packet[range], b"early");
        ends.drive().unwrap();
        assert!(ends.client.early_data_accepted() && ends.server.early_data_accepted());
        assert!(ends.client.is_resumed() && ends.server.is_resumed());
        assert_eq!(ends.client.peer_params(), Some(&b"server params"[..]));
    }
}

#[test]
fn early_data_refused_or_not_offered() {
    // RFC 9001 4.6.2-1, 5.6-1, 9.2-1
    let client = client_builder().sessions(SessionStore::new(8)).build().unwrap();
    let server = server_builder().early_data().build().unwrap();
    Ends::new(&client, &server, V1).drive().unwrap();
    // A server that forgot the session.
    let mut ends = Ends::new(&client, &server_builder().early_data().build().unwrap(), V1);
    assert!(ends.client.early_keys().is_some());
    ends.drive().unwrap();
    assert!(!ends.client.early_data_accepted() && !ends.server.early_data_accepted());
    assert!(!ends.client.is_resumed() && ends.server.early_keys().is_none());
    exchange(ends.client_keys.as_mut().unwrap(), ends.server_keys.as_mut().unwrap());

    // A client may resume without 0-RTT; RFC 9369 4.1: a session stays in its version.
    Ends::new(&client, &server, V1).drive().unwrap();
    assert!(Ends::new(&client, &server, V2).client.early_keys().is_none());
    let cautious = client.clone().with_changes(|config| config.enable_early_data = false);
    let mut ends = Ends::new(&cautious, &server, V1);
    assert!(ends.client.early_keys().is_none() && ends.client.remembered_params().is_none());
    ends.drive().unwrap();
    assert!(ends.client.is_resumed() && !ends.client.early_data_accepted());
    let other = client_builder().no_early_data().build().unwrap();
    Ends::new(&other, &server, V1).drive().unwrap();
    assert!(Ends::new(&other, &server, V1).client.early_keys().is_none());
    let mut ends = Ends::new(&client_builder().no_resumption().build().unwrap(), &server, V1);
    ends.drive().unwrap();
    assert!(!ends.client.is_resumed());
    // Servers without early data or sessions give none.
    for server in [server_builder().build().unwrap(), server_builder().early_data().sessions(0).build().unwrap()] {
        let client = client_builder().build().unwrap();
        Ends::new(&client, &server, V1).drive().unwrap();
        assert!(Ends::new(&client, &server, V1).client.early_keys().is_none());
    }
}

#[test]
fn alerts_become_crypto_errors() {
    // RFC 9001 4.8, 8.1
    let server = server_builder().build().unwrap();
    let stranger = client_builder().alpn(["unknown"]).build().unwrap();
    let error = Ends::new(&stranger, &server, V1).drive().unwrap_err();
    assert_eq!(error.code, CloseCode::crypto(120), "no_application_protocol: {error}");

    let mut other = RootCertStore::empty();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    other.add(made.cert.der().clone()).unwrap();
    let distrustful = client_builder().roots(other).build().unwrap();
    let error = Ends::new(&distrustful, &server, V1).drive().unwrap_err();
    assert!((0x100..0x200).contains(&error.code.0), "{error}");

    let error = Ends::new(&client_builder().build().unwrap(), &server, V1).server.read_crypto(&[7; 40]).unwrap_err();
    assert!((0x100..0x200).contains(&error.code.0), "{error}");
}

#[test]
fn insecure_client_accepts_strangers() {
    // RFC 9001 4.4-1
    let client = ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]).build().unwrap();
    let made = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let server = ServerTlsConfig::builder(Identity::new(vec![made.cert.der().clone()], key)).alpn(["plait"]);
    let mut ends = Ends::new(&client, &server.build().unwrap(), V1);
    ends.drive().unwrap();
    assert_eq!(ends.client.peer_identity().unwrap(), [made.cert.der().clone()]);
}

#[test]
fn client_certificates() {
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots()),
        Arc::new(crate::backend::tls::default_provider()),
    );
    let server = server_builder().client_verifier(verifier.build().unwrap()).build().unwrap();
    assert!(Ends::new(&client_builder().build().unwrap(), &server, V1).drive().is_err());
    let mut ends = Ends::new(&client_builder().identity(identity().clone()).build().unwrap(), &server, V1);
    ends.drive().unwrap();
    assert_eq!(ends.server.peer_identity().unwrap(), identity().chain);
}

#[derive(Debug)]
struct FixedTime(u64);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

#[test]
fn clock_comes_from_the_caller() {
    // rcgen's certificates are valid from 1975 to 4096.
    let server = server_builder().time_provider(Arc::new(FixedTime(1))).build().unwrap();
    let early = client_builder().time_provider(Arc::new(FixedTime(1))).build().unwrap();
    assert!(Ends::new(&early, &server, V1).drive().is_err());
    let later = client_builder().time_provider(Arc::new(FixedTime(1_000_000_000))).build().unwrap();
    Ends::new(&later, &server, V1).drive().unwrap();
}

#[derive(Debug, Default)]
struct Log(std::sync::Mutex<Vec<String>>);

impl rustls::KeyLog for Log {
    fn log(&self, label: &str, _client_random: &[u8], _secret: &[u8]) {
        self.0.lock().unwrap().push(label.to_owned());
    }
}

#[test]
fn secrets_can_be_logged() {
    let log = Arc::new(Log::default());
    let client = client_builder().key_log(log.clone()).build().unwrap();
    Ends::new(&client, &server_builder().key_log_file().build().unwrap(), V1).drive().unwrap();
    let labels = log.0.lock().unwrap();
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0"] {
        assert!(labels.iter().any(|l| l == label), "{label} in {labels:?}");
    }
}

#[test]
fn configurations_are_checked() {
    // RFC 9001 4.6.1-1, 8.1-1
    assert_eq!(ClientTlsConfig::builder().build().unwrap_err(), ConfigError::NoTrust);
    let mut provider = crate::backend::tls::default_provider();
    provider.cipher_suites.clear();
    let empty = client_builder().provider(Arc::new(provider)).build();
    assert_eq!(empty.unwrap_err(), ConfigError::NoSuite);
    let client = client_builder().build().unwrap();
    let version = TlsSession::new_client(&client, 5, "localhost", vec![]).unwrap_err();
    assert_eq!(version, ConfigError::Version(5));
    let name = TlsSession::new_client(&client, V1, "no name", vec![]).unwrap_err();
    assert_eq!(name, ConfigError::ServerName("no name".into()));
    assert!(TlsSession::new_client(&client, V1, "192.0.2.1", vec![]).is_ok());
    assert!(TlsSession::new_client(&client, V1, "2001:db8::1", vec![]).is_ok());

    let limited = |size| {
        let provider = Arc::new(crate::backend::tls::default_provider());
        let who = identity().clone();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(who.chain, who.key)
            .unwrap();
        config.max_early_data_size = size;
        ServerTlsConfig::from_rustls(Arc::new(config))
    };
    assert_eq!(limited(1000).unwrap_err(), ConfigError::EarlyDataLimited);
    assert!(limited(0).is_ok() && limited(u32::MAX).is_ok());
}

#[test]
fn identity_from_pem() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(identity.chain, [made.cert.der().clone()]);
    assert!(ServerTlsConfig::builder(identity).build().is_ok());
    assert!(matches!(Identity::from_pem(b"", key.as_bytes()), Err(ConfigError::Pem(_))));
    assert!(matches!(Identity::from_pem(chain.as_bytes(), b"nothing"), Err(ConfigError::Pem(_))));
}

#[test]
fn null_protection_after_a_real_handshake() {
    let client = client_builder().protection(Protection::NullAfterHandshake).build().unwrap();
    let server = server_builder().build().unwrap().with_protection(Protection::NullAfterHandshake);
    let mut ends = Ends::new(&client, &server, V1);
    ends.drive().unwrap();
    let (client, server) = (ends.client_keys.as_mut().unwrap(), ends.server_keys.as_mut().unwrap());
    exchange(client, server);
    exchange(server, client);
    let mut packet = b"\x40\x09hello".to_vec();
    let layout = Layout { start: 0, pn_at: 1, pn_len: 1 };
    client.seal_packet(&mut packet, layout, PathId(2), 9, &mut SealMark::default()).unwrap();
    assert_eq!(&packet[..7], b"\x40\x09hello", "in the clear");
}

/// A client that begins in `from`, and a server that moves it to `to` as it reads the ClientHello.
fn moving(client: &ClientTlsConfig, server: &ServerTlsConfig, (from, to): (u32, u32)) -> Ends {
    let mut client = TlsSession::new_movable_client(client, from, "localhost", b"client params".to_vec()).unwrap();
    let server = TlsSession::new_moving_server(server, (from, to), b"server params".to_vec()).unwrap();
    assert!(client.move_to(to));
    Ends { client, server, client_keys: None, server_keys: None }
}

/// Handshake packets and 1-RTT packets of two key phases pass both ways.
fn assert_same_keys(ends: &mut Ends) {
    ends.drive().unwrap();
    let (client, server) = (ends.client_keys.as_mut().unwrap(), ends.server_keys.as_mut().unwrap());
    exchange(client, server);
    exchange(server, client);
    for _ in 0..2 {
        client.advance_to(client.phase() + 1, plait_base::Instant::ZERO, Duration::ZERO);
        server.advance_to(server.phase() + 1, plait_base::Instant::ZERO, Duration::ZERO);
        exchange(client, server);
        exchange(server, client);
    }
}

#[test]
fn moved_sessions_have_the_keys_of_their_new_version() {
    // RFC 9369 4.1; each end's keys are checked against those that rustls derives itself in that version.
    for (from, to) in [(V1, V2), (V2, V1)] {
        for suite in CipherSuite::ALL {
            let client = client_builder().suites([suite]).build().unwrap();
            let server = server_builder().build().unwrap();
            assert_same_keys(&mut moving(&client, &server, (from, to)));

            let mut native_server = moving(&client, &server, (from, to));
            native_server.server = TlsSession::new_server(&server, to, vec![]).unwrap();
            assert_same_keys(&mut native_server);

            let mut native_client = moving(&client, &server, (from, to));
            native_client.client = TlsSession::new_client(&client, to, "localhost", vec![]).unwrap();
            assert_same_keys(&mut native_client);
        }
    }
}

#[test]
fn uniflows_have_nonces_of_their_own_form() {
    // Each direction has the form of its sender's maximum, through key updates too.
    let forms = [NonceForm::TopBits { max_id: PathId(2) }, NonceForm::TopBits { max_id: PathId(70) }];
    for suite in CipherSuite::ALL {
        let client = client_builder().suites([suite]).build().unwrap();
        let server = server_builder().build().unwrap();
        let ends = || moving(&client, &server, (V1, V1));
        let mut both = ends();
        assert!(both.client.set_nonces(forms[0], forms[1]) && both.server.set_nonces(forms[1], forms[0]));
        assert_same_keys(&mut both);
        // What is sealed with one form opens with no other.
        for form in [NonceForm::default(), forms[1]] {
            let mut apart = ends();
            assert!(apart.client.set_nonces(forms[0], forms[1]) && apart.server.set_nonces(forms[1], form));
            apart.drive().unwrap();
            let (client, server) = (apart.client_keys.as_mut().unwrap(), apart.server_keys.as_mut().unwrap());
            exchange(server, client);
            let mut packet = b"\x40\x09hello".to_vec();
            let layout = Layout { start: 0, pn_at: 1, pn_len: 1 };
            client.seal_packet(&mut packet, layout, PathId(2), 9, &mut SealMark::default()).unwrap();
            server.unmask(&mut packet, 1).unwrap();
            let (mut mark, now) = (PhaseMark::default(), plait_base::Instant::ZERO);
            let opened = server.open(&mut packet, 2, PathId(2), 9, &mut mark, now, Duration::ZERO);
            assert_eq!(opened, Err(OpenError::Forged), "{suite:?}");
        }
        // Asked for by name, the usual form is the usual form.
        let mut usual = ends();
        assert!(usual.client.set_nonces(NonceForm::default(), NonceForm::default()));
        usual.server = TlsSession::new_server(&server, V1, vec![]).unwrap();
        assert_same_keys(&mut usual);
    }
    let (client, server) = (client_builder().build().unwrap(), server_builder().build().unwrap());
    assert!(!Ends::new(&client, &server, V1).client.set_nonces(forms[0], forms[1]), "its secrets are not told");
}

#[test]
fn movable_sessions_that_stay_are_as_others() {
    let (client, server) = (client_builder().build().unwrap(), server_builder().build().unwrap());
    let mut ends = Ends::new(&client, &server, V1);
    ends.client = TlsSession::new_movable_client(&client, V1, "localhost", vec![]).unwrap();
    assert_same_keys(&mut ends);
    assert!(!ends.server.move_to(V2), "not made for it");
    let mut resumed = Ends::new(&client, &server, V1);
    resumed.drive().unwrap();
    assert!(resumed.client.is_resumed(), "tickets are kept as ever");
}

#[test]
fn handshake_keys_of_a_moved_session_are_its_new_versions() {
    let (client, server) = (client_builder().build().unwrap(), server_builder().build().unwrap());
    let mut ends = moving(&client, &server, (V1, V2));
    ends.server = TlsSession::new_server(&server, V2, vec![]).unwrap();
    let mut hello = Vec::new();
    assert!(ends.client.write_crypto(&mut hello).is_none());
    assert_eq!(read_client_hello(&hello, 1 << 14), Hello::Params(b"client params"));
    ends.server.read_crypto(&hello).unwrap();
    let mut answer = Vec::new();
    let Some(KeyChange::Handshake(theirs)) = ends.server.write_crypto(&mut answer) else { panic!("no keys") };
    ends.client.read_crypto(&answer).unwrap();
    let Some(KeyChange::Handshake(ours)) = ends.client.write_crypto(&mut Vec::new()) else { panic!("no keys") };
    for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
        let mut packet = b"\xd0\x09hello".to_vec();
        from.local.seal_packet(&mut packet, Layout { start: 0, pn_at: 1, pn_len: 1 }, PathId::ZERO, 9).unwrap();
        to.remote.unmask(&mut packet, 1).unwrap();
        let payload = to.remote.open(&mut packet, 2, PathId::ZERO, 9).unwrap();
        assert_eq!(&packet[payload], b"hello");
    }
}

#[test]
fn tickets_belong_to_the_version_that_a_session_ends_in() {
    // RFC 9369 5
    let (client, server) = (client_builder().build().unwrap(), server_builder().early_data().build().unwrap());
    moving(&client, &server, (V1, V2)).drive().unwrap();
    let mut first = Ends::new(&client, &server, V1);
    assert!(first.client.early_keys().is_none(), "none for v1");
    first.drive().unwrap();
    assert!(!first.client.is_resumed());
    let mut second = Ends::new(&client, &server, V2);
    assert!(second.client.early_keys().is_some());
    second.drive().unwrap();
    assert!(second.client.is_resumed() && second.client.early_data_accepted());
}

#[test]
fn early_data_stays_in_the_first_version() {
    // RFC 9369 4.1: a moving server takes the 0-RTT of the version that the client began in
    let (client, server) = (client_builder().build().unwrap(), server_builder().early_data().build().unwrap());
    Ends::new(&client, &server, V1).drive().unwrap();
    let mut ends = moving(&client, &server, (V1, V2));
    let Some(EarlyKeys::Seal(seal)) = ends.client.early_keys() else { panic!("no 0-RTT offered") };
    flow(&mut ends.client, &mut ends.server, &mut None).unwrap();
    let Some(EarlyKeys::Open(open)) = ends.server.early_keys() else { panic!("0-RTT refused") };
    let mut packet = b"\xd0\x09hello".to_vec();
    seal.seal_packet(&mut packet, Layout { start: 0, pn_at: 1, pn_len: 1 }, PathId::ZERO, 9).unwrap();
    open.unmask(&mut packet, 1).unwrap();
    assert!(open.open(&mut packet, 2, PathId::ZERO, 9).is_ok());
    assert_same_keys(&mut ends);
    assert!(ends.client.early_data_accepted() && ends.client.is_resumed());
}

#[test]
fn foreign_ticket_stores_cannot_move() {
    let made = rustls::ClientConfig::builder_with_provider(Arc::new(crate::backend::tls::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots())
        .with_no_client_auth();
    let made = Arc::new(made);
    let config = ClientTlsConfig::from_rustls(made.clone()).unwrap();
    assert!(!config.may_move() && client_builder().no_resumption().build().unwrap().may_move());
    let mut session = TlsSession::new_movable_client(&config, V1, "localhost", vec![]).unwrap();
    assert!(!session.move_to(V2));
    let config = ClientTlsConfig::from_rustls_with(made, SessionStore::default()).unwrap();
    let mut session = TlsSession::new_movable_client(&config, V1, "localhost", vec![]).unwrap();
    assert!(config.may_move() && session.move_to(V2));
}

#[test]
fn secrets_of_moved_sessions_can_be_logged() {
    let log = Arc::new(Log::default());
    let client = client_builder().key_log(log.clone()).build().unwrap();
    moving(&client, &server_builder().build().unwrap(), (V1, V2)).drive().unwrap();
    assert!(log.0.lock().unwrap().iter().any(|label| label == "EXPORTER_SECRET"));
}

#[test]
fn sessions_are_resumed_where_their_promise_holds() {
    // RFC 9000 7.4.1-7
    let server = server_builder().early_data().build().unwrap();
    for (then, now, kept) in [([5, 7], [5, 7], true), ([5, 7], [6, 9], true), ([5, 7], [5, 6], false)] {
        for version in [V1, V2] {
            let client = client_builder().build().unwrap();
            Ends::new(&client, &server.with_early_limits(&then), version).drive().unwrap();
            let mut ends = Ends::new(&client, &server.with_early_limits(&now), version);
            assert!(ends.client.early_keys().is_some());
            ends.drive().unwrap();
            assert_eq!((ends.server.is_resumed(), ends.client.early_data_accepted()), (kept, kept), "{then:?} {now:?}");
        }
    }
    // A session without a note is not resumed with one, and a server without 0-RTT notes nothing.
    let client = client_builder().build().unwrap();
    Ends::new(&client, &server, V1).drive().unwrap();
    let mut ends = Ends::new(&client, &server.with_early_limits(&[1]), V1);
    ends.drive().unwrap();
    assert!(!ends.server.is_resumed());
    let server = server_builder().build().unwrap();
    Ends::new(&client, &server.with_early_limits(&[9]), V1).drive().unwrap();
    let mut ends = Ends::new(&client, &server.with_early_limits(&[1]), V1);
    ends.drive().unwrap();
    assert!(ends.server.is_resumed());
}

#[test]
fn a_client_refuses_a_server_without_a_protocol() {
    // RFC 9001 8.1-3
    let mut config = rustls::ServerConfig::clone(server_builder().build().unwrap().for_version(V1).unwrap());
    config.alpn_protocols.clear();
    let server = ServerTlsConfig::from_rustls(Arc::new(config)).unwrap();
    let error = Ends::new(&client_builder().build().unwrap(), &server, V1).drive().unwrap_err();
    assert_eq!(error.code, CloseCode::crypto(120), "no_application_protocol: {error}");
}

/// A ClientHello, and where its list of extensions begins.
fn client_hello(ends: &mut Ends) -> (Vec<u8>, usize) {
    let mut hello = Vec::new();
    assert!(ends.client.write_crypto(&mut hello).is_none());
    // Type, length, version, random; the session id, the suites and the compression methods have lengths of their own.
    let session_at = 4 + 2 + 32;
    let suites_at = session_at + 1 + usize::from(hello[session_at]);
    let suites = usize::from(u16::from_be_bytes([hello[suites_at], hello[suites_at + 1]]));
    let methods_at = suites_at + 2 + suites;
    let at = methods_at + 1 + usize::from(hello[methods_at]);
    (hello, at + 2)
}

#[test]
fn a_client_hello_asks_for_no_compatibility_mode() {
    // RFC 9001 8.4: an empty legacy_session_id
    let mut ends = Ends::new(&client_builder().build().unwrap(), &server_builder().build().unwrap(), V1);
    let (hello, _) = client_hello(&mut ends);
    assert_eq!((hello[0], hello[4 + 2 + 32]), (1, 0));
}

#[test]
fn a_hello_without_parameters_is_refused() {
    // RFC 9001 8.2-2: missing_extension
    let mut ends = Ends::new(&client_builder().build().unwrap(), &server_builder().build().unwrap(), V1);
    let (mut hello, mut at) = client_hello(&mut ends);
    while u16::from_be_bytes([hello[at], hello[at + 1]]) != 0x39 {
        at += 4 + usize::from(u16::from_be_bytes([hello[at + 2], hello[at + 3]]));
    }
    hello[at..at + 2].copy_from_slice(&[0x7a, 0x7a]);
    let error = ends.server.read_crypto(&hello).unwrap_err();
    assert_eq!(error.code, CloseCode::crypto(109), "{error}");
}
