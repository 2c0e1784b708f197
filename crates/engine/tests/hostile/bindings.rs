//! Multiflow's send flows that let their addresses go and take others: what they keep, and what begins anew.

use plait_base::{Dir, PathId};
use plait_wire::PacketKind;
use plait_wire::frame::{CidForm, RetireCid};

use crate::multiflow::{add_address, answer_by_the_first_flow, busy_at, remove_address, two_flows};
use crate::puppet::{Rig, Seen, Setup, ms};
use crate::violations::encoded;

const SECOND: &str = "192.0.2.2:5000";
const THIRD: &str = "192.0.2.3:5000";

/// The window of a flow, bytes, and its round trip in milliseconds.
fn learned(rig: &mut Rig, id: u32) -> (u64, Option<u128>) {
    let now = rig.now;
    let flow = rig.conn().path_statistics(now, PathId(id)).unwrap();
    (flow.cwnd_bytes, flow.rtt.map(|rtt| rtt.as_millis()))
}

/// Data on both flows, acked each 20 ms.
fn transfer(rig: &mut Rig, rounds: u32) {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    for _ in 0..rounds {
        let _ = rig.conn().send_stream(id).write(&[7; 50_000]);
        rig.pump();
        rig.pass(ms(20));
        rig.ack_all();
    }
}

/// A server whose flow 1 leads to the puppet's second address, by a window that has grown.
fn grown() -> Rig {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.frames(add_address(1, 0, SECOND));
    answer_by_the_first_flow(&mut rig, SECOND);
    transfer(&mut rig, 5);
    rig
}

#[test]
fn congestion_state_begins_anew_at_other_addresses() {
    // Multiflow 4.3.1: what was learned of one way says nothing of another.
    let mut rig = grown();
    // Without what the handshake added to the window of flow 0.
    let fresh = plait_engine::congestion::initial_window(1200);
    let (window, rtt) = learned(&mut rig, 1);
    assert!(window > 2 * fresh && rtt.is_some(), "{window} {rtt:?}");
    rig.frames(remove_address(1, 1));
    rig.frames(add_address(1, 2, THIRD));
    answer_by_the_first_flow(&mut rig, THIRD);
    assert_eq!(learned(&mut rig, 1), (fresh, None));
    // No more than the first window is under way, however much there is to say.
    let before = rig.seen.len();
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    let _ = rig.conn().send_stream(id).write(&[7; 200_000]);
    rig.pump();
    let sent: usize = rig.seen[before..].iter().filter(|seen| seen.path == PathId(1)).map(|seen| seen.datagram).sum();
    assert!(sent > 0 && sent as u64 <= fresh, "{sent} bytes in a window of {fresh}");
}

#[test]
fn keys_may_change_while_a_flow_leads_nowhere() {
    let mut rig = grown();
    rig.frames(remove_address(1, 1));
    transfer(&mut rig, 3);
    let now = rig.now;
    rig.conn().update_keys(now).unwrap();
    transfer(&mut rig, 3);
    rig.frames(add_address(1, 2, THIRD));
    answer_by_the_first_flow(&mut rig, THIRD);
    let before = rig.seen.len();
    transfer(&mut rig, 3);
    // The puppet opens them, and none of their numbers came before.
    let of_flow = |seen: &&Seen| seen.kind == PacketKind::OneRtt && seen.path == PathId(1);
    assert!(rig.seen[before..].iter().any(|seen| of_flow(&seen)));
    let numbers: Vec<u64> = rig.seen.iter().filter(of_flow).map(|seen| seen.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn ids_of_a_flow_that_the_peer_takes_out_of_use_are_replaced() {
    let mut rig = two_flows();
    for sequence in 0..40 {
        let retire = encoded(&RetireCid { form: CidForm::Uniflow, path: PathId(2), sequence });
        rig.frames(retire);
        rig.pass(ms(20));
        rig.ack_all();
    }
    let issued = rig.peer.issued.keys().filter(|(path, _)| *path == PathId(2)).count();
    assert!(rig.is_open() && (40..=48).contains(&issued), "{issued} ids for 40 that are gone");
    assert!(busy_at(&mut rig, SECOND) > 0);
}
