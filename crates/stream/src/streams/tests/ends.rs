//! How streams end: finished, reset, stopped.

use plait_base::Dir;

use super::*;
use crate::events::{ClosedStream, WriteError};

#[test]
fn finish_is_told_once_all_is_acked_and_the_stream_is_gone() {
    // RFC 9000 3.3-1, 4.5-2
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, b"ping").unwrap();
    flush(&mut a, &mut b);
    a.finish(s).unwrap();
    assert_eq!(a.unsent_bytes(), 1, "a lone end");
    assert_eq!(a.finish(s), Err(WriteError::ClosedStream));
    assert_eq!(a.write(s, b"x"), Err(WriteError::ClosedStream));
    let (p, end) = a.packet(1200);
    a.lost(&end);
    assert_eq!(a.unsent_bytes(), 1);
    let (_, end) = a.packet(1200);
    deliver(p, &mut b).unwrap();
    assert_eq!(b.events(), [StreamEvent::Opened(Dir::Bi), StreamEvent::Readable(s)]);
    assert_eq!(b.read_all(s), (b"ping".to_vec(), Ok(())));
    a.acked(&end);
    assert_eq!(a.events(), [StreamEvent::Finished(s)]);
    b.finish(s).unwrap();
    flush(&mut b, &mut a);
    assert_eq!(a.read_all(s), (vec![], Ok(())));
    assert_eq!((a.table.len(), b.table.len()), (0, 0));
    a.events();
    a.lost(&end);
    a.acked(&end);
    assert!(a.events().is_empty() && !a.wants_control());
}

#[test]
fn reset_drops_what_was_not_sent_and_says_what_was() {
    // RFC 9000 3.3-2, 13.3-1, 19.9-1
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Uni).unwrap();
    a.write(s, &[1; 1000]).unwrap();
    let (p, data) = a.packet(503);
    deliver(p, &mut b).unwrap();
    a.reset(s, 42).unwrap();
    assert_eq!(a.reset(s, 43), Err(ClosedStream));
    assert_eq!((a.unsent_bytes(), a.send_buffer_room()), (0, 4000));
    let (p, reset) = a.packet(1200);
    assert_eq!(reset, [SentFrame::ResetStream(s)]);
    a.lost(&data);
    a.lost(&reset);
    assert_eq!(a.packet(1200).1, reset, "resets are sent again, data is not");
    deliver(p, &mut b).unwrap();
    assert_eq!(b.received_reset(s), Ok(Some(42)));
    assert_eq!(b.receive.received(), b.receive.consumed());
    assert_eq!(b.receive.received(), a.send.used, "both ends count the same");
    a.acked(&data);
    assert_eq!(a.table.len(), 1);
    assert_eq!(a.events(), []);
    a.acked(&reset);
    assert_eq!(a.events(), [StreamEvent::Reset(s)]);
    assert_eq!((a.table.len(), b.table.len()), (0, 0));
}

#[test]
fn stop_is_answered_by_a_reset_with_its_code() {
    // RFC 9000 4.4
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Bi).unwrap();
    a.write(s, &[1; 600]).unwrap();
    flush(&mut a, &mut b);
    b.stop(s, 9).unwrap();
    assert_eq!(b.stop(s, 9), Err(ClosedStream));
    assert_eq!(b.read(s, 1, Order::Ordered), Err(ReadError::ClosedStream));
    let (_, stop) = b.packet(40);
    assert_eq!(stop[0], SentFrame::StopSending(s));
    b.lost(&stop);
    a.write(s, &[1; 300]).unwrap();
    flush(&mut a, &mut b);
    assert_eq!(b.receive.consumed(), 900, "what arrives after the stop is credited at once");
    flush(&mut b, &mut a);
    // RFC 9000 3.5
    assert_eq!(a.events(), [StreamEvent::Stopped { id: s, code: 9 }]);
    assert_eq!(a.stopped(s), Ok(Some(9)));
    assert_eq!(a.write(s, b"x"), Err(WriteError::Stopped(9)));
    assert_eq!(a.finish(s), Err(WriteError::Stopped(9)));
    flush(&mut a, &mut b);
    b.lost(&stop);
    assert!(!b.wants_control(), "the reset came");
    b.finish(s).unwrap();
    flush(&mut b, &mut a);
    assert_eq!(a.read_all(s).1, Ok(()));
    assert_eq!((a.table.len(), b.table.len()), (0, 0));
}

#[test]
fn a_stop_of_a_half_that_was_let_go_is_answered_and_not_told() {
    let (mut a, mut b) = pair(small());
    let (s, finished) = (a.open(Dir::Uni).unwrap(), a.open(Dir::Uni).unwrap());
    a.write(s, &[1; 600]).unwrap();
    a.write(finished, &[1; 400]).unwrap();
    a.finish(finished).unwrap();
    let _lost = a.packet(1200);
    assert_eq!(a.let_go(s), Ok(()));
    assert_eq!(a.let_go(finished), Err(WriteError::ClosedStream));
    for id in [s, finished] {
        a.on_stop_sending(id, 9).unwrap();
    }
    assert_eq!(a.events(), []);
    flush(&mut a, &mut b);
    assert_eq!(a.table.len(), 0);
}

#[test]
fn stop_after_all_data_says_nothing() {
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Uni).unwrap();
    a.write(s, &[1; 600]).unwrap();
    a.finish(s).unwrap();
    flush(&mut a, &mut b);
    b.stop(s, 9).unwrap();
    assert!(b.pending.stops.is_empty() && b.table.len() == 0);
}

#[test]
fn readable_is_told_once_until_a_read_blocks() {
    let (mut a, mut b) = pair(small());
    let s = a.open(Dir::Uni).unwrap();
    for _ in 0..3 {
        a.write(s, b"x").unwrap();
        flush(&mut a, &mut b);
    }
    assert_eq!(b.events(), [StreamEvent::Opened(Dir::Uni), StreamEvent::Readable(s)]);
    assert_eq!(b.read_all(s), (b"xxx".to_vec(), Err(ReadError::Blocked)));
    a.write(s, b"y").unwrap();
    flush(&mut a, &mut b);
    assert_eq!(b.events(), [StreamEvent::Readable(s)]);
    assert_eq!(b.read_all(s).0, b"y");
    a.reset(s, 3).unwrap();
    flush(&mut a, &mut b);
    assert_eq!(b.events(), [StreamEvent::Readable(s)]);
    assert_eq!(b.read_all(s).1, Err(ReadError::Reset(3)));
}
