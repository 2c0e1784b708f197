//! The set of ranges against a plain array of bits.

use plait_base::RangeSet;

use crate::ArbitraryInput;

/// Numbers that the model knows.
const WIDTH: usize = 256;

/// The input: triples of operation, start and length.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    // The same small world, low and at the top of the number space.
    let base = if input.flag() { u64::MAX - WIDTH as u64 } else { 0 };
    let (mut set, mut model) = (RangeSet::new(), [false; WIDTH]);
    while !input.is_over() {
        step(&mut input, base, &mut set, &mut model);
        compare(base, &set, &model);
    }
}

fn step(input: &mut ArbitraryInput<'_>, base: u64, set: &mut RangeSet, model: &mut [bool; WIDTH]) {
    let (operation, start) = (input.byte() % 8, input.below(WIDTH));
    let end = (start + input.below(24)).min(WIDTH);
    let (cells, range) = (&mut model[start..end], base + start as u64..base + end as u64);
    match operation {
        0..=3 => {
            let news = cells.iter().any(|cell| !cell);
            assert_eq!(set.insert(range), news);
            cells.fill(true);
        }
        4 | 5 => {
            let there = cells.iter().any(|cell| *cell);
            assert_eq!(set.remove(range), there);
            cells.fill(false);
        }
        6 => assert_eq!(set.contains_range(range), cells.iter().all(|cell| *cell)),
        _ => {
            if let Some(first) = set.pop_first() {
                let index = |x: u64| (x - base) as usize;
                model[index(first.start)..index(first.end)].fill(false);
            }
        }
    }
}

fn compare(base: u64, set: &RangeSet, model: &[bool; WIDTH]) {
    let mut before = None;
    for range in set.iter() {
        assert!(range.start < range.end && before.is_none_or(|end| end < range.start), "sorted, never touching");
        before = Some(range.end);
    }
    assert_eq!(set.count(), model.iter().filter(|cell| **cell).count() as u64);
    for (i, cell) in model.iter().enumerate() {
        assert_eq!(set.contains(base + i as u64), *cell);
    }
    let position = |found: Option<usize>| found.map(|i| base + i as u64);
    assert_eq!(set.min(), position(model.iter().position(|cell| *cell)));
    assert_eq!(set.max(), position(model.iter().rposition(|cell| *cell)));
    assert_eq!(set.is_empty(), set.iter().next().is_none());
}

/// Ranges that join, split and vanish.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 0, 10, 5, 0, 20, 5, 0, 15, 5, 4, 12, 2],
        vec![1, 0, 250, 20, 4, 251, 3, 7, 0, 0],
        (0..60).flat_map(|i| [0, i * 4, 2, 6, i, 3]).collect(),
    ]
}
