//! The endpoint: ids, strangers, versions, how many.

use std::sync::Arc;
use std::time::Duration;

use plait_base::{CloseCode, PathId, Random, Space};
use plait_crypto::{CidSteering, ResetKey};
use plait_engine::{EndpointConfig, Version};
use plait_wire::header::FixedBit;
use plait_wire::params::GreaseQuicBit;
use plait_wire::{Frame, Frames, PacketKind};

use super::with;
use crate::puppet::{Packet, Rig, Setup};
use crate::violations::stream;

fn endpoint(change: fn(&mut EndpointConfig)) -> Setup {
    Setup { endpoint_change: change, ..Setup::default() }
}

/// A short header to an id that nobody has.
fn stray(n: u8) -> Vec<u8> {
    [vec![0x40], vec![n; 60]].concat()
}

/// Answers to so many strays.
fn resets(change: fn(&mut EndpointConfig), count: u8) -> Vec<Vec<u8>> {
    let mut rig = Rig::server(endpoint(change));
    (0..count).for_each(|n| rig.deliver(&stray(n)));
    rig.replies
}

#[test]
fn cid_len() {
    let rig = Rig::established_server(endpoint(|e| _ = e.cid_len(12)));
    assert!(rig.peer.dcid.len() == 12 && rig.peer.issued.values().all(|(cid, _)| cid.len() == 12));
    assert!(rig.peer.engine_cid(PathId(1)).is_some());
}

#[test]
fn steer_cids() {
    fn steering() -> Arc<CidSteering> {
        Arc::new(CidSteering::generate(5, &mut Random::from_u64(3)))
    }
    let rig = Rig::established_server(endpoint(|e| _ = e.steer_cids(Some(steering()))));
    // The client of these tests arrived at receiver 1.
    assert_eq!(steering().receiver(&rig.peer.dcid), Some(1));
    for ((path, _), (cid, _)) in &rig.peer.issued {
        assert_eq!(steering().receiver(cid), Some((1 + path.0 as usize) % 5));
    }
    assert!(rig.peer.engine_cid(PathId(1)).is_some());
}

#[test]
fn reset_key() {
    let replies = resets(|e| _ = e.reset_key(ResetKey::new(&[7; 32])), 1);
    assert_eq!(replies[0].last_chunk::<16>(), Some(&ResetKey::new(&[7; 32]).token(&[0; 8]).0));
}

#[test]
fn grease_quic_bit() {
    for on in [true, false] {
        let mut setup = with(|t| _ = t.grease_quic_bit(true));
        setup.endpoint_change = if on { |e| _ = e.grease_quic_bit(true) } else { |e| _ = e.grease_quic_bit(false) };
        setup.habits.params.fixed_bit = GreaseQuicBit::Supported;
        let mut rig = Rig::established_server(setup);
        let mut packet = Packet::one_rtt(stream(0, 0, false, b"x"));
        packet.fixed_bit = FixedBit::Clear;
        rig.send(packet);
        assert_eq!(rig.conn().streams().accept(plait_base::Dir::Bi).is_some(), on);
    }
}

#[test]
fn stateless_resets() {
    assert_eq!(resets(|_| {}, 2).len(), 2);
    assert!(resets(|e| _ = e.stateless_resets(false), 2).is_empty());
}

#[test]
fn max_resets_per_second() {
    assert_eq!(resets(|e| _ = e.max_resets_per_second(3), 10).len(), 3);
}

#[test]
fn supported_versions() {
    let listed = |change| {
        let mut rig = Rig::server(endpoint(change));
        let unknown = [vec![0xc0, 0x7a, 0x7a, 0x7a, 0x7b, 8], vec![1; 8], vec![8], vec![2; 8], vec![0; 1_200]].concat();
        rig.deliver(&unknown);
        let reply = rig.replies.pop().unwrap();
        let versions: Vec<u32> =
            reply[23..].chunks_exact(4).map(|v| u32::from_be_bytes(v.try_into().unwrap())).collect();
        [Version::V1, Version::V2].map(|v| versions.contains(&v.0))
    };
    assert_eq!(listed(|_| {}), [true, true]);
    assert_eq!(listed(|e| _ = e.supported_versions(vec![Version::V2])), [false, true]);
}

#[test]
fn origin_unix() {
    type Change = fn(&mut EndpointConfig);
    // A restart 5 s after the first: tokens hold on where the origin says so.
    let restarted: [(Change, bool); 2] = [
        (|e| _ = e.origin_unix(Duration::from_secs(1_005)), true),
        (|e| _ = e.origin_unix(Duration::from_secs(5_000)), false),
    ];
    for (change, holds) in restarted {
        let mut first = Rig::server(endpoint(|e| _ = e.origin_unix(Duration::from_secs(1_000))));
        first.accepts = false;
        first.say_handshake();
        let retry = first.replies.pop().unwrap();
        let mut second = Rig::server(endpoint(change));
        let (scid, token) = super::server::retry_parts(&retry);
        second.peer.after_retry(scid, token);
        let hello = second.peer.crypto_frames(Space::Initial, 0, 1_000).concat();
        second.send(Packet::new(PacketKind::Initial, hello));
        assert_eq!(second.conn.is_some(), holds);
    }
}

#[test]
fn max_connections() {
    let mut rig = Rig::server(endpoint(|e| _ = e.max_connections(0)));
    rig.accepts = false;
    rig.say_handshake();
    let (now, at) = (rig.now, rig.tuple);
    let seen = rig.replies.pop().map(|reply| rig.peer.open(now, at, &reply)).unwrap();
    let closes = |payload: &[u8]| {
        Frames::in_packet(payload, PacketKind::Initial).flatten().any(|f| {
            matches!(f, Frame::Close(plait_wire::frame::Close::Transport { code, .. }) if code == CloseCode::CONNECTION_REFUSED)
        })
    };
    assert!(rig.conn.is_none() && closes(&seen[0].payload));
}
