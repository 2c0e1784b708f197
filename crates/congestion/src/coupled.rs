//! What coupled controllers read from the board: all established paths, this one with its live figures.

use std::time::Duration;

use plait_base::PathId;
use plait_base::board::{Board, Posting};

use crate::window::Window;

/// One path in the units of the coupled formulas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sibling {
    /// Window, segments of the path's own datagram size.
    pub(crate) window: f64,
    /// Smoothed RTT, seconds; above zero.
    pub(crate) rtt: f64,
}

impl Sibling {
    /// Segments per second.
    pub(crate) fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    fn of(posting: &Posting) -> Option<Self> {
        let rtt = posting.rtt.filter(|r| !r.is_zero())?.as_nanos() as f64 / 1e9;
        Some(Self { window: posting.window_bytes as f64 / posting.mss_bytes.max(1) as f64, rtt })
    }
}

/// This path's posting as it would be now; the board may lag behind the controller.
pub(crate) fn own(path: PathId, window: &Window, rtt: Duration, between_losses_bytes: u64, board: &Board) -> Posting {
    Posting {
        window_bytes: window.bytes(),
        ssthresh_bytes: window.ssthresh(),
        mss_bytes: window.mss(),
        rtt: Some(rtt),
        active: true,
        between_losses_bytes,
        in_recovery: board.get(path).is_some_and(|p| p.in_recovery),
        ..Posting::new(path)
    }
}

/// Postings of all established paths, with `own` in the place of this path's.
pub(crate) fn postings<'a>(own: &'a Posting, board: &'a Board) -> impl Iterator<Item = &'a Posting> + Clone {
    board.established().filter(move |p| p.path != own.path).chain(std::iter::once(own))
}

/// The same in the formulas' units.
pub(crate) fn siblings<'a>(own: &'a Posting, board: &'a Board) -> impl Iterator<Item = Sibling> + Clone + 'a {
    postings(own, board).filter_map(Sibling::of)
}

/// This path in the formulas' units, with the fraction of a byte that its window holds back.
pub(crate) fn this(window: &Window, rtt: Duration) -> Option<Sibling> {
    let rtt = rtt.as_nanos() as f64 / 1e9;
    (rtt > 0.0).then(|| Sibling { window: window.segments(), rtt })
}
