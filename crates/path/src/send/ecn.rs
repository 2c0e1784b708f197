//! Whether a path passes ECN marks unharmed (RFC 9000 13.4.2, A.4).

use std::time::Duration;

use plait_base::{Ecn, EcnCounts, Instant, Space};

/// Marked packets that test a path before the verdict.
const TEST_PACKETS: u32 = 10;

/// Whether a flow tries to mark its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Packets leave without a mark.
    Off,
    /// Mark ECT(0) while the path passes it.
    #[default]
    Ect0,
}

/// What is known of the path's treatment of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnState {
    /// The first packets are marked to find out.
    Testing,
    /// Enough test packets left; none is marked until one of them is acknowledged.
    Unknown,
    /// Marks pass; all packets are marked.
    Capable,
    /// Marks are lost or altered, in the test or after it, or marking is off (RFC 9000 13.4.2.2).
    Failed,
}

/// ECN validation of one path.
#[derive(Clone, Debug)]
pub(crate) struct EcnValidator {
    state: EcnState,
    test_sent: u32,
    test_lost: u32,
    testing_until: Option<Instant>,
    /// Marked packets sent in each space.
    sent: [u64; 3],
    /// Counts last reported for each space.
    reported: [EcnCounts; 3],
}

impl EcnValidator {
    pub(crate) fn new(mode: EcnMode) -> Self {
        let state = if mode == EcnMode::Ect0 { EcnState::Testing } else { EcnState::Failed };
        let counts = EcnCounts::default();
        Self { state, test_sent: 0, test_lost: 0, testing_until: None, sent: [0; 3], reported: [counts; 3] }
    }

    /// Begins anew on another network path; counts go on, for they belong to the number space.
    pub(crate) fn restart(&mut self, mode: EcnMode) {
        *self = Self { sent: self.sent, reported: self.reported, ..Self::new(mode) };
    }

    #[cfg(test)]
    pub(crate) fn state(&self) -> EcnState {
        self.state
    }

    /// The mark for the next packet.
    pub(crate) fn mark(&self) -> Option<Ecn> {
        matches!(self.state, EcnState::Testing | EcnState::Capable).then_some(Ecn::Ect0)
    }

    /// A marked packet left; tests last `TEST_PACKETS` packets or three probe time-outs.
    pub(crate) fn on_sent(&mut self, now: Instant, space: Space, pto: Duration) {
        self.sent[space as usize] += 1;
        if self.state == EcnState::Testing {
            self.test_sent += 1;
            let until = *self.testing_until.get_or_insert(now + pto * 3);
            if self.test_sent >= TEST_PACKETS || now >= until {
                self.state = EcnState::Unknown;
            }
        }
    }

    /// Marked packets were declared lost.
    pub(crate) fn on_lost(&mut self, marked: u32) {
        if matches!(self.state, EcnState::Testing | EcnState::Unknown) {
            self.test_lost = self.test_lost.saturating_add(marked);
            // RFC 9000 13.4.2: all marked packets lost may mean that marks get dropped
            if self.state == EcnState::Unknown && self.test_lost >= self.test_sent {
                self.state = EcnState::Failed;
            }
        }
    }

    /// An ack that raised the largest acknowledged number reports `counts`; `newly_marked` marked packets are
    /// acked by it for the first time. Returns by how much CE grew, where that can be trusted.
    pub(crate) fn on_ack(&mut self, space: Space, newly_marked: u64, counts: Option<EcnCounts>) -> u64 {
        let Some(counts) = counts else {
            // RFC 9000 13.4.2.1: acks of marked packets without counts: bleached, or a peer that cannot see marks
            if newly_marked > 0 {
                self.state = EcnState::Failed;
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.reported[space as usize], counts);
        if self.state == EcnState::Failed {
            return 0;
        }
        let shrank = counts.ect0 < before.ect0 || counts.ect1 < before.ect1 || counts.ce < before.ce;
        let ce = counts.ce.saturating_sub(before.ce);
        let grown = counts.ect0.saturating_sub(before.ect0).saturating_add(ce);
        // RFC 9000 13.4.2.1: each marked packet shows up, none more than was sent, and none as ECT(1)
        let sent = self.sent[space as usize];
        if shrank || grown < newly_marked || counts.ect0.saturating_add(counts.ce) > sent || counts.ect1 > 0 {
            self.state = EcnState::Failed;
            return 0;
        }
        if newly_marked > 0 {
            self.state = EcnState::Capable;
        }
        ce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    fn tested(packets: u32) -> EcnValidator {
        let mut ecn = EcnValidator::new(EcnMode::Ect0);
        (0..packets).for_each(|_| ecn.on_sent(Instant::ZERO, Space::Data, PTO));
        ecn
    }

    #[test]
    fn capable_path_reports_ce() {
        let mut ecn = tested(10);
        assert_eq!((ecn.state(), ecn.mark()), (EcnState::Unknown, None));
        assert_eq!(ecn.on_ack(Space::Data, 4, counts(3, 0, 1)), 1);
        assert_eq!((ecn.state(), ecn.mark()), (EcnState::Capable, Some(Ecn::Ect0)));
        assert_eq!(ecn.on_ack(Space::Data, 2, counts(5, 0, 1)), 0);
    }

    #[test]
    fn bleaching_and_mangling_fail() {
        // RFC 9000 13.4.2.2-1, 13.4.2.2-2
        // RFC 9000 13.4.2.1
        for (newly, reported) in [
            (2, None),              // bleached
            (2, counts(1, 0, 0)),   // one mark lost
            (2, counts(0, 2, 0)),   // remarked
            (2, counts(2, 1, 0)),   // a mark never sent
            (2, counts(11, 0, 0)),  // more than sent
            (2, counts(2, 0, 100)), // more CE than sent
        ] {
            let mut ecn = tested(10);
            assert_eq!(ecn.on_ack(Space::Data, newly, reported), 0);
            assert_eq!(ecn.state(), EcnState::Failed, "{reported:?}");
        }
        let mut ecn = tested(10);
        ecn.on_ack(Space::Data, 3, counts(3, 0, 0));
        ecn.on_ack(Space::Data, 0, counts(2, 0, 0));
        assert_eq!(ecn.state(), EcnState::Failed, "counts shrank");
    }

    #[test]
    fn all_marked_packets_lost() {
        let mut ecn = tested(10);
        ecn.on_lost(9);
        assert_eq!(ecn.state(), EcnState::Unknown);
        ecn.on_lost(1);
        assert_eq!(ecn.state(), EcnState::Failed);
        let mut slow = tested(1);
        slow.on_sent(Instant::ZERO + PTO * 3, Space::Data, PTO);
        assert_eq!(slow.state(), EcnState::Unknown, "testing ends after three probe time-outs");
    }

    #[test]
    fn restart_keeps_the_counts() {
        let mut ecn = tested(10);
        ecn.on_ack(Space::Data, 0, None);
        ecn.on_ack(Space::Data, 1, None);
        ecn.restart(EcnMode::Ect0);
        ecn.on_sent(Instant::ZERO, Space::Data, PTO);
        ecn.on_ack(Space::Data, 1, counts(11, 0, 0));
        assert_eq!(ecn.state(), EcnState::Capable);
    }
}
