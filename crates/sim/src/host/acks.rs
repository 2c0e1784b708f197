//! The packet numbers of one end: what it sent, what it received and what the peer acknowledged.

use plait_base::limits::MAX_ACK_RANGES;
use plait_base::observe::{LossTrigger, TraceEvent};
use plait_base::{PathId, RangeSet, Space};

/// Numbers of one path and space.
#[derive(Clone, Debug, Default)]
struct Numbers {
    sent: RangeSet,
    received: RangeSet,
    acked: RangeSet,
}

/// All packet numbers of one end, and the first thing about them that cannot be.
#[derive(Clone, Debug, Default)]
pub struct AckBook {
    /// Of each path and space, in the order of their first packets.
    numbers: Vec<((PathId, Space), Numbers)>,
    /// Which of them was asked for last.
    last: usize,
    wrong: Option<String>,
}

impl AckBook {
    /// The first thing that was wrong at this end.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// What the peer acknowledged to this end though its own book says that it never received it.
    pub fn false_acks(&self, peer: &Self) -> Option<String> {
        self.numbers.iter().find_map(|((path, space), mine)| {
            let theirs = peer.numbers.iter().find(|(key, _)| *key == (*path, *space)).map(|(_, numbers)| numbers);
            let unknown = |range: &std::ops::Range<u64>| {
                theirs.is_none_or(|theirs| !theirs.received.contains_range(range.clone()))
            };
            let range = mine.acked.iter().find(unknown)?;
            Some(format!("numbers {range:?} of path {} in {space:?} acknowledged and not all received", path.0))
        })
    }

    /// Packets of application data that were sent.
    pub fn data_packets_sent(&self) -> u64 {
        let data = self.numbers.iter().filter(|((_, space), _)| *space == Space::Data);
        data.flat_map(|(_, numbers)| numbers.sent.iter()).map(|range| range.end - range.start).sum()
    }

    pub(super) fn note(&mut self, event: &TraceEvent) {
        let wrong = match *event {
            TraceEvent::PacketSent { path, space, number, .. } => {
                let sent = &mut self.of(path, space).sent;
                let again = sent.max().is_some_and(|max| number <= max);
                sent.insert_one(number);
                again.then(|| format!("number {number} of path {} in {space:?} sent again or out of order", path.0))
            }
            TraceEvent::PacketReceived { path, space, number, .. } => {
                let fresh = self.of(path, space).received.insert_one(number);
                (!fresh).then(|| format!("number {number} of path {} in {space:?} accepted twice", path.0))
            }
            TraceEvent::AckReceived { path, space, first, last, index } => {
                let numbers = self.of(path, space);
                let range = first..last + 1;
                // What was acknowledged before was looked at then.
                let known = !numbers.acked.insert(range.clone()) || numbers.sent.contains_range(range);
                if index as usize >= MAX_ACK_RANGES {
                    Some(format!("an acknowledgement has over {MAX_ACK_RANGES} ranges"))
                } else {
                    let what = || {
                        format!("numbers {first} to {last} of path {} in {space:?} acknowledged, not all sent", path.0)
                    };
                    (!known).then(what)
                }
            }
            TraceEvent::PacketLost { path, space, number, trigger } if trigger != LossTrigger::Discarded => {
                let acked = self.of(path, space).acked.contains(number);
                acked.then(|| format!("number {number} of path {} in {space:?} lost after it was acknowledged", path.0))
            }
            _ => None,
        };
        if self.wrong.is_none() {
            self.wrong = wrong;
        }
    }

    fn of(&mut self, path: PathId, space: Space) -> &mut Numbers {
        let key = (path, space);
        if self.numbers.get(self.last).is_none_or(|(known, _)| *known != key) {
            self.last = self.numbers.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                self.numbers.push((key, Numbers::default()));
                self.numbers.len() - 1
            });
        }
        &mut self.numbers[self.last].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: fn(u64) -> TraceEvent = |number| TraceEvent::PacketSent {
        path: PathId::ZERO,
        space: Space::Data,
        number,
        bytes: 100,
        ack_eliciting: true,
    };
    const RECEIVED: fn(u64) -> TraceEvent =
        |number| TraceEvent::PacketReceived { path: PathId::ZERO, space: Space::Data, number, bytes: 100 };
    const ACKED: fn(u64, u64) -> TraceEvent =
        |first, last| TraceEvent::AckReceived { path: PathId::ZERO, space: Space::Data, first, last, index: 0 };
    const LOST: fn(u64) -> TraceEvent =
        |number| TraceEvent::PacketLost { path: PathId::ZERO, space: Space::Data, number, trigger: LossTrigger::Time };

    fn book(events: &[TraceEvent]) -> AckBook {
        let mut book = AckBook::default();
        events.iter().for_each(|event| book.note(event));
        book
    }

    #[test]
    fn what_cannot_be_is_named() {
        let good = book(&[SENT(0), SENT(1), SENT(3), ACKED(0, 1), ACKED(0, 1), LOST(3)]);
        assert_eq!(good.wrong(), None);
        assert_eq!(good.false_acks(&book(&[RECEIVED(1), RECEIVED(0)])), None);
        assert!(good.false_acks(&book(&[RECEIVED(1)])).unwrap().contains("0..2"));
        for (events, what) in [
            (vec![SENT(0), SENT(2), ACKED(0, 2)], "not all sent"),
            (vec![SENT(1), SENT(1)], "sent again"),
            (vec![RECEIVED(1), RECEIVED(1)], "accepted twice"),
            (vec![SENT(1), ACKED(1, 1), LOST(1)], "lost after"),
        ] {
            assert!(book(&events).wrong().unwrap().contains(what), "{what}");
        }
    }
}
