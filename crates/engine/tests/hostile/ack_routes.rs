//! An application's own ack route: it is asked once for an ack, and what it says is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use plait_base::{Instant, PathId, Space};
use plait_path::AckRoute;
use plait_path::policy::ack_route::{AckCarrier, AckPaths, AckRouteFactory};
use plait_wire::Frame;

use crate::full_sockets::{set_full, two_locals_of};
use crate::puppet::{ENGINE, Packet, Rig, Seen, Setup, ms, tuple};
use crate::split::attacks::{SECOND, two_paths};

/// Each choice for a path names another carrier than the one before.
#[derive(Debug, Default)]
struct InTurn(BTreeMap<PathId, usize>);

impl AckRoute for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn choose(&mut self, _now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        let turn = self.0.entry(of).or_default();
        *turn += 1;
        carriers.get(*turn % carriers.len().max(1)).map(|carrier| carrier.id).into_iter().collect()
    }
}

#[derive(Debug)]
struct InTurnFactory;

impl AckRouteFactory for InTurnFactory {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn build(&self) -> Box<dyn AckRoute> {
        Box::new(InTurn::default())
    }
}

/// Names the same carriers for the acks of a path each time.
#[derive(Clone, Copy, Debug)]
struct Fixed(fn(PathId) -> [PathId; 2]);

/// The path that the acks are of, whether it can carry them or not, and one that there is not.
const STUBBORN: Fixed = Fixed(|of| [of, PathId(99)]);
/// Path 0, and their own path as well.
const HOME_TOO: Fixed = Fixed(|of| [PathId(0), of]);

/// Path 0 alone.
const FIRST: Fixed = Fixed(|_| [PathId(0), PathId(99)]);

impl AckRoute for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn choose(&mut self, _now: Instant, of: PathId, _carriers: &[AckCarrier]) -> AckPaths {
        self.0(of).into_iter().collect()
    }
}

impl AckRouteFactory for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn build(&self) -> Box<dyn AckRoute> {
        Box::new(*self)
    }
}

/// The usual setup with another ack route.
fn with_route(route: impl AckRouteFactory + 'static) -> Setup {
    let mut setup = Setup::default();
    setup.transport.ack_route(Arc::new(route));
    setup
}

#[test]
fn a_route_to_a_path_that_can_carry_nothing_is_not_taken() {
    let mut rig = two_locals_of(with_route(STUBBORN));
    let acks = |rig: &Rig| rig.count(|f| matches!(f, Frame::Ack(ack) if ack.path == PathId(0)));
    set_full(&mut rig, &[ENGINE]);
    (0..4).for_each(|_| rig.frames([0x01]));
    rig.pass(ms(50));
    assert!(rig.wire.is_empty(), "{:?}", rig.seen);
    set_full(&mut rig, &[]);
    assert!(acks(&rig) > 0, "the ack waited for its path");
}

#[test]
fn a_route_that_takes_turns_is_followed() {
    let mut rig = two_paths(with_route(InTurnFactory));
    // Neither path is silent, or acks of the other one would go home too.
    rig.frames([0x01]);
    let seen = rig.seen.len();
    // Every second packet is acknowledged at once (RFC 9000 13.2.2).
    for _ in 0..20 {
        rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(1)]);
    }
    let is_ack = |f: &Frame<'_>| matches!(f, Frame::Ack(ack) if ack.path == PathId(1));
    let carriers: Vec<u32> = rig.seen[seen..].iter().filter(|s| s.has(is_ack)).map(|s| s.path.0).collect();
    assert!(carriers.len() >= 10 && carriers.windows(2).all(|pair| pair[0] != pair[1]), "{carriers:?}");
}

#[test]
fn acks_of_another_path_take_along_what_has_waited_for_a_while() {
    let mut rig = two_paths(with_route(FIRST));
    // The first acks of a way leave at once.
    (0..8).for_each(|_| rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(1)]));
    (0..4).for_each(|_| rig.frames([0x01]));
    let acks = |rig: &Rig| [0, 1].map(|path| rig.count(|f| matches!(f, Frame::Ack(ack) if ack.path == PathId(path))));
    let before = acks(&rig);
    rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(1)]);
    (0..8).for_each(|_| rig.frames([0x01]));
    let [first, second] = acks(&rig);
    // As over a single path, or the peer would hear of each packet where it should hear of every second one.
    assert_eq!([first - before[0], second - before[1]], [4, 0]);
    rig.pass(ms(10));
    (0..2).for_each(|_| rig.frames([0x01]));
    assert_eq!(acks(&rig), [first + 1, second + 1], "a part of max_ack_delay is over");
}

#[test]
fn what_answers_on_a_new_path_takes_its_acks_along() {
    let mut rig = Rig::established_server(Setup::default());
    let (from, number) = (rig.seen.len(), rig.peer.next_number(Space::Data, 1));
    rig.open_path(1, SECOND, false);
    let acked = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1) && a.largest == number);
    let carriers: Vec<PathId> = rig.seen[from..].iter().filter(|s| s.has(acked)).map(|s| s.path).collect();
    assert!(carriers.contains(&PathId(0)), "the faster way: {carriers:?}");
    assert!(carriers.contains(&PathId(1)), "{carriers:?}");
}

#[test]
fn acks_go_home_as_well_while_the_other_way_is_silent() {
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, SECOND, true);
    rig.pass(ms(200));
    rig.ack_all();
    let carriers = |rig: &mut Rig| {
        let (from, number) = (rig.seen.len(), rig.peer.next_number(Space::Data, 1));
        (0..2).for_each(|_| rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(1)]));
        let acked = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1) && a.largest > number);
        rig.seen[from..].iter().filter(|s| s.has(acked)).map(|s| s.path.0).collect::<Vec<_>>()
    };
    rig.frames([0x01]);
    assert_eq!(carriers(&mut rig), [0], "path 0 is the faster one, and brought a packet just now");
    let now = rig.now;
    let rtt = rig.conn().path_statistics(now, PathId(0)).and_then(|path| path.rtt).unwrap();
    rig.pass(rtt / 2);
    assert_eq!(carriers(&mut rig), [0]);
    rig.pass(rtt);
    assert_eq!(carriers(&mut rig), [0, 1], "a round trip of silence");
    rig.frames([0x01]);
    assert_eq!(carriers(&mut rig), [0]);
}

#[test]
fn an_ack_that_goes_home_as_well_asks_for_an_answer_there() {
    // Path 0 has been silent for a round trip then, so that acks would go home as well in any case.
    let mut rig = Rig::server_with_two_paths(with_route(HOME_TOO), SECOND);
    let asks_once = |rig: &mut Rig| {
        let from = rig.seen.len();
        (0..2).for_each(|_| rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(1)]));
        let is_ack = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1));
        let acks = |s: &Seen| s.frames().into_iter().filter(is_ack).count();
        let carriers: Vec<_> = rig.seen[from..].iter().filter(|s| acks(s) > 0).collect();
        assert!(carriers.iter().all(|s| acks(s) == 1), "once in each packet");
        assert!([0, 1].iter().all(|id| carriers.iter().any(|s| s.path.0 == *id)), "by both paths");
        let asked = carriers.iter().filter(|s| s.path.0 == 1 && s.has(|f| matches!(f, Frame::Ping))).count();
        assert_eq!(asked, 1, "one PING under way is enough (RFC 9000 13.2.4)");
    };
    asks_once(&mut rig);
    rig.ack_all();
    asks_once(&mut rig);
}
