//! Who is given how much of what there is to send.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{Dir, PathId, Space};
use plait_engine::{Received, schedule};
use plait_wire::frame::AckForm;

use super::attacks::{SECOND, both_lent};
use super::rig::LentRig;
use crate::puppet::{Packet, Setup, tuple};

/// Lets the connection hand out what it can; messages for each path.
fn hand_out(lent: &mut LentRig) -> BTreeMap<PathId, usize> {
    let (now, mut count) = (lent.rig.now, BTreeMap::new());
    assert!(lent.coordinator.poll_transmit(now, 10, &mut Vec::new()).is_none(), "all paths are lent");
    while let Some((id, message)) = lent.coordinator.poll_message(now) {
        *count.entry(id).or_default() += 1;
        let holder = lent.lent.iter_mut().find(|lent| lent.id() == id).expect("a lent path");
        holder.handle_message(now, message);
    }
    count
}

#[test]
fn a_path_that_waits_is_given_data_whatever_a_lease_leaves_over_elsewhere() {
    let mut lent = both_lent(Setup::default());
    lent.coordinator.set_scheduler(&*schedule::by_name("round-robin").expect("a scheduler"));
    let stream = lent.coordinator.streams().open(Dir::Uni).expect("a stream");
    lent.coordinator.send_stream(stream).write(&[7; 200_000]).expect("room");
    let first = hand_out(&mut lent);
    assert!(first.contains_key(&PathId(0)) && first.contains_key(&PathId(1)), "{first:?}");
    // Path 1 sends, hears an ack and reports, until it has carried more than path 0, which does nothing.
    let at = lent.lent.iter().position(|lent| lent.id() == PathId(1)).expect("a lent path");
    let mut buf = Vec::new();
    for round in 0..5 {
        lent.rig.now += Duration::from_millis(20);
        let now = lent.rig.now;
        while let Some(transmit) = lent.lent[at].poll_transmit(now, 10, &mut buf) {
            let size = transmit.segment_size.unwrap_or(transmit.size);
            for datagram in buf[..transmit.size].chunks(size) {
                let _ = lent.rig.peer.open(now, transmit.tuple, datagram);
            }
        }
        let ack = lent.rig.peer.ack(Space::Data, 1, AckForm::Path).expect("packets came");
        let datagram = BytesMut::from(&lent.sealed(Packet::one_rtt(ack).on(1))[..]);
        let received = lent.rig.endpoint.receive(now, tuple(SECOND), None, datagram, &mut Vec::new());
        let Received::Connection(_, input) = received else { panic!("it is for the connection") };
        let _ = lent.lent[at].handle_datagram(now, input);
        while let Some(message) = lent.lent[at].poll_message(now) {
            lent.coordinator.handle_message(now, PathId(1), message);
        }
        assert!(hand_out(&mut lent).contains_key(&PathId(1)), "round {round}");
    }
}

#[test]
fn full_packets_of_leases_are_whole_cipher_blocks() {
    let mut lent = both_lent(Setup::default());
    let stream = lent.coordinator.streams().open(Dir::Uni).expect("a stream");
    lent.coordinator.send_stream(stream).write(&[7; 200_000]).expect("room");
    assert!(!hand_out(&mut lent).is_empty());
    let (now, mut buf, mut sizes) = (lent.rig.now, Vec::new(), Vec::new());
    for path in &mut lent.lent {
        while let Some(transmit) = path.poll_transmit(now, 10, &mut buf) {
            for datagram in buf[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                let seen = lent.rig.peer.open(now, transmit.tuple, datagram);
                sizes.extend(seen.iter().filter(|s| s.datagram > 1_184).map(|s| s.payload.len()));
            }
        }
    }
    assert!(sizes.len() > 3 && sizes.iter().all(|bytes| bytes % 16 == 0), "{sizes:?}");
}
