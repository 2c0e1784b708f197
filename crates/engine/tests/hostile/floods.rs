//! More of everything than is sensible: what a peer can make us keep, do and send stays bounded.

use bytes::BytesMut;
use plait_base::{PathId, Random, limits};
use plait_engine::{EndpointEvent, Event, Received};
use plait_wire::frame::CidForm;
use plait_wire::{Frame, PacketKind};

use crate::puppet::{Packet, Rig, Setup, ms, tuple};
use crate::violations::{encoded, raw, stream};

#[test]
fn garbage_initials_leave_nothing_behind() {
    let mut rig = Rig::server(Setup::default());
    let mut random = Random::from_u64(1);
    let mut reply = Vec::new();
    for i in 0..20_000u32 {
        let mut data = BytesMut::zeroed(1200);
        random.fill(&mut data);
        data[0] = 0xc0 | (data[0] & 0x3f);
        data[1..5].copy_from_slice(&1u32.to_be_bytes());
        data[5] = 8;
        data[14] = 8;
        let from = tuple(&format!("203.0.113.{}:{}", i % 250, 1024 + i % 60_000));
        let received = rig.endpoint.receive(rig.now, from, None, data, &mut reply);
        assert!(matches!(received, Received::Nothing));
    }
    assert_eq!((rig.endpoint.connections(), rig.endpoint.incoming()), (0, 0));
}

#[test]
fn early_packets_wait_in_a_bounded_queue() {
    // RFC 9000 5.2.1
    let mut rig = Rig::server(Setup::default());
    let hello = rig.peer.crypto_frames(plait_base::Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    for _ in 0..1_000 {
        rig.frames(raw(&[0x31, 3], b"abc"));
    }
    let finished = rig.peer.crypto_frames(plait_base::Space::Handshake, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished));
    let mut read = 0;
    while rig.conn().datagrams().recv().is_some() {
        read += 1;
    }
    assert!(read > 0 && read <= limits::MAX_SAVED_PACKETS, "{read}");
}

#[test]
fn challenges_are_answered_a_few_at_a_time() {
    // RFC 9000 8.2.1-4, 8.2.2-7
    // RFC 9000 8.2, 21.8
    let mut rig = Rig::established_server(Setup::default());
    for round in 0..50u8 {
        let payload: Vec<u8> =
            (0..120u8).flat_map(|i| [vec![0x1a], vec![round, i, 0, 0, 0, 0, 0, 0]].concat()).collect();
        let (wire, seen) = (rig.wire.len(), rig.seen.len());
        rig.frames(payload);
        assert!(rig.wire.len() - wire <= 3, "datagrams in answer to one");
        let responses =
            |s: &crate::puppet::Seen| s.frames().iter().filter(|f| matches!(f, Frame::PathResponse(_))).count();
        let answers: usize = rig.seen[seen..].iter().map(responses).sum();
        assert!(answers <= limits::MAX_QUEUED_PATH_RESPONSES);
    }
    assert!(rig.is_open());
}

#[test]
fn small_challenges_draw_a_stated_multiple_of_what_they_cost() {
    // RFC 9000 8.2.2: each answer fills a datagram, so it is what came that bounds them, and window and pacer
    for acks in [0, 1, 10] {
        let mut rig = Rig::established_server(Setup::default());
        rig.pass(ms(1_000));
        rig.ack_all();
        let before = rig.ledger[&rig.tuple.remote];
        let mut answers = 0;
        for round in 0..3_000u64 {
            rig.seen.clear();
            rig.frames([&[0x1a_u8][..], &round.to_be_bytes()].concat());
            answers += rig.count(|f| matches!(f, Frame::PathResponse(_)));
            rig.pass(ms(1));
            if acks > 0 && round % acks == 0 {
                rig.ack_all();
            }
            let now = rig.ledger[&rig.tuple.remote];
            let (came, left) = (now.to_engine - before.to_engine, now.from_engine - before.from_engine);
            // Three times for the answers, and what acks take.
            assert!(left <= 5 * came + limits::PATH_RESPONSE_BURST_BYTES, "{left} bytes for {came}, round {round}");
        }
        assert!(rig.is_open());
        if acks > 0 {
            assert!(answers > 100, "what is paid for is answered: {answers}");
        }
    }
}

#[test]
fn answers_to_challenges_wait_for_the_window() {
    let mut rig = Rig::established_server(Setup::default());
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 60_000]).unwrap();
    rig.pump();
    rig.seen.clear();
    rig.send(Packet::one_rtt([&[0x1a_u8][..], &[9; 8]].concat()).padded(1200));
    let answers = |rig: &Rig| rig.count(|f| matches!(f, Frame::PathResponse(_)));
    assert_eq!(answers(&rig), 0, "the window is full of data");
    rig.pass(ms(5));
    rig.ack_all();
    assert_eq!(answers(&rig), 1);
}

#[test]
fn challenges_from_many_addresses_are_followed_by_few_validations() {
    let mut rig = Rig::established_server(Setup::default());
    for i in 0..500u32 {
        let from = format!("203.0.113.{}:{}", i % 250, 1000 + i);
        rig.send_all(tuple(&from), &[Packet::one_rtt([vec![0x1a], vec![1; 8]].concat())]);
        rig.assert_amplification(&from);
    }
    rig.pass(ms(5_000));
    assert!(rig.is_open());
}

#[test]
fn fake_paths_are_few_and_their_ids_run_out_slowly() {
    // RFC 10069 7.2
    let mut rig = Rig::established_server(Setup::default());
    for i in 1..400u32 {
        let cid = rig.peer.engine_cid(PathId(i));
        if cid.is_none() {
            break;
        }
        let frame = rig.peer.new_cid(CidForm::Path, i, 0);
        if i >= 8 {
            rig.frames(encoded(&frame));
        }
        rig.open_path(i, &format!("203.0.113.{}:{}", i % 250, 1000 + i), false);
        rig.frames(raw(&[0x3e75, u64::from(i), 0], &[]));
        rig.pass(ms(1));
        rig.ack_all();
        let alive = rig.conn().paths().ids_with_closing().len();
        assert!(alive <= limits::MAX_PATHS, "{alive}");
        if !rig.is_open() {
            break;
        }
    }
    assert!(rig.is_open(), "{:?}", rig.close_seen());
    rig.pass(ms(60_000));
    assert!(rig.conn().paths().ids_with_closing().len() <= 2);
}

#[test]
fn opened_and_reset_streams_are_recycled_within_the_limit() {
    // RFC 9000 4.6-5
    let mut setup = Setup::default();
    setup.transport.max_concurrent_uni_streams(16);
    let mut rig = Rig::established_server(setup);
    let mut limit = 16;
    let mut opened = 0u64;
    for _ in 0..2_000 {
        while opened < limit {
            let id = opened * 4 + 2;
            rig.frames([stream(id, 0, false, b"x"), raw(&[0x04, id, 0, 1], &[])].concat());
            opened += 1;
        }
        while let Some(id) = rig.conn().streams().accept(plait_base::Dir::Uni) {
            let _ = rig.conn().recv_stream(id).read(100, plait_engine::stream::Order::Ordered);
        }
        rig.pump();
        for seen in &rig.seen {
            for frame in seen.frames() {
                if let Frame::MaxStreams(m) = frame {
                    limit = limit.max(m.limit);
                }
            }
        }
        assert!(limit <= opened + 16);
        rig.seen.clear();
        rig.events.clear();
        rig.wire.clear();
        if opened > 3_000 {
            break;
        }
        rig.pass(ms(1));
        rig.ack_all();
    }
    assert!(rig.is_open());
    assert!(opened > 1_000, "streams are given back: {opened}");
}

/// A hundred packets of a hundred PATH_STATUS frames each, the two statuses in turns.
fn status_packets() -> impl Iterator<Item = Vec<u8>> {
    let status = |sequence: u64| raw(&[0x3e76 + (sequence & 1), 1, sequence], &[]);
    (0..100).map(move |packet| (1..=100).flat_map(|frame| status(packet * 100 + frame)).collect())
}

#[test]
fn status_floods_keep_no_more_news_than_the_bound() {
    let mut rig = Rig::established_server(Setup::default());
    status_packets().for_each(|payload| rig.frames(payload));
    let news = rig.events.iter().filter(|e| matches!(e, Event::Path(_))).count();
    assert!(news <= 10_000 && rig.is_open());
}

#[test]
fn status_floods_that_nobody_reads_are_forgotten() {
    let mut rig = Rig::established_server(Setup::default());
    for payload in status_packets() {
        let mut datagram = Vec::new();
        rig.peer.seal(&Packet::one_rtt(payload), &mut datagram);
        let at = rig.tuple;
        let mut reply = Vec::new();
        if let Received::Connection(_, input) =
            rig.endpoint.receive(rig.now, at, None, BytesMut::from(&datagram[..]), &mut reply)
        {
            let now = rig.now;
            rig.conn().handle_datagram(now, input);
        }
    }
    let mut news = 0;
    while rig.conn().poll().is_some() {
        news += 1;
    }
    assert!(news <= limits::MAX_QUEUED_EVENTS, "{news}");
}

#[test]
fn retirements_cost_the_endpoint_few_ids_for_each_datagram() {
    let mut rig = Rig::established_server(Setup::default());
    for _ in 0..50 {
        let cids: Vec<(u32, u64)> = rig.peer.issued.keys().map(|(p, s)| (p.0, *s)).filter(|(p, _)| *p > 0).collect();
        let payload: Vec<u8> = cids.iter().flat_map(|(p, s)| raw(&[0x3e79, u64::from(*p), *s], &[])).collect();
        rig.peer.issued.retain(|(p, _), _| p.0 == 0);
        let events = rig.endpoint_events.len();
        payload.chunks(1000).next().map(|_| ()).unwrap_or_default();
        rig.frames(payload);
        let registered = |e: &&EndpointEvent| matches!(e, EndpointEvent::Register { .. });
        assert!(rig.endpoint_events[events..].iter().filter(registered).count() <= 7 * limits::MAX_LOCAL_CIDS_PER_PATH);
        rig.pass(ms(30));
        rig.ack_all();
    }
    assert!(rig.is_open());
}

#[test]
fn ack_floods_with_every_range_that_fits() {
    let mut rig = Rig::established_server(Setup::default());
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 60_000]).unwrap();
    rig.pump();
    for _ in 0..2_000 {
        let ack = rig.peer.ack(plait_base::Space::Data, 0, plait_wire::frame::AckForm::Path).unwrap();
        rig.frames(ack.repeat(20));
        rig.seen.clear();
        rig.wire.clear();
    }
    assert!(rig.is_open());
}

#[test]
fn numbers_with_gaps_are_remembered_within_bounds() {
    // RFC 9000 13.2.3-1, 13.2.3-2: ranges are limited; acks of ours stay within a packet
    let mut rig = Rig::established_server(Setup::default());
    let first = rig.peer.next_number(plait_base::Space::Data, 0);
    for i in 0..4_000u64 {
        rig.send(Packet::one_rtt([0x01]).numbered(first + 2 * i));
    }
    for i in (0..4_000u64).rev() {
        rig.send(Packet::one_rtt(raw(&[0x31, 3], b"old")).numbered(first + 2 * i + 1));
        while rig.conn().datagrams().recv().is_some() {}
    }
    let largest = |f: &Frame<'_>| if let Frame::Ack(a) = f { a.range_count() } else { 0 };
    let ranges = rig.seen.iter().flat_map(|s| s.frames().iter().map(largest).collect::<Vec<_>>()).max();
    assert!(ranges.unwrap() <= limits::MAX_ACK_RANGES as u64);
    assert!(rig.is_open());
}

#[test]
fn a_peer_that_acknowledges_nothing_is_remembered_within_bounds() {
    // RFC 9000 13.2.4: the oldest of our acks are forgotten, and what must arrive is sent again
    let mut rig = Rig::established_server(Setup::default());
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(b"must arrive").unwrap();
    rig.pump();
    let first = rig.peer.next_number(plait_base::Space::Data, 0);
    let (mut pings, mut again) = (0, 0);
    rig.seen.clear();
    for i in 0..limits::MAX_UNANSWERED_ACKS as u64 + 100 {
        // With gaps, so that each is acknowledged at once.
        rig.send(Packet::one_rtt([0x01]).numbered(first + 2 * i));
        pings += rig.count(|f| matches!(f, Frame::Ping));
        again += rig.count(|f| matches!(f, Frame::Stream(f) if f.id == id));
        rig.seen.clear();
        rig.wire.clear();
    }
    assert!(pings <= 2, "one PING under way is enough: {pings}");
    assert_eq!(again, 1, "what was forgotten with them leaves again");
    // The peer comes to its senses: what is forgotten may still be acknowledged.
    rig.ack_all();
    assert!(rig.is_open());
}

/// Bytes in flight on path 0 beyond its window, and three datagrams of probes.
fn excess(rig: &mut Rig) -> u64 {
    let now = rig.now;
    let path = rig.conn().path_statistics(now, PathId::ZERO).unwrap();
    path.in_flight_bytes.saturating_sub(path.cwnd_bytes + 3 * 1200)
}

#[test]
fn pings_that_a_peer_asks_for_keep_to_the_window() {
    // RFC 9002 7-2
    let mut rig = Rig::established_server(Setup::default());
    rig.pass(ms(1000));
    rig.ack_all();
    rig.deaf = true;
    let mut sent = 0;
    for round in 0..2_000u64 {
        // A path that is a backup is asked whether it is there, and available again.
        let sequence = 2 * round + 1;
        rig.frames([raw(&[0x3e77, 0, sequence], &[]), raw(&[0x3e76, 0, sequence + 1], &[])].concat());
        sent += rig.wire.len();
        assert_eq!(excess(&mut rig), 0, "round {round}");
        rig.seen.clear();
        rig.wire.clear();
    }
    assert!((100..3_000).contains(&sent), "{sent}");
    assert!(rig.is_open());
}

#[test]
fn challenges_of_a_peer_that_moves_without_end_keep_to_the_window() {
    // RFC 9002 7-2
    for new_host in [false, true] {
        let mut rig = Rig::established_server(Setup::default());
        rig.pass(ms(1000));
        rig.ack_all();
        rig.deaf = true;
        for round in 0..2_000u64 {
            let host = if new_host { round % 250 } else { 9 };
            rig.send_all(tuple(&format!("203.0.113.{host}:{}", 1000 + round)), &[Packet::one_rtt([0x01]).padded(60)]);
            assert_eq!(excess(&mut rig), 0, "round {round}");
            rig.seen.clear();
            rig.wire.clear();
        }
        assert!(rig.is_open());
    }
}
