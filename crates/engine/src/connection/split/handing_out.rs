//! What lent paths send: the scheduler is asked for it as for packets, and answers go out as leases and bundles.

use plait_base::limits::MAX_CARRIED_FRAMES;
use plait_base::{Instant, PathId};
use plait_path::frame_room;
use plait_path::table::Recall;
use plait_schedule::{Decision, DemandKind};
use plait_stream::LeaseWriter;
use plait_wire::{FrameWriter, SentFrame};

use super::coordinator::Coordinator;
use super::messages::{Bundle, Follows, Instruction, ToPath};
use crate::connection::Connection;
use crate::connection::send::fill::fill_control;

/// Bundles of a path that have not left, at most.
const MAX_UNSENT_BUNDLES: u64 = 8;
/// What is handed out before the paths that are here have their turn.
const MAX_SHARES: usize = 64;

impl Coordinator {
    /// Gives lent paths what the scheduler wants to send there. True where something was given: others may be asked again.
    pub(super) fn hand_out(&mut self, now: Instant) -> bool {
        let mut count = 0;
        while count < MAX_SHARES && self.hand_out_one(now) {
            count += 1;
        }
        count > 0
    }

    fn hand_out_one(&mut self, now: Instant) -> bool {
        let connection = &mut self.connection;
        if !connection.paths.table.has_lent() || !connection.lifecycle.is_open() {
            return false;
        }
        let Some(offer) = connection.offer(now) else { return false };
        let Connection { paths, streams, scheduling, datagrams, .. } = connection;
        if offer.is_credit_blocked {
            scheduling.scheduler.on_credit_blocked(now);
        }
        let Some(demand) = offer.demand else { return false };
        let id = match scheduling.decide(&mut paths.table, streams, datagrams, &offer, &demand) {
            Decision::Send(id) => id,
            Decision::SendAlso { .. } => {
                scheduling.copy_to.clear();
                self.wants_copies = true;
                return false;
            }
            Decision::Wait(_) => return false,
        };
        let Some(loan) = paths.table.loan_mut(id).filter(|loan| loan.recall == Recall::No) else { return false };
        let has_bundle_room = loan.bundles - loan.appetite.bundles_sent.min(loan.bundles) < MAX_UNSENT_BUNDLES
            && loan.carried.len() < MAX_CARRIED_FRAMES;
        let given = match demand.kind {
            DemandKind::Control | DemandKind::Datagram if has_bundle_room => self.give_bundle(now, id),
            // Control frames that fit nowhere must not keep data back.
            _ if offer.stream_bytes > 0 => self.give_leases(now, id),
            _ => false,
        };
        self.connection.scheduling.views.expire();
        given
    }

    fn give_leases(&mut self, now: Instant, id: PathId) -> bool {
        let Connection { paths, streams, scheduling, .. } = &mut self.connection;
        let Some(loan) = paths.table.loan_mut(id) else { return false };
        let packet_bytes = usize::from(loan.record.snapshot.max_datagram_bytes).max(1);
        let mut w = LeaseWriter::new(usize::try_from(loan.room()).unwrap_or(usize::MAX));
        let lanes = scheduling.lanes(id);
        streams.lend(lanes, &mut w);
        let leases = w.into_leases();
        let follows = if streams.has_unsent(lanes) { Follows::More } else { Follows::Nothing };
        let is_given = !leases.is_empty();
        for lease in leases {
            let bytes = lease.unsent_bytes();
            loan.leases.push(lease.id());
            loan.lent_bytes += bytes;
            self.given_bytes += bytes;
            loan.record.snapshot.send.in_flight_bytes += bytes;
            // As the packets that it will become: a scheduler may count them.
            for sent in (0..bytes).step_by(packet_bytes) {
                scheduling.scheduler.on_sent(id, (bytes - sent).min(packet_bytes as u64), now);
            }
            self.outbox.push_back((id, ToPath(Instruction::Lease { lease, follows, loan: loan.serial })));
            loan.on_given(now);
        }
        loan.show_room();
        is_given
    }

    /// What a packet carries beside stream data.
    fn give_bundle(&mut self, now: Instant, id: PathId) -> bool {
        let Connection { paths, streams, scheduling, handshake, datagrams, random, .. } = &mut self.connection;
        let Some(loan) = paths.table.loan_mut(id) else { return false };
        let room = frame_room(u64::from(loan.record.snapshot.max_datagram_bytes));
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        let mut w = FrameWriter::new(&mut bytes, room, &mut frames);
        let has_news = fill_control(handshake, paths, random, &mut w);
        streams.fill_control(now, &mut w);
        scheduling.copies.copy_window_updates(id, streams, &paths.table, &scheduling.full_sockets);
        datagrams.fill(room, &mut w);
        let is_given = !frames.is_empty();
        if let Some(loan) = paths.table.loan_mut(id).filter(|_| is_given) {
            loan.bundles += 1;
            loan.on_given(now);
            loan.carried.extend(frames.iter().filter(|frame| !matches!(frame, SentFrame::Datagram { .. })));
            scheduling.scheduler.on_sent(id, bytes.len() as u64, now);
            self.outbox.push_back((id, ToPath(Instruction::Carry(Bundle { bytes, frames }))));
        }
        if has_news {
            self.connection.on_path_news(now);
        }
        is_given
    }
}
