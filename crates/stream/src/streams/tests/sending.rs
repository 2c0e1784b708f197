//! Who sends when, in which frames, and what copies do.

use plait_base::Dir;

use super::*;
use crate::events::WriteError;

#[test]
fn a_bulk_stream_fills_each_packet_to_its_last_byte() {
    let (mut a, mut b) = pair(StreamsConfig::default());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &vec![3; 100_000]).unwrap();
    while a.unsent_bytes() > 0 {
        let full = a.unsent_bytes() > 1300;
        let (p, carried) = a.packet(1200);
        assert!(carried.len() == 1 && (!full || p.len() == 1200));
        assert!(!full || p[0] & 2 == 0, "no length in a frame that reaches the end");
        deliver(p, &mut b).unwrap();
    }
    assert_eq!(b.read_all(s).0.len(), 100_000);
}

#[test]
fn short_frames_share_a_packet() {
    let (mut a, mut b) = pair(small());
    let ids: Vec<_> = (0..4).map(|_| a.open(Dir::Bi).unwrap()).collect();
    for &s in &ids {
        a.write(s, &[s.0 as u8; 20]).unwrap();
        a.finish(s).unwrap();
    }
    let (p, carried) = a.packet(1200);
    assert_eq!(carried.len(), 4);
    assert!(deliver(p, &mut b).unwrap().iter().all(|f| f.fin && f.data == vec![f.id.0 as u8; 20]));
}

#[test]
fn higher_priorities_first_and_equals_take_turns() {
    let (mut a, _) = pair(StreamsConfig::default());
    let ids: Vec<_> = (0..4).map(|_| a.open(Dir::Bi).unwrap()).collect();
    for &s in &ids {
        a.write(s, &vec![0; 50_000]).unwrap();
    }
    a.set_priority(ids[3], 7).unwrap();
    a.set_priority(ids[0], -1).unwrap();
    assert_eq!(a.priority(ids[3]), Ok(7));
    let mut order = Vec::new();
    while a.unsent_bytes() > 0 {
        order.extend(a.packet(1200).1.iter().map(|c| match c {
            SentFrame::Stream { id, len, .. } => (*id, u64::from(*len)),
            other => panic!("{other:?}"),
        }));
    }
    let first = |id| order.iter().position(|x| x.0 == id).unwrap();
    let last = |id| order.iter().rposition(|x| x.0 == id).unwrap();
    assert!(last(ids[3]) <= first(ids[1]) && last(ids[2]) <= first(ids[0]));
    let (mut one, mut two) = (0u64, 0u64);
    for &(id, len) in order.iter().filter(|x| x.0 == ids[1] || x.0 == ids[2]) {
        *(if id == ids[1] { &mut one } else { &mut two }) += len;
        assert!(one.abs_diff(two) <= 1200, "unfair: {one} {two}");
    }
}

#[test]
fn a_stream_without_credit_does_not_hold_back_lost_data_of_others() {
    let (mut a, mut b) = pair(small());
    let (s, t) = (a.open(Dir::Bi).unwrap(), a.open(Dir::Bi).unwrap());
    a.write(s, &[1; 1000]).unwrap();
    let (_, lost) = a.packet(1200);
    a.write(t, &[2; 1000]).unwrap();
    flush(&mut a, &mut b);
    assert_eq!((a.send_credit(), a.unsent_bytes()), (0, 0));
    a.lost(&lost);
    a.lost(&lost);
    assert_eq!(a.unsent_bytes(), 1000, "counted once");
    assert_eq!(flush(&mut a, &mut b).iter().map(|f| f.data.len()).sum::<usize>(), 1000);
    assert_eq!(b.read_all(s).0, [1; 1000]);
}

#[test]
fn waiting_lists_hold_each_stream_once() {
    let (mut a, _) = pair(StreamsConfig { send_window: 700, ..small() });
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 700]).unwrap();
    let (_, data) = a.packet(1200);
    for i in 0..100 {
        assert_eq!(a.write(s, b"x"), Err(WriteError::Blocked));
        a.on_max_stream_data(s, 2000 + i).unwrap();
        a.lost(&data);
        a.packet(1200);
    }
    assert_eq!(a.waiting_writers.len(), 1);

    let (mut a, _) = pair(small());
    let (s, t) = (a.open(Dir::Bi).unwrap(), a.open(Dir::Bi).unwrap());
    a.write(s, &[1; 1000]).unwrap();
    a.write(t, &[1; 1000]).unwrap();
    let (_, data) = a.packet(3000);
    for _ in 0..100 {
        a.lost(&data);
        a.packet(3000);
    }
    assert_eq!(a.blocked, [t]);
    a.on_max_data(3000);
    assert_eq!(a.unsent_bytes(), 500);
    assert!(a.blocked.is_empty());
}

#[test]
fn the_send_window_bounds_what_is_buffered() {
    let config = StreamsConfig { send_window: 1000, ..StreamsConfig::default() };
    let (mut a, mut b) = pair(config);
    let (s, t) = (a.open(Dir::Bi).unwrap(), a.open(Dir::Bi).unwrap());
    assert_eq!(a.write(s, &[0; 5000]), Ok(1000));
    assert_eq!(a.write(t, &[0; 1]), Err(WriteError::Blocked));
    let mut chunks = [Bytes::from(vec![5; 700]), Bytes::from(vec![6; 700])];
    assert_eq!(a.write_chunks(s, &mut chunks), Err(WriteError::Blocked));
    flush(&mut a, &mut b);
    assert_eq!(a.events(), [StreamEvent::Writable(t), StreamEvent::Writable(s)]);
    assert_eq!(a.write_chunks(s, &mut chunks), Ok(1000));
    assert_eq!((chunks[0].len(), chunks[1].len()), (0, 400));
    assert_eq!(a.send_buffer_room(), 0);
}

#[test]
fn pitfall_21_copies_fit_smaller_datagrams_and_carry_only_what_is_unacked() {
    let (mut a, mut b) = pair(StreamsConfig::default());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[9; 3000]).unwrap();
    a.finish(s).unwrap();
    let (_, first) = a.packet(4000);
    let SentFrame::Stream { id, .. } = first[0] else { panic!() };
    a.acked(&[SentFrame::Stream { id, offset: 1000, len: 1000, fin: false }]);
    let (p, copy) = packet(2000, |w| {
        let Some(rest) = a.fill_copy(w, &first[0]) else { panic!("does not fit") };
        let (p, copy) = packet(2000, |w| assert_eq!(a.fill_copy(w, &rest), None));
        assert!(deliver(p, &mut b).unwrap().iter().any(|f| f.fin));
        a.acked(&copy);
    });
    let ranges: Vec<_> = deliver(p, &mut b).unwrap().iter().map(|f| (f.offset, f.data.len() as u64)).collect();
    assert!(ranges[0] == (0, 1000) && ranges[1].0 == 2000);
    a.acked(&copy);
    assert_eq!(a.events(), [StreamEvent::Finished(s)]);
    // All is acked: the first packet's fate no longer matters.
    a.lost(&first);
    let (_, none) = packet(2000, |w| assert_eq!(a.fill_copy(w, &first[0]), None));
    assert!(none.is_empty() && a.unsent_bytes() == 0);
}

#[test]
fn a_copy_of_lost_data_is_its_retransmission() {
    let (mut a, _) = pair(StreamsConfig::default());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[9; 300]).unwrap();
    a.finish(s).unwrap();
    let (_, first) = a.packet(1200);
    a.lost(&first);
    assert_eq!(a.unsent_bytes(), 300);
    let (_, copy) = packet(1200, |w| assert_eq!(a.fill_copy(w, &first[0]), None));
    assert_eq!(copy, first);
    a.assert_sums();
    assert_eq!(a.unsent_bytes(), 0);
    let (_, none) = packet(2, |w| assert_eq!(a.fill_copy(w, &first[0]), Some(first[0])));
    assert!(none.is_empty());
}

#[test]
fn windows_grow_for_a_fast_reader_and_stay_for_a_slow_one() {
    let config = StreamsConfig::default();
    for (step_ms, grows) in [(1, true), (5000, false)] {
        let (mut a, mut b) = pair(config);
        b.on_rtt(std::time::Duration::from_millis(50));
        let s = a.open(Dir::Uni).unwrap();
        let mut now = Instant::ZERO;
        for _ in 0..400 {
            let _ = a.write(s, &vec![0; 1 << 19]);
            flush(&mut a, &mut b);
            let _ = b.read_all(s);
            now += std::time::Duration::from_millis(step_ms);
            let (p, carried) = packet(1200, |w| b.fill_control(now, w));
            deliver(p, &mut a).unwrap();
            b.acked(&carried);
        }
        let window = b.table.receive(s).unwrap().credit.window();
        let expected = if grows { (config.stream_window.max, config.window.max) } else { (1 << 20, 3 << 19) };
        assert_eq!((window, b.receive.window()), expected);
    }
}

/// What is late on one path must not stop another: the window widens while only a gap keeps data from the reader.
#[test]
fn windows_grow_for_data_beyond_a_gap_but_not_for_a_reader_that_is_late() {
    let config = StreamsConfig {
        stream_window: Window { first: 1 << 20, max: 4 << 20 },
        window: Window { first: 3 << 19, max: 5 << 20 },
        ..StreamsConfig::default()
    };
    for has_gap in [true, false] {
        let (mut a, mut b) = pair(config);
        let s = a.open(Dir::Uni).unwrap();
        let (mut offset, mut limit) = (u64::from(has_gap), 1 << 20);
        for _ in 0..8 {
            while offset + 1000 <= limit {
                b.on_stream(s, offset, false, Bytes::from(vec![0; 1000])).unwrap();
                offset += 1000;
            }
            let (p, carried) = packet(1200, |w| b.fill_control(Instant::ZERO, w));
            deliver(p, &mut a).unwrap();
            b.acked(&carried);
            limit = b.table.receive(s).unwrap().credit.limit();
        }
        let windows = (b.table.receive(s).unwrap().credit.window(), b.receive.window());
        assert_eq!(windows, if has_gap { (4 << 20, 5 << 20) } else { (1 << 20, 3 << 19) });
    }
}
