//! Room for frames: what one packet of a path carries, and what the application's datagrams may count on.

use plait_base::limits::{MAX_CID_LEN, MIN_DATAGRAM_BYTES};
use plait_base::observe::PathState;
use plait_crypto::TAG_BYTES;

use super::{Paths, Slot};
use crate::path::Path;

/// Bytes for frames in the packet of a datagram of `mtu` bytes: what the longest header and the tag leave.
pub fn frame_room(mtu: u64) -> usize {
    let overhead = 1 + MAX_CID_LEN + 4 + TAG_BYTES;
    usize::try_from(mtu).unwrap_or(usize::MAX).saturating_sub(overhead)
}

/// What a path is good for, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    InUse,
    Backup,
    Failed,
    Unproven,
}

impl Standing {
    fn of(slot: &Slot) -> Self {
        match slot.state() {
            PathState::Active => Self::InUse,
            // It carries data from the start.
            PathState::Validating if slot.is_first() => Self::InUse,
            PathState::Backup => Self::Backup,
            PathState::Failed => Self::Failed,
            PathState::Validating | PathState::Unused | PathState::Closing | PathState::Closed => Self::Unproven,
        }
    }
}

impl Path {
    /// Bytes for frames in one of its packets.
    #[inline]
    pub fn frame_room(&self) -> usize {
        frame_room(u64::from(self.mtu()))
    }
}

impl Paths {
    /// Bytes for frames in a packet of the widest path in use: active ones, else backups, else failed ones.
    pub fn frame_room(&self) -> usize {
        self.widest(self.best())
    }

    /// Bytes for frames in a packet of the widest path that may be in use soon, so that what waits for it need not be
    /// dropped. Failed paths count only where no other is left.
    pub fn frame_room_in_reach(&self) -> usize {
        self.widest(self.best().max(Some(Standing::Backup)))
    }

    fn best(&self) -> Option<Standing> {
        self.open_slots().map(Standing::of).min()
    }

    fn widest(&self, worst: Option<Standing>) -> usize {
        let good = self.open_slots().filter(|slot| Some(Standing::of(slot)) <= worst);
        let widest = good.filter_map(Slot::mtu).max();
        frame_room(u64::from(widest.unwrap_or(MIN_DATAGRAM_BYTES as u16)))
    }
}
