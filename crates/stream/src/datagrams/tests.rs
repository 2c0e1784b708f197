//! Datagram queues and frames.

use plait_wire::SentFrame;

use super::*;
use crate::testing::{packet, varint as take};

fn ready() -> Datagrams {
    let mut d = Datagrams::new(DatagramsConfig { send_buffer: 1000, receive_buffer: Some(1000) });
    d.set_peer_frame_max(65_535);
    d
}

#[test]
fn refused_without_the_peers_consent_or_ours() {
    // RFC 9000 19.21-1
    let mut d = Datagrams::new(DatagramsConfig { receive_buffer: None, ..DatagramsConfig::default() });
    assert_eq!(DatagramsConfig { receive_buffer: None, ..DatagramsConfig::default() }.announced_frame_bytes(), 0);
    let sent = d.send(Bytes::from_static(b"x"), 1200, Overflow::Refuse);
    assert_eq!(sent, Err(SendDatagramError::UnsupportedByPeer));
    // RFC 9221 3-1, 3-3
    assert_eq!(d.on_datagram(Bytes::new(), 1), Err(Violation::DatagramNotNegotiated));
    assert_eq!(ready().on_datagram(vec![0; 70_000].into(), 70001), Err(Violation::DatagramTooLarge));
}

#[test]
fn both_frame_forms_round_trip() {
    let mut d = ready();
    d.send(Bytes::from(vec![1; 50]), 1200, Overflow::Refuse).unwrap();
    d.send(Bytes::from(vec![2; 47]), 1200, Overflow::Refuse).unwrap();
    let (mut p, carried) = packet(100, |w| d.fill(1200, w));
    assert_eq!(carried, [SentFrame::Datagram { len: 50 }, SentFrame::Datagram { len: 47 }]);
    assert_eq!((take(&mut p), take(&mut p)), (0x31, 50));
    assert_eq!(p.split_to(50), vec![1; 50]);
    assert_eq!(take(&mut p), 0x30, "reaches the end, so no length");
    assert_eq!(p, vec![2; 47]);
    assert!(!d.wants_send() && d.unsent_bytes() == 0);
}

#[test]
fn the_send_queue_is_bounded() {
    // RFC 9221 5.4
    let mut d = ready();
    let x = Bytes::from(vec![0; 400]);
    d.send(x.clone(), 1200, Overflow::Refuse).unwrap();
    d.send(x.clone(), 1200, Overflow::Refuse).unwrap();
    assert!(matches!(d.send(x.clone(), 1200, Overflow::Refuse), Err(SendDatagramError::Blocked(_))));
    assert!(!d.poll_unblocked());
    packet(500, |w| d.fill(1200, w));
    assert!(d.poll_unblocked() && !d.poll_unblocked());
    for _ in 0..10 {
        d.send(x.clone(), 1200, Overflow::DropOldest).unwrap();
    }
    assert_eq!((d.dropped().unsent, d.unsent_bytes()), (9, 800));
    assert_eq!(d.send(vec![0; 1200].into(), 1200, Overflow::DropOldest), Err(SendDatagramError::TooLarge));
    assert_eq!(d.drop_larger_than(300), 2);
    assert!(!d.wants_send() && d.send_buffer_room() == 1000 - OVERHEAD_BYTES);
}

#[test]
fn what_fits_another_path_only_lets_others_pass() {
    let mut d = ready();
    for len in [220, 50, 221, 60, 90] {
        d.send(Bytes::from(vec![len as u8; len]), 1200, Overflow::Refuse).unwrap();
    }
    assert_eq!(
        (d.next_size_within(200), d.next_size_within(1200), d.next_size_within(40)),
        (Some(50), Some(220), None)
    );
    // A path whose packets hold 200 bytes of frames: the two large ones wait.
    let (_, carried) = packet(200, |w| d.fill(200, w));
    assert_eq!(carried, [SentFrame::Datagram { len: 50 }, SentFrame::Datagram { len: 60 }]);
    // One that would fit an empty packet of this path, but not this one, is passed by none.
    d.send(Bytes::from_static(b"x"), 1200, Overflow::Refuse).unwrap();
    assert_eq!(packet(50, |w| d.fill(200, w)).1, []);
    assert_eq!(packet(200, |w| d.fill(200, w)).1, [SentFrame::Datagram { len: 90 }, SentFrame::Datagram { len: 1 }]);
    // The path that they fit takes them in their order.
    let (_, carried) = packet(1200, |w| d.fill(1200, w));
    assert_eq!(carried, [SentFrame::Datagram { len: 220 }, SentFrame::Datagram { len: 221 }]);
    assert!(!d.wants_send() && d.unsent_bytes() == 0 && d.dropped().unsent == 0);
}

#[test]
fn nothing_stays_queued_for_a_peer_that_takes_no_datagrams() {
    // RFC 9221 3-2: after rejected 0-RTT its parameters may say so
    let mut d = ready();
    d.send(Bytes::new(), 1200, Overflow::Refuse).unwrap();
    d.send(Bytes::from_static(b"x"), 1200, Overflow::Refuse).unwrap();
    d.set_peer_frame_max(0);
    assert_eq!(d.drop_larger_than(1200), 2);
    assert!(!d.wants_send() && d.dropped().unsent == 2);
}

#[test]
fn the_receive_queue_is_bounded_even_for_empty_datagrams() {
    let mut d = ready();
    assert_eq!(d.on_datagram(Bytes::new(), 1), Ok(true));
    for _ in 0..10_000 {
        assert_eq!(d.on_datagram(Bytes::new(), 1), Ok(false));
    }
    assert!(d.incoming.len() <= 1000 / OVERHEAD_BYTES);
    assert_eq!(d.on_datagram(vec![0; 998].into(), 1_000), Ok(false), "never fits beside its overhead: dropped");
    assert!(d.dropped().unread > 9_000);
    while d.read().is_some() {}
    assert_eq!(d.incoming_bytes, 0);
}

#[test]
fn unread_datagrams_let_their_packets_go() {
    let packet = Bytes::from(vec![1; 1_400]);
    let mut d = Datagrams::new(DatagramsConfig::default());
    d.on_datagram(packet.slice(..700), 701).unwrap();
    d.on_datagram(packet.slice(..100), 101).unwrap();
    assert_eq!((d.lent_bytes(), packet.is_unique()), (700, false));
    d.settle();
    assert_eq!((d.lent_bytes(), packet.is_unique()), (0, true));
    assert_eq!((d.read().unwrap().len(), d.read().unwrap().len(), d.read()), (700, 100, None));
}
