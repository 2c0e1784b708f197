//! The observer: turns each event into records and writes them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use plait_base::observe::{Observer, PathState, PeerReport, TraceEvent};
use plait_base::{ConnectionId, FourTuple, Instant, PathId, Side, Space};
use serde::Serialize;

use crate::record::{
    Closed, CommonFields, ConnectionState, Dropped, FileHeader, Header, KeyUpdated, Metrics, Migration, Millis, Mtu,
    Packet, PathChange, PeerReported, Raw, ReferenceTime, Started, Trace, TraceRecord, TupleAssigned, VantagePoint,
    Version, path_id,
};
use crate::words;

/// RFC 7464 2.2: each record begins with RS and ends with LF.
const RECORD_START: u8 = 0x1e;

/// Who a connection is, as its first event tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) id: ConnectionId,
    pub(crate) side: Side,
    pub(crate) at: Instant,
}

type Open = Box<dyn FnOnce(&Birth) -> io::Result<Box<dyn Write + Send>> + Send>;

/// Told why a log ends early.
pub(crate) type Report = Arc<dyn Fn(&io::Error) + Send + Sync>;

enum Output {
    /// Opened by the first event.
    Unopened(Open),
    Open(Box<dyn Write + Send>),
    /// It could not be opened or written; the connection goes on without a log.
    Broken,
}

/// What was last said of a path.
struct Known {
    name: String,
    tuple: Option<FourTuple>,
    state: Option<PathState>,
    mtu: Option<u16>,
    metrics: [u64; 6],
}

/// Writes the events of one connection.
pub struct QlogObserver {
    output: Output,
    birth: Option<Birth>,
    paths: BTreeMap<PathId, Known>,
    key_phase: u64,
    /// One record, reused.
    buffer: Vec<u8>,
    report: Option<Report>,
}

impl std::fmt::Debug for QlogObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QlogObserver").field("birth", &self.birth).finish_non_exhaustive()
    }
}

impl QlogObserver {
    /// Writes to `writer`, which should buffer. It is flushed when the connection closes and when the observer goes.
    pub fn to_writer(writer: Box<dyn Write + Send>) -> Self {
        Self::at_birth(move |_| Ok(writer))
    }

    /// Writes to what `open` gives once the connection is known.
    pub(crate) fn at_birth(open: impl FnOnce(&Birth) -> io::Result<Box<dyn Write + Send>> + Send + 'static) -> Self {
        Self {
            output: Output::Unopened(Box::new(open)),
            birth: None,
            paths: BTreeMap::new(),
            key_phase: 0,
            buffer: Vec::with_capacity(512),
            report: None,
        }
    }

    /// Tells `report` once why the output cannot be opened or written.
    pub(crate) fn reporting(mut self, report: Option<Report>) -> Self {
        self.report = report;
        self
    }

    /// The connection goes on without a log.
    #[cold]
    fn fail(&mut self, error: &io::Error) {
        self.output = Output::Broken;
        if let Some(report) = self.report.take() {
            report(error);
        }
    }

    /// Opens the output and writes the header, once.
    fn begin(&mut self, now: Instant, event: &TraceEvent) {
        if self.birth.is_some() {
            return;
        }
        let (id, side) = match event {
            TraceEvent::Started { original_dcid, side, .. } => (*original_dcid, *side),
            _ => (ConnectionId::EMPTY, Side::Client),
        };
        let birth = Birth { id, side, at: now };
        self.birth = Some(birth);
        if let Output::Unopened(open) = std::mem::replace(&mut self.output, Output::Broken) {
            match open(&birth) {
                Ok(writer) => self.output = Output::Open(writer),
                Err(error) => self.fail(&error),
            }
        }
        let group: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        self.write(&FileHeader {
            file_schema: "urn:ietf:params:qlog:file:sequential",
            serialization_format: "application/qlog+json-seq",
            qlog_version: "0.4",
            qlog_format: "JSON-SEQ",
            title: "plait",
            trace: Trace {
                vantage_point: VantagePoint { name: "plait", kind: words::vantage(side) },
                common_fields: CommonFields {
                    group_id: Some(group.as_str()).filter(|group| !group.is_empty()),
                    protocol_types: ["QUIC"],
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                },
                event_schemas: ["urn:ietf:params:qlog:events:quic", "urn:plait:qlog:events:paths"],
            },
        });
    }

    fn write(&mut self, record: &impl Serialize) {
        let Output::Open(writer) = &mut self.output else { return };
        self.buffer.clear();
        self.buffer.push(RECORD_START);
        let written = serde_json::to_writer(&mut self.buffer, record).map_err(io::Error::from).and_then(|()| {
            self.buffer.push(b'\n');
            writer.write_all(&self.buffer)
        });
        if let Err(error) = written {
            self.fail(&error);
        }
    }

    fn time(&self, now: Instant) -> Millis {
        Millis(self.birth.map_or(Duration::ZERO, |birth| now.since(birth.at)))
    }

    /// Writes an event of the connection.
    fn event(&mut self, now: Instant, name: &'static str, data: impl Serialize) {
        let time = self.time(now);
        self.write(&TraceRecord { time, name, tuple: None, data });
    }

    /// Writes an event of a path.
    fn path_event(&mut self, now: Instant, path: PathId, name: &'static str, data: impl Serialize) {
        let time = self.time(now);
        // Taken out while it is lent, so that it is not copied for each packet.
        let tuple = std::mem::take(&mut self.known(path).name);
        self.write(&TraceRecord { time, name, tuple: Some(&tuple), data });
        self.known(path).name = tuple;
    }

    fn known(&mut self, path: PathId) -> &mut Known {
        self.paths.entry(path).or_insert_with(|| Known {
            name: words::tuple_name(path),
            tuple: None,
            state: None,
            mtu: None,
            metrics: [u64::MAX; 6],
        })
    }

    fn packet(&mut self, now: Instant, name: &'static str, path: PathId, space: Space, packet: PacketFacts) {
        let header = Header {
            packet_type: words::packet_type(space),
            packet_number: packet.number,
            path_id: path_id(path, space == Space::Data),
        };
        let raw = packet.bytes.map(|bytes| Raw { length: bytes.into() });
        let data = Packet { header, raw, ack_eliciting: packet.ack_eliciting, trigger: packet.trigger };
        self.path_event(now, path, name, data);
    }

    fn tuple(&mut self, now: Instant, path: PathId, tuple: FourTuple) {
        if self.known(path).tuple.replace(tuple) == Some(tuple) {
            return;
        }
        let name = words::tuple_name(path);
        let (tuple_local, tuple_remote) = (tuple.local.into(), tuple.remote.into());
        self.path_event(now, path, "quic:tuple_assigned", TupleAssigned { tuple_id: &name, tuple_local, tuple_remote });
    }

    fn state(&mut self, now: Instant, path: PathId, state: PathState) {
        let old = self.known(path).state.replace(state);
        if old == Some(state) {
            return;
        }
        let (old, new) = (old.map(PathState::name), state.name());
        self.path_event(now, path, "plait:path_state_updated", PathChange { path_id: path.0, old, new });
        // The handshake validates path 0 without a probe.
        if let (Some(new), true) = (words::migration_state(state), path != PathId::ZERO) {
            let tuple_id = words::tuple_name(path);
            self.path_event(now, path, "quic:migration_state_updated", Migration { new, tuple_id: &tuple_id });
        }
    }

    fn peer_report(&mut self, now: Instant, path: PathId, report: &PeerReport) {
        let data = PeerReported {
            path_id: path.0,
            state: report.state.name(),
            smoothed_rtt: Millis(report.rtt),
            rtt_variance: Millis(report.rtt_var),
            delivered_bytes_per_s: report.delivered_bytes_per_s,
            loss_ppm: report.loss_ppm,
        };
        self.path_event(now, path, "plait:peer_report", data);
    }

    fn mtu(&mut self, now: Instant, path: PathId, bytes: u16) {
        let old = self.known(path).mtu.replace(bytes);
        let name = words::tuple_name(path);
        self.path_event(now, path, "quic:mtu_updated", Mtu { old, new: bytes, tuple_id: &name });
    }

    /// Only what has changed is said again.
    fn metrics(&mut self, now: Instant, path: PathId, figures: [u64; 6]) {
        let before = std::mem::replace(&mut self.known(path).metrics, figures);
        let fresh = |i: usize| (before[i] != figures[i]).then_some(figures[i]);
        let time = |i: usize| fresh(i).map(|micros| Millis(Duration::from_micros(micros)));
        let metrics = Metrics {
            min_rtt: time(0),
            smoothed_rtt: time(1),
            rtt_variance: time(2),
            pto_count: None,
            congestion_window: fresh(3),
            bytes_in_flight: fresh(4),
            // No threshold yet.
            ssthresh: fresh(5).filter(|bytes| *bytes != u64::MAX),
            path_id: path.0,
        };
        if before != figures {
            self.path_event(now, path, "quic:recovery_metrics_updated", metrics);
        }
    }

    fn started(&mut self, now: Instant, version: u32, tuple: FourTuple) {
        let (local, remote) = (tuple.local.into(), tuple.remote.into());
        self.event(now, "quic:connection_started", Started { local, remote });
        self.version(now, version);
        self.tuple(now, PathId::ZERO, tuple);
    }

    fn version(&mut self, now: Instant, version: u32) {
        self.event(now, "quic:version_information", Version { chosen_version: format!("{version:08x}") });
    }

    /// Both directions change together.
    fn keys(&mut self, now: Instant, locally: bool) {
        self.key_phase += 1;
        let trigger = if locally { "local_update" } else { "remote_update" };
        for side in [Side::Client, Side::Server] {
            let data = KeyUpdated { key_type: words::key_type(side), key_phase: self.key_phase, trigger };
            self.event(now, "quic:key_updated", data);
        }
    }

    fn closed(&mut self, now: Instant, closed: &Closed<'_>) {
        self.event(now, "quic:connection_closed", closed);
        self.flush();
    }

    fn flush(&mut self) {
        if let Output::Open(writer) = &mut self.output
            && let Err(error) = writer.flush()
        {
            self.fail(&error);
        }
    }
}

/// What is said of a packet besides where it belongs.
struct PacketFacts {
    number: u64,
    bytes: Option<u16>,
    ack_eliciting: Option<bool>,
    trigger: Option<&'static str>,
}

impl PacketFacts {
    fn new(number: u64) -> Self {
        Self { number, bytes: None, ack_eliciting: None, trigger: None }
    }
}

impl Observer for QlogObserver {
    fn on_event(&mut self, now: Instant, event: &TraceEvent) {
        self.begin(now, event);
        match event {
            TraceEvent::Started { version, tuple, .. } => self.started(now, *version, *tuple),
            TraceEvent::VersionChanged { version } => self.version(now, *version),
            TraceEvent::HandshakeCompleted { multipath } => {
                let data = ConnectionState { new: "handshake_complete", multipath: *multipath };
                self.event(now, "quic:connection_state_updated", data);
            }
            TraceEvent::PacketSent { path, space, number, bytes, ack_eliciting } => {
                let facts = PacketFacts {
                    bytes: Some(*bytes),
                    ack_eliciting: Some(*ack_eliciting),
                    ..PacketFacts::new(*number)
                };
                self.packet(now, "quic:packet_sent", *path, *space, facts);
            }
            TraceEvent::PacketReceived { path, space, number, bytes } => {
                let facts = PacketFacts { bytes: Some(*bytes), ..PacketFacts::new(*number) };
                self.packet(now, "quic:packet_received", *path, *space, facts);
            }
            TraceEvent::PacketDropped { bytes, why } => {
                let data = Dropped { raw: Raw { length: *bytes }, trigger: words::drop_trigger(*why) };
                self.event(now, "quic:packet_dropped", data);
            }
            TraceEvent::PacketLost { path, space, number, trigger } => {
                let facts = PacketFacts { trigger: words::loss_trigger(*trigger), ..PacketFacts::new(*number) };
                self.packet(now, "quic:packet_lost", *path, *space, facts);
            }
            TraceEvent::ProbeTimeout { path, count } => {
                let data = Metrics { pto_count: Some(*count), path_id: path.0, ..Metrics::default() };
                self.path_event(now, *path, "quic:recovery_metrics_updated", data);
            }
            TraceEvent::Metrics { path, rtt, rtt_min, rtt_var, window_bytes, in_flight_bytes, ssthresh_bytes } => {
                let micros = |time: &Duration| time.as_micros() as u64;
                let (min, smoothed, var) = (micros(rtt_min), micros(rtt), micros(rtt_var));
                self.metrics(now, *path, [min, smoothed, var, *window_bytes, *in_flight_bytes, *ssthresh_bytes]);
            }
            TraceEvent::Path { path, tuple, state } => {
                self.tuple(now, *path, *tuple);
                self.state(now, *path, *state);
            }
            TraceEvent::PeerReport { path, report } => self.peer_report(now, *path, report),
            TraceEvent::Mtu { path, bytes } => self.mtu(now, *path, *bytes),
            TraceEvent::KeysUpdated { locally } => self.keys(now, *locally),
            TraceEvent::Closed { locally, code, reason, trigger } => {
                let initiator = if *locally { "local" } else { "remote" };
                let (error_code, trigger) = (code.map(|code| code.0), words::close_trigger(*trigger));
                self.closed(now, &Closed { initiator, error_code, reason, trigger });
            }
            // The drafts show acks among the frames of a packet, and no record here lists frames.
            TraceEvent::AckReceived { .. } => {}
            // Newer than this writer.
            _ => {}
        }
    }
}

impl Drop for QlogObserver {
    fn drop(&mut self) {
        self.flush();
    }
}
