//! Varints, and acks made from any set of received numbers: within budget, and read back as the newest ranges.

use plait_base::units::VARINT_MAX;
use plait_base::{EcnCounts, PathId, RangeSet};
use plait_wire::frame::{AckForm, Frame, Frames, OutAck};
use plait_wire::varint::{self, Reader};

use crate::ArbitraryInput;

/// The input: form, budget and counts of an ack, then gaps and lengths.
pub fn run(input: &[u8]) {
    varints(input);
    let mut input = ArbitraryInput::new(input);
    let form = match input.byte() % 4 {
        0 | 2 => AckForm::Plain,
        1 => AckForm::Path,
        _ => AckForm::Uniflow,
    };
    let path = if form == AckForm::Plain { PathId::ZERO } else { PathId(input.number() as u32) };
    let budget = input.below(600);
    let count = |input: &mut ArbitraryInput<'_>| input.number() & VARINT_MAX;
    let ecn =
        input.flag().then(|| EcnCounts { ect0: count(&mut input), ect1: count(&mut input), ce: count(&mut input) });
    let delay = input.number() & VARINT_MAX;
    let mut ranges = RangeSet::new();
    let mut at = 0u64;
    while !input.is_over() {
        let start = at.saturating_add(input.number());
        let end = start.saturating_add(input.number()).saturating_add(1);
        if end > VARINT_MAX {
            break;
        }
        ranges.insert(start..end);
        at = end;
    }
    let out = OutAck { form, path, ranges: &ranges, delay, ecn };
    let mut bytes = Vec::new();
    let Some(told) = out.encode(budget, &mut bytes) else { return assert!(bytes.is_empty()) };
    assert!(bytes.len() <= budget && Some(*told.end()) == ranges.max());
    let Some(Ok(Frame::Ack(ack))) = Frames::new(&bytes).next() else { panic!("our ack is not read") };
    assert_eq!((ack.largest, ack.delay, ack.ecn, ack.form, ack.path), (*told.end(), delay, ecn, form, path));
    let newest = ranges.iter().rev().map(|r| r.start..=r.end - 1).take(ack.range_count() as usize);
    assert!(ack.ranges().eq(newest));
    assert_eq!(ack.ranges().last().map(|r| *r.start()), Some(*told.start()));
}

fn varints(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    loop {
        let before = reader.remaining();
        let Ok(value) = reader.varint() else { return assert_eq!(reader.remaining(), before) };
        let mut out = Vec::new();
        varint::put(&mut out, value);
        assert_eq!(out.len(), varint::size(value));
        assert!(out.len() <= before - reader.remaining() && value <= VARINT_MAX);
        assert_eq!(Reader::new(&out).varint(), Ok(value));
    }
}

/// Few and many ranges, in all forms.
pub fn seeds() -> Vec<Vec<u8>> {
    let many = (0..120).flat_map(|n| [n % 7, n % 3]);
    vec![
        vec![0, 2, 0, 0, 9, 1, 5],
        [1, 3, 1, 200, 1, 1, 2, 3, 9].into_iter().chain(many.clone()).collect(),
        [3, 2, 1, 200, 1, 1, 2, 3, 9].into_iter().chain(many.clone()).collect(),
        [0, 0, 40, 0, 9].into_iter().chain(many).collect(),
        vec![1, 255, 1, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0, 231, 9, 8, 7, 6, 5, 4, 3, 2, 231, 9, 8, 7, 6, 5, 4, 3, 2],
    ]
}
