//! Random exchanges: loss, reordering, duplicates, copies, small packets; all data arrives and all sums hold.

use std::collections::BTreeMap;

use plait_base::Dir;
use proptest::prelude::*;

use super::*;

fn byte(id: StreamId, i: u64) -> u8 {
    (id.0 * 7 + i * 13 + i / 253) as u8
}

/// What happens to each packet in turn.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    LostThoughItArrived,
    ArrivesTwice,
    Late,
    CopiedAndLost,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::LostThoughItArrived),
        1 => Just(Fate::ArrivesTwice),
        2 => Just(Fate::Late),
        2 => Just(Fate::CopiedAndLost),
    ]
}

#[derive(Default)]
struct Wire {
    late: Vec<(Bytes, Vec<SentFrame>)>,
}

impl Wire {
    /// One packet from `a` to `b`; false when `a` had nothing to say.
    fn step(&mut self, a: &mut Streams, b: &mut Streams, room: usize, fate: Fate) -> bool {
        let (p, carried) = a.packet(room);
        if carried.is_empty() {
            let Some((p, carried)) = self.late.pop() else { return false };
            deliver(p, b).unwrap();
            a.acked(&carried);
            return true;
        }
        match fate {
            Fate::Arrives => {
                deliver(p, b).unwrap();
                a.acked(&carried);
            }
            Fate::Lost => a.lost(&carried),
            Fate::LostThoughItArrived => {
                deliver(p, b).unwrap();
                a.lost(&carried);
                a.lost(&carried);
            }
            Fate::ArrivesTwice => {
                deliver(p.clone(), b).unwrap();
                deliver(p, b).unwrap();
                a.acked(&carried);
                a.acked(&carried);
            }
            Fate::Late => self.late.push((p, carried)),
            Fate::CopiedAndLost => {
                let (copy, again) = packet(room, |w| {
                    for c in &carried {
                        a.fill_copy(w, c);
                    }
                });
                deliver(copy, b).unwrap();
                a.lost(&carried);
                a.acked(&again);
            }
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn everything_arrives(
        sizes in prop::collection::vec((0u64..6000, any::<bool>(), -1i32..2), 1..8),
        fates in prop::collection::vec((fate(), 60usize..1300), 40..41),
        read_max in 1usize..2000,
    ) {
        // RFC 9000 2.2-1
        let (mut a, mut b) = pair(small());
        let mut left: BTreeMap<StreamId, (u64, u64)> = BTreeMap::new();
        let mut queue: Vec<_> = sizes.clone();
        let mut got: BTreeMap<StreamId, u64> = BTreeMap::new();
        let (mut there, mut back) = (Wire::default(), Wire::default());
        let mut ended = 0;
        for turn in 0..20_000usize {
            if ended == sizes.len() {
                break;
            }
            while let Some(&(size, bidi, priority)) = queue.last() {
                let Some(id) = a.open(if bidi { Dir::Bi } else { Dir::Uni }) else { break };
                a.set_priority(id, priority).unwrap();
                left.insert(id, (0, size));
                queue.pop();
            }
            left.retain(|&id, (done, size)| {
                let data: Vec<u8> = (*done..*size).map(|i| byte(id, i)).collect();
                *done += a.write(id, &data).unwrap_or(0) as u64;
                done != size || a.finish(id).is_err()
            });
            let (fate, room) = fates[turn % fates.len()];
            there.step(&mut a, &mut b, room, fate);
            for dir in Dir::ALL {
                while let Some(id) = b.accept(dir) {
                    got.insert(id, 0);
                }
            }
            let mut over = Vec::new();
            for (&id, at) in &mut got {
                match b.read(id, read_max, Order::Ordered) {
                    Ok(Some(chunk)) => {
                        prop_assert_eq!(chunk.offset, *at);
                        prop_assert!(chunk.bytes.iter().zip(*at..).all(|(&x, i)| x == byte(id, i)));
                        *at += chunk.bytes.len() as u64;
                    }
                    Ok(None) => over.push(id),
                    Err(e) => prop_assert_eq!(e, ReadError::Blocked),
                }
            }
            for id in over {
                got.remove(&id);
                ended += 1;
                if id.dir() == Dir::Bi {
                    b.finish(id).unwrap();
                }
            }
            back.step(&mut b, &mut a, room, fates[(turn * 7 + 3) % fates.len()].0);
            for id in a.events().into_iter().filter_map(|e| match e { StreamEvent::Readable(id) => Some(id), _ => None }) {
                let _ = a.read_all(id);
            }
            a.assert_sums();
            b.assert_sums();
        }
        prop_assert_eq!(ended, sizes.len(), "stuck");
    }

    #[test]
    fn no_frame_of_a_peer_panics(
        frames in prop::collection::vec((0u8..8, 0u64..24, prop_oneof![0u64..2000, any::<u64>()], 0usize..300), 0..80),
    ) {
        let (mut a, _) = pair(small());
        a.open(Dir::Bi);
        a.open(Dir::Uni);
        for (kind, id, value, len) in frames {
            let (id, value) = (StreamId(id), value >> 2);
            let result = match kind {
                0 | 1 => a.on_stream(id, value, kind == 1, vec![0; len].into()),
                2 => a.on_reset_stream(id, 1, value),
                3 => a.on_stop_sending(id, value),
                4 => a.on_max_stream_data(id, value),
                5 => { a.on_max_data(value); Ok(()) }
                6 => a.on_max_streams(Dir::Bi, value),
                _ => { let _ = a.read(id, len, Order::Unordered); a.write(id, &[0; 10]).ok(); Ok(()) }
            };
            a.assert_sums();
            if result.is_err() {
                break;
            }
            a.packet(100);
        }
    }
}
