//! Peers that let paths and flows go and take others in the hope of a fresh window, or of fresh credit for an address.

use plait_base::{Dir, PathId};
use plait_wire::Frame;
use plait_wire::frame::CidForm;

use crate::multiflow::{add_address, remove_address};
use crate::puppet::{PUPPET, Packet, Rig, Seen, Setup, addr, ms, tuple};
use crate::violations::{encoded, raw};

const SECOND: &str = "192.0.2.2:5000";
const VICTIM: &str = "203.0.113.9:53";

/// A server with more to say than any window holds.
fn busy(mut setup: Setup) -> Rig {
    setup.habits.params.limits.max_data = 1 << 30;
    setup.habits.params.limits.max_stream_data_uni = 1 << 30;
    let mut rig = Rig::established_server(setup);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&vec![7; 1 << 20]).unwrap();
    rig.pump();
    rig
}

/// Answers to the challenges among what came from entry `from` on at [`SECOND`].
fn answers(rig: &Rig, from: usize) -> Vec<u8> {
    let there = rig.seen[from..].iter().filter(|seen| seen.tuple.remote == addr(SECOND)).flat_map(Seen::frames);
    let data = there.filter_map(|frame| if let Frame::PathChallenge(f) = frame { Some(f.data) } else { None });
    data.flat_map(|data| raw(&[0x1b], &data)).collect()
}

fn bytes_at(rig: &Rig, remote: &str) -> usize {
    rig.wire.iter().filter(|(to, ..)| to.remote == addr(remote)).map(|(_, _, datagram)| datagram.len()).sum()
}

/// What got to [`SECOND`] in ten seconds with a round trip of 20 ms, where the client acks nothing of it and says `word` in
/// each round.
fn drawn(mut word: impl FnMut(&mut Rig, u64)) -> usize {
    let mut rig = busy(Setup::multiflow());
    rig.frames(add_address(1, 0, SECOND));
    let mut from = 0;
    for round in 0..500 {
        rig.pass(ms(20));
        let answers = answers(&rig, from);
        from = rig.seen.len();
        if !answers.is_empty() {
            rig.frames(answers);
        }
        word(&mut rig, round);
    }
    assert!(rig.is_open());
    bytes_at(&rig, SECOND)
}

#[test]
fn windows_of_flows_that_are_bound_anew_again_and_again() {
    let honest = drawn(|rig, _| rig.frames([0x01]));
    let told = drawn(|rig, round| {
        rig.frames(remove_address(1, 2 * round + 1));
        rig.frames(add_address(1, 2 * round + 2, SECOND));
    });
    let heard = drawn(|rig, round| {
        rig.frames(remove_address(1, 2 * round + 1));
        rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(2)]);
    });
    let both = drawn(|rig, round| {
        rig.frames(remove_address(1, 2 * round + 1));
        rig.frames(add_address(1, 2 * round + 2, SECOND));
        rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(2)]);
    });
    // Nothing is acked: one first window and its probes go to whoever keeps still. A first window each time would be 6 MB.
    for more in [told, heard, both] {
        assert!(more < 4 * honest, "{more} bytes, and {honest} to a client that keeps still");
    }
}

#[test]
fn windows_of_paths_that_are_opened_again_and_again() {
    let mut rig = busy(Setup::default());
    let before = bytes_at(&rig, PUPPET);
    for path in 1..500u32 {
        if rig.peer.engine_cid(PathId(path)).is_none() {
            rig.pass(ms(20));
            continue;
        }
        let frame = rig.peer.new_cid(CidForm::Path, path, 0);
        if path >= 8 {
            rig.frames(encoded(&frame));
        }
        rig.open_path(path, PUPPET, true);
        rig.pass(ms(20));
        rig.frames(raw(&[0x3e75, u64::from(path), 0], &[]));
    }
    // As many first windows as there are ids at first; then each takes the time of the ids before it.
    let (sent, first) = (bytes_at(&rig, PUPPET) - before, plait_engine::congestion::initial_window(1200) as usize);
    assert!(rig.is_open() && sent < 10 * first, "{sent} bytes in windows of {first}");
}

#[test]
fn credit_of_an_address_that_is_named_again_and_again() {
    for size in [0, 200, 1200] {
        let mut rig = busy(Setup::multiflow());
        rig.strangers.push(addr(VICTIM));
        for round in 0..300 {
            rig.frames(remove_address(1, 2 * round + 1));
            rig.frames(add_address(1, 2 * round + 2, VICTIM));
            rig.send_all(tuple(VICTIM), &[Packet::one_rtt([0x01]).on(2).padded(size)]);
            rig.pass(ms(10));
        }
        rig.assert_amplification(VICTIM);
        assert!(rig.is_open() && bytes_at(&rig, VICTIM) < 20 * 1200);
        // Of what it is said to be called alone, without a packet from there: a challenge at a time.
        let mut rig = busy(Setup::multiflow());
        for round in 0..300 {
            rig.frames(remove_address(1, 2 * round + 1));
            rig.frames(add_address(1, 2 * round + 2, VICTIM));
            rig.pass(ms(10));
        }
        let sent = bytes_at(&rig, VICTIM);
        assert!(sent <= 2 * (8 + 3) * 1200, "{sent} bytes in three seconds");
    }
}

/// Bytes that two addresses draw whose packets take turns, so many milliseconds apart: none is acked, challenges are answered.
fn drawn_to_and_fro(setup: Setup, gap: u64, other: &str) -> usize {
    let mut rig = busy(setup);
    if other == VICTIM {
        rig.strangers.push(addr(VICTIM));
    }
    let (before, mut from) = (rig.wire.len(), rig.seen.len());
    for round in 0..500 {
        let remote = [PUPPET, other][round % 2];
        let frames = rig.seen[from..].iter().flat_map(Seen::frames);
        let data = frames.filter_map(|frame| if let Frame::PathChallenge(f) = frame { Some(f.data) } else { None });
        let answers: Vec<u8> = data.flat_map(|data| raw(&[0x1b], &data)).collect();
        from = rig.seen.len();
        rig.send_all(tuple(remote), &[Packet::one_rtt([&[0x01][..], &answers].concat())]);
        rig.pass(ms(gap));
    }
    assert!(rig.is_open());
    rig.wire[before..].iter().map(|(_, _, datagram)| datagram.len()).sum()
}

#[test]
fn a_path_that_moves_to_and_fro_draws_challenges_and_no_windows() {
    for begin in [Setup::single_path, Setup::default] {
        for gap in [1, 20, 200] {
            // RFC 9000 9.4: a window begins anew where an address was proven, and what came back knows its way. Each pair of
            // packets would draw 12 kB else, 3 MB in all. What is left are challenges, and probes where time passes.
            let (both, copied) = (drawn_to_and_fro(begin(), gap, SECOND), drawn_to_and_fro(begin(), gap, VICTIM));
            assert!(both < 500 * 1_400, "{both} bytes to two addresses, {gap} ms");
            assert!(
                copied < [100_000, 400_000, 1_000_000][usize::from(gap > 1) + usize::from(gap > 20)],
                "{copied} bytes, {gap} ms"
            );
        }
    }
}
