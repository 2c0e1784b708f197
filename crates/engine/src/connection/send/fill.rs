//! What goes into a packet of the data space, in this order: validation, acks, handshake, control, copies, datagrams,
//! stream data.

use plait_base::{Instant, Random};
use plait_path::{AckNeed, FourTupleRole, Pad, Path, ProbePrompt};
use plait_stream::Streams;
use plait_wire::{Frame, FrameWriter, SentFrame};

use crate::connection::Connection;
use crate::connection::handshake::Handshake;
use crate::connection::paths::PathControl;
use crate::connection::send::assemble::Outline;
use crate::connection::send::purpose::Purpose;

impl Connection {
    /// Fills one packet of the data space. Says whether it must be full-sized.
    pub(crate) fn fill(&mut self, now: Instant, outline: &Outline, w: &mut FrameWriter<'_>) -> Pad {
        let &Outline { place, purpose, .. } = outline;
        if let Purpose::MtuProbe(size) = purpose {
            let prompt = self.paths.table.path_at(place).map(Path::probe_prompt).unwrap_or_default();
            let _ = w.write(&prompt.frame(), SentFrame::MtuProbe(size));
            return Pad::No;
        }
        let (id, side, one_rtt) = (place.id(), self.handshake.side, self.keys.is_some());
        let mut pad = Pad::No;
        if one_rtt {
            let is_owed = |path: &Path| takes_along_validation(path, purpose);
            if let Some(slot) = self.paths.table.slot_at_mut(place)
                && slot.path.as_deref().is_some_and(is_owed)
            {
                pad = slot.fill_validation(now, FourTupleRole::Current, side, &mut self.random, w);
            }
            let full = &self.scheduling.full_sockets;
            let least = if purpose == Purpose::Acks { AckNeed::Soon } else { AckNeed::Piggyback };
            self.scheduling.acks.fill(now, place, least, &mut self.paths.table, full, w);
            if pad == Pad::Full {
                self.scheduling.acks.fill_own(now, place, &mut self.paths.table, w);
            }
        }
        let Some(path) = self.paths.table.path_at(place) else { return pad };
        match purpose {
            Purpose::Acks | Purpose::Ping => return pad,
            // The peer's address is not proven: a server keeps to what validation needs (RFC 9000 8.1).
            Purpose::Validation if !path.may_validate_with_data(side) => return pad,
            Purpose::PtoProbe if path.awaits_proof(side) => {
                // Nothing but an ack is wanted of an address that is not proven.
                w.write_ping();
                return pad;
            }
            Purpose::PtoProbe if path.is_failed() => {
                // Nothing new goes here, and what another path took over is not repeated: is the path back?
                fill_pto_probe(path, &mut self.streams, w);
                return pad;
            }
            _ => {}
        }
        let room = path.frame_room();
        let is_avoided = || self.paths.table.slot_at(place).is_some_and(|slot| self.paths.table.is_avoided(slot));
        if purpose == Purpose::Copies && (path.is_opening() || path.is_failed() || is_avoided()) {
            // Nothing that is not on its way elsewhere too: nobody may answer here.
            self.scheduling.copies.fill(id, &mut self.streams, w);
            return pad;
        }
        let Self { handshake, paths, random, .. } = self;
        if one_rtt && fill_control(handshake, paths, random, w) {
            self.on_path_news(now);
        }
        self.streams.fill_control(now, w);
        let Self { scheduling, streams, paths, datagrams, .. } = self;
        if purpose == Purpose::PtoProbe
            && let Some(path) = paths.table.path_at(place)
        {
            // After control frames: news of a failed path must not wait behind data.
            fill_pto_probe(path, streams, w);
        }
        scheduling.copies.copy_window_updates(id, streams, &paths.table, &scheduling.full_sockets);
        scheduling.copies.fill(id, streams, w);
        if !matches!(purpose, Purpose::Copies | Purpose::Control) {
            // RFC 9221 5.4: asked only where the window lets a packet leave
            datagrams.fill(room, w);
            streams.fill_data(scheduling.lanes(id), w);
        }
        pad
    }
}

/// Whether a packet of this `purpose` has challenges and responses in it.
fn takes_along_validation(path: &Path, purpose: Purpose) -> bool {
    match purpose {
        // Copies and PINGs repeat none of it: behind a challenge on a thin way they would only hold up the answer.
        Purpose::Copies | Purpose::Ping => path.owes_validation(),
        // RFC 9002 7: acks did not ask the window, and take along nothing that it would not let go.
        Purpose::Acks => path.admits_challenge(),
        _ => true,
    }
}

/// Writes what the handshake and the paths have to say in 1-RTT packets; true where they have news.
pub(crate) fn fill_control(
    handshake: &mut Handshake,
    paths: &mut PathControl,
    random: &mut Random,
    w: &mut FrameWriter<'_>,
) -> bool {
    handshake.fill_control(w);
    if !handshake.is_complete() {
        paths.table.fill_control_in_handshake(w);
        return false;
    }
    let has_announced = paths.table.fill_control(w);
    if has_announced {
        // MAX_PATH_ID was just announced; connection ids for what it allows follow with the next packet.
        paths.issue_cids(random);
    }
    has_announced
}

/// Writes what has waited longest for its ack on a path, for a PTO probe there (RFC 9002 6.2.4).
fn fill_pto_probe(path: &Path, streams: &mut Streams, w: &mut FrameWriter<'_>) {
    if path.probe_prompt() == ProbePrompt::ImmediateAck {
        // Never sent again, as a PING.
        let _ = w.write(&Frame::ImmediateAck, SentFrame::Ping);
    }
    let mut oldest = Vec::new();
    path.probe_frames(&mut oldest);
    for frame in &oldest {
        let _ = streams.fill_copy(w, frame);
    }
}
