//! What a peer may not do, by name, and the limits on data and streams.

use plait_base::units::VARINT_MAX;
use plait_base::{Dir, Violation};

use super::*;
use crate::events::WriteError;

fn id(side: Side, dir: Dir, index: u64) -> StreamId {
    StreamId::new(side, dir, index)
}

fn bytes(n: usize) -> Bytes {
    vec![0; n].into()
}

#[test]
fn wrong_directions_are_stream_state_errors() {
    // RFC 9000 19.8-1, 19.10-2
    let (mut a, _) = pair(small());
    let ours = a.open(Dir::Uni).unwrap();
    // RFC 9000 19.4, 19.8, 19.13: frames of a sender for a stream on which only we send.
    assert_eq!(a.on_stream(ours, 0, false, bytes(1)), Err(Violation::SendOnReceiveOnlyStream));
    assert_eq!(a.on_reset_stream(ours, 0, 0), Err(Violation::SendOnReceiveOnlyStream));
    assert_eq!(a.on_stream_data_blocked(ours, 0), Err(Violation::SendOnReceiveOnlyStream));
    // RFC 9000 19.5-2, 19.10: frames of a receiver for a stream on which only the peer sends.
    let theirs = id(Side::Server, Dir::Uni, 0);
    assert_eq!(a.on_stop_sending(theirs, 0), Err(Violation::ControlOfSendOnlyStream));
    assert_eq!(a.on_max_stream_data(theirs, 9), Err(Violation::ControlOfSendOnlyStream));
}

#[test]
fn streams_that_we_never_opened_are_stream_state_errors() {
    // RFC 9000 19.5-1, 19.8-1, 19.10-1
    let (mut a, _) = pair(small());
    let never = id(Side::Client, Dir::Bi, 0);
    assert_eq!(a.on_stream(never, 0, false, bytes(1)), Err(Violation::StreamNeverOpened));
    assert_eq!(a.on_stop_sending(never, 0), Err(Violation::StreamNeverOpened));
    assert_eq!(a.on_max_stream_data(never, 0), Err(Violation::StreamNeverOpened));
    assert_eq!(a.on_reset_stream(never, 0, 0), Err(Violation::StreamNeverOpened));
    assert_eq!(a.on_stop_sending(id(Side::Client, Dir::Uni, 0), 0), Err(Violation::StreamNeverOpened));
}

#[test]
fn streams_beyond_the_limit_are_stream_limit_errors() {
    // RFC 9000 3.2, 4.6-3, 19.11-4
    let (mut a, _) = pair(small());
    for dir in Dir::ALL {
        assert_eq!(a.on_stream(id(Side::Server, dir, 4), 0, false, bytes(1)), Err(Violation::StreamCount));
        assert_eq!(a.on_stream(id(Side::Server, dir, 3), 0, false, bytes(1)), Ok(()));
        // RFC 9000 2.1: opening one opens all below it.
        let accepted: Vec<_> = std::iter::from_fn(|| a.accept(dir)).map(StreamId::index).collect();
        assert_eq!(accepted, [0, 1, 2, 3]);
    }
    assert_eq!(a.on_max_streams(Dir::Bi, (1 << 60) + 1), Err(Violation::StreamCountTooLarge));
    assert_eq!(a.on_streams_blocked(Dir::Uni, (1 << 60) + 1), Err(Violation::StreamCountTooLarge));
    assert_eq!(a.on_max_streams(Dir::Bi, 1 << 60), Ok(()));
}

#[test]
fn final_sizes_hold() {
    let fresh = || (pair(small()).0, id(Side::Server, Dir::Bi, 0));
    let (mut a, s) = fresh();
    a.on_stream(s, 0, true, bytes(10)).unwrap();
    // RFC 9000 4.5
    assert_eq!(a.on_stream(s, 5, true, bytes(6)), Err(Violation::FinalSizeChanged));
    assert_eq!(a.on_stream(s, 5, true, bytes(1)), Err(Violation::FinalSizeChanged));
    assert_eq!(a.on_stream(s, 5, false, bytes(6)), Err(Violation::DataBeyondFinalSize));
    assert_eq!(a.on_reset_stream(s, 0, 11), Err(Violation::FinalSizeChanged));
    assert_eq!(a.on_stream(s, 5, true, bytes(5)), Ok(()));
    assert_eq!(a.on_reset_stream(s, 0, 10), Ok(()), "all data is here: ignored");
    assert_eq!(a.read_all(s).0.len(), 10);

    let (mut a, s) = fresh();
    a.on_stream(s, 100, false, bytes(10)).unwrap();
    assert_eq!(a.on_stream(s, 0, true, bytes(10)), Err(Violation::FinalSizeBelowData));
    assert_eq!(a.on_reset_stream(s, 0, 109), Err(Violation::FinalSizeBelowData));
    assert_eq!(a.on_reset_stream(s, 0, 110), Ok(()));
    assert_eq!(a.on_stream(s, 0, false, bytes(111)), Err(Violation::DataBeyondFinalSize));

    let (mut a, s) = fresh();
    assert_eq!(a.on_stream(s, VARINT_MAX, false, bytes(1)), Err(Violation::OffsetTooLarge));
}

#[test]
fn data_beyond_flow_control_is_refused() {
    // RFC 9000 19.9-2, 19.10-4
    let (mut a, _) = pair(small());
    let (s, t) = (id(Side::Server, Dir::Bi, 0), id(Side::Server, Dir::Bi, 1));
    assert_eq!(a.on_stream(s, 1000, false, bytes(1)), Err(Violation::StreamFlowControl));
    assert_eq!(a.on_reset_stream(s, 0, 1001), Err(Violation::StreamFlowControl));
    // RFC 9000 4.1-2: the connection counts the highest offset, gaps included.
    a.on_stream(s, 999, false, bytes(1)).unwrap();
    a.on_stream(s, 0, false, bytes(1000)).unwrap();
    assert_eq!(a.on_stream(t, 500, false, bytes(1)), Err(Violation::ConnectionFlowControl));
    assert_eq!(a.on_reset_stream(t, 0, 501), Err(Violation::ConnectionFlowControl));
    assert_eq!(a.on_stream(t, 499, false, bytes(1)), Ok(()));
}

#[test]
fn a_reset_stream_counts_to_its_final_size_and_returns_its_credit() {
    // RFC 9000 4.5-1
    let (mut a, _) = pair(small());
    let s = id(Side::Server, Dir::Uni, 0);
    a.on_stream(s, 0, false, bytes(10)).unwrap();
    a.on_reset_stream(s, 7, 900).unwrap();
    assert_eq!(a.receive.received(), 900);
    assert_eq!(a.receive.consumed(), 900);
    assert_eq!(a.read(s, 9, Order::Ordered), Err(ReadError::Reset(7)));
    assert_eq!(a.read(s, 9, Order::Ordered), Err(ReadError::ClosedStream));
    a.on_stream(s, 0, false, bytes(10)).unwrap();
    assert_eq!(a.receive.received(), 900, "late frames of a closed stream change nothing");
    assert!(a.wants_control());
}

#[test]
fn blocked_writers_say_so_and_go_on_with_credit() {
    // RFC 9000 2.2-3, 4.1-1, 19.10-3
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Bi).unwrap();
    assert_eq!(a.write(s, &[1; 2000]), Ok(1000));
    assert_eq!(a.write(s, &[1; 10]), Err(WriteError::Blocked));
    let (p, carried) = a.packet(3000);
    assert!(carried.contains(&SentFrame::StreamDataBlocked(s, 1000)));
    deliver(p, &mut b).unwrap();
    a.acked(&carried);
    assert_eq!(b.read_all(s).0.len(), 1000);
    flush(&mut b, &mut a);
    assert!(a.events().contains(&StreamEvent::Writable(s)));
    assert_eq!(a.write(s, &[1; 2000]), Ok(1000));

    // Two more streams: now the connection's 1500 + 1000 bytes bind.
    let t = a.open(Dir::Bi).unwrap();
    assert_eq!(a.write(t, &[2; 1000]), Ok(1000));
    assert_eq!(a.unsent_bytes(), 1500);
    flush(&mut a, &mut b);
    assert_eq!((a.send_credit(), a.unsent_bytes()), (0, 0));
    assert_eq!(a.send.blocked_at, Some(2500));
    let _ = b.read_all(s);
    let _ = b.read_all(t);
    flush(&mut b, &mut a);
    assert_eq!(a.unsent_bytes(), 500);
    flush(&mut a, &mut b);
    assert_eq!(b.read_all(t).0.len() + b.read_all(s).0.len(), 500);
}

#[test]
fn the_narrowest_limit_is_the_room() {
    let config = StreamsConfig { window: Window::fixed(5000), send_window: 1400, ..small() };
    let (mut a, mut b) = pair(config);
    assert_eq!(a.send_room(), 5000, "no stream is in use");
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 300]).unwrap();
    assert_eq!(a.send_room(), 1000, "the stream's limit");
    let (p, first) = a.packet(250);
    let sent = 300 - a.unsent_bytes();
    assert_eq!(a.send_room(), 1000 - sent);
    let t = a.open(Dir::Bi).unwrap();
    a.write(t, &[2; 300]).unwrap();
    assert_eq!(a.send_room(), 1400 - sent, "the send buffer, of which what is under way holds a part");
    deliver(p, &mut b).unwrap();
    a.acked(&first);
    assert_eq!(a.send_room(), 1400);
    a.finish(s).unwrap();
    assert_eq!(a.send_room(), 1300 - sent, "what is left of one stream, and the limit of the other");
    a.finish(t).unwrap();
    assert_eq!(a.send_room(), 5000 - sent, "nothing more follows");
    a.assert_sums();
}

#[test]
fn lost_updates_are_sent_again_with_their_present_value() {
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 1000]).unwrap();
    flush(&mut a, &mut b);
    let _ = b.read_all(s);
    let (_, first) = b.packet(1200);
    assert_eq!(first, [SentFrame::MaxData(2500), SentFrame::MaxStreamData(s, 2000)]);
    let mut updates = Vec::new();
    b.poll_window_updates(&mut updates);
    assert_eq!(updates, first);
    let (p, copy) = packet(100, |w| updates.iter().for_each(|u| assert_eq!(b.fill_copy(w, u), None)));
    assert_eq!(copy, first);
    assert!(!b.wants_control());
    b.lost(&first);
    assert_eq!(b.packet(1200).1, first);
    deliver(p, &mut a).unwrap();
    assert_eq!(a.send_credit(), 1500);
    b.lost(&[SentFrame::MaxData(1500), SentFrame::MaxStreamData(s, 1000), SentFrame::MaxStreams(Dir::Bi, 1)]);
    assert!(!b.wants_control(), "older values are of no use");
}

#[test]
fn ended_streams_make_room_for_new_ones() {
    // RFC 9000 2.1, 4.6-2, 19.11-3
    let (mut a, mut b) = pair(small());
    let mut opened = 0;
    for _ in 0..20 {
        while let Some(s) = a.open(Dir::Uni) {
            opened += 1;
            a.write(s, b"x").unwrap();
            a.finish(s).unwrap();
        }
        flush(&mut a, &mut b);
        while let Some(s) = b.accept(Dir::Uni) {
            assert_eq!(b.read_all(s), (b"x".to_vec(), Ok(())));
        }
        flush(&mut b, &mut a);
        assert!(a.events().contains(&StreamEvent::Available(Dir::Uni)));
    }
    assert_eq!((opened, a.table.len(), b.table.len()), (80, 0, 0));
}

#[test]
fn a_stream_limit_only_grows() {
    // RFC 9000 4.6-4, 19.11-2
    let (mut a, _) = pair(small());
    a.on_max_streams(Dir::Uni, 6).unwrap();
    a.on_max_streams(Dir::Uni, 5).unwrap();
    a.on_max_streams(Dir::Uni, 0).unwrap();
    assert_eq!(std::iter::from_fn(|| a.open(Dir::Uni)).count(), 6);
}

#[test]
fn refused_early_data_starts_over() {
    // RFC 9000 2.1, 7.4.1-8; RFC 9001 4.6.2-2
    let (mut a, _) = pair(small());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 500]).unwrap();
    let (_, carried) = a.packet(1200);
    a.on_early_data_rejected();
    a.assert_sums();
    assert_eq!((a.open(Dir::Bi), a.unsent_bytes(), a.write(s, b"x")), (None, 0, Err(WriteError::ClosedStream)));
    a.set_peer_limits(&small().announced());
    assert_eq!(a.events(), [StreamEvent::Available(Dir::Bi)]);
    assert_eq!(a.open(Dir::Bi), Some(s), "ids start over");
    a.lost(&carried);
    assert_eq!(a.unsent_bytes(), 0, "nothing of it was sent since");
}

#[test]
fn who_waits_to_open_a_stream_still_does_after_a_refusal() {
    let (mut a, _) = pair(small());
    while a.open(Dir::Uni).is_some() {}
    a.on_early_data_rejected();
    assert!(a.wants_control(), "STREAMS_BLOCKED, where the server allows none now");
    a.set_peer_limits(&small().announced());
    assert_eq!(a.events(), [StreamEvent::Available(Dir::Uni)]);
    assert!(!a.wants_control());
}

#[test]
fn accepted_early_data_goes_on_with_larger_limits() {
    // RFC 9000 7.4.1-9
    let mut a = Streams::new(Side::Client, small());
    a.set_peer_limits(&small().announced());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 1000]).unwrap();
    assert_eq!(a.write(s, b"x"), Err(WriteError::Blocked));
    a.set_peer_limits(&PeerLimits { max_stream_data_bidi_remote: 2000, ..small().announced() });
    assert_eq!(a.events(), [StreamEvent::Writable(s)]);
    assert_eq!(a.write(s, &[1; 2000]), Ok(1000));
}

/// Bytes behind gaps, over many streams in turn, until one is refused; `read` may read each that is taken. More than are allowed on one
/// stream are taken, and less than twice as many.
fn fill_behind_gaps(mut read: impl FnMut(&mut Streams, StreamId)) {
    let (mut a, mut b) = pair(StreamsConfig::default());
    let ids: Vec<_> = (0..200).map(|_| a.open(Dir::Uni).unwrap()).collect();
    let allowed = crate::reassembly::max_fragments(StreamsConfig::default().window.first);
    let mut result = Ok(());
    let mut count = 0;
    while result.is_ok() {
        let (id, at) = (ids[count % ids.len()], 1 + 2 * (count / ids.len()) as u64);
        result = b.on_stream(id, at, false, Bytes::from_static(b"x"));
        if result.is_ok() {
            read(&mut b, id);
        }
        count += 1;
        assert!(count < 2 * allowed, "without end");
    }
    assert_eq!(result, Err(Violation::StreamTooFragmented));
    assert!(count > allowed);
}

/// Credit counts offsets, so that a byte behind a gap costs the peer two; over many streams as on one they are bounded.
#[test]
fn pieces_beyond_gaps_are_bounded_over_all_streams() {
    fill_behind_gaps(|_, _| {});
}

/// What was read beyond a gap is remembered as a range: those are bounded over all streams too.
#[test]
fn ranges_read_beyond_gaps_are_bounded_over_all_streams() {
    // Nothing waits: the range alone is left of it.
    fill_behind_gaps(|streams, id| assert!(streams.read(id, 9, Order::Unordered).is_ok()));
}

/// Nothing but an unread byte may be left of a datagram; settling touches the streams that were lent something.
#[test]
fn unread_data_of_many_streams_settles() {
    let (mut a, mut b) = pair(StreamsConfig::default());
    let datagram = Bytes::from(vec![7; 30_000]);
    let ids: Vec<_> = (0..20).map(|_| a.open(Dir::Uni).unwrap()).collect();
    for (i, &id) in ids.iter().enumerate() {
        b.on_stream(id, 0, false, datagram.slice(i * 1000..(i + 1) * 1000)).unwrap();
    }
    assert_eq!(b.lent_bytes(), 20_000);
    assert_eq!(b.read(ids[3], 400, Order::Ordered).unwrap().unwrap().bytes.len(), 400);
    b.on_reset_stream(ids[4], 1, 1000).unwrap();
    b.stop(ids[5], 1).unwrap();
    assert_eq!(b.lent_bytes(), 20_000 - 400 - 2_000);
    b.settle();
    assert_eq!((b.lent_bytes(), datagram.is_unique()), (0, true));
    assert_eq!(b.read(ids[3], 4_000, Order::Ordered).unwrap().unwrap().bytes.len(), 600);
}

/// RFC 9000 4.1: reading several pieces at once gives the credit that reading them one by one gives.
#[test]
fn pieces_read_at_once_are_those_read_one_by_one() {
    let (mut a, mut b) = pair(small());
    let id = a.open(Dir::Uni).unwrap();
    for (offset, fin) in [(0, false), (100, false), (200, false), (300, true)] {
        b.on_stream(id, offset, fin, Bytes::from(vec![(offset / 100) as u8; 100])).unwrap();
    }
    let mut taken = Vec::new();
    // No piece is longer than was asked for; what is small lies together.
    let more = b.read_each(id, 150, Order::Ordered, |chunk| {
        taken.push((chunk.offset, chunk.bytes.len()));
        if taken.len() == 1 { 30 } else { 0 }
    });
    assert_eq!((more, &taken[..]), (Ok(true), &[(0, 150), (150, 30)][..]));
    assert_eq!(b.receive.consumed(), 180);
    let mut rest = 0;
    let more = b.read_each(id, usize::MAX, Order::Ordered, |chunk| {
        rest += chunk.bytes.len();
        usize::MAX
    });
    assert_eq!((more, rest, b.receive.consumed()), (Ok(false), 220, 400));
    let never = |_: crate::Chunk| -> usize { panic!("the stream is over") };
    assert_eq!(b.read_each(id, 1, Order::Ordered, never), Err(ReadError::ClosedStream));
    b.assert_sums();
}

/// RFC 9000 4.1, 4.5: frames that follow each other count as one, whatever they break.
#[test]
fn a_run_of_frames_is_checked_as_a_whole() {
    let run = |lens: &[usize]| lens.iter().map(|len| Bytes::from(vec![1; *len])).collect::<Vec<_>>();
    let (mut a, mut b) = pair(small());
    let id = a.open(Dir::Uni).unwrap();
    b.on_stream_run(id, 0..900, false, run(&[300, 300, 300])).unwrap();
    assert_eq!(b.on_stream_run(id, 900..1_100, false, run(&[100, 100])), Err(Violation::StreamFlowControl));
    b.on_stream_run(id, 900..1_000, true, run(&[50, 50])).unwrap();
    assert_eq!(b.on_stream_run(id, 1_000..1_010, false, run(&[5, 5])), Err(Violation::DataBeyondFinalSize));
    let other = a.open(Dir::Uni).unwrap();
    assert_eq!(b.on_stream_run(other, 0..600, false, run(&[300, 300])), Err(Violation::ConnectionFlowControl));
    // The same bytes once more change nothing.
    b.on_stream_run(id, 0..600, false, run(&[300, 300])).unwrap();
    assert_eq!(b.read_all(id), (vec![1; 1_000], Ok(())));
    assert_eq!(b.receive.received(), 1_000);
    b.assert_sums();
}
