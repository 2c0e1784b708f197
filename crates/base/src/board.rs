//! What the paths of one connection publish for each other: coupled controllers read their siblings here.

use std::time::Duration;

use crate::ids::PathId;
use crate::time::Instant;

/// One path's published figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posting {
    /// Whose figures these are.
    pub path: PathId,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Slow start threshold, bytes; `u64::MAX` before the first loss.
    pub ssthresh_bytes: u64,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Largest datagram, bytes.
    pub mss_bytes: u64,
    /// True while a loss episode lasts (RFC 9002 recovery period).
    pub in_recovery: bool,
    /// True for paths that carry data now: validated, not failed, not closing.
    pub active: bool,
    /// OLIA's l_r: the larger of the bytes acked since the last loss and between the last two losses.
    pub between_losses_bytes: u64,
    /// The newest cut of its window, where the controller tells.
    pub cut: Option<Cut>,
    /// Paths that it believes to wait in the same queue, as [`PathId::bit`]s.
    pub shares_with: u64,
}

/// One cut of a path's window after congestion, and what it did to the path's delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Counts the path's cuts.
    pub serial: u32,
    /// When.
    pub at: Instant,
    /// The path's smoothed RTT then.
    pub rtt: Duration,
    /// By how many seconds the RTT fell within the next round trips; none until that is known.
    pub fall_s: Option<f64>,
}

/// The postings of one connection's paths, in order of path id.
///
/// ```
/// use plait_base::board::{Board, Posting};
/// use plait_base::PathId;
/// let mut board = Board::default();
/// board.publish(Posting { window_bytes: 12_000, ..Posting::new(PathId(1)) });
/// assert_eq!(board.iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Board {
    postings: Vec<Posting>,
}

impl Posting {
    /// Figures of a path that has not sent yet.
    pub fn new(path: PathId) -> Self {
        Self {
            path,
            window_bytes: 0,
            ssthresh_bytes: u64::MAX,
            rtt: None,
            mss_bytes: crate::limits::MIN_DATAGRAM_BYTES as u64,
            in_recovery: false,
            active: false,
            between_losses_bytes: 0,
            cut: None,
            shares_with: 0,
        }
    }
}

impl Board {
    /// Replaces the path's posting, or adds it.
    pub fn publish(&mut self, posting: Posting) {
        match self.postings.binary_search_by_key(&posting.path, |p| p.path) {
            Ok(i) => self.postings[i] = posting,
            Err(i) => self.postings.insert(i, posting),
        }
    }

    /// Takes a closed path's posting off.
    pub fn withdraw(&mut self, path: PathId) {
        self.postings.retain(|p| p.path != path);
    }

    /// All postings, by path id.
    pub fn iter(&self) -> impl Iterator<Item = &Posting> + Clone {
        self.postings.iter()
    }

    /// Postings of active paths with an RTT sample: those that coupled formulas sum over.
    pub fn established(&self) -> impl Iterator<Item = &Posting> + Clone {
        self.postings.iter().filter(|p| p.active && p.rtt.is_some())
    }

    /// One path's posting.
    pub fn get(&self, path: PathId) -> Option<&Posting> {
        self.postings.binary_search_by_key(&path, |p| p.path).ok().map(|i| &self.postings[i])
    }
}
