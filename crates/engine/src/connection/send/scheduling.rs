//! Which path the next packet takes: the views that policies see, and their answers.

use std::time::Duration;

use plait_base::limits::TIMER_GRANULARITY;
use plait_base::probe::PathState;
use plait_base::time::earliest;
use plait_base::{Instant, PathId, Random, Side};
use plait_path::table::Slot;
use plait_path::{AckCarrier, AckRoute, Path, PathRoom, PathStatus, Paths, SendRoom};
use plait_schedule::{Decision, Demand, PathView, PeerAdvice, Room, Scheduler, WaitReason};

use crate::config::TransportConfig;
use crate::connection::send::pending_copies::PendingCopies;
use crate::connection::send::reinject::Reinjector;
use crate::connection::send::sockets::FullSockets;
use plait_wire::SentFrame;

/// The policies about paths and packets, and what they were shown.
pub(crate) struct Scheduling {
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) ack_route: Box<dyn AckRoute>,
    pub(crate) copies: PendingCopies,
    pub(crate) reinjector: Reinjector,
    pub(crate) full_sockets: FullSockets,
    /// Acks that a policy wants on further paths: carrier, path acknowledged.
    pub(crate) ack_copies: Vec<(PathId, PathId)>,
    /// Further paths on which the scheduler wants the packet being built.
    pub(crate) copy_to: Vec<PathId>,
    /// When pacing lets the next packet go, if that alone holds it, or when a wait for a faster path or a full socket has
    /// lasted enough.
    pub(crate) paced_until: Option<Instant>,
    /// When pacing lets the next answer to a challenge go.
    pub(crate) answers_at: Option<Instant>,
    pub(crate) views: Vec<PathView>,
    carriers: Vec<AckCarrier>,
    silent_carriers: Vec<AckCarrier>,
    /// Frames of the packet being built; empty between packets.
    pub(crate) frames: Vec<SentFrame>,
    /// Frames of one source on their way to others; empty between packets.
    pub(crate) updates: Vec<SentFrame>,
}

impl Scheduling {
    pub(crate) fn new(transport: &TransportConfig, random: Random) -> Self {
        Self {
            scheduler: transport.scheduler.build(random),
            ack_route: transport.paths.ack_route.build(),
            copies: PendingCopies::default(),
            reinjector: Reinjector::new(&*transport.paths.reinjection),
            full_sockets: FullSockets::default(),
            ack_copies: Vec::new(),
            copy_to: Vec::new(),
            paced_until: None,
            answers_at: None,
            views: Vec::new(),
            carriers: Vec::new(),
            silent_carriers: Vec::new(),
            frames: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// Shows the paths of the last look to the scheduler and takes its answer.
    pub(crate) fn pick(&mut self, demand: &Demand) -> Decision {
        let decision = self.scheduler.pick(&self.views, demand);
        if let Decision::Wait(WaitReason::Faster(id)) = decision {
            // The path that is waited for may have fallen silent: ask again when its round trip has passed.
            let rtt = self.views.iter().find(|v| v.id == id).and_then(|v| v.rtt).unwrap_or_default();
            self.look_again_at(demand.now + rtt.max(TIMER_GRANULARITY));
        }
        decision
    }

    fn look_again_at(&mut self, at: Instant) {
        self.paced_until = earliest(self.paced_until, Some(at));
    }

    /// Refreshes the views of all open paths, before a packet is chosen.
    pub(crate) fn look(&mut self, paths: &mut Paths, now: Instant, side: Side) {
        let full = &self.full_sockets;
        paths.prepare_to_send(now, side, |tuple| full.hold(tuple));
        self.views.clear();
        self.views.extend(views(paths, now, side, full));
        let changes_at = |v: &PathView| if let Room::Paced(at) | Room::Socket(at) = v.room { Some(at) } else { None };
        self.paced_until = self.views.iter().filter_map(changes_at).min();
    }

    /// The paths that carry the acks of `of`, as the policy chooses among those that can.
    pub(crate) fn ack_paths(
        &mut self,
        now: Instant,
        paths: &Paths,
        of: PathId,
    ) -> plait_path::policy::ack_route::AckPaths {
        self.carriers.clear();
        let heard = |path: &Path| path.receive.heard_at();
        let of_heard = paths.path(of).and_then(heard);
        for slot in paths.open_slots() {
            let Some(path) = slot.sendable() else { continue };
            // A receiver sends nothing that shows it the death of a path: one that fell silent while `of` goes on must
            // not swallow the acks of `of` as well.
            let silence = of_heard.map_or(Duration::ZERO, |at| heard(path).map_or(Duration::MAX, |own| at.since(own)));
            let silent = slot.id != of && silence > path.pto();
            // A short packet with an ack must fit into the credit of an address that is not proven.
            if path.may_send(ACK_PACKET_BYTES) && !self.full_sockets.hold(&path.addresses.tuple()) {
                let carrier = path.ack_carrier(slot.state());
                if silent { &mut self.silent_carriers } else { &mut self.carriers }.push(carrier);
            }
        }
        // Also where every path counts as failed: the one that still brings packets is the better guess.
        if self.carriers.is_empty() {
            self.carriers.append(&mut self.silent_carriers);
        }
        self.silent_carriers.clear();
        self.ack_route.choose(now, of, &self.carriers)
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.copies.shrink_to_fit();
        self.reinjector.shrink_to_fit();
        self.ack_copies.shrink_to_fit();
        self.copy_to.shrink_to_fit();
        self.views.shrink_to_fit();
        // Refilled whenever they are looked at.
        self.carriers = Vec::new();
        self.silent_carriers = Vec::new();
        self.frames = Vec::new();
        self.updates = Vec::new();
    }

    pub(crate) fn on_path_gone(&mut self, id: PathId) {
        self.scheduler.on_path_closed(id);
        self.ack_route.on_path_gone(id);
        self.copies.on_path_gone(id);
        self.ack_copies.retain(|&(carrier, of)| carrier != id && of != id);
    }
}

/// Room that a packet with acks alone wants at an address that is not proven, bytes.
const ACK_PACKET_BYTES: u64 = 100;

/// All open paths as a scheduler sees them; looking changes nothing.
pub(crate) fn views<'a>(
    paths: &'a Paths,
    now: Instant,
    side: Side,
    full: &'a FullSockets,
) -> impl Iterator<Item = PathView> + 'a {
    paths.open_slots().filter_map(move |slot| view(slot, now, side, full))
}

fn view(slot: &Slot, now: Instant, side: Side, full: &FullSockets) -> Option<PathView> {
    let path = slot.snapshot(now, side)?;
    let held = || full.room(now, &path.tuple, || path.pto);
    let room = match path.room {
        PathRoom::NoCid => Room::NoCid,
        PathRoom::NotValidated => Room::NotValidated,
        PathRoom::Amplification => Room::Amplification,
        PathRoom::Send(room) => held().unwrap_or(match room {
            SendRoom::Open => Room::Open,
            SendRoom::Window => Room::Window,
            SendRoom::Paced(at) => Room::Paced(at),
        }),
    };
    let is_backup = path.peer_advice == Some(PathStatus::Backup);
    Some(PathView {
        id: path.id,
        state: if slot.carries_early_data() { PathState::Active } else { path.state },
        peer_advice: if is_backup { PeerAdvice::Backup } else { PeerAdvice::Available },
        room,
        rtt: path.rtt.measured(),
        rtt_var: path.rtt.var(),
        rtt_min: path.rtt.min(),
        rtt_max: path.rtt.max(),
        window_bytes: path.send.window_bytes,
        in_flight_bytes: path.send.in_flight_bytes,
        ssthresh_bytes: path.ssthresh_bytes,
        mss_bytes: u64::from(path.mtu_bytes),
        sent_bytes: path.send.sent_bytes,
        sent_packets: path.send.packets_sent,
        delivery_rate_bps: path.send.delivery_rate_bps,
        loss_per_mille: path.send.loss_per_mille,
    })
}
