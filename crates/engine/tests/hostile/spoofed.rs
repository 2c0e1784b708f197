//! Copies of the peer's own packets, from addresses that are not the peer's: an attacker on the way can make them without keys.

use plait_base::{Dir, FourTuple, PathId, Space};
use plait_wire::Frame;
use plait_wire::frame::{AckForm, PathChallenge, PathResponse};

use crate::multiflow::two_flows;
use crate::puppet::{Packet, Rig, Seen, Setup, addr, ms, tuple};
use crate::violations::encoded;

const VICTIM: &str = "203.0.113.9:53";

/// A server of each kind, with a stranger at [`VICTIM`].
fn servers() -> [Rig; 3] {
    [Setup::default(), Setup::multiflow(), Setup::single_path()].map(|mut setup| {
        setup.habits.params.limits.max_data = 1 << 30;
        setup.habits.params.limits.max_stream_data_uni = 1 << 30;
        let mut rig = Rig::established_server(setup);
        rig.strangers.push(addr(VICTIM));
        rig
    })
}

/// What an honest client says: acks of all that it got, and answers to the challenges among that, from entry `from` on.
fn said(rig: &mut Rig, from: usize) -> Vec<u8> {
    let form = match (rig.conn().is_multipath(), rig.conn().paths().is_multiflow()) {
        (_, true) => AckForm::Uniflow,
        (true, false) => AckForm::Path,
        (false, false) => AckForm::Plain,
    };
    let paths: Vec<u32> = rig.peer.received.keys().filter(|(s, _)| *s == Space::Data).map(|(_, path)| path.0).collect();
    let mut payload = vec![0x01];
    paths.into_iter().filter_map(|path| rig.peer.ack(Space::Data, path, form)).for_each(|ack| payload.extend(ack));
    for frame in rig.seen[from..].iter().flat_map(Seen::frames) {
        if let Frame::PathChallenge(f) = frame {
            payload.extend(encoded(&PathResponse { data: f.data }));
        }
    }
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::one_rtt(payload), &mut datagram);
    datagram
}

/// A server that has much to say, to a client whose packets an attacker copies: the first of each so many arrives from
/// [`VICTIM`] before the client's own, which then is a duplicate. The bytes that the client got.
fn transfer_with_copies(rig: &mut Rig, each: usize) -> usize {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    let start = rig.seen.len();
    for round in 0..200 {
        let from = rig.seen.len();
        let _ = rig.conn().send_stream(id).write(&[7; 20_000]);
        rig.pump();
        rig.pass(ms(10));
        let datagram = said(rig, from);
        if round % each == 0 {
            rig.deliver_from(tuple(VICTIM), &datagram);
            rig.assert_amplification(VICTIM);
        }
        rig.pass(ms(2));
        rig.deliver(&datagram);
        rig.assert_amplification(VICTIM);
    }
    let frames = rig.seen[start..].iter().flat_map(Seen::frames);
    frames.map(|frame| if let Frame::Stream(f) = frame { f.data.len() } else { 0 }).sum()
}

#[test]
fn copies_of_the_newest_packet_flood_nobody_and_the_transfer_goes_on() {
    // RFC 9000 9.3.3, 21.5.3
    for mut rig in servers() {
        let got = transfer_with_copies(&mut rig, 2);
        assert!(rig.is_open());
        // What goes to the stranger meanwhile is lost, and the window shrinks by it.
        assert!(got > 200_000, "{got} bytes where every second packet was copied");
    }
}

#[test]
fn copies_of_all_packets_flood_nobody() {
    for mut rig in servers() {
        let _ = transfer_with_copies(&mut rig, 1);
        // The attacker goes away: what it left behind does not last.
        rig.pass(ms(3_000));
        let got = transfer_with_copies(&mut rig, usize::MAX);
        assert!(rig.is_open());
        assert!(got > 500_000, "{got} bytes after the attacker went");
    }
}

fn responses(rig: &Rig) -> usize {
    rig.count(|frame| matches!(frame, Frame::PathResponse(_)))
}

fn bytes_to(rig: &Rig, to: FourTuple) -> usize {
    rig.wire.iter().filter(|(tuple, ..)| *tuple == to).map(|(_, _, datagram)| datagram.len()).sum()
}

#[test]
fn a_challenge_that_is_played_again_is_answered_once() {
    for mut rig in servers() {
        let mut datagram = Vec::new();
        let challenge = encoded(&PathChallenge { data: [9; 8] });
        rig.peer.seal(&Packet::one_rtt(challenge).padded(1200), &mut datagram);
        rig.deliver(&datagram);
        rig.pass(ms(50));
        let (answers, sent) = (responses(&rig), rig.wire.len());
        assert_eq!(answers, 1);
        for _ in 0..200 {
            rig.deliver(&datagram);
            rig.deliver_from(tuple(VICTIM), &datagram);
        }
        assert_eq!((responses(&rig), rig.wire.len(), bytes_to(&rig, tuple(VICTIM))), (answers, sent, 0));
    }
}

#[test]
fn a_challenge_that_arrives_from_elsewhere_first_draws_three_times_its_size_at_most() {
    let mut all = Vec::from(servers());
    let mut two = two_flows();
    two.strangers.push(addr(VICTIM));
    all.push(two);
    for mut rig in all {
        for round in 0..20 {
            let mut datagram = Vec::new();
            let challenge = encoded(&PathChallenge { data: [round; 8] });
            rig.peer.seal(&Packet::one_rtt(challenge), &mut datagram);
            for _ in 0..10 {
                rig.deliver_from(tuple(VICTIM), &datagram);
            }
            let (to, len) = (bytes_to(&rig, tuple(VICTIM)), datagram.len() * usize::from(round + 1) * 10);
            assert!(to <= 3 * len, "{to} bytes for {len}");
            rig.deliver(&datagram);
            rig.pass(ms(20));
        }
        rig.pass(ms(10_000));
        rig.assert_amplification(VICTIM);
        rig.assert_answers("challenges played again");
    }
}

#[test]
fn what_is_lost_after_the_way_back_to_the_proven_address_is_sent_again() {
    // RFC 9002 6.2.1: every packet that asks for an ack sets the probe timer. RFC 9002 6.2.2.1: it rests at the limit alone
    for setup in [Setup::single_path(), Setup::default()] {
        let mut rig = Rig::established_server(setup);
        rig.pass(ms(1_000));
        rig.ack_all();
        rig.strangers.push(addr(VICTIM));
        let form = if rig.conn().is_multipath() { AckForm::Path } else { AckForm::Plain };
        let ack = rig.peer.ack(Space::Data, 0, form).unwrap();
        rig.send_all(tuple(VICTIM), &[Packet::one_rtt(ack)]);
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[7; 3_000]).unwrap();
        rig.conn().send_stream(id).finish().unwrap();
        rig.pump();
        rig.pass(ms(500));
        // The stranger answers nothing, and what leaves for the client after that is lost.
        rig.deaf = true;
        let from = rig.wire.len();
        let at_home = |rig: &Rig| rig.wire[from..].iter().filter(|(to, ..)| *to == rig.tuple).count();
        rig.pass(ms(3_000));
        let first = at_home(&rig);
        assert!(first >= 3, "{first} datagrams after the way back");
        let (now, next) = (rig.now, rig.conn().deadline().unwrap());
        assert!(next < now + ms(3_000), "the next deadline is in {:?}", next.since(now));
        rig.pass(ms(4_000));
        assert!(at_home(&rig) > first, "no probe");
        rig.deaf = false;
        for _ in 0..5 {
            rig.pass(ms(2_000));
            rig.ack_all();
        }
        let data = |f: &Frame<'_>| if let Frame::Stream(f) = f { f.offset + f.data.len() as u64 } else { 0 };
        let end = rig.seen.iter().flat_map(|s| s.frames()).map(|f| data(&f)).max();
        assert_eq!(end, Some(3_000));
        let now = rig.now;
        assert_eq!(rig.conn().path_statistics(now, PathId::ZERO).unwrap().in_flight_bytes, 0);
        rig.assert_amplification(VICTIM);
    }
}
