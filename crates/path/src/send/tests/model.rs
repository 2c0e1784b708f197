//! Random loss, disorder and repeated acks, compared with a plain model of every packet's fate.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Send {
        bytes: u16,
        eliciting: bool,
    },
    /// Acks these received numbers, newest ones first; `stale` repeats only old ones.
    Ack {
        take: usize,
        stale: bool,
    },
    Wait {
        ms: u32,
    },
    Timer,
    HandOut,
    Migrate,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (40u16..1200, prop::bool::weighted(0.8)).prop_map(|(bytes, eliciting)| Step::Send { bytes, eliciting }),
        5 => (1usize..12, any::<bool>()).prop_map(|(take, stale)| Step::Ack { take, stale }),
        2 => (1u32..400).prop_map(|ms| Step::Wait { ms }),
        2 => Just(Step::Timer),
        1 => Just(Step::HandOut),
        1 => Just(Step::Migrate),
    ]
}

#[derive(Default)]
struct Model {
    sent: BTreeMap<u64, (u16, bool)>,
    acked: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    handed: BTreeSet<u64>,
    old: BTreeSet<u64>,
}

impl Model {
    fn is_open(&self, n: &u64) -> bool {
        !self.acked.contains(n) && !self.lost.contains(n)
    }

    fn in_flight(&self) -> u64 {
        let counted = self.sent.iter().filter(|(n, (_, e))| *e && self.is_open(n) && !self.old.contains(n));
        counted.map(|(_, (bytes, _))| u64::from(*bytes)).sum()
    }

    /// Checks a report against the model and takes it in.
    fn check(&mut self, feedback: &Feedback, ackable: &BTreeSet<u64>) -> Result<(), TestCaseError> {
        let mut lost_frames = BTreeSet::new();
        for n in feedback.lost.iter().map(number_of) {
            prop_assert!(self.is_open(&n) && !self.handed.contains(&n) && lost_frames.insert(n), "lost once: {}", n);
        }
        for n in feedback.acked.iter().map(number_of) {
            prop_assert!(ackable.contains(&n) && self.acked.insert(n), "acked once: {}", n);
        }
        for packet in &feedback.lost_packets {
            prop_assert!(!self.acked.contains(&packet.number) && self.lost.insert(packet.number));
            let silent = self.handed.contains(&packet.number);
            prop_assert_eq!(!silent, lost_frames.contains(&packet.number));
        }
        Ok(())
    }
}

fn run(steps: Vec<Step>, drops: Vec<bool>) -> Result<(), TestCaseError> {
    let mut b = Bench::with(SendConfig { skip: Some(Random::from_u64(9).into()), ..SendConfig::default() });
    let (mut model, mut received, mut ms) = (Model::default(), Vec::<u64>::new(), 0);
    for (i, step) in steps.into_iter().enumerate() {
        b.feedback.clear();
        let mut ackable = BTreeSet::new();
        match step {
            Step::Send { bytes, eliciting } => {
                let packet = PacketInfo { bytes, ack_eliciting: eliciting, in_flight: eliciting, ..packet() };
                let number = b.send_in(ms, Space::Data, packet);
                prop_assert!(model.sent.insert(number, (bytes, eliciting)).is_none());
                if !drops[i % drops.len()] {
                    // Sometimes late, among later ones.
                    let at = received.len() - (i % 3).min(received.len());
                    received.insert(at, number);
                }
            }
            Step::Ack { take, stale } if !received.is_empty() => {
                let upto = if stale { received.len().div_ceil(2) } else { received.len() };
                ackable.extend(received[..upto].iter().rev().take(take));
                let ranges: Vec<_> = ackable.iter().rev().map(|n| *n..=*n).collect();
                b.ack(ms, &ranges).unwrap();
            }
            Step::Wait { ms: more } => ms += more,
            Step::Timer => {
                b.timeout(ms);
            }
            Step::HandOut => {
                let mut out = Vec::new();
                b.flow.hand_over_in_flight(&mut out);
                let out: Vec<u64> = out.iter().map(number_of).collect();
                let open: Vec<u64> = model.sent.keys().copied().filter(|n| model.is_open(n)).collect();
                // Forgotten acks-only packets may be missing; nothing comes twice.
                prop_assert!(out.iter().all(|n| open.contains(n) && model.handed.insert(*n)));
                let missing = open.iter().filter(|n| model.sent[n].1 && !model.handed.contains(n)).count();
                prop_assert_eq!(missing, 0);
            }
            Step::Migrate => {
                model.old.extend(model.sent.keys());
                let controller = b.scribe(1_000_000);
                b.flow.reset_for_new_address(at(ms), controller);
            }
            Step::Ack { .. } => {}
        }
        model.check(&b.feedback, &ackable)?;
        prop_assert_eq!(b.flow.in_flight(), model.in_flight());
        let timer = b.flow.deadline().is_some();
        let waiting = model.sent.iter().any(|(n, (_, e))| *e && model.is_open(n));
        prop_assert!(timer || !waiting, "whatever waits for an ack has a timer");
    }
    b.feedback.clear();
    b.flow.on_closing(at(ms), &mut b.feedback);
    model.check(&b.feedback, &BTreeSet::new())?;
    let open = model.sent.iter().filter(|(n, (_, e))| *e && model.is_open(n)).count();
    prop_assert_eq!((open, b.flow.in_flight()), (0, 0));
    Ok(())
}

proptest! {
    #[test]
    fn agrees_with_the_model(
        steps in prop::collection::vec(step(), 1..200),
        drops in prop::collection::vec(prop::bool::weighted(0.2), 1..50),
    ) {
        run(steps, drops)?;
    }
}

#[test]
fn acks_cost_only_what_they_bring() {
    // A window of a hundred thousand, every ack repeating all before it, and one lost packet at the front.
    let mut b = Bench::new();
    for n in 0..100_000u64 {
        b.send(0);
        if n >= 10 {
            b.ack(0, &[1..=n]).unwrap();
        }
    }
    assert_eq!(b.flow.in_flight(), 0);
    assert_eq!(b.flow.space(Space::Data).unwrap().sent.unresolved_runs(), 1);
}
