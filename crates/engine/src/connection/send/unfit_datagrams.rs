//! Queued datagrams that fit no packet any more.

use plait_path::table::Paths;
use plait_stream::Datagrams;

/// Paths or their packets became smaller, or the peer's limit did: datagrams that no path can carry any more would hold
/// up all that comes after them.
pub(crate) fn drop_unfit_datagrams(datagrams: &mut Datagrams, table: &Paths) {
    if datagrams.wants_send() {
        let room = table.frame_room_in_reach();
        let dropped = datagrams.drop_larger_than(room);
        if dropped > 0 {
            tracing::debug!(dropped, room, "queued datagrams fit no packet any more");
        }
    }
}
