//! The path table under any frames of a peer, any wishes of ours, losses and time, with paths and with uniflows.

mod uniflows;

use std::collections::BTreeSet;
use std::time::Duration;

use plait_base::limits::{MAX_PATHS, MAX_VALIDATIONS};
use plait_base::observe::PathState;
use plait_base::{CloseCode, ConnectionId, FourTuple, Instant, PathId, Random, ResetToken, Side, Space, Violation};
use plait_engine::congestion::ControllerFactory;
use plait_engine::congestion::NewRenoFactory;
use plait_path::table::{Admission, Pairing, Slot};
use plait_path::{
    AckPolicy, AddressScope, Feedback, FourTupleRole, MtuConfig, PacketInfo, Path, PathAddresses, PathConfig, Paths,
    PeerLimits, SendConfig, SpinBit, TableConfig, TableEvent, Validation, ValidationTimes,
};
use plait_wire::frame::{CidForm, NewCid, RetireCid};
use plait_wire::params::AnnouncementParameters;
use plait_wire::{Frame, FrameWriter, Frames, SentFrame};

use crate::ArbitraryInput;
use crate::puppet::frames::{path_id, put_some};
use crate::puppet::peer::{here, there};

const PTO: Duration = Duration::from_millis(100);
/// Largest connection id limit of either side, and room for those on their way out.
const MAX_CIDS: usize = 2_048;

/// The input: side and limits, then frames, wishes and time.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let mut driver = Driver::new(&mut input);
    while !input.is_over() {
        if driver.step(&mut input).is_err() {
            return;
        }
        driver.check();
    }
    driver.shut_down();
}

struct Driver {
    side: Side,
    table: Paths,
    now: Instant,
    random: Random,
    carried: Vec<SentFrame>,
    cids: BTreeSet<ConnectionId>,
    tokens: Vec<ResetToken>,
    challenges: Vec<[u8; 8]>,
}

impl Driver {
    fn new(input: &mut ArbitraryInput<'_>) -> Self {
        let side = if input.flag() { Side::Server } else { Side::Client };
        let local = input.byte();
        // With Multiflow each end announces as many flows as it would have announced paths.
        let is_multiflow = local & 0x80 != 0;
        let announced = |wanted: bool, most: u32| Some(most).filter(|_| wanted);
        let ours = u32::from(local % 8);
        let mut table = Paths::new(TableConfig {
            side,
            cid_limit: 4,
            initial_max_path_id: announced(!is_multiflow && local > 9, ours),
            max_sending_uniflow_id: announced(is_multiflow, ours),
            announcements: AnnouncementParameters::default(),
            address_scope: AddressScope::Any,
            max_validations: MAX_VALIDATIONS,
        });
        let first = ConnectionId::new(&[1; 8]).unwrap_or(ConnectionId::EMPTY);
        table.set_local_initial(first, ResetToken([1; 16]));
        table.set_remote_initial(ConnectionId::new(&[2; 8]).unwrap_or(ConnectionId::EMPTY), None);
        table.open(path(PathId::ZERO, PathAddresses::new(tuple(0), Validation::Validated))).expect("path 0 is unused");
        let remote = input.byte();
        let cid_limit = 2 + u64::from(input.byte() % 8);
        table.set_peer_limits(PeerLimits {
            cid_limit,
            initial_max_path_id: announced(!is_multiflow && remote > 9, remote.into()),
            max_sending_uniflow_id: announced(is_multiflow && remote > 9, remote.into()),
            announcements: AnnouncementParameters::default(),
        });
        table.on_handshake_complete();
        Self {
            side,
            table,
            now: Instant::ZERO,
            random: Random::from_u64(3),
            carried: Vec::new(),
            cids: BTreeSet::from([first]),
            tokens: Vec::new(),
            challenges: Vec::new(),
        }
    }

    fn is_multiflow(&self) -> bool {
        self.table.pairing() == Pairing::Uniflows
    }

    /// One move; the peer's faults end the run.
    fn step(&mut self, input: &mut ArbitraryInput<'_>) -> Result<(), Violation> {
        let kind = input.byte() % 14;
        if self.is_multiflow() && !matches!(kind, 0..=4 | 5 | 6 | 9 | 11) {
            return uniflows::step(self, input, kind);
        }
        match kind {
            0..=4 => {
                let mut bytes = Vec::new();
                put_some(input, &mut bytes, 600);
                let on = path_id(input);
                self.read(&bytes, on)?;
            }
            5 => self.issue(),
            6 => self.control(input),
            7 => self.open(input),
            8 => {
                let _ = self.table.abandon(self.now, path_id(input), CloseCode::NO_ERROR, PTO);
            }
            9 => self.pass(Duration::from_millis(u64::from(input.byte()) * 4)),
            10 => self.move_path(input),
            _ => self.challenge_candidate(input)?,
        }
        Ok(())
    }

    fn read(&mut self, bytes: &[u8], on: PathId) -> Result<(), Violation> {
        for frame in Frames::new(bytes) {
            match frame.map_err(|error| error.violation)? {
                Frame::Ack(f) if self.is_multiflow() => uniflows::on_ack(&mut self.table, f.path, f.form)?,
                Frame::Ack(f) => drop(self.table.on_ack(f.path, f.form)?),
                Frame::NewCid(f) => self.table.on_new_cid(&NewCid { form: self.form(f.form), ..f })?,
                Frame::RetireCid(f) => {
                    self.table.on_retire_cid(&RetireCid { form: self.form(f.form), ..f }, &ConnectionId::EMPTY)?;
                }
                Frame::PathAbandon(f) => drop(self.table.on_path_abandon(self.now, &f, PTO)?),
                Frame::PathStatus(f) => drop(self.table.on_path_status(&f)?),
                Frame::MaxPathId(f) => drop(self.table.on_max_path_id(&f)?),
                Frame::PathsBlocked(f) => self.table.on_paths_blocked(&f)?,
                Frame::PathCidsBlocked(f) => self.table.on_path_cids_blocked(&f)?,
                Frame::PathResponse(f) if self.is_multiflow() => {
                    self.table.on_uniflow_response(self.now, f.data)?;
                }
                Frame::PathChallenge(f) if self.is_multiflow() => {
                    let here = self.table.path(on).map(|path| path.tuple().local);
                    here.into_iter().for_each(|here| self.table.on_uniflow_challenge(here, f.data));
                }
                Frame::PathResponse(f) => drop(self.table.on_path_response(self.now, on, f.data)?),
                Frame::PathChallenge(f) => {
                    if let Some(path) = self.table.path_mut(on) {
                        let here = path.tuple();
                        path.on_challenge(here, &ConnectionId::EMPTY, bytes.len() as u64, f.data);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Connection ids of further paths travel in Multiflow's frames where that is in use.
    fn form(&self, form: CidForm) -> CidForm {
        if form == CidForm::Path && self.is_multiflow() { CidForm::Uniflow } else { form }
    }

    fn issue(&mut self) {
        let random = &mut self.random;
        self.table.issue_cids(&mut |_: PathId| {
            (
                random.connection_id(8),
                ResetToken(random.next_u64().to_be_bytes().repeat(2).try_into().unwrap_or([0; 16])),
            )
        });
    }

    /// Writes what is due; the packet is acked or lost, or both, in this order.
    fn control(&mut self, input: &mut ArbitraryInput<'_>) {
        let (room, fate) = (usize::from(input.u16() % 1_400), input.byte() % 4);
        let mut buf = Vec::new();
        self.carried.clear();
        let wanted = self.table.wants_control();
        self.table.fill_control(&mut FrameWriter::new(&mut buf, room, &mut self.carried));
        assert!(buf.len() <= room && (wanted || buf.is_empty()));
        assert!(room < 100 || !wanted || !buf.is_empty(), "wants to write and does not");
        let frames: Vec<_> = Frames::new(&buf).filter(|_| !buf.is_empty()).collect();
        assert!(frames.len() == self.carried.len() && frames.iter().all(Result::is_ok));
        let carried = std::mem::take(&mut self.carried);
        if fate & 1 != 0 {
            carried.iter().for_each(|c| self.table.on_lost(c));
        }
        if fate & 2 != 0 {
            carried.iter().for_each(|c| self.table.on_acked(c));
        }
    }

    fn open(&mut self, input: &mut ArbitraryInput<'_>) {
        let n = input.byte() % 9;
        if self.side.is_client() {
            let Ok(id) = self.table.next_id() else { return };
            let mut path = path(id, PathAddresses::opened(tuple(n)));
            path.challenge(self.now, times());
            self.table.open(path).expect("next_id gives an id that can be opened");
            return;
        }
        let id = path_id(input);
        match self.table.admission_at(self.table.place(id)) {
            Admission::New => {
                let mut path = path(id, PathAddresses::new(tuple(n), Validation::Unvalidated));
                path.on_datagram(&tuple(n), 1_200);
                path.challenge(self.now, times());
                self.table.open(path).expect("a new path can be opened");
            }
            Admission::Refuse(code) => {
                self.table.abandon(self.now, id, code, PTO).expect("a refused id can be abandoned");
            }
            Admission::Open | Admission::Closing | Admission::Unknown => {}
        }
    }

    fn move_path(&mut self, input: &mut ArbitraryInput<'_>) {
        let (id, to, fresh) = (path_id(input), tuple(input.byte() % 9), input.flag());
        if self.side.is_client() {
            self.table.challenge_candidate(self.now, id, to, times());
        } else {
            let cid = ConnectionId::new(&[u8::from(fresh); 8]).unwrap_or(ConnectionId::EMPTY);
            self.table.follow(self.now, id, to, cid, 1_200, times());
        }
    }

    /// Writes challenges and responses of a path; the peer may answer.
    fn challenge_candidate(&mut self, input: &mut ArbitraryInput<'_>) -> Result<(), Violation> {
        let (id, answer) = (path_id(input), input.flag());
        let place = self.table.place(id);
        let Some(slot) = place.and_then(|place| self.table.slot_at_mut(place)) else { return Ok(()) };
        let owes = |slot: &Slot| slot.path.as_deref().is_some_and(|path| path.owes_validation());
        let current = Some(FourTupleRole::Current).filter(|_| owes(slot));
        let Some(role) = current.or_else(|| slot.other_addresses_due(0, |_| false)) else { return Ok(()) };
        let (mut buf, mut carried) = (Vec::new(), Vec::new());
        let mut w = FrameWriter::new(&mut buf, 1_200, &mut carried);
        // Ids that ride along are not looked at here: a server writes none.
        slot.fill_validation(Instant::ZERO, role, Side::Server, &mut self.random, &mut w);
        if let Some(path) = slot.path.as_deref_mut() {
            let elsewhere = role != FourTupleRole::Current;
            let packet =
                PacketInfo { bytes: 1_200, ack_eliciting: true, in_flight: true, elsewhere, ..PacketInfo::default() };
            path.on_packet_sent(self.now, (Space::Data, role), &packet, &carried, &mut Feedback::default());
        }
        assert!(role != FourTupleRole::Current || !buf.is_empty() || !owes(slot), "due, but nothing to write");
        for frame in Frames::new(&buf).filter(|_| !buf.is_empty()) {
            if let Frame::PathChallenge(challenge) = frame.expect("we write frames") {
                self.challenges.push(challenge.data);
            }
        }
        if answer && let Some(data) = self.challenges.pop() {
            if self.is_multiflow() {
                self.table.on_uniflow_response(self.now, data)?;
            } else {
                self.table.on_path_response(self.now, id, data)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for turn in 0.. {
            assert!(turn < 1_000, "timers without end");
            if self.table.poll_timeout(self.now).is_none() {
                break;
            }
        }
        assert!(self.table.deadline().is_none_or(|at| at > self.now), "a deadline that stays behind");
    }

    fn check(&mut self) {
        while let Some(event) = self.table.poll_event() {
            match event {
                TableEvent::CidIssued(issued) => assert!(self.cids.insert(issued.cid), "issued twice"),
                TableEvent::CidRetired { cid, .. } => assert!(self.cids.remove(&cid), "retired, never issued"),
                TableEvent::TokenInUse { token, .. } => self.tokens.push(token),
                TableEvent::TokenForgotten { token, .. } => {
                    let at = self.tokens.iter().position(|known| *known == token);
                    self.tokens.swap_remove(at.expect("forgotten, never in use"));
                }
            }
        }
        let ids: Vec<PathId> = self.table.slots().map(|slot| slot.id).collect();
        assert!(ids.is_sorted() && ids.len() <= MAX_PATHS);
        assert!(self.cids.len() <= MAX_CIDS && self.tokens.len() <= MAX_CIDS);
        for slot in self.table.slots() {
            let _ = (slot.state(), slot.dcid(FourTupleRole::Current));
        }
    }

    /// Every path is given up; then nothing is left but the ids.
    fn shut_down(&mut self) {
        if self.is_multiflow() {
            return uniflows::shut_down(self);
        }
        let open: Vec<PathId> = self.table.slots().map(|slot| slot.id).collect();
        let closed = open.into_iter().filter(|id| self.table.abandon(self.now, *id, CloseCode::NO_ERROR, PTO).is_ok());
        let closed = closed.count();
        self.pass(Duration::from_secs(600));
        self.check();
        assert!(closed == 0 || !self.table.open_slots().any(|slot| slot.state() == PathState::Closing));
    }
}

fn tuple(n: u8) -> FourTuple {
    FourTuple { local: here(n % 3), remote: there(n) }
}

fn times() -> ValidationTimes {
    ValidationTimes::new(PTO, PTO)
}

fn path(id: PathId, addresses: PathAddresses) -> Box<Path> {
    let controller = NewRenoFactory::default().build(id, Instant::ZERO, 1200);
    let (mtu, send) = (MtuConfig::default(), SendConfig::default());
    let config = PathConfig { mtu, send, acks: AckPolicy::immediate(), spin: SpinBit::default() };
    Box::new(Path::new(id, Instant::ZERO, addresses, controller, config))
}

/// Ids exchanged, paths opened, abandoned and moved, on both sides.
pub fn seeds() -> Vec<Vec<u8>> {
    let new_cid = |path: u8, sequence: u8| [0, 2, 1, path, 1, sequence, 0, 100 + path * 8 + sequence, 1, 0, 0];
    let ids = || (1..4).flat_map(move |path| [new_cid(path, 0), new_cid(path, 1)]).flatten();
    let driver = |side: u8| {
        let mut bytes = vec![side, 20, 30, 4, 5, 6, 4, 0, 2];
        bytes.extend(ids());
        bytes.extend((0..20).flat_map(|i| [7, i, i % 4, 11, i % 4, 1, 10, i % 4, i, 1, 9, i, 6, 4, 0, i, 5]));
        bytes.extend([8, 1, 9, 250, 8, 2, 9, 250, 6, 4, 0, 1, 9, 250]);
        bytes
    };
    let mut seeds = vec![driver(0), driver(1)];
    seeds.extend([0, 1].map(uniflows::seed));
    seeds
}
