//! The send buffer against a model.

use proptest::prelude::*;

use super::*;

fn byte(i: u64) -> u8 {
    (i * 29 + i / 255) as u8
}

fn read(buffer: &SendBuffer, range: Range<u64>) -> Vec<u8> {
    let mut packet = Vec::new();
    buffer.put(range, &mut packet);
    packet
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Unsent,
    Flying,
    Lost,
    Acked,
}

#[test]
fn memory_returns_as_acks_come() {
    let mut b = SendBuffer::default();
    b.write(&vec![1; 1 << 20]);
    assert_eq!(b.kept.len() + 1, (1 << 20) / MAX_BLOCK_BYTES);
    b.on_sent(0..1 << 20);
    b.on_acked(0..(1 << 20) - 1);
    assert!(b.kept.is_empty() && b.held_bytes() == 1);
    b.on_acked((1 << 20) - 1..1 << 20);
    assert!(b.open.capacity() == 0 && b.is_all_acked());
}

#[test]
fn large_chunks_are_not_copied_and_small_ones_are_gathered() {
    let mut b = SendBuffer::default();
    let big = Bytes::from(vec![7; 5000]);
    b.write_chunk(big.clone());
    assert_eq!(b.kept[0].bytes.as_ptr(), big.as_ptr());
    for _ in 0..100 {
        b.write_chunk(Bytes::from_static(b"x"));
    }
    assert_eq!((b.kept.len(), b.end()), (1, 5100));
}

proptest! {
    #[test]
    fn agrees_with_a_model(ops in prop::collection::vec((0u8..7, 0u64..3000, 1u64..1500), 1..300)) {
        // RFC 9000 2.2-2
        let mut b = SendBuffer::default();
        let mut model: Vec<Fate> = Vec::new();
        for (op, at, len) in ops {
            let sent = b.sent();
            let range = at % (sent + 1)..(at % (sent + 1) + len).min(sent);
            match op {
                0 | 1 => {
                    let data: Vec<u8> = (b.end()..b.end() + len).map(byte).collect();
                    if op == 0 { b.write(&data) } else { b.write_chunk(data.into()) }
                    model.resize(model.len() + len as usize, Fate::Unsent);
                }
                2 | 3 => {
                    let Some(next) = b.next(len) else {
                        prop_assert!(model.iter().all(|f| !matches!(f, Fate::Lost | Fate::Unsent)));
                        continue;
                    };
                    let want = model.iter().position(|&f| f == Fate::Lost)
                        .or_else(|| model.iter().position(|&f| f == Fate::Unsent));
                    prop_assert_eq!(Some(next.start as usize), want, "lost bytes first");
                    let part = next.start..next.end.min(next.start + len);
                    prop_assert_eq!(read(&b, part.clone()), part.clone().map(byte).collect::<Vec<_>>());
                    let unsent = part.clone().filter(|&i| model[i as usize] == Fate::Unsent).count() as u64;
                    prop_assert_eq!(b.on_sent(part.clone()), unsent);
                    model[part.start as usize..part.end as usize].fill(Fate::Flying);
                }
                4 => {
                    b.on_acked(range.clone());
                    range.for_each(|i| model[i as usize] = Fate::Acked);
                }
                5 => {
                    b.on_lost(range.clone());
                    range.for_each(|i| if model[i as usize] == Fate::Flying { model[i as usize] = Fate::Lost });
                }
                _ => {
                    let got = b.first_unacked(range.clone());
                    let want = range.clone().find(|&i| model[i as usize] != Fate::Acked);
                    prop_assert_eq!(got.clone().map(|g| g.start), want);
                    if let Some(got) = got {
                        prop_assert_eq!(read(&b, got.clone()), got.clone().map(byte).collect::<Vec<_>>());
                        b.on_sent(got.clone());
                        got.for_each(|i| model[i as usize] = Fate::Flying);
                    }
                }
            }
            let count = |fate| model.iter().filter(|&&f| f == fate).count() as u64;
            prop_assert_eq!(b.lost_bytes(), count(Fate::Lost));
            prop_assert_eq!(b.unsent_bytes(), count(Fate::Unsent));
            prop_assert_eq!(b.base() as usize, model.iter().take_while(|&&f| f == Fate::Acked).count());
            prop_assert_eq!(b.is_all_acked(), count(Fate::Acked) == model.len() as u64);
        }
    }
}
