//! Every way in which a peer may break the rules, by name: sent by the puppet, answered with the right code.

use plait_base::{ConnectionId, PathId, Space, Violation};
use plait_engine::{ConnectionError, Event};
use plait_wire::frame::{CidForm, NewCid};
use plait_wire::params::VersionInfo;
use plait_wire::{Encode, PacketKind, Version, varint};

use crate::puppet::{Habits, Packet, Rig, Setup, Tls, ms, resuming_client_tls};

/// A frame made of varints and bytes.
pub fn raw(fields: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|f| varint::put(&mut out, *f));
    out.extend_from_slice(bytes);
    out
}

/// STREAM with offset and length.
pub fn stream(id: u64, offset: u64, fin: bool, data: &[u8]) -> Vec<u8> {
    raw(&[0x0e | u64::from(fin), id, offset, data.len() as u64], data)
}

type Attack = fn() -> Rig;

/// The established server gets these frames, each in a packet of its own.
fn server_gets(payloads: &[Vec<u8>]) -> Rig {
    server_with(Setup::default(), payloads)
}

fn server_with(setup: Setup, payloads: &[Vec<u8>]) -> Rig {
    let mut rig = Rig::established_server(setup);
    payloads.iter().for_each(|p| rig.frames(p.clone()));
    rig
}

fn client_gets(payload: &[u8]) -> Rig {
    let mut rig = Rig::established_client(Setup::default());
    rig.frames(payload);
    rig
}

/// A handshake that the engine's server must refuse.
fn server_refuses(change: impl FnOnce(&mut Setup)) -> Rig {
    let mut setup = Setup::default();
    change(&mut setup);
    let mut rig = Rig::server(setup);
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig
}

/// A handshake that the engine's client must refuse.
fn client_refuses(change: impl FnOnce(&mut Setup)) -> Rig {
    let mut setup = Setup::default();
    change(&mut setup);
    let mut rig = Rig::client(setup);
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig
}

/// A server that answered a ClientHello; the puppet did not hear it.
pub fn half_way() -> Rig {
    let mut rig = Rig::server(Setup::default());
    rig.deaf = true;
    rig.say_handshake();
    rig.deaf = false;
    rig
}

fn small_windows(stream_window: u64, window: u64) -> Setup {
    let mut setup = Setup::default();
    setup.transport.auto_tune_windows(false).stream_receive_window(stream_window).receive_window(window);
    setup
}

fn frames() -> Vec<(Violation, Attack)> {
    use Violation::*;
    vec![
        // RFC 9000 12.4
        (TruncatedFrame, || server_gets(&[vec![0x06]])),
        // RFC 9000 12.4-4
        (UnknownFrame, || server_gets(&[vec![0x21]])),
        // RFC 9000 12.4-5
        (FrameTypeNotMinimal, || server_gets(&[vec![0x40, 0x01]])),
        // RFC 9000 12.4-2
        (EmptyPacket, || server_gets(&[vec![]])),
        // RFC 9000 12.4-3
        (FrameNotAllowedHere, || {
            let mut rig = half_way();
            rig.send(Packet::new(PacketKind::Initial, [0x1a; 9]));
            rig
        }),
        // RFC 9000 17.2, 17.3.1
        // RFC 9000 17.3.1-3
        (ReservedBitsSet, || {
            let mut rig = Rig::established_server(Setup::default());
            let mut packet = Packet::one_rtt([0x01]);
            packet.first_bits = 0x08;
            rig.send(packet);
            rig
        }),
        // RFC 9000 17.2.2
        // RFC 9000 17.2.2-2
        (InitialTokenFromServer, || {
            let mut rig = Rig::client(Setup::default());
            rig.peer.habits.token = vec![1, 2, 3];
            rig.say_handshake();
            rig
        }),
        // RFC 9000 19.3.1, 13.1
        // RFC 9000 19.3.1
        (AckRangeUnderflow, || server_gets(&[raw(&[0x02, 5, 0, 0, 6], &[])])),
        (AckOfUnsentPacket, || server_gets(&[raw(&[0x02, 16_000, 0, 0, 0], &[])])),
        // RFC 9000 19.7, 19.20
        // RFC 9000 19.7-2
        (EmptyNewToken, || client_gets(&[0x07, 0x00])),
        // RFC 9000 19.7-4
        (NewTokenFromClient, || server_gets(&[vec![0x07, 0x01, 0xaa]])),
        // RFC 9000 19.20-2
        (HandshakeDoneFromClient, || server_gets(&[vec![0x1e]])),
        // ACK_FREQUENCY draft, section 4
        (AckDelayOutOfRange, || server_gets(&[raw(&[0xaf, 0, 1, 999, 1], &[])])),
        (AckDelayOutOfRange, || server_gets(&[raw(&[0xaf, 0, 1, 16_384_000, 1], &[])])),
        (AckDelayOutOfRange, || server_gets(&[raw(&[0xaf, 0, 1, (1 << 62) - 1, 1], &[])])),
        // RFC 9221 3
        // RFC 9221 3-3
        (DatagramNotNegotiated, || {
            let mut setup = Setup::default();
            setup.transport.datagram_receive_buffer_size(None);
            server_with(setup, &[raw(&[0x31, 3], b"abc")])
        }),
        // RFC 9221 3-4
        (DatagramTooLarge, || {
            let mut setup = Setup::default();
            setup.transport.datagram_receive_buffer_size(Some(100));
            server_with(setup, &[raw(&[0x31, 200], &[7; 200])])
        }),
        // RFC 9001 4.1.3, RFC 9000 7.5
        // RFC 9000 7.5-2
        (CryptoBufferExceeded, || server_gets(&[raw(&[0x06, 70_000, 1], &[0])])),
        // RFC 9001 4.1.3-1, 4.1.3-2
        (CryptoAfterHandshakeLevel, || {
            let mut rig = half_way();
            let end = rig.peer.crypto_out[&Space::Initial].len() as u64;
            rig.send(Packet::new(PacketKind::Initial, raw(&[0x06, end, 4], &[1, 2, 3, 4])));
            rig
        }),
    ]
}

fn streams() -> Vec<(Violation, Attack)> {
    use Violation::*;
    vec![
        // RFC 9000 19.8-2
        (OffsetTooLarge, || server_gets(&[stream(0, (1 << 62) - 1, false, &[1])])),
        // RFC 9000 4.1
        // RFC 9000 4.1-2, 19.9-2
        (ConnectionFlowControl, || {
            server_with(small_windows(2_000, 1_000), &[stream(0, 0, false, &[0; 600]), stream(4, 0, false, &[0; 401])])
        }),
        // RFC 9000 19.10-4
        (StreamFlowControl, || server_with(small_windows(1_000, 2_000), &[stream(0, 1_000, false, &[0])])),
        // RFC 9000 4.6
        // RFC 9000 4.6-3
        (StreamCount, || {
            let mut setup = Setup::default();
            setup.transport.max_concurrent_bidi_streams(4);
            server_with(setup, &[stream(16, 0, false, &[0])])
        }),
        // RFC 9000 4.6-1
        (StreamCountTooLarge, || server_gets(&[raw(&[0x12, (1 << 60) + 1], &[])])),
        // RFC 9000 2.1, 19.4 to 19.10
        // RFC 9000 19.8-1
        (SendOnReceiveOnlyStream, || server_gets(&[stream(3, 0, false, &[0])])),
        // RFC 9000 19.10-2
        (ControlOfSendOnlyStream, || server_gets(&[raw(&[0x11, 2, 9], &[])])),
        // RFC 9000 19.5-1
        (StreamNeverOpened, || server_gets(&[raw(&[0x05, 1, 9], &[])])),
        // RFC 9000 4.5
        (FinalSizeChanged, || server_gets(&[stream(0, 0, true, &[0; 5]), raw(&[0x04, 0, 0, 6], &[])])),
        (DataBeyondFinalSize, || server_gets(&[stream(0, 0, true, &[0; 5]), stream(0, 5, false, &[0])])),
        (FinalSizeBelowData, || server_gets(&[stream(0, 0, false, &[0; 10]), raw(&[0x04, 0, 0, 6], &[])])),
        (StreamTooFragmented, || {
            let mut rig = Rig::established_server(small_windows(100_000, 200_000));
            for i in 0..45u64 {
                let payload: Vec<u8> = (0..50).flat_map(|k| stream(0, 1 + 2 * (i * 50 + k), false, &[1])).collect();
                rig.frames(payload);
            }
            rig
        }),
    ]
}

fn keys() -> Vec<(Violation, Attack)> {
    use Violation::*;
    vec![
        // RFC 9001 6.2
        (KeyUpdateTooSoon, || {
            let mut rig = Rig::established_server(Setup::default());
            for phase in 1..3 {
                let now = rig.now;
                rig.peer.one_rtt.as_mut().unwrap().advance_to(phase, now, ms(300));
                rig.frames([0x00]);
            }
            rig
        }),
        // RFC 9001 6.4
        // RFC 9001 6.4-2
        (KeyPhaseRegressed, || {
            let mut rig = Rig::established_server(Setup::default());
            let next = rig.peer.next_number(Space::Data, 0);
            rig.send(Packet::one_rtt([0x01]).numbered(next + 20));
            let now = rig.now;
            rig.peer.one_rtt.as_mut().unwrap().advance_to(1, now, ms(300));
            rig.send(Packet::one_rtt([0x01]).numbered(next + 10));
            rig
        }),
    ]
}

fn parameters() -> Vec<(Violation, Attack)> {
    use Violation::*;
    let list: Vec<(Violation, Attack)> = vec![
        // RFC 9000 7.4, 18.2
        (ParameterMalformed, || server_refuses(|s| s.habits.extra_params = vec![0x01, 0x20, 0x00])),
        (ParameterRepeated, || server_refuses(|s| s.habits.extra_params = vec![0x01, 0x01, 0x05, 0x01, 0x01, 0x05])),
        // RFC 9000 7.4-1
        (ParameterOutOfRange, || server_refuses(|s| s.habits.extra_params = vec![0x0a, 0x01, 21])),
        // RFC 9000 18.2-9
        (ParameterServerOnly, || {
            server_refuses(|s| {
                s.habits.extra_params = [vec![0x02, 16], vec![9; 16]].concat();
            })
        }),
        // RFC 9000 7.3-3
        (ParameterMissing, || server_refuses(|s| s.habits.own_cid_params = true)),
        // RFC 9001 8.2: parameters under the code point of the drafts alone
        (MissingTransportParameters, || super::attempts::server_hears_a_draft()),
        (MissingTransportParameters, || super::attempts::client_hears_a_draft()),
        // RFC 9000 7.3
        // RFC 9000 7.3-2
        (CidMismatch, || {
            server_refuses(|s| {
                s.habits.own_cid_params = true;
                s.habits.params.cids.initial_scid = ConnectionId::new(&[9; 8]);
            })
        }),
        // RFC 9000 7.4.1
        // RFC 9221 3-7
        (ParametersReducedForEarlyData, || {
            let tls = resuming_client_tls();
            let setup = |max_data| {
                let mut setup = Setup { engine_tls: Some(Tls::Client(tls.clone())), ..Setup::default() };
                setup.habits.params.limits.max_data = max_data;
                setup
            };
            let mut first = Rig::established_client(setup(1 << 20));
            tickets(&mut first);
            let mut rig = Rig::client(setup(1 << 10));
            assert!(rig.conn().session().has_0rtt(), "no session was remembered");
            (0..4).for_each(|_| {
                rig.say_handshake();
                rig.pass(ms(5));
            });
            rig
        }),
        // RFC 10069 2.1
        // RFC 10069 2.1-4
        (MultipathZeroLengthCid, || server_refuses(|s| s.habits.scid_len = Some(0))),
        // Multiflow 3.1: we may send on more than one uniflow to an end whose packets bear an id
        (MultiflowZeroLengthCid, || {
            client_refuses(|s| {
                *s = Setup { habits: Habits { scid_len: Some(0), ..Setup::multiflow().habits }, ..Setup::multiflow() };
            })
        }),
        // RFC 9368 4
        (VersionNegotiation, || {
            client_refuses(|s| {
                let available = vec![Version::V2];
                s.habits.params.version_info = Some(VersionInfo { chosen: Version::V2, available });
            })
        }),
    ];
    list
}

/// Sends what TLS of the puppet still has to say in 1-RTT packets: session tickets.
pub fn tickets(rig: &mut Rig) {
    for frame in rig.peer.crypto_frames(Space::Data, 0, 1000) {
        rig.frames(frame);
    }
}

fn connection_ids() -> Vec<(Violation, Attack)> {
    use Violation::*;
    vec![
        // RFC 9000 5.1.1
        // RFC 9000 5.1.1-4
        (CidLimit, || {
            let mut rig = Rig::established_server(Setup::default());
            for sequence in 2..5 {
                let frame = rig.peer.new_cid(CidForm::Path, 0, sequence);
                rig.frames(encoded(&frame));
            }
            rig
        }),
        // RFC 9000 19.15
        // RFC 9000 19.15-1
        (CidLength, || server_gets(&[raw(&[0x18, 5, 0, 0], &[1; 16])])),
        // RFC 9000 19.15-6
        (RetirePriorToTooLarge, || server_gets(&[raw(&[0x18, 5, 6, 8], &[1; 24])])),
        (CidReissued, || server_gets(&[raw(&[0x18, 2, 0, 8], &[1; 24]), raw(&[0x18, 2, 0, 8], &[2; 24])])),
        // RFC 9000 10.3.2
        // RFC 9000 10.3.2-5
        (ResetTokenReused, || {
            let mut rig = Rig::established_server(Setup::default());
            let first = rig.peer.new_cid(CidForm::Path, 0, 2);
            rig.frames(encoded(&first));
            let second = rig.peer.new_cid(CidForm::Path, 0, 3);
            rig.frames(encoded(&NewCid { token: first.token, ..second }));
            rig
        }),
        // RFC 9000 19.15-3
        (CidForZeroLength, || {
            let mut setup = Setup::single_path();
            setup.habits.scid_len = Some(0);
            let mut rig = Rig::server(setup);
            (0..4).for_each(|_| {
                rig.say_handshake();
                rig.pass(ms(5));
            });
            rig.frames(raw(&[0x18, 1, 0, 8], &[1; 24]));
            rig
        }),
        // RFC 9000 19.16
        // RFC 9000 19.16-1
        (RetireUnissuedCid, || server_gets(&[raw(&[0x19, 100], &[])])),
        (RetireCidInUse, || server_gets(&[raw(&[0x19, 0], &[])])),
        // RFC 9000 5.1.2
        // RFC 9000 5.1.2-2
        (TooManyRetirements, || {
            let mut rig = Rig::established_server(Setup::default());
            for sequence in 2..80 {
                let mut frame = rig.peer.new_cid(CidForm::Path, 0, sequence);
                frame.retire_prior_to = sequence;
                rig.frames(encoded(&frame));
            }
            rig
        }),
    ]
}

pub fn encoded(frame: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out);
    out
}

fn paths() -> Vec<(Violation, Attack)> {
    use Violation::*;
    vec![
        // RFC 9000 19.18
        (UnsolicitedPathResponse, || server_gets(&[vec![0x1b; 9]])),
        // RFC 10069 4 to 4.7
        // RFC 10069 2
        // Multiflow's frames, whatever else was negotiated
        (MultiflowNotNegotiated, || server_gets(&[raw(&[0x40, 0, 2, 0, 8], &[1; 24])])),
        (MultiflowNotNegotiated, || server_gets(&[raw(&[0x41, 0, 0], &[])])),
        (MultiflowNotNegotiated, || server_with(Setup::single_path(), &[raw(&[0x42, 0, 0, 0, 0, 0], &[])])),
        (MultiflowNotNegotiated, || server_gets(&[raw(&[0x44], &[0x04, 1, 0, 0, 192, 0, 2, 1])])),
        (MultiflowNotNegotiated, || server_gets(&[raw(&[0x45], &[1, 0])])),
        (MultiflowNotNegotiated, || server_gets(&[raw(&[0x46, 0, 0, 0], &[])])),
        // Multiflow 3.1: no flow beyond what was announced, in any of its frames
        (UniflowIdAboveLimit, || server_with(Setup::multiflow(), &[raw(&[0x40, 8, 0, 0, 8], &[1; 24])])),
        (UniflowIdAboveLimit, || server_with(Setup::multiflow(), &[raw(&[0x41, 8, 0], &[])])),
        (UniflowIdAboveLimit, || server_with(Setup::multiflow(), &[raw(&[0x42, 8, 0, 0, 0, 0], &[])])),
        (UniflowIdAboveLimit, || server_with(Setup::multiflow(), &[raw(&[0x46, 0, 1, 0, 8, 0], &[])])),
        (UniflowIdAboveLimit, || server_with(Setup::multiflow(), &[raw(&[0x46, 0, 0, 1, 8, 0], &[])])),
        // and the frames of RFC 10069 are none of it
        (MultipathNotNegotiated, || server_with(Setup::multiflow(), &[raw(&[0x3e75, 0, 0], &[])])),
        // Of plait's own, of noq and of draft-piraux-quic-additional-addresses
        (AddressesNotNegotiated, || server_gets(&[raw(&[0x2d50_5811, 1, 0], &[])])),
        (AddressesNotNegotiated, || server_gets(&[raw(&[0x2d50_5812, 0, 0], &[])])),
        (AddressesNotNegotiated, || client_gets(&raw(&[0x3d_7f90, 0], &[192, 0, 2, 1, 1, 1]))),
        (AddressesNotNegotiated, || server_gets(&[raw(&[0x3d_7f92, 0], &[192, 0, 2, 1, 1, 1])])),
        (AddressesNotNegotiated, || client_gets(&raw(&[0x9_25ad_da04, 0, 0], &[]))),
        // noq: a server tells of its addresses, a client asks to be reached
        (AddressDirection, || server_with(Setup::nat_traversal(), &[raw(&[0x3d_7f90, 0], &[192, 0, 2, 1, 1, 1])])),
        (AddressDirection, || server_with(Setup::nat_traversal(), &[raw(&[0x3d_7f94, 0], &[])])),
        (AddressDirection, || server_with(Setup::additional_addresses(), &[raw(&[0x9_25ad_da04, 0, 0], &[])])),
        (AddressDirection, || {
            let mut rig = Rig::established_client(Setup::nat_traversal());
            rig.frames(raw(&[0x3d_7f92, 0], &[192, 0, 2, 1, 1, 1]));
            rig
        }),
        (AddressReservedBits, || server_gets(&[raw(&[0x44], &[0x24, 1, 0, 0, 192, 0, 2, 1])])),
        (AddressIpVersion, || server_gets(&[raw(&[0x44], &[0x05, 1, 0, 0, 192, 0, 2, 1])])),
        (PathConditionUnknown, || server_gets(&[raw(&[0x2d50_5812, 0, 1, 0, 4, 0, 0, 0, 0], &[])])),
        (MultipathNotNegotiated, || server_with(Setup::single_path(), &[raw(&[0x3e75, 0, 0], &[])])),
        // RFC 10069 4-3
        (PathIdAboveLimit, || server_gets(&[raw(&[0x3e76, 8, 0], &[])])),
        // RFC 10069 4.6-3
        (MaxPathIdTooLarge, || server_gets(&[raw(&[0x3e7a, 1 << 32], &[])])),
        // RFC 10069 4.6-3
        (MaxPathIdBelowInitial, || server_gets(&[raw(&[0x3e7a, 6], &[])])),
        // RFC 10069 4.7-1
        (PathsBlockedAboveLimit, || server_gets(&[raw(&[0x3e7b, 8], &[])])),
        // RFC 10069 4.7-2
        (PathCidsBlockedSequence, || server_gets(&[raw(&[0x3e7c, 1, 100], &[])])),
    ]
}

/// Violations that no peer of this engine can bring about, and why.
const OUT_OF_REACH: &[(Violation, &str)] = &[
    (Violation::AeadIntegrityLimit, "takes 2^36 forged packets or more; tested in plait-crypto"),
    (Violation::AeadConfidentialityLimit, "our own packets use the keys up; tested in plait-crypto"),
    (Violation::NoAlpn, "TLS itself sends the alert; see `no_common_protocol`"),
];

#[test]
fn every_violation_closes_with_its_code() {
    // RFC 9000 5.2, 10.3-1, 11.1
    let mut table = frames();
    for more in [streams(), keys(), parameters(), connection_ids(), paths()] {
        table.extend(more);
    }
    let mut faults = Vec::new();
    for (violation, attack) in &table {
        let outcome = std::panic::catch_unwind(|| {
            let mut rig = attack();
            let told = rig.events.iter().find_map(|e| match e {
                Event::ConnectionLost(ConnectionError::TransportError(e)) => Some(e.clone()),
                _ => None,
            });
            (told.and_then(|e| e.violation), rig.close_seen(), rig.is_open())
        });
        if outcome.as_ref().ok() != Some(&(Some(*violation), Some(violation.code()), false)) {
            faults.push(format!("{violation:?}: {:?}", outcome.ok()));
        }
    }
    let covered = |v: &&Violation| table.iter().any(|(t, _)| t == *v) || OUT_OF_REACH.iter().any(|(t, _)| t == *v);
    let missing: Vec<_> = Violation::ALL.iter().filter(|v| !covered(v)).collect();
    assert!(missing.is_empty(), "neither tested nor excused: {missing:?}");
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), table.len(), faults.join("\n"));
}

#[test]
fn no_common_protocol() {
    // RFC 9000 7-2
    // RFC 9001 8.1-1, 8.1-2, 8.1-5: no_application_protocol
    let tls = plait_crypto::ClientTlsConfig::builder().accept_any_certificate().alpn(["other"]).build().unwrap();
    let mut rig = server_refuses(|s| s.peer_tls = Some(Tls::Client(tls)));
    assert_eq!(rig.close_seen(), Some(Violation::NoAlpn.code()));
    assert!(!rig.is_open());
}

#[test]
fn every_violation_is_heard_on_other_paths_too() {
    // RFC 10069 2.6: CONNECTION_CLOSE may travel on any path
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "192.0.2.2:5000", true);
    rig.frames([0x21]);
    let on = |path: u32| {
        rig.seen.iter().any(|s| s.path == PathId(path) && s.has(|f| matches!(f, plait_wire::Frame::Close(_))))
    };
    assert!(on(0) && on(1));
}
