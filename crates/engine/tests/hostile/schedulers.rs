//! What schedulers are asked, what they are told, and that their waits end.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use plait_base::{Dir, Instant, PathId, Random};
use plait_engine::schedule::{
    Decision, Demand, DemandKind, PathView, Scheduler, SchedulerFactory, WaitReason, candidates, fastest, reinject,
};
use plait_engine::stream::Overflow;
use plait_wire::Frame;

use crate::puppet::{Packet, Rig, Setup, ms, tuple};

const SECOND: &str = "192.0.2.2:5000";

/// Waits for path 0 with every datagram of the application, and sends everything else there.
#[derive(Debug)]
struct Waiting;

impl Scheduler for Waiting {
    fn name(&self) -> &'static str {
        "waiting"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        match candidates(paths).find(|path| path.id == PathId(0)) {
            _ if demand.kind == DemandKind::Datagram => Decision::Wait(WaitReason::Faster(PathId(0))),
            Some(path) => Decision::Send(path.id),
            None => Decision::Wait(WaitReason::Busy),
        }
    }
}

#[derive(Debug)]
struct WaitingFactory;

impl SchedulerFactory for WaitingFactory {
    fn name(&self) -> &'static str {
        "waiting"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Waiting)
    }
}

/// Sends on the first path that has room, and counts what it is told of.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<Mutex<Told>>);

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    packets: usize,
    credit_blocked: usize,
}

impl Scheduler for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        candidates(paths).next().map_or(Decision::Wait(WaitReason::Busy), |path| Decision::Send(path.id))
    }

    fn on_sent(&mut self, _path: PathId, _bytes: u64, _now: Instant) {
        self.0.lock().unwrap().packets += 1;
    }

    fn on_credit_blocked(&mut self, _now: Instant) {
        self.0.lock().unwrap().credit_blocked += 1;
    }
}

impl SchedulerFactory for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

/// Waits for the fastest path with more than 1,000 bytes, and sends control frames on another one.
#[derive(Debug)]
struct Aside;

impl Scheduler for Aside {
    fn name(&self) -> &'static str {
        "aside"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        let fast = fastest(paths).map(|path| path.id);
        match fast {
            Some(fast) if demand.kind == DemandKind::Stream && demand.unsent_bytes > 1000 => {
                Decision::Wait(WaitReason::Faster(fast))
            }
            _ => candidates(paths).last().map_or(Decision::Wait(WaitReason::Busy), |path| Decision::Send(path.id)),
        }
    }
}

impl SchedulerFactory for Aside {
    fn name(&self) -> &'static str {
        "aside"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Self)
    }
}

/// Two validated paths with an RTT of about 20 ms.
fn two_paths(scheduler: Arc<dyn SchedulerFactory>) -> Rig {
    let mut setup = Setup::default();
    setup.transport.scheduler(scheduler).reinjection(reinject::by_name("none").unwrap());
    let mut rig = Rig::established_server(setup);
    rig.open_path(1, SECOND, true);
    for _ in 0..8 {
        write(&mut rig, 100);
        rig.pass(ms(20));
        rig.ack_all();
    }
    rig.pass(ms(100));
    rig
}

fn write(rig: &mut Rig, bytes: usize) {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(rig.conn().send_stream(id).write(&vec![3; bytes]).unwrap(), bytes);
    rig.pump();
}

#[test]
fn a_wait_for_a_faster_path_ends_while_stream_data_is_under_way_too() {
    for bytes in [0, 5_000] {
        let mut rig = two_paths(Arc::new(WaitingFactory));
        write(&mut rig, bytes);
        rig.conn().datagrams().send(Bytes::from_static(b"x"), Overflow::Refuse).unwrap();
        rig.pump();
        let now = rig.now;
        let rtt = rig.conn().path_statistics(now, PathId(0)).unwrap().rtt.unwrap();
        assert!(rig.conn().deadline().unwrap() <= now + rtt, "with {bytes} bytes under way");
    }
}

#[test]
fn no_stream_data_rides_along_with_control_frames_where_the_scheduler_waits_with_it() {
    let mut rig = two_paths(Arc::new(Aside));
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    let seen = rig.seen.len();
    write(&mut rig, 5_000);
    assert_eq!(rig.seen.len(), seen, "it waits");
    rig.conn().send_stream(id).reset(7).unwrap();
    rig.pump();
    let since = &rig.seen[seen..];
    assert!(since.iter().any(|s| s.has(|f| matches!(f, Frame::ResetStream(_)))));
    assert!(!since.iter().any(|s| s.has(|f| matches!(f, Frame::Stream(_)))));
}

#[test]
fn a_scheduler_is_told_of_the_packets_that_it_decided_about_and_of_no_others() {
    let counting = Counting::default();
    let told = || counting.0.lock().unwrap().packets;
    let mut rig = two_paths(Arc::new(counting.clone()));
    let (before, seen) = (told(), rig.seen.len());
    write(&mut rig, 10_000);
    let carried = rig.seen[seen..].iter().filter(|s| s.has(|f| matches!(f, Frame::Stream(_)))).count();
    assert!(carried >= 9);
    assert_eq!(told() - before, carried);
    rig.ack_all();
    // Acks of what comes on either path and answers to challenges are not its business.
    let (before, seen) = (told(), rig.seen.len());
    for n in 0..10 {
        rig.frames([0x01]);
        rig.send_all(tuple(SECOND), &[Packet::one_rtt([&[0x1a_u8][..], &[n; 8]].concat()).on(1)]);
    }
    assert!(rig.seen.len() >= seen + 10);
    assert_eq!(told(), before);
}

#[test]
fn a_scheduler_is_told_that_credit_is_out_while_data_is_under_way() {
    let counting = Counting::default();
    let told = || counting.0.lock().unwrap().credit_blocked;
    let mut setup = Setup::default();
    setup.transport.scheduler(Arc::new(counting.clone()));
    setup.habits.params.limits.max_data = 5_000;
    let mut rig = Rig::established_server(setup);
    write(&mut rig, 4_000);
    assert_eq!(told(), 0, "all of it left");
    write(&mut rig, 4_000);
    assert!(told() > 0, "nothing is lost, and 3,000 bytes wait for MAX_DATA");
    rig.ack_all();
    let before = told();
    rig.pass(ms(100));
    assert_eq!(told(), before, "the peer has all that it allowed");
}
