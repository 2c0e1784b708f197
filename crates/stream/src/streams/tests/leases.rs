//! Stream data on loan: the same bytes, credit and ends as in packets, whatever becomes of the leases.

use plait_base::{Dir, Random};

use super::*;
use crate::lease::{Lease, LeaseWriter};

/// Lends up to `room` bytes.
fn lend(from: &mut Streams, room: usize) -> Vec<Lease> {
    let mut w = LeaseWriter::new(room);
    from.lend(Lanes::ALL, &mut w);
    from.assert_sums();
    w.into_leases()
}

/// A packet of what leases hold; those that are over are ended.
fn cut(from: &mut Streams, leases: &mut Vec<Lease>, room: usize) -> (Bytes, Vec<SentFrame>) {
    let made = packet(room, |w| {
        while leases.first_mut().is_some_and(|lease| lease.fill(w)) {
            if leases[0].is_over() {
                let over = leases.remove(0);
                from.on_leases_ended(over.id(), over.parts());
            }
        }
    });
    assert!(!made.1.is_empty(), "a packet has room for something");
    made
}

#[test]
fn leases_bring_the_same_bytes_and_spend_the_same_credit_as_packets() {
    let mut random = Random::from_u64(29);
    for round in 0..60 {
        let ((mut a, mut b), (mut c, mut d)) = (pair(small()), pair(small()));
        let ids: Vec<StreamId> = (0..3).map(|_| (a.open(Dir::Bi).unwrap(), c.open(Dir::Bi).unwrap()).0).collect();
        let mut written = vec![Vec::new(); ids.len()];
        let (mut read, mut lent) = (vec![Vec::new(); ids.len()], Vec::new());
        for step in 0..200 {
            let which = random.below(ids.len() as u64) as usize;
            let data: Vec<u8> = (0..random.below(900)).map(|at| (at + step + round) as u8).collect();
            if step < 120 {
                let taken = a.write(ids[which], &data).unwrap_or(0);
                let same = c.write(ids[which], &data[..taken]).unwrap_or(0);
                assert_eq!(taken, same, "the same room for writes");
                written[which].extend_from_slice(&data[..taken]);
            } else if step == 120 {
                ids.iter().for_each(|id| (a.finish(*id).unwrap(), c.finish(*id).unwrap()).0);
            }
            flush(&mut a, &mut b);
            lent.extend(lend(&mut c, random.below(3000) as usize + 20));
            if random.below(3) == 0 {
                // Never left: comes back and goes out again.
                for lease in lent.drain(..) {
                    lease.unsent().for_each(|frame| c.on_lost(&frame));
                    c.on_leases_ended(lease.id(), lease.parts());
                }
                lent.extend(lend(&mut c, 100_000));
            }
            while !lent.is_empty() {
                let (bytes, carried) = cut(&mut c, &mut lent, random.below(600) as usize + 40);
                deliver(bytes, &mut d).unwrap();
                c.acked(&carried);
            }
            lent.extend(lend(&mut c, 100_000));
            while !lent.is_empty() {
                let (bytes, carried) = cut(&mut c, &mut lent, 1200);
                deliver(bytes, &mut d).unwrap();
                c.acked(&carried);
            }
            assert_eq!((a.send_credit(), a.acked_bytes()), (c.send_credit(), c.acked_bytes()), "credit to the byte");
            for (id, got) in ids.iter().zip(&mut read) {
                let (bytes, _) = b.read_all(*id);
                assert_eq!(bytes, d.read_all(*id).0);
                got.extend(bytes);
            }
            flush(&mut b, &mut a);
            flush(&mut d, &mut c);
        }
        assert_eq!(read, written, "round {round}");
        let ends = |streams: &mut Streams| {
            streams.events().iter().filter(|event| matches!(event, StreamEvent::Finished(_))).count()
        };
        assert_eq!((ends(&mut a), ends(&mut c)), (3, 3), "each end was said once");
    }
}

#[test]
fn a_limit_with_room_for_one_byte_lends_one_byte() {
    // RFC 9000 4.1-3
    let (mut a, _) = pair(StreamsConfig { window: Window::fixed(1), ..small() });
    let s = a.open(Dir::Uni).unwrap();
    a.write(s, &[7; 10]).unwrap();
    let leases = lend(&mut a, 1000);
    assert_eq!(leases.iter().map(Lease::unsent_bytes).sum::<u64>(), 1);
    assert_eq!(a.send_credit(), 0);
    assert!(lend(&mut a, 1000).is_empty(), "nothing beyond the limit");
}

#[test]
fn leases_that_go_on_are_joined_and_others_are_not() {
    let (mut a, mut b) = pair(small());
    let (s, t) = (a.open(Dir::Bi).unwrap(), a.open(Dir::Bi).unwrap());
    a.write(s, &[1; 700]).unwrap();
    let mut leases = lend(&mut a, 316);
    leases.extend(lend(&mut a, 1000));
    a.write(t, &[2; 100]).unwrap();
    a.finish(t).unwrap();
    leases.extend(lend(&mut a, 1000));
    let [mut first, second, other] = <[Lease; 3]>::try_from(leases).unwrap();
    assert!(first.join(second).is_ok());
    let other = first.join(other).unwrap_err();
    assert_eq!((first.unsent_bytes(), first.parts(), other.unsent_bytes()), (700, 2, 101));
    let mut both = vec![first, other];
    let (bytes, carried) = cut(&mut a, &mut both, 1200);
    assert_eq!((both.len(), carried.len()), (0, 2));
    deliver(bytes, &mut b).unwrap();
    assert_eq!((b.read_all(s).0.len(), b.read_all(t)), (700, (vec![2; 100], Ok(()))));
}

#[test]
fn a_reset_waits_for_the_leases_of_its_stream() {
    // RFC 9000 3.3: no STREAM frame in the state "Reset Sent"
    let (mut a, mut b) = pair(small());
    let (s, t) = (a.open(Dir::Bi).unwrap(), a.open(Dir::Bi).unwrap());
    a.write(s, &[1; 500]).unwrap();
    a.write(t, &[2; 100]).unwrap();
    let mut leases = lend(&mut a, 400);
    let first = cut(&mut a, &mut leases, 200);
    a.reset(s, 5).unwrap();
    assert_eq!(a.poll_unlease(), Some(s));
    assert_eq!(a.poll_unlease(), None, "asked once");
    let control = |a: &mut Streams| packet(1200, |w| a.fill_control(Instant::ZERO, w)).1;
    assert!(control(&mut a).is_empty() && !a.wants_control());
    // What left before it is still of use, what did not is dropped.
    deliver(first.0, &mut b).unwrap();
    for lease in leases.drain(..) {
        lease.unsent().for_each(|frame| a.on_lost(&frame));
        a.on_leases_ended(lease.id(), lease.parts());
    }
    let (bytes, carried) = packet(1200, |w| a.fill_control(Instant::ZERO, w));
    assert_eq!(carried, [SentFrame::ResetStream(s)]);
    deliver(bytes, &mut b).unwrap();
    assert_eq!(b.read_all(s).1, Err(ReadError::Reset(5)));
    flush(&mut a, &mut b);
    // RFC 9000 4.5: the final size is what was lent, which flow control counted.
    assert_eq!(1500 - a.send_credit(), 384 + 100);
    assert_eq!(b.read_all(t).0, [2; 100]);
}
