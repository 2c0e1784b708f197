//! Middleboxes: the rules of the simulator, on IP packets as they are on a wire.

use std::collections::BTreeMap;

use bytes::BytesMut;
use plait_base::{Instant, Random};
use plait_netsim::{Datagram, Middlebox, Pass, Rule};
use plait_sim::scenario::{Direction, Place, Scenario, Sides};

use super::packet::{self, Whose, address};
use super::parcel::Parcel;

/// The boxes before one link, by number.
#[derive(Clone, Debug, Default)]
struct BoxesBefore {
    up: Vec<usize>,
    down: Vec<usize>,
}

/// Every box of a network, and the packets that wait in one.
#[derive(Debug)]
pub(super) struct Boxes {
    rules: Vec<Rule>,
    /// One for each link, by its place.
    before: Vec<BoxesBefore>,
    random: Random,
    /// By the time at which they go on, and the order in which they came.
    held: BTreeMap<(Instant, u64), (Direction, Parcel)>,
    /// Packets that were held so far.
    count: u64,
}

impl Boxes {
    /// Those of a scenario; none has seen a packet.
    pub(super) fn new(scenario: &Scenario, random: Random) -> Self {
        let mut rules = Vec::new();
        let mut before = vec![BoxesBefore::default(); scenario.duplexes().count()];
        for plan in &scenario.rules {
            let Some(before) = before.get_mut(plan.place.0) else { continue };
            // A box for each direction, which so counts its packets by itself.
            for (other, numbers) in [(Sides::Down, &mut before.up), (Sides::Up, &mut before.down)] {
                if plan.sides != other {
                    numbers.push(rules.len());
                    rules.push(Rule::new(plan.when.clone(), plan.treat));
                }
            }
        }
        Self { rules, before, random, held: BTreeMap::new(), count: 0 }
    }

    /// The boxes before a link, in the order in which packets come to them.
    pub(super) fn before(&self, place: Place, direction: Direction) -> &[usize] {
        match (self.before.get(place.0), direction) {
            (Some(before), Direction::Up) => &before.up,
            (Some(before), Direction::Down) => &before.down,
            (None, _) => &[],
        }
    }

    /// A packet comes by a box, which may change it. What a rule calls a datagram's payload is that of a UDP datagram or of a TCP
    /// segment; one that was changed goes on with right lengths and checksums, as the box has written it.
    pub(super) fn pass(&mut self, number: usize, now: Instant, parcel: &mut Parcel) -> Pass {
        let ends = (address(&parcel.bytes, Whose::Sender), address(&parcel.bytes, Whose::Receiver));
        let (Some(rule), (Some(src), Some(dst))) = (self.rules.get_mut(number), ends) else { return Pass::On };
        let head = parcel.bytes.len().saturating_sub(parcel.facts.payload_bytes);
        let before = parcel.bytes.get(head..).unwrap_or_default();
        let mut datagram = Datagram { src, dst, ecn: parcel.facts.ecn, payload: BytesMut::from(before) };
        let pass = rule.pass(now, &mut datagram, &mut self.random);
        if datagram.payload != before {
            parcel.bytes.truncate(head);
            parcel.bytes.extend_from_slice(&datagram.payload);
            parcel.facts.payload_bytes = datagram.payload.len();
            packet::seal(&mut parcel.bytes);
        }
        if datagram.ecn != parcel.facts.ecn {
            packet::set_ecn(&mut parcel.bytes, datagram.ecn);
            parcel.facts.ecn = datagram.ecn;
        }
        pass
    }

    /// A packet goes on at this time.
    pub(super) fn hold(&mut self, until: Instant, direction: Direction, parcel: Parcel) {
        self.held.insert((until, self.count), (direction, parcel));
        self.count += 1;
    }

    /// When the next packet goes on.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    /// A packet that goes on by `now`.
    pub(super) fn release(&mut self, now: Instant) -> Option<(Direction, Parcel)> {
        let first = self.held.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
