//! Two tables that talk to each other through real frames.

mod lifecycle;
mod rules;

use std::time::Duration;

use plait_base::limits::{MAX_VALIDATIONS, MIN_DATAGRAM_BYTES};
use plait_base::{CloseCode, FourTuple, Random, Violation};
use plait_wire::frame::{CidForm, MaxPathId, NewCid, PathAbandon, PathStatusUpdate, RetireCid};
use plait_wire::{Frame, FrameWriter, Frames, SentFrame};

use super::*;
use crate::addresses::{PathAddresses, Validation, ValidationTimes};
use crate::path::PathConfig;
use crate::receive::AckPolicy;
use crate::send::SendConfig;
use crate::send::mtu::MtuConfig;
use crate::spin::SpinBit;

const PTO: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn times() -> ValidationTimes {
    ValidationTimes::new(PTO, PTO)
}

fn tuple(local: u8, remote: u8) -> FourTuple {
    FourTuple { local: ([10, 0, 0, local], 1000).into(), remote: ([10, 9, 0, remote], 443).into() }
}

fn token(n: u8) -> ResetToken {
    ResetToken([n; 16])
}

fn cid(n: u64) -> ConnectionId {
    ConnectionId::new(&n.to_be_bytes()).unwrap()
}

fn new_cid(path: u32, sequence: u64, retire_prior_to: u64, n: u64) -> NewCid {
    let path = PathId(path);
    NewCid { form: CidForm::Path, path, sequence, retire_prior_to, cid: cid(n), token: token(n as u8) }
}

fn retire(path: u32, sequence: u64) -> RetireCid {
    RetireCid { form: CidForm::Path, path: PathId(path), sequence }
}

fn abandon(path: u32, code: CloseCode) -> PathAbandon {
    PathAbandon { path: PathId(path), code }
}

/// One end of a connection that sends nothing but control frames and probes.
struct End {
    table: Paths,
    random: Random,
    /// Frames of the last packet, as the memory of them.
    carried: Vec<SentFrame>,
}

impl End {
    /// An end with path 0 open and multipath negotiated at these limits.
    fn new(side: Side, local: u32, remote: u32) -> Self {
        let mut end = Self::plain(side, Some(local));
        end.table.set_peer_limits(PeerLimits {
            cid_limit: 4,
            initial_max_path_id: Some(remote),
            max_sending_uniflow_id: None,
            announcements: AnnouncementParameters::default(),
        });
        assert!(end.table.on_handshake_complete());
        end.issue();
        end
    }

    /// An end in its handshake.
    fn plain(side: Side, max: Option<u32>) -> Self {
        let base = if side.is_client() { 1000 } else { 2000 };
        let mut table = Paths::new(TableConfig {
            side,
            cid_limit: 4,
            initial_max_path_id: max,
            max_sending_uniflow_id: None,
            announcements: AnnouncementParameters::default(),
            address_scope: AddressScope::Any,
            max_validations: MAX_VALIDATIONS,
        });
        table.set_local_initial(cid(base), token(0));
        table.set_remote_initial(cid(3000 - base), None);
        table.open(Box::new(path(0, PathAddresses::new(tuple(0, 0), Validation::Validated)))).unwrap();
        Self { table, random: Random::from_u64(base), carried: vec![] }
    }

    fn issue(&mut self) -> Vec<IssuedCid> {
        self.issue_by(Paths::issue_cids)
    }

    fn issue_by(&mut self, issue: fn(&mut Paths, &mut dyn CidSource)) -> Vec<IssuedCid> {
        let random = &mut self.random;
        issue(&mut self.table, &mut |_path: PathId| {
            let cid = random.connection_id(8);
            let mut token = [0; 16];
            random.fill(&mut token);
            (cid, ResetToken(token))
        });
        let mut issued = vec![];
        while let Some(event) = self.table.poll_event() {
            if let TableEvent::CidIssued(cid) = event {
                issued.push(cid);
            }
        }
        issued
    }

    /// Writes the control frames that are due.
    fn control(&mut self) -> Vec<u8> {
        self.written(|table, w| {
            table.fill_control(w);
        })
    }

    /// What a writer of frames writes into the next packet.
    fn written(&mut self, fill: impl FnOnce(&mut Paths, &mut FrameWriter<'_>)) -> Vec<u8> {
        let mut buf = Vec::new();
        self.carried.clear();
        fill(&mut self.table, &mut FrameWriter::new(&mut buf, MIN_DATAGRAM_BYTES * 4, &mut self.carried));
        buf
    }

    /// Types of the frames in the next control packet.
    fn control_types(&mut self) -> Vec<u64> {
        let bytes = self.control();
        Frames::new(&bytes).filter(|_| !bytes.is_empty()).map(|f| f.unwrap().frame_type()).collect()
    }

    /// The last packet is lost.
    fn lose(&mut self) {
        std::mem::take(&mut self.carried).iter().for_each(|c| self.table.on_lost(c));
    }

    /// The last packet arrived.
    fn acked(&mut self) {
        std::mem::take(&mut self.carried).iter().for_each(|c| self.table.on_acked(c));
    }

    /// Writes probing frames of a path.
    fn probe_packet(&mut self, id: u32) -> Vec<u8> {
        let mut buf = Vec::new();
        let mut carried = vec![];
        let mut w = FrameWriter::new(&mut buf, MIN_DATAGRAM_BYTES, &mut carried);
        let addresses = &mut self.table.path_mut(PathId(id)).unwrap().addresses;
        addresses.fill(Instant::ZERO, crate::addresses::FourTupleRole::Current, &mut self.random, &mut w);
        buf
    }

    /// Reads a packet that came on path `on`.
    fn read(&mut self, now: Instant, on: u32, payload: &[u8]) -> Result<(), Violation> {
        let on = PathId(on);
        for frame in Frames::new(payload).filter(|_| !payload.is_empty()) {
            match frame.map_err(|e| e.violation)? {
                Frame::NewCid(f) => self.table.on_new_cid(&f)?,
                Frame::RetireCid(f) => self.table.on_retire_cid(&f, &ConnectionId::EMPTY)?,
                Frame::PathAbandon(f) => drop(self.table.on_path_abandon(now, &f, PTO)?),
                Frame::PathStatus(f) => drop(self.table.on_path_status(&f)?),
                Frame::MaxPathId(f) => drop(self.table.on_max_path_id(&f)?),
                Frame::PathsBlocked(f) => self.table.on_paths_blocked(&f)?,
                Frame::PathCidsBlocked(f) => self.table.on_path_cids_blocked(&f)?,
                Frame::PathChallenge(f) => {
                    let addresses = &mut self.table.path_mut(on).unwrap().addresses;
                    let here = addresses.tuple();
                    assert!(addresses.on_challenge(&here, f.data));
                }
                Frame::PathResponse(f) => drop(self.table.on_path_response(now, on, f.data)?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn path(id: u32, addresses: PathAddresses) -> Path {
    let id = PathId(id);
    let controller = plait_congestion::by_name("newreno").unwrap().build(id, at(0), 1200);
    let (mtu, send, spin) = (MtuConfig::default(), SendConfig::default(), SpinBit::default());
    Path::new(id, at(0), addresses, controller, PathConfig { mtu, send, acks: AckPolicy::immediate(), spin })
}

/// Carries control frames both ways until both are quiet.
fn exchange(now: Instant, a: &mut End, b: &mut End) {
    while a.table.wants_control() || b.table.wants_control() {
        let bytes = a.control();
        a.acked();
        b.read(now, 0, &bytes).unwrap();
        b.issue();
        let bytes = b.control();
        b.acked();
        a.read(now, 0, &bytes).unwrap();
        a.issue();
    }
}

/// A client and a server that gave each other connection ids.
fn pair(client_max: u32, server_max: u32) -> (End, End) {
    let mut client = End::new(Side::Client, client_max, server_max);
    let mut server = End::new(Side::Server, server_max, client_max);
    exchange(at(0), &mut client, &mut server);
    (client, server)
}

/// Opens and validates the next path as in the example of RFC 10069 3.1.1.
fn open(now: Instant, client: &mut End, server: &mut End) -> PathId {
    let id = client.table.next_id().unwrap();
    let local = id.0 as u8;
    client.table.open(Box::new(path(id.0, PathAddresses::opened(tuple(local, 0))))).unwrap();
    client.table.path_mut(id).unwrap().addresses.challenge(now, times());
    assert_eq!(server.table.admission(id), Admission::New);
    let first = client.probe_packet(id.0);
    let mut addresses = PathAddresses::new(tuple(0, local), Validation::Unvalidated);
    addresses.on_received(&tuple(0, local), 1200);
    addresses.challenge(now, times());
    server.table.open(Box::new(path(id.0, addresses))).unwrap();
    server.read(now, id.0, &first).unwrap();
    let second = server.probe_packet(id.0);
    client.read(now, id.0, &second).unwrap();
    let third = client.probe_packet(id.0);
    server.read(now, id.0, &third).unwrap();
    assert_eq!(server.table.admission(id), Admission::Open);
    for end in [client, server] {
        assert!(end.table.path(id).unwrap().addresses.is_validated());
        end.issue();
    }
    id
}
