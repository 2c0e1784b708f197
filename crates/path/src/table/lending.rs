//! Paths on loan: somebody else serves them, and the table keeps what was last known of them.
//!
//! One holder has a path at a time: it is lent by value and comes back by value. Whoever asks the table what a lent path is like
//! hears what its holder told last; whoever would change it finds none, as for an id that has no path.

use std::time::Duration;

use plait_base::{FourTuple, Instant, PathId};

use super::{Appetite, Loan, LoanRecord, PathSnapshot, Paths, Recall, Slot, SlotPlace};
use crate::path::Path;
use crate::send::SendRoom;
use crate::stats::PathTotals;

impl Slot {
    /// True while somebody else serves the path.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.loan.is_some()
    }

    /// What is known of it while somebody else serves it.
    pub fn loan(&self) -> Option<&Loan> {
        self.loan.as_deref()
    }

    /// Bytes sent and received on a path that is here.
    pub fn moved_bytes(&self) -> Option<u64> {
        let counters = self.path.as_deref()?.counters();
        Some(counters.sent_bytes + counters.received_bytes)
    }

    fn lent(&self) -> Option<&LoanRecord> {
        self.loan.as_deref().map(|loan| &loan.record)
    }

    /// The path as its holder saw it last; its state is that of the table.
    pub fn lent_snapshot(&self) -> Option<PathSnapshot> {
        let lent = self.lent()?;
        Some(PathSnapshot { state: self.state(), peer_advice: self.status.remote(), ..lent.snapshot })
    }

    /// Addresses of the path, whoever serves it.
    pub fn tuple(&self) -> Option<FourTuple> {
        self.path.as_deref().map(Path::tuple).or_else(|| self.lent().map(|lent| lent.snapshot.tuple))
    }

    /// True where the peer's address is proven.
    pub(super) fn is_validated(&self) -> bool {
        self.path.as_deref().map_or(self.is_lent(), Path::is_validated)
    }

    #[inline]
    pub(super) fn mtu(&self) -> Option<u16> {
        self.path.as_deref().map(Path::mtu).or_else(|| self.lent().map(|lent| lent.snapshot.max_datagram_bytes))
    }

    #[inline]
    pub(super) fn pto(&self) -> Option<Duration> {
        self.path.as_deref().map(Path::pto).or_else(|| self.lent().map(|lent| lent.snapshot.pto))
    }

    /// Smoothed RTT; none before the first sample.
    #[inline]
    pub fn rtt(&self) -> Option<Duration> {
        match self.path.as_deref() {
            Some(path) => path.rtt(),
            None => self.lent()?.snapshot.send.rtt,
        }
    }

    /// What the path did, by the word of its holder where somebody else serves it.
    pub fn totals(&self) -> Option<PathTotals> {
        self.path.as_deref().map(Path::totals).or_else(|| self.lent().map(|lent| lent.totals))
    }
}

impl Paths {
    /// True while somebody else serves a path.
    #[inline]
    pub fn has_lent(&self) -> bool {
        self.lent > 0
    }

    /// True while a path on loan was asked back.
    #[inline]
    pub fn has_recalled(&self) -> bool {
        self.has_lent() && self.slots().filter_map(Slot::loan).any(|loan| loan.recall != Recall::No)
    }

    /// Paths on loan, by id.
    pub fn loans_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Loan)> {
        self.slots_mut().filter_map(|slot| Some((slot.id, slot.loan.as_deref_mut()?)))
    }

    /// What is known of a path on loan, to change.
    pub fn loan_mut(&mut self, id: PathId) -> Option<&mut Loan> {
        self.slot_mut(id)?.loan.as_deref_mut()
    }

    /// Takes a path out of the table, for somebody else to serve. Only one that works, and nothing but works, may go: see
    /// [`Slot::is_working`].
    pub fn lend(&mut self, now: Instant, place: SlotPlace) -> Option<Box<Path>> {
        let (serial, ack_terms) = (self.loans, self.ack_terms());
        let slot = self.slot_at_mut(place).filter(|slot| slot.is_working())?;
        let path = slot.path.take()?;
        let mut carried = Vec::new();
        path.control_in_flight(&mut carried);
        slot.loan = Some(Box::new(Loan {
            record: LoanRecord::of(&path, SendRoom::Window),
            since: now,
            began_with: path.totals(),
            serial,
            carried,
            leases: Vec::new(),
            lent_bytes: 0,
            bundles: 0,
            seal_quota: 0,
            appetite: Appetite::default(),
            unanswered_since: None,
            recall: Recall::No,
            metrics_due: false,
            metrics_told: None,
            ack_terms,
        }));
        self.lent += 1;
        self.loans += 1;
        Some(path)
    }

    /// The holder of a path tells how it fares.
    pub fn on_lent_path(&mut self, now: Instant, id: PathId, record: LoanRecord, appetite: Appetite) {
        let Some(loan) = self.loan_mut(id) else { return };
        (loan.record, loan.appetite) = (record, appetite);
        loan.on_answer(now);
        loan.show_room();
        self.on_pto_changed();
    }

    /// A lent path is back; what was known of the loan.
    ///
    /// # Errors
    /// The path, where none of its id is on loan: it was given up.
    pub fn put_back(&mut self, mut path: Box<Path>) -> Result<Box<Loan>, Box<Path>> {
        path.set_ack_terms(&self.ack_terms());
        let Some(slot) = self.slot_mut(path.id()) else { return Err(path) };
        let Some(loan) = slot.loan.take() else { return Err(path) };
        slot.path = Some(path);
        self.lent -= 1;
        self.on_pto_changed();
        Ok(loan)
    }

    /// Whoever served a path is gone, and the path with it: what it did stays counted. What was known of the loan.
    pub fn on_holder_gone(&mut self, id: PathId) -> Option<Box<Loan>> {
        let slot = self.slot_mut(id)?;
        let loan = slot.loan.take()?;
        self.past = self.past + loan.record.totals;
        self.lent -= 1;
        self.on_pto_changed();
        Some(loan)
    }
}
