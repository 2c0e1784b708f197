//! Reassembly against a model, and its bounds.

use std::collections::BTreeMap as Map;

use proptest::prelude::*;

use super::*;
use crate::piece::PIECE_OVERHEAD_BYTES;

fn byte(i: u64) -> u8 {
    (i * 31 + i / 251) as u8
}

fn piece(start: u64, len: u64) -> Bytes {
    (start..start + len).map(byte).collect::<Vec<_>>().into()
}

fn check(chunk: &Chunk) {
    assert!(chunk.bytes.iter().enumerate().all(|(i, &b)| b == byte(chunk.offset + i as u64)), "wrong bytes");
}

#[test]
fn in_order_data_is_not_copied() {
    // RFC 9000 2.2-1
    let data = piece(0, 1200);
    let mut r = Reassembly::default();
    r.insert(0, data.clone(), 8).unwrap();
    let chunk = r.read(usize::MAX, Order::Ordered).unwrap().unwrap();
    assert_eq!(chunk.bytes.as_ptr(), data.as_ptr());
    assert!(r.is_drained() && r.has_all_below(1200) && !r.has_all_below(1201));
}

#[test]
fn nothing_beyond_a_gap_is_no_piece() {
    let mut r = Reassembly::default();
    r.insert(100, Bytes::new(), 10).unwrap();
    r.insert(90, piece(90, 30), 10).unwrap();
    r.insert(200, Bytes::new(), 10).unwrap();
    assert_eq!(r.later.len(), 1);
    r.insert(0, piece(0, 90), 10).unwrap();
    let chunk = r.read(usize::MAX, Order::Ordered).unwrap().unwrap();
    check(&chunk);
    assert_eq!(chunk.offset, 0);
}

#[test]
fn small_pieces_do_not_keep_their_packet_alive() {
    let data = piece(0, 1200);
    let mut r = Reassembly::default();
    for at in [0, 100, 600] {
        r.insert(at, data.slice(at as usize..at as usize + 100), 8).unwrap();
    }
    assert!(data.is_unique(), "copied out, joined or kept");
    assert_eq!(r.read(usize::MAX, Order::Ordered).unwrap().unwrap().bytes.len(), 200, "joined");
}

/// Bytes that the unread data costs by the reckoning of `piece.rs`.
fn cost(r: &Reassembly) -> u64 {
    let pieces = r.ready.iter().chain(r.later.values());
    let own: usize = pieces.map(|piece| piece.bytes.len() + PIECE_OVERHEAD_BYTES).sum();
    assert!(r.ready.capacity() <= 64.max(4 * r.ready.len()), "{} places for {}", r.ready.capacity(), r.ready.len());
    (own + r.tail.capacity()) as u64
}

#[test]
fn what_settles_lets_its_datagrams_go() {
    let data = piece(0, 60_000);
    let mut r = Reassembly::default();
    for at in [0, 1200, 2400, 6000, 8000, 9200] {
        r.insert(at, data.slice(at as usize..at as usize + 1200), 8).unwrap();
    }
    assert!(!data.is_unique() && r.lent() == 6 * 1200);
    let chunk = r.read(700, Order::Ordered).unwrap().unwrap();
    assert_eq!(r.lent(), 6 * 1200 - 700, "what the application took is its own matter");
    drop(chunk);
    r.settle();
    assert_eq!((r.lent(), data.is_unique()), (0, true));
    r.insert(3600, data.slice(3600..6000), 8).unwrap();
    r.insert(7200, data.slice(7200..8000), 8).unwrap();
    let mut total = 700;
    while let Some(chunk) = r.read(usize::MAX, Order::Ordered).unwrap() {
        check(&chunk);
        total += chunk.bytes.len();
    }
    assert_eq!((total, r.lent()), (10_400, 0));
}

#[test]
fn held_bytes_stay_within_one_and_a_half_windows() {
    // Sizes that a hoarding peer would choose, each until the window is full; one settlement for every few pieces.
    const WINDOW: u64 = 1 << 20;
    let max = max_fragments(WINDOW);
    for sizes in [&[1][..], &[1, 512], &[511], &[512], &[513, 3], &[1200], &[16_000, 1], &[511, 16_300, 511, 600]] {
        for settle_every in [1, 7, 1000] {
            let mut r = Reassembly::default();
            let mut end = 0;
            for (i, &size) in sizes.iter().cycle().enumerate() {
                if end + size > WINDOW {
                    break;
                }
                r.insert(end, piece(end, size), max).unwrap();
                end += size;
                if i % settle_every == 0 {
                    r.settle();
                }
            }
            r.settle();
            // As many pieces beyond gaps as are let in, with what they cost in the least credit.
            let crumbs = (0..).find(|i| r.insert(end + 1 + 2 * i, piece(end + 1 + 2 * i, 1), max).is_err()).unwrap();
            assert!(crumbs >= max as u64);
            let bound = WINDOW + WINDOW / 2;
            assert!(cost(&r) <= bound, "{} of {bound} with pieces of {sizes:?}, every {settle_every}", cost(&r));
            while r.read(4000, Order::Ordered).unwrap().is_some() {}
            assert!(r.ready.capacity() <= 64, "places of a queue that is empty now");
        }
    }
}

#[test]
fn sixteen_megabytes_with_heavy_loss_and_tiny_fragments() {
    // Every other 600 bytes of a 16 MiB window are lost: within the bound, and nothing is joined.
    let window = 16 << 20;
    let max = max_fragments(window);
    let mut r = Reassembly::default();
    let step = 600;
    for start in (step..window - step).step_by(2 * step as usize) {
        r.insert(start, piece(start, step), max).unwrap();
    }
    for start in (0..window - step).step_by(2 * step as usize) {
        r.insert(start, piece(start, step), max).unwrap();
    }
    let mut total = 0;
    while let Some(chunk) = r.read(usize::MAX, Order::Ordered).unwrap() {
        check(&chunk);
        total += chunk.bytes.len() as u64;
    }
    assert!(total > window - 3 * step, "{total}");

    // One lost byte, then 2 million pieces of 4 bytes: they touch, so that joining keeps them few.
    let mut r = Reassembly::default();
    for i in 0..2_000_000u64 {
        r.insert(1 + 4 * i, piece(1 + 4 * i, 4), max).unwrap();
        assert!(r.pieces() <= 2 * max);
    }
    r.insert(0, piece(0, 1), max).unwrap();
    assert_eq!(r.edge, 8_000_001);

    // Disjoint single bytes beyond the bound are refused.
    let mut r = Reassembly::default();
    let refused = (0..).map(|i| r.insert(1 + 2 * i, piece(1 + 2 * i, 1), max)).find(Result::is_err);
    assert_eq!(refused, Some(Err(Violation::StreamTooFragmented)));
    assert!(r.pieces() <= 2 * max + 1);
}

#[test]
fn tiny_pieces_in_order_gather_in_blocks() {
    let mut r = Reassembly::default();
    for i in 0..1_000_000 {
        r.insert(i, piece(i, 1), 8).unwrap();
    }
    assert!(r.ready.len() <= 1_000_000 / BLOCK_BYTES && r.has_all_below(1_000_000));
}

#[test]
fn an_ordered_read_after_an_unordered_one_is_refused() {
    let mut r = Reassembly::default();
    r.insert(5, piece(5, 5), 8).unwrap();
    assert_eq!(r.read(10, Order::Ordered), Ok(None));
    let chunk = r.read(3, Order::Unordered).unwrap().unwrap();
    assert_eq!((chunk.offset, chunk.bytes.len()), (5, 3));
    assert_eq!(r.read(10, Order::Ordered), Err(ReadOutOfOrderBefore));
}

proptest! {
    #[test]
    fn agrees_with_a_model(
        ops in prop::collection::vec((0u64..400, 0u64..90, 0usize..60), 1..200),
        scale in prop::sample::select(vec![1u64, 7, 40]),
        unordered_from in 0usize..300,
    ) {
        let mut r = Reassembly::default();
        let mut known = vec![false; 40_000];
        let mut given: Map<u64, u8> = Map::new();
        let mut next = 0u64;
        for (i, (offset, len, max_len)) in ops.into_iter().enumerate() {
            let (offset, len) = (offset * scale, len * scale);
            r.insert(offset, piece(offset, len), 16).unwrap_or(());
            if offset % 3 == 0 {
                r.settle();
                prop_assert_eq!(r.lent(), 0);
            }
            prop_assert_eq!(r.lent(), r.ready.iter().chain(r.later.values()).map(Piece::lent).sum::<u64>());
            known[offset as usize..(offset + len) as usize].fill(true);
            let order = if i >= unordered_from { Order::Unordered } else { Order::Ordered };
            if let Some(chunk) = r.read(max_len, order).unwrap() {
                check(&chunk);
                prop_assert!(!chunk.bytes.is_empty() && chunk.bytes.len() <= max_len);
                if order == Order::Ordered {
                    prop_assert_eq!(chunk.offset, next);
                    next += chunk.bytes.len() as u64;
                }
                for (o, &b) in (chunk.offset..).zip(&chunk.bytes) {
                    prop_assert!(known[o as usize], "never arrived");
                    prop_assert!(given.insert(o, b).is_none(), "read twice");
                }
            }
            let all = known.iter().take_while(|&&k| k).count() as u64;
            prop_assert!(r.has_all_below(all) && !r.has_all_below(all + 1));
        }
        let order = if r.seen.is_some() { Order::Unordered } else { Order::Ordered };
        while let Some(chunk) = r.read(usize::MAX, order).unwrap() {
            check(&chunk);
            for (o, &b) in (chunk.offset..).zip(&chunk.bytes) {
                prop_assert!(given.insert(o, b).is_none(), "read twice");
            }
        }
        let expected = match order {
            Order::Ordered => known.iter().take_while(|&&k| k).count(),
            Order::Unordered => known.iter().filter(|&&k| k).count(),
        };
        prop_assert_eq!(given.len(), expected);
    }
}
