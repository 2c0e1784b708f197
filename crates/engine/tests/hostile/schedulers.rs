//! What schedulers are asked, what they are told, and that their waits end.

use std::sync::Arc;

use bytes::Bytes;
use plait_base::{Dir, PathId, Random};
use plait_engine::schedule::{
    Decision, Demand, DemandKind, PathView, Scheduler, SchedulerFactory, WaitReason, candidates, reinject,
};
use plait_engine::stream::Overflow;

use crate::puppet::{Rig, Setup, ms};

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
