//! What a connection says of itself: sums that never decrease, every packet shown to observers, idle paths told from busy ones.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plait_base::observe::{CloseTrigger, Observer, ObserverFactory, TraceEvent};
use plait_base::{CloseCode, Dir, Instant, PathId, Random, Space};
use plait_engine::connection::Unreachable;
use plait_engine::path::PathStatus;
use plait_engine::{EndpointEvent, Event, PathEvent};
use plait_wire::Frame;
use plait_wire::frame::AckForm;

use crate::endings::version_negotiation;
use crate::puppet::{Packet, Rig, Setup, ms, tuple};
use crate::violations::{raw, stream};

/// Packets that were said to leave: path, space, number.
#[derive(Clone, Debug, Default)]
struct Sent(Arc<Mutex<BTreeSet<(PathId, Space, u64)>>>);

impl Observer for Sent {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        if let TraceEvent::PacketSent { path, space, number, .. } = event {
            assert!(self.0.lock().unwrap().insert((*path, *space, *number)), "said twice: {event:?}");
        }
    }
}

impl ObserverFactory for Sent {
    fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }
}

fn observed() -> (Sent, Setup) {
    let (sent, mut setup) = (Sent::default(), Setup::default());
    setup.transport.observer_factory(Some(Arc::new(sent.clone())));
    (sent, setup)
}

fn assert_all_seen(sent: &Sent, rig: &Rig) {
    let left: BTreeSet<(PathId, Space, u64)> = rig.seen.iter().map(|s| (s.path, s.kind.space(), s.number)).collect();
    assert_eq!(*sent.0.lock().unwrap(), left);
    assert!(rig.count(|f| matches!(f, Frame::Close(_))) > 0, "a close was among them");
}

#[test]
fn every_packet_that_leaves_is_shown_to_observers_closes_too() {
    let (sent, setup) = observed();
    let mut rig = Rig::established_server(setup);
    rig.open_path(1, "192.0.2.2:5000", true);
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    (0..10).for_each(|_| rig.frames([0x01]));
    assert_all_seen(&sent, &rig);

    // The last word of the last path, and the close that goes there as well.
    let (sent, setup) = observed();
    let mut rig = Rig::established_server(setup);
    rig.frames(raw(&[0x3e75, 0, 0], &[]));
    rig.pass(ms(3_000));
    assert_all_seen(&sent, &rig);

    // In the handshake, on two levels.
    let (sent, setup) = observed();
    let mut rig = Rig::client(setup);
    rig.say_handshake();
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    assert_all_seen(&sent, &rig);
}

/// Bytes of packets as observers heard of them.
#[derive(Clone, Debug, Default)]
struct Bytes {
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
}

impl Observer for Bytes {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        let (sum, bytes) = match event {
            TraceEvent::PacketSent { bytes, .. } => (&self.sent, u64::from(*bytes)),
            TraceEvent::PacketReceived { bytes, .. } => (&self.received, u64::from(*bytes)),
            TraceEvent::PacketDropped { bytes, .. } => (&self.received, *bytes as u64),
            _ => return,
        };
        sum.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl ObserverFactory for Bytes {
    fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }
}

#[test]
fn packets_are_counted_from_header_to_tag() {
    let (bytes, mut setup) = (Bytes::default(), Setup::default());
    setup.transport.observer_factory(Some(Arc::new(bytes.clone())));
    let mut rig = Rig::established_server(setup);
    (0..10).for_each(|_| rig.frames([0x01]));
    rig.frames(stream(0, 0, false, b"a request"));
    rig.pass(ms(100));
    // Every byte of UDP payload belongs to one packet.
    let (to_engine, from_engine) =
        rig.ledger.values().fold((0, 0), |sum, of| (sum.0 + of.to_engine, sum.1 + of.from_engine));
    assert_eq!(bytes.received.load(Ordering::Relaxed), to_engine);
    assert_eq!(bytes.sent.load(Ordering::Relaxed), from_engine);
}

/// An end as observers heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    locally: bool,
    code: Option<u64>,
    trigger: CloseTrigger,
}

const fn ours(code: Option<u64>, trigger: CloseTrigger) -> End {
    End { locally: true, code, trigger }
}

const fn theirs(code: Option<u64>, trigger: CloseTrigger) -> End {
    End { locally: false, code, trigger }
}

#[derive(Clone, Debug, Default)]
struct Ends(Arc<Mutex<Vec<End>>>);

impl Observer for Ends {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        if let TraceEvent::Closed { locally, code, trigger, .. } = event {
            let end = End { locally: *locally, code: code.map(|code| code.0), trigger: *trigger };
            self.0.lock().unwrap().push(end);
        }
    }
}

impl ObserverFactory for Ends {
    fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }
}

/// What ends a connection, and what observers are to hear of it.
type EndRow = (&'static str, End, fn(&mut Rig));

/// Ends after the handshake.
const ENDS: &[EndRow] = &[
    ("our application", ours(Some(7), CloseTrigger::Application), |rig| {
        let now = rig.now;
        rig.conn().close(now, 7, "bye".into());
    }),
    ("a broken rule", ours(Some(0x0a), CloseTrigger::Error), |rig| rig.frames([0x1e])),
    ("the peer's application", theirs(Some(9), CloseTrigger::Application), |rig| rig.frames(raw(&[0x1d, 9, 0], &[]))),
    ("the peer's transport", theirs(Some(1), CloseTrigger::Error), |rig| rig.frames(raw(&[0x1c, 1, 0, 0], &[]))),
    ("the same without an error", theirs(Some(0), CloseTrigger::NoError), |rig| {
        rig.frames(raw(&[0x1c, 0, 0, 0], &[]));
    }),
    ("a stateless reset", theirs(None, CloseTrigger::StatelessReset), reset),
    ("silence", ours(None, CloseTrigger::IdleTimeout), |rig| rig.pass(ms(60_000))),
];

/// Ends of a client before it heard anything.
const EARLY_ENDS: &[EndRow] = &[
    ("nobody answers", ours(None, CloseTrigger::IdleTimeout), |rig| rig.pass(ms(60_000))),
    ("nobody is there", ours(None, CloseTrigger::Unreachable), |rig| {
        let now = rig.now;
        rig.conn().on_unreachable(now, Unreachable::Port);
    }),
    ("nobody wants it", ours(Some(0), CloseTrigger::NoError), |rig| {
        let now = rig.now;
        rig.conn().withdraw(now, None);
    }),
    ("no common version", ours(None, CloseTrigger::VersionMismatch), |rig| {
        let answer = version_negotiation(rig, &[0x0a0a_0a0a, 0x7777_7777]);
        rig.deliver(&answer);
    }),
];

/// From the address of path 1, a datagram that ends in the token of the id in use there.
fn reset(rig: &mut Rig) {
    let from = tuple("192.0.2.2:5000");
    let token = rig.endpoint_events.iter().rev().find_map(|e| match e {
        EndpointEvent::ResetToken { remote, token } if *remote == from.remote => Some(*token),
        _ => None,
    });
    let token = token.expect("a token of path 1").0;
    rig.deliver_from(from, &[&[0x43; 30][..], &token].concat());
}

#[test]
fn every_end_is_shown_to_observers_once_with_its_trigger() {
    let observed = || {
        let (ends, mut setup) = (Ends::default(), Setup::default());
        setup.transport.observer_factory(Some(Arc::new(ends.clone())));
        (ends, setup)
    };
    for (what, end, act) in ENDS {
        let (ends, setup) = observed();
        let mut rig = Rig::established_server(setup);
        rig.open_path(1, "192.0.2.2:5000", true);
        rig.pass(ms(50));
        act(&mut rig);
        rig.pump();
        // What comes later says nothing new.
        reset(&mut rig);
        rig.frames(raw(&[0x1d, 9, 0], &[]));
        rig.pass(ms(60_000));
        assert_eq!(*ends.0.lock().unwrap(), [*end], "{what}");
    }
    for (what, end, act) in EARLY_ENDS {
        let (ends, setup) = observed();
        let mut rig = Rig::client(setup);
        act(&mut rig);
        rig.pump();
        rig.pass(ms(60_000));
        assert_eq!(*ends.0.lock().unwrap(), [*end], "{what}");
    }
}

#[test]
fn acks_are_counted_by_the_frame_for_the_path_that_they_acknowledge() {
    for route_name in ["own", "fastest", "all"] {
        let mut setup = Setup::default();
        setup.transport.ack_route(plait_engine::path::ack_route::by_name(route_name).unwrap());
        let mut rig = Rig::server(setup);
        rig.say_handshake();
        rig.pass(ms(5));
        let figures = |rig: &mut Rig, id| {
            let now = rig.now;
            let figures = rig.conn().path_statistics(now, PathId(id)).unwrap();
            (figures.ack_frames_sent, figures.ack_frames_received)
        };
        assert_eq!(figures(&mut rig, 0).1, 0, "acks of Initial and Handshake packets are not counted");
        rig.shake_hands();
        rig.open_path(1, "192.0.2.2:5000", true);
        rig.pass(ms(50));
        rig.ack_all();
        let received = [0, 1].map(|id| figures(&mut rig, id).1);
        for _ in 0..10 {
            rig.frames([0x01]);
            rig.send_all(tuple("192.0.2.2:5000"), &[Packet::one_rtt([0x01]).on(1)]);
            rig.pass(ms(30));
            rig.ack_all();
        }
        for id in [0, 1] {
            let of = |f: &Frame<'_>| matches!(f, Frame::Ack(ack) if ack.path == PathId(id));
            let in_data = rig.seen.iter().filter(|s| s.kind.space() == Space::Data);
            let left: usize = in_data.map(|s| s.frames().iter().filter(|f| of(f)).count()).sum();
            let (sent, now_received) = figures(&mut rig, id);
            assert_eq!(sent, left as u64, "{route_name}, path {id}");
            assert_eq!(now_received - received[id as usize], 10, "{route_name}, path {id}");
        }
    }
}

#[test]
fn sums_never_decrease_whatever_becomes_of_the_paths() {
    for seed in 0..30 {
        let mut random = Random::from_u64(seed);
        let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
        let mut last = rig.conn().paths().totals();
        let (mut next, mut gone) = (1, 0);
        for step in 0..60 {
            match random.below(7) {
                0 if next < 8 => {
                    rig.open_path(next, &format!("192.0.2.{}:5000", next + 1), random.below(4) > 0);
                    next += 1;
                }
                1 => {
                    let id = rig.conn().streams().open(Dir::Uni);
                    id.into_iter().for_each(|id| assert!(rig.conn().send_stream(id).write(&[1; 20_000]).is_ok()));
                    rig.pump();
                }
                2 => {
                    let (now, ids) = (rig.now, rig.conn().paths().ids());
                    if ids.len() > 1 {
                        let id = ids[random.below(ids.len() as u64) as usize];
                        rig.conn().close_path(now, id, CloseCode::APPLICATION_ABANDON_PATH).unwrap();
                        rig.pump();
                        // An honest peer answers.
                        let on = rig.conn().paths().ids()[0];
                        let answer = raw(&[0x3e75, u64::from(id.0), 0], &[]);
                        let at = tuple(&match on.0 {
                            0 => rig.tuple.remote.to_string(),
                            n => format!("192.0.2.{}:5000", n + 1),
                        });
                        rig.send_all(at, &[Packet::one_rtt(answer).on(on.0)]);
                    }
                }
                3 => rig.pass(ms(random.below(100))),
                4 => rig.pass(ms(random.below(3_000))),
                _ if rig.conn().paths().ids().contains(&PathId(0)) => rig.ack_all(),
                _ => {}
            }
            if !rig.is_open() {
                break;
            }
            let now = rig.conn().paths().totals();
            let pairs = [
                (last.sent_bytes, now.sent_bytes),
                (last.received_bytes, now.received_bytes),
                (last.stream_bytes_received, now.stream_bytes_received),
                (last.packets_sent, now.packets_sent),
                (last.packets_lost, now.packets_lost),
                (last.ack_frames_sent, now.ack_frames_sent),
                (last.ack_frames_received, now.ack_frames_received),
            ];
            assert!(pairs.iter().all(|(a, b)| a <= b), "seed {seed}, step {step}: {last:?}, then {now:?}");
            last = now;
        }
        gone += rig.events.iter().filter(|e| matches!(e, Event::Path(PathEvent::Closed { .. }))).count();
        let wire: u64 = rig.wire.iter().map(|(_, _, d)| d.len() as u64).sum();
        assert!(last.sent_bytes <= wire, "seed {seed}");
        if gone > 0 {
            let (now, ids) = (rig.now, rig.conn().paths().ids_with_closing());
            let left: u64 =
                ids.iter().filter_map(|id| rig.conn().path_statistics(now, *id)).map(|p| p.sent_bytes).sum();
            assert!(last.sent_bytes > left, "seed {seed}: {gone} paths are gone and still count");
        }
    }
}

#[test]
fn a_path_that_brings_data_is_not_idle() {
    let mut rig = Rig::established_server(Setup::default());
    let why = |rig: &mut Rig| {
        let now = rig.now;
        rig.conn().path_statistics(now, PathId(0)).unwrap().why_idle
    };
    rig.pass(ms(2_000));
    rig.ack_all();
    rig.pass(ms(2_000));
    assert_eq!(why(&mut rig), Some("no-data"));
    rig.frames(stream(2, 0, false, &[1; 1000]));
    assert_eq!(why(&mut rig), None, "the peer's data comes by it");
    rig.pass(ms(2_000));
    rig.ack_all();
    rig.pass(ms(2_000));
    assert_eq!(why(&mut rig), Some("no-data"), "and then no more");
    // A PING is not data.
    rig.frames([0x01]);
    assert_eq!(why(&mut rig), Some("no-data"));
}

/// Two paths, of which the second brings no acks until it counts as failed.
fn second_failed(before: Option<PathStatus>) -> Rig {
    let mut rig = Rig::server_with_two_paths(Setup::default(), "192.0.2.2:5000");
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 100_000]).unwrap();
    rig.pump();
    let now = rig.now;
    before.into_iter().for_each(|status| rig.conn().set_path_status(now, PathId(1), status).unwrap());
    for _ in 0..100 {
        rig.pass(ms(20));
        let ack = rig.peer.ack(Space::Data, 0, AckForm::Path).unwrap();
        rig.frames(ack);
        if rig.events.contains(&Event::Path(PathEvent::Failed { id: PathId(1) })) {
            return rig;
        }
    }
    panic!("the path never fails");
}

#[test]
fn backup_as_the_application_set_it_outlives_a_failure() {
    // RFC 10069 3.3: the advice is the application's; ours holds only while the path is down
    let (backup, available) = (Some(PathStatus::Backup), Some(PathStatus::Available));
    let cases =
        [(None, None, "active"), (backup, None, "backup"), (None, backup, "backup"), (backup, available, "active")];
    for (before, during, after) in cases {
        let mut rig = second_failed(before);
        let now = rig.now;
        during.into_iter().for_each(|status| rig.conn().set_path_status(now, PathId(1), status).unwrap());
        for _ in 0..10 {
            rig.pass(ms(200));
            rig.ack_all();
        }
        assert!(rig.events.contains(&Event::Path(PathEvent::Recovered { id: PathId(1) })), "{before:?} {during:?}");
        let now = rig.now;
        let state = rig.conn().path_statistics(now, PathId(1)).unwrap().state;
        assert_eq!(format!("{state:?}").to_lowercase(), after, "{before:?}, then {during:?}");
        // What the peer was told last is the same.
        let advice = |f: &Frame<'_>| match f {
            Frame::PathStatus(s) if s.path == PathId(1) => Some((s.sequence, s.status)),
            _ => None,
        };
        let told = rig.seen.iter().flat_map(|s| s.frames().iter().filter_map(advice).collect::<Vec<_>>());
        let last = told.max_by_key(|(sequence, _)| *sequence).map(|(_, status)| status);
        let stands = if after == "backup" { PathStatus::Backup } else { PathStatus::Available };
        assert_eq!(last, Some(stands), "{before:?}, then {during:?}");
    }
}
