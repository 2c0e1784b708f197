//! UNIFLOWS both ways: which address each flow uses at its host. The newest counts (Multiflow 5.6).

use plait_base::PathId;
use plait_base::limits::MAX_PATHS;
use plait_wire::frame::{List, UniflowInfo, Uniflows};
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::NewestReport;

/// Writes what we tell of our flows: always as things are when it is written.
pub(super) fn fill_uniflows(
    report: &mut NewestReport,
    receiving: impl Iterator<Item = UniflowInfo>,
    sending: impl Iterator<Item = UniflowInfo>,
    w: &mut FrameWriter<'_>,
) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let sequence = report.next();
    let receiving = List::of(receiving, &mut first);
    let sending = List::of(sending, &mut second);
    let _ = report.write(&Uniflows { sequence, receiving, sending }, SentFrame::Uniflows(sequence), w);
}

/// What the peer told of the flows on which it sends, at most one entry for each id.
#[derive(Clone, Debug)]
pub(super) struct PeerFlows {
    sequence: Option<u64>,
    sending: Vec<UniflowInfo>,
}

impl Default for PeerFlows {
    /// Until the peer tells, its first flow leaves from the address of the handshake, whose id is 0.
    fn default() -> Self {
        Self { sequence: None, sending: vec![UniflowInfo { uniflow: PathId::ZERO, address: 0 }] }
    }
}

impl PeerFlows {
    pub(super) fn on_report(&mut self, frame: &Uniflows<'_>) {
        if self.sequence.is_some_and(|sequence| sequence >= frame.sequence) {
            return;
        }
        self.sequence = Some(frame.sequence);
        self.sending.clear();
        self.sending.extend(frame.sending.iter().take(MAX_PATHS));
    }

    /// The address of the peer from which a flow leaves.
    pub(super) fn address_of(&self, flow: PathId) -> Option<u64> {
        self.sending.iter().find(|info| info.uniflow == flow).map(|info| u64::from(info.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(uniflow: u32, address: u8) -> UniflowInfo {
        UniflowInfo { uniflow: PathId(uniflow), address }
    }

    #[test]
    fn the_newest_report_of_the_peer_counts() {
        let mut flows = PeerFlows::default();
        let mut tell = |sequence, sending: &[UniflowInfo]| {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let receiving = List::of([], &mut first);
            let sending = List::of(sending.iter().copied(), &mut second);
            flows.on_report(&Uniflows { sequence, receiving, sending });
            [0, 1, 2].map(|flow| flows.address_of(PathId(flow)))
        };
        // Numbers begin at 0.
        assert_eq!(tell(0, &[info(0, 0), info(1, 3)]), [Some(0), Some(3), None]);
        assert_eq!(tell(2, &[info(1, 3), info(2, 4)]), [None, Some(3), Some(4)]);
        assert_eq!(tell(1, &[info(0, 9)]), [None, Some(3), Some(4)], "overtaken");
        assert_eq!(tell(2, &[]), [None, Some(3), Some(4)], "the same once more");
    }

    #[test]
    fn our_reports_are_numbered_from_0_and_only_the_newest_is_repeated() {
        let mut report = NewestReport::default();
        let written = |report: &mut NewestReport| {
            let (mut buf, mut carried) = (Vec::new(), Vec::new());
            let mut w = FrameWriter::new(&mut buf, 100, &mut carried);
            fill_uniflows(report, [].into_iter(), [info(0, 0)].into_iter(), &mut w);
            carried
        };
        assert!(!report.is_due());
        for sequence in 0..3 {
            report.is_due_again();
            assert_eq!(written(&mut report), [SentFrame::Uniflows(sequence)]);
            assert!(!report.is_due());
        }
        report.on_lost(1);
        assert!(!report.is_due(), "an older word than the newest");
        report.on_lost(2);
        assert!(report.is_due());
        assert_eq!(written(&mut report), [SentFrame::Uniflows(3)]);
        report.on_acked(3);
        assert!(!report.is_due());
    }
}
