//! A path as its slot shows it: state, room, and what keeps data off it.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::observe::PathState;
use plait_base::{FourTuple, Instant, Side};

use super::{PathRoom, PathSnapshot, Slot};
use crate::addresses::FourTupleRole;
use crate::path::Path;
use crate::status::PathStatus;

impl Slot {
    /// The path now, or as its holder saw it last; none for an id that was not opened. `side` is our end.
    pub fn show(&self, now: Instant, side: Side) -> Option<PathSnapshot> {
        self.own_snapshot(now, side).or_else(|| self.lent_snapshot())
    }

    /// The path now, if it is here.
    ///
    /// It is in line with whoever looks, since nearly all of them look at few of the figures, and at every packet.
    #[inline(always)]
    pub fn own_snapshot(&self, now: Instant, side: Side) -> Option<PathSnapshot> {
        let path = self.path.as_deref()?;
        Some(path.snapshot(self.state(), self.status.remote(), self.room(path, now, side)))
    }

    /// True on path 0 during the handshake, which carries data before the peer's address is validated.
    #[inline]
    pub fn carries_data_unvalidated(&self) -> bool {
        self.is_first() && self.state() == PathState::Validating
    }

    /// True on a path that we open, while its window has room. What other paths carry may be
    /// doubled on it before the peer answers: the server's address is no news, and what is lost there is lost to nobody.
    pub fn is_open_to_copies(&self, side: Side) -> bool {
        let is_backup = [self.status.local(), self.status.remote()].contains(&Some(PathStatus::Backup));
        let is_ready = |path: &Path| path.is_opening() && path.may_lead(side);
        !is_backup && self.path.as_deref().is_some_and(is_ready)
    }

    /// True on a path that failed a moment ago, and is no backup. What other paths carry may be doubled on it meanwhile: should
    /// it have lost no more than a packet, the copy comes sooner.
    pub fn is_suspect(&self, now: Instant) -> bool {
        let is_suspect = |path: &Path| path.is_suspect(now) && !self.status.is_wished_backup();
        self.state() == PathState::Failed && self.path.as_deref().is_some_and(is_suspect)
    }

    /// What but window and pacer keeps data off the path.
    #[inline]
    fn obstacle(&self, path: &Path, side: Side) -> Option<PathRoom> {
        // RFC 9000 8: a client may send on path 0 before it heard from the server, a server three times what it got.
        let full = u64::from(path.mtu()).min(MIN_DATAGRAM_BYTES as u64);
        if self.dcid(FourTupleRole::Current).is_none() {
            Some(PathRoom::NoCid)
        } else if !path.is_first() && self.state() == PathState::Validating {
            Some(PathRoom::NotValidated)
        } else if side == Side::Server && path.addresses.amplification_room() < full {
            Some(PathRoom::Amplification)
        } else {
            None
        }
    }

    #[inline]
    fn room(&self, path: &Path, now: Instant, side: Side) -> PathRoom {
        let obstacle = self.obstacle(path, side);
        obstacle.unwrap_or_else(|| PathRoom::Send(path.send.room(now, u64::from(path.mtu()))))
    }

    /// A packet may be chosen for the path now, unless its addresses are held: its pacer is refilled, and a full window
    /// remembered.
    pub fn prepare_to_send(&mut self, now: Instant, side: Side, is_held: impl Fn(&FourTuple) -> bool) {
        let is_free = |path: &Path| !is_held(&path.addresses.tuple()) && self.obstacle(path, side).is_none();
        let is_free = self.is_open() && self.path.as_deref().is_some_and(is_free);
        if let Some(path) = self.path.as_deref_mut().filter(|_| is_free) {
            path.send.prepare_to_send(now, u64::from(path.mtu()));
        }
    }
}
