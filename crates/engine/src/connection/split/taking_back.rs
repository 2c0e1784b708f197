//! What those who serve paths tell, and paths that come back, or do not.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::limits::MAX_PATHS;
use plait_base::observe::{LossTrigger, TraceEvent};
use plait_base::{CloseCode, Instant, PathId, Space};
use plait_path::Feedback;
use plait_path::table::{LendingTurn, Loan, Slot};
use plait_wire::SentFrame;
use plait_wire::frame::Frames;

use super::coordinator::Coordinator;
use super::lent::{LentPath, ReturnReason, Unread};
use super::messages::{
    ArrivedRun, Bundle, Fates, FromPath, HeldPacket, Instruction, News, Report, ToPath, UnreadTrain,
};
use crate::connection::Connection;
use crate::connection::receive::Envelope;
use crate::connection::receive::bulk::{BulkRead, in_stream_frame};
use crate::connection::receive::dispatch::{Reach, reach};
use crate::connection::receive::train::is_welcome;
use crate::connection::send::unfit_datagrams::drop_unfit_datagrams;

/// A path that came back soon, and did little, stays for this long, twice as long each time, and no longer than a second.
const LEND_AGAIN: Duration = Duration::from_millis(10);
const LEND_AGAIN_AT_LAST: Duration = Duration::from_secs(1);
/// A path that moved so many bytes was worth its loan, however soon it came back: two messages are a few hundredths of what that takes.
const WORTH_BYTES: u64 = 1 << 20;

impl Coordinator {
    /// Takes in what the holder of path `id` tells.
    pub fn handle_message(&mut self, now: Instant, id: PathId, message: FromPath) {
        match message.0 {
            News::Runs { now: at, runs } => self.on_runs(at, runs),
            News::Packet(packet) => self.on_packet(packet),
            News::Unread { now, ending, bytes, why } => self.connection.on_unread(now, ending, bytes, why),
            News::Stray { now, input } => {
                // It came for a path of whose loan its sender knows nothing, or for none.
                self.handle_datagram(now, input);
            }
            News::Fates(fates) => self.on_fates(id, fates),
            News::Report(report) => return self.on_report(now, id, *report),
            News::Traces(traces) => {
                return traces.into_iter().for_each(|(at, event)| self.connection.events.observe(at, || event));
            }
        }
        self.settle(now, id);
    }

    /// What every datagram is followed by.
    fn settle(&mut self, now: Instant, id: PathId) {
        let connection = &mut self.connection;
        let place = connection.paths.table.place(id);
        let Some(tuple) = connection.paths.table.slot(id).and_then(|slot| slot.tuple()) else { return };
        connection.on_path_news(now);
        connection.after_input(now, &Envelope { path: id, tuple, ecn: None, bytes: 0, place });
    }

    fn on_runs(&mut self, now: Instant, runs: Vec<ArrivedRun>) {
        let connection = &mut self.connection;
        connection.receive.loans.forget_read(&connection.streams, &connection.datagrams);
        for ArrivedRun { id, range, fin, pieces } in runs {
            if !connection.lifecycle.is_open() {
                return;
            }
            let offset = range.start;
            if let Err(violation) = connection.streams.on_stream_run(id, range, fin, pieces) {
                connection.close_with(now, in_stream_frame(violation, id, offset, fin));
            }
        }
    }

    fn on_packet(&mut self, packet: HeldPacket) {
        let HeldPacket { mut at, payload } = packet;
        let connection = &mut self.connection;
        at.place = connection.paths.table.place(at.path);
        if !connection.lifecycle.is_open() {
            return connection.on_opened(&at, payload.len(), &payload, &payload);
        }
        for frame in Frames::in_packet(&payload, at.kind) {
            // Whoever handed it over read it before.
            let Ok(frame) = frame else { return };
            if reach(&frame, at.path) == Reach::OwnPath {
                continue;
            }
            let frame_type = frame.frame_type();
            if let Err(error) = connection.dispatch(&at, frame, &payload) {
                return connection.close_with(at.now, error.in_frame(frame_type));
            }
        }
    }

    fn on_fates(&mut self, id: PathId, fates: Fates) {
        let Fates { now, acked, lost, lost_packets, delivery } = fates;
        let Connection { paths, scheduling, .. } = &mut self.connection;
        if let Some(loan) = paths.table.loan_mut(id).filter(|loan| !loan.carried.is_empty()) {
            for frame in acked.iter().chain(&lost).filter(|frame| !matches!(frame, SentFrame::Stream { .. })) {
                if let Some(at) = loan.carried.iter().position(|carried| carried == frame) {
                    loan.carried.swap_remove(at);
                }
            }
        }
        if let Some(delivery) = delivery {
            scheduling.scheduler.on_acked(id, &delivery);
        }
        let counts = |trigger| trigger != LossTrigger::Discarded;
        for packet in lost_packets.iter().filter(|packet| packet.space == Space::Data && counts(packet.trigger)) {
            scheduling.scheduler.on_lost(id, u64::from(packet.bytes), now);
        }
        // Its path has heard of the packets.
        self.connection.process_acked_and_lost(now, id, Feedback { acked, lost, lost_packets: Vec::new() });
    }

    fn on_report(&mut self, now: Instant, id: PathId, report: Report) {
        let Report { record, appetite, ended, heard_at, eliciting_at, metrics } = report;
        let Connection { paths, streams, scheduling, lifecycle, .. } = &mut self.connection;
        if paths.table.loan_mut(id).is_none() {
            // It was given up, and all that it had ended with it.
            return;
        }
        for (stream, count) in ended {
            streams.on_leases_ended(stream, count);
            paths.table.loan_mut(id).into_iter().for_each(|loan| loan.on_leases_ended(stream, count));
        }
        paths.table.on_lent_path(now, id, record, appetite);
        paths.table.review_ack_request(now);
        if let Some(rtt) = paths.table.max_rtt() {
            streams.on_rtt(rtt);
        }
        if let Some(metrics) = metrics.filter(|new| paths.shared_metrics.get(id) != Some(new)) {
            paths.shared_metrics.update(metrics);
            paths.table.loans_mut().filter(|(other, _)| *other != id).for_each(|(_, loan)| loan.metrics_due = true);
        }
        if lifecycle.is_open() {
            heard_at.into_iter().for_each(|at| lifecycle.on_heard(at, paths.table.max_pto()));
            eliciting_at.into_iter().for_each(|at| lifecycle.on_sent_eliciting(at, || paths.table.max_pto()));
        }
        scheduling.views.expire();
    }

    /// Takes a lent path back. What did not leave of what it was given is due again; what it did not read is read now.
    pub fn take_back(&mut self, now: Instant, mut lent: Box<LentPath>) {
        let id = lent.id();
        while let Some(message) = lent.poll_message(now) {
            self.handle_message(now, id, message);
        }
        if !self.connection.paths.table.slot(id).is_some_and(Slot::is_lent) {
            // It was given up: only what the peer believes to have arrived was of use.
            return;
        }
        let LentPath { path, keys, mut cargo, why_back, unread, .. } = *lent;
        let mut unsent = cargo.end(|_| true);
        unsent.extend(cargo.bundles.iter().flat_map(|bundle| &bundle.frames));
        let connection = &mut self.connection;
        for (stream, count) in cargo.ended {
            connection.streams.on_leases_ended(stream, count);
        }
        let Ok(loan) = connection.paths.table.put_back(path) else { return };
        unsent.iter().for_each(|frame| connection.on_frame_lost(now, id, frame));
        let guard = connection.paths.table.max_pto() * 3;
        let phase = connection.keys.as_ref().map(|own| own.phase());
        let joined = connection.keys.as_mut().map_or(Ok(()), |own| own.take_back(&keys, now, guard));
        if connection.keys.as_ref().map(|own| own.phase()) != phase {
            connection.events.observe(now, || TraceEvent::KeysUpdated { locally: false });
        }
        if let Err(violation) = joined {
            connection.close_with(now, violation.into());
        }
        match &why_back {
            Some(ReturnReason::Fault(error)) => connection.close_with(now, error.clone()),
            Some(ReturnReason::Shrunk) => drop_unfit_datagrams(&mut connection.datagrams, &connection.paths.table),
            _ => {}
        }
        self.note_return(now, id, &loan, why_back.as_ref());
        // What messages on the way to it say, it hears here.
        self.deliver_undelivered(now, id);
        self.read_unread(now, id, unread);
        self.settle(now, id);
        self.connection.read_waiting(now);
    }

    /// Orders that had not left for a path that is back.
    fn deliver_undelivered(&mut self, now: Instant, id: PathId) {
        let waiting = std::mem::take(&mut self.outbox).into_iter();
        let (back, others): (VecDeque<_>, VecDeque<_>) = waiting.partition(|(to, _)| *to == id);
        self.outbox = others;
        back.into_iter().for_each(|(_, message)| self.handle_undelivered(now, id, message));
    }

    /// A message that came where path `id` was no more: it went back before. Whoever gets such a message returns it.
    pub fn handle_undelivered(&mut self, now: Instant, id: PathId, message: ToPath) {
        if self.lost_paths.contains(&id) {
            // What was on its way there counts as lost since. A holder that only stood still brings it when the table has long
            // forgotten the path.
            return;
        }
        match message.0 {
            Instruction::Lease { lease, loan: serial, .. } => {
                if let Some(loan) = self.connection.paths.table.loan_mut(id).filter(|loan| loan.serial == serial) {
                    loan.on_leases_ended(lease.id(), lease.parts());
                }
                lease.unsent().for_each(|frame| self.connection.streams.on_lost(&frame));
                self.connection.streams.on_leases_ended(lease.id(), lease.parts());
            }
            Instruction::Carry(Bundle { frames, .. }) => {
                frames.iter().for_each(|frame| self.connection.on_frame_lost(now, PathId::ZERO, frame));
            }
            Instruction::Datagrams(input) => {
                self.handle_datagram(now, input);
            }
            Instruction::Quota(quota) => {
                self.connection.keys.iter_mut().for_each(|keys| keys.return_quota(quota));
            }
            // Later acks repeat it; a path that is back has heard the rest.
            Instruction::Acks(_)
            | Instruction::Ack(_)
            | Instruction::Unlease(_)
            | Instruction::Metrics(_)
            | Instruction::Recall => {}
        }
    }

    /// How soon the path may be lent again.
    fn note_return(&mut self, now: Instant, id: PathId, loan: &Loan, why: Option<&ReturnReason>) {
        let Connection { paths, settings, keys, .. } = &mut self.connection;
        let is_for_keys = matches!(why, Some(ReturnReason::Quota | ReturnReason::NewPhase))
            || settings.wants_new_keys(keys.as_deref(), now);
        let Some(place) = paths.table.place(id) else { return };
        let Some(slot) = paths.table.slot_at_mut(place) else { return };
        let moved_bytes = slot.totals().map_or(0, |totals| loan.moved_bytes(totals));
        let is_welcome = matches!(why, Some(ReturnReason::Quota | ReturnReason::Idle)) || moved_bytes >= WORTH_BYTES;
        let is_soon = !is_welcome && now.since(loan.since) < LEND_AGAIN_AT_LAST;
        let turn = slot.lending.get_or_insert_default();
        let wait = if is_soon { (turn.wait * 2).clamp(LEND_AGAIN, LEND_AGAIN_AT_LAST) } else { Duration::ZERO };
        // Only the keys wanted it back: it goes again with the new ones.
        let is_busy = moved_bytes >= WORTH_BYTES && is_for_keys;
        **turn = LendingTurn { not_before: Some(now + wait), wait, is_busy, ..LendingTurn::default() };
    }

    fn read_unread(&mut self, now: Instant, id: PathId, unread: Unread) {
        let Unread { train, inputs } = unread;
        let connection = &mut self.connection;
        if let Some(UnreadTrain { mut at, bytes, packets, memory }) = train {
            let place = connection.paths.table.place(id);
            let envelope = Envelope { path: id, tuple: at.tuple, ecn: at.ecn, bytes, place };
            if is_welcome(&envelope, &mut connection.paths, &connection.settings) {
                at.place = place;
                connection.read_opened(at, &packets, &memory, BulkRead::default());
            }
        }
        for input in inputs {
            self.handle_datagram(now, input);
        }
    }

    /// Whoever served path `id` is gone, and the path with it: its state, its packet numbers above all, exists nowhere else. It
    /// is given up, and what it had goes elsewhere.
    pub fn on_gone(&mut self, now: Instant, id: PathId) {
        let Some(loan) = self.connection.paths.table.on_holder_gone(id) else { return };
        if self.lost_paths.len() == MAX_PATHS {
            self.lost_paths.pop_front();
        }
        self.lost_paths.push_back(id);
        let connection = &mut self.connection;
        for stream in loan.leases {
            connection.streams.on_leases_ended(stream, 1);
        }
        // Nobody knows which bytes it had under way: all that is not acknowledged may be sent twice, never otherwise.
        connection.streams.on_all_lost();
        loan.carried.iter().for_each(|frame| connection.on_frame_lost(now, id, frame));
        let (code, Connection { paths, random, .. }) = (CloseCode::PATH_UNSTABLE_OR_POOR, &mut *connection);
        let _ = paths.abandon(now, id, code, random);
        connection.on_path_news(now);
        connection.maintain_paths(now);
        self.outbox.retain(|(to, _)| *to != id);
        self.connection.read_waiting(now);
    }
}
