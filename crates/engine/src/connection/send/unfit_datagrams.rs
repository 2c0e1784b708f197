//! Queued datagrams that fit no packet any more.

use crate::connection::Connection;

impl Connection {
    /// Paths or their packets became smaller, or the peer's limit did: datagrams that no path can carry any more would hold
    /// up all that comes after them.
    pub(crate) fn drop_unfit_datagrams(&mut self) {
        if self.datagrams.wants_send() {
            let room = self.paths.table.frame_room_in_reach();
            let dropped = self.datagrams.drop_larger_than(room);
            if dropped > 0 {
                tracing::debug!(dropped, room, "queued datagrams fit no packet any more");
            }
        }
    }
}
