//! The open paths as schedulers and reinjection policies see them.

use plait_base::observe::PathState;
use plait_base::{Instant, Side};
use plait_path::table::{PathSnapshot, Slot, SlotPlace};
use plait_path::{PathRoom, PathStatus, Paths, SendRoom};
use plait_schedule::{PathView, PeerAdvice, RecentRtt, Room};

use crate::connection::send::sockets::FullSockets;

/// The views of one moment, by path id: made when first looked at, and after a packet only that of its path is made anew.
#[derive(Debug, Default)]
pub(crate) struct Views {
    list: Vec<PathView>,
    state: ViewState,
    /// When they were looked at last.
    at: Instant,
}

/// Which of the views tell how things are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ViewState {
    #[default]
    Stale,
    /// All but the one of the path that sent since.
    AllBut(SlotPlace),
    Fresh,
}

impl Views {
    pub(crate) fn shrink_to_fit(&mut self) {
        self.list = Vec::new();
        self.expire();
    }

    pub(crate) fn list(&self) -> &[PathView] {
        &self.list
    }

    /// Anything may have happened to the paths since: a datagram came, a timer fired, the application changed something.
    pub(crate) fn expire(&mut self) {
        self.state = ViewState::Stale;
    }

    /// A poll begins. What the last one saw at the same moment holds still.
    pub(crate) fn begin_poll(&mut self, now: Instant) {
        if self.at != now {
            self.expire();
        }
        self.at = now;
    }

    /// A packet left: nothing but the view of its path has changed.
    pub(crate) fn on_sent(&mut self, place: SlotPlace) {
        self.state = match self.state {
            ViewState::Fresh => ViewState::AllBut(place),
            ViewState::AllBut(other) if other == place => self.state,
            ViewState::AllBut(_) | ViewState::Stale => ViewState::Stale,
        };
    }

    /// Makes the views that are out of date; a packet is about to be chosen.
    pub(crate) fn look(&mut self, paths: &mut Paths, now: Instant, side: Side, full: &FullSockets) {
        let is_held = |tuple: &_| full.hold(tuple);
        let is_done = match self.state {
            ViewState::Fresh => true,
            ViewState::AllBut(place) => {
                let sent = paths.slot_at_mut(place).into_iter();
                sent.for_each(|slot| slot.prepare_to_send(now, side, is_held));
                self.replace(paths.slot_at(place).and_then(|slot| view(paths, slot, now, side, full)))
            }
            ViewState::Stale => false,
        };
        if !is_done {
            paths.prepare_to_send(now, side, is_held);
            self.list.clear();
            for slot in paths.open_slots() {
                if let Some(view) = view(paths, slot, now, side, full) {
                    self.list.push(view);
                }
            }
        }
        self.state = ViewState::Fresh;
        debug_assert!(views(paths, now, side, full).eq(self.list.iter().copied()), "a path changed behind its view");
    }

    /// Puts a path's new view in place of its old one, if both are there.
    fn replace(&mut self, new: Option<PathView>) -> bool {
        let Some(new) = new else { return false };
        let old = self.list.iter_mut().find(|view| view.id == new.id);
        old.map(|old| *old = new).is_some()
    }
}

/// All open paths as a scheduler sees them; looking changes nothing.
pub(crate) fn views<'a>(
    paths: &'a Paths,
    now: Instant,
    side: Side,
    full: &'a FullSockets,
) -> impl Iterator<Item = PathView> + 'a {
    paths.open_slots().filter_map(move |slot| view(paths, slot, now, side, full))
}

fn view(paths: &Paths, slot: &Slot, now: Instant, side: Side, full: &FullSockets) -> Option<PathView> {
    let onlooker = Onlooker { paths, slot, now, side, full };
    match slot.own_snapshot(now, side) {
        Some(path) => Some(onlooker.view(&path)),
        None => onlooker.lent_view(),
    }
}

/// Who looks at a path, and what its view depends on beside it.
struct Onlooker<'a> {
    paths: &'a Paths,
    slot: &'a Slot,
    now: Instant,
    side: Side,
    full: &'a FullSockets,
}

impl Onlooker<'_> {
    /// That of a path that somebody else serves.
    #[cold]
    fn lent_view(&self) -> Option<PathView> {
        self.slot.lent_snapshot().map(|path| self.view(&path))
    }

    /// In line, so that no more of the snapshot is made than is looked at.
    #[inline(always)]
    fn view(&self, path: &PathSnapshot) -> PathView {
        let &Self { paths, slot, now, side, full } = self;
        let held = || full.room(now, &path.tuple, || path.pto);
        let room = match path.room {
            PathRoom::NoCid => Room::NoCid,
            PathRoom::NotValidated if slot.is_open_to_copies(side) && !full.hold(&path.tuple) => Room::CopiesOnly,
            PathRoom::NotValidated => Room::NotValidated,
            PathRoom::Amplification => Room::Amplification,
            PathRoom::Send(SendRoom::Free) if paths.takes_copies_only(slot, now) => held().unwrap_or(Room::CopiesOnly),
            PathRoom::Send(room) => held().unwrap_or(match room {
                SendRoom::Free => Room::Free,
                SendRoom::Window => Room::Window,
                SendRoom::Paced(at) => Room::Paced(at),
            }),
        };
        let state = match path.state {
            PathState::Validating if slot.carries_data_unvalidated() => PathState::Active,
            _ if paths.is_avoided(slot) => PathState::Failed,
            state => state,
        };
        let is_backup = path.peer_advice == Some(PathStatus::Backup);
        PathView {
            id: path.id,
            state,
            peer_advice: if is_backup { PeerAdvice::Backup } else { PeerAdvice::Available },
            room,
            rtt: path.scheduled_rtt,
            rtt_var: path.send.rtt_var,
            rtt_min: path.send.rtt_min.unwrap_or_default(),
            rtt_flight_bytes: path.send.rtt_flight_bytes,
            recent_rtt: RecentRtt { max: path.rtt_max, late: path.rtt_late },
            window_bytes: path.send.window_bytes,
            in_flight_bytes: path.send.in_flight_bytes,
            ssthresh_bytes: path.ssthresh_bytes,
            max_datagram_bytes: u64::from(path.max_datagram_bytes),
            sent_bytes: path.send.sent_bytes,
            delivery_rate_bps: path.send.delivery_rate_bps,
            loss_per_mille: path.send.loss_per_mille,
        }
    }
}
