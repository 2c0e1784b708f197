//! A tap on a link: each datagram as it leaves the queue, before what the wire behind may do to it.

use std::collections::VecDeque;

use plait_base::Instant;

use crate::host::Datagram;

/// A datagram that left the queue of a link and gets through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// When its last bit left the near end.
    pub at: Instant,
    /// What left: translated by the NATs before the link, and with the ECN mark that the queue gave it.
    pub datagram: Datagram,
}

/// What left the queue of a link and was not taken yet, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    tapped: VecDeque<Tapped>,
}

impl Tap {
    pub(crate) fn push(&mut self, tapped: Tapped) {
        self.tapped.push_back(tapped);
    }

    /// What has left by `now`: a link that plans ahead tells of what is going to leave.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<Tapped> {
        self.tapped.drain(..self.tapped.partition_point(|tapped| tapped.at <= now)).collect()
    }

    /// The link went down at `at`: what was to leave later does not.
    pub(crate) fn cut(&mut self, at: Instant) {
        self.tapped.retain(|tapped| tapped.at <= at);
    }
}
