//! UNIFLOWS both ways: which address each flow uses at its host. The newest counts (Multiflow 5.6).

use plait_base::PathId;
use plait_base::limits::MAX_PATHS;
use plait_wire::frame::{List, UniflowInfo, Uniflows};
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::FrameState;

/// What we tell of our flows: always as things are when it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UniflowsReport {
    /// Number of the next report.
    next: u64,
    delivery: FrameState,
}

impl UniflowsReport {
    /// A flow came, went or changed its address: a new report is to be sent.
    pub(super) fn is_due_again(&mut self) {
        self.delivery = FrameState::Due;
    }

    pub(super) fn is_due(&self) -> bool {
        self.delivery.is_due()
    }

    pub(super) fn fill(
        &mut self,
        receiving: impl Iterator<Item = UniflowInfo>,
        sending: impl Iterator<Item = UniflowInfo>,
        w: &mut FrameWriter<'_>,
    ) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let sequence = self.next;
        let receiving = List::of(receiving, &mut first);
        let sending = List::of(sending, &mut second);
        if w.write(&Uniflows { sequence, receiving, sending }, SentFrame::Uniflows(sequence)) {
            self.next += 1;
            self.delivery.on_written();
        }
    }

    fn is_newest(&self, sequence: u64) -> bool {
        sequence + 1 == self.next
    }

    pub(super) fn on_acked(&mut self, sequence: u64) {
        if self.is_newest(sequence) && !self.is_due() {
            self.delivery = FrameState::Idle;
        }
    }

    pub(super) fn on_lost(&mut self, sequence: u64) {
        if self.is_newest(sequence) {
            self.delivery.on_lost();
        }
    }
}

/// What the peer told of the flows on which it sends, at most one entry for each id.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerFlows {
    sequence: Option<u64>,
    sending: Vec<UniflowInfo>,
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

    /// The peer's flows that leave from an address of it.
    pub(super) fn of_address(&self, id: u64) -> impl Iterator<Item = PathId> + '_ {
        self.sending.iter().filter(move |flow| u64::from(flow.address) == id).map(|flow| flow.uniflow)
    }
}
