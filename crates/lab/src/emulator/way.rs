//! The way of a packet: the stops between both hosts, in the order in which it comes to them.

use plait_sim::scenario::{Direction, Place};

use super::boxes::Boxes;

/// Where a packet comes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A middlebox, by its number.
    Box(usize),
    /// A link, by its place.
    Link(usize),
}

/// The stops of a path, or of a stream of cross traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stops {
    up: Vec<Stop>,
    down: Vec<Stop>,
}

impl Stops {
    /// Through these links, from clients to servers, and the middleboxes before each.
    pub(super) fn new(places: &[Place], boxes: &Boxes) -> Self {
        let through = |place: &Place, direction| {
            let before = boxes.before(*place, direction).iter().map(|number| Stop::Box(*number));
            before.chain([Stop::Link(place.0)]).collect::<Vec<_>>()
        };
        Self {
            up: places.iter().flat_map(|place| through(place, Direction::Up)).collect(),
            down: places.iter().rev().flat_map(|place| through(place, Direction::Down)).collect(),
        }
    }

    /// Behind all of it, seen from clients, one more link.
    pub(super) fn and_then(mut self, link: usize) -> Self {
        self.up.push(Stop::Link(link));
        self.down.insert(0, Stop::Link(link));
        self
    }

    /// The next stop of a packet that has passed so many.
    pub(super) fn stop(&self, direction: Direction, passed: usize) -> Option<Stop> {
        match direction {
            Direction::Up => self.up.get(passed).copied(),
            Direction::Down => self.down.get(passed).copied(),
        }
    }
}
