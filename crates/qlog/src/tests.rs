//! Each event becomes a record that parses, with the words of the drafts, the same bytes each time.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plait_base::observe::{
    CloseTrigger, DropReason, LossTrigger, Observer, ObserverFactory, PathState, PeerReport, TraceEvent,
};
use plait_base::{CloseCode, ConnectionId, FourTuple, Instant, PathId, Side, Space};
use serde_json::{Value, json};

use crate::observer::Report;
use crate::{Memory, QlogFolder, QlogObserver};

fn tuple(local: &str) -> FourTuple {
    FourTuple { local: local.parse().unwrap(), remote: "[2001:db8::1]:443".parse().unwrap() }
}

fn started() -> TraceEvent {
    TraceEvent::Started {
        side: Side::Server,
        version: 1,
        original_dcid: ConnectionId::new(&[0xab, 0x01]).unwrap(),
        tuple: tuple("10.0.0.1:4433"),
    }
}

fn all_events() -> Vec<TraceEvent> {
    let (path, space, number) = (PathId(1), Space::Data, 7);
    let ms = Duration::from_millis;
    vec![
        started(),
        TraceEvent::PacketReceived { path: PathId::ZERO, space: Space::Initial, number: 0, bytes: 1200 },
        TraceEvent::VersionChanged { version: 0x6b33_43cf },
        TraceEvent::HandshakeCompleted { multipath: true },
        TraceEvent::Path { path, tuple: tuple("10.0.0.2:4433"), state: PathState::Validating },
        TraceEvent::Path { path, tuple: tuple("10.0.0.2:4433"), state: PathState::Active },
        TraceEvent::PacketSent { path, space, number, bytes: 1350, ack_eliciting: true },
        TraceEvent::PacketLost { path, space, number, trigger: LossTrigger::Time },
        TraceEvent::PacketDropped { bytes: 99, why: DropReason::Authentication },
        TraceEvent::ProbeTimeout { path, count: 2 },
        TraceEvent::Metrics {
            path,
            rtt: ms(20),
            rtt_min: ms(10),
            rtt_var: Duration::from_micros(1500),
            window_bytes: 12_000,
            in_flight_bytes: 2_700,
            ssthresh_bytes: u64::MAX,
        },
        TraceEvent::PeerReport {
            path,
            report: PeerReport {
                state: PathState::Failed,
                rtt: ms(25),
                rtt_var: ms(3),
                delivered_bytes_per_s: 1_250_000,
                loss_ppm: 5_000,
            },
        },
        TraceEvent::Mtu { path, bytes: 1452 },
        TraceEvent::KeysUpdated { locally: false },
        TraceEvent::Closed {
            locally: true,
            code: Some(CloseCode::PROTOCOL_VIOLATION),
            reason: "a \"quoted\"\nword".into(),
            trigger: CloseTrigger::Error,
        },
    ]
}

fn write(events: &[TraceEvent]) -> Memory {
    let memory = Memory::default();
    let mut observer = QlogObserver::to_writer(Box::new(memory.clone()));
    let mut now = Instant::from_nanos(5_000_000_000);
    for event in events {
        observer.on_event(now, event);
        now += Duration::from_micros(1_250);
    }
    memory
}

fn parsed(memory: &Memory) -> Vec<Value> {
    memory.records().iter().map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn the_file_is_a_json_text_sequence() {
    let bytes = write(&all_events()).bytes();
    assert!(bytes.starts_with(b"\x1e{") && bytes.ends_with(b"}\n"));
    for record in bytes.split(|byte| *byte == 0x1e).skip(1) {
        assert_eq!(record.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(serde_json::from_slice::<Value>(record).unwrap().is_object());
    }
}

#[test]
fn the_header_names_the_trace() {
    let header = &parsed(&write(&all_events()))[0];
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&json!("0.4"), &json!("JSON-SEQ")));
    assert_eq!(header["trace"]["vantage_point"], json!({"name": "plait", "type": "server"}));
    assert_eq!(header["trace"]["common_fields"]["group_id"], "ab01");
}

#[test]
fn every_event_has_its_record() {
    let records = parsed(&write(&all_events()));
    let names: Vec<_> = records[1..].iter().map(|record| record["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "quic:connection_started",
            "quic:version_information",
            "quic:tuple_assigned",
            "quic:packet_received",
            "quic:version_information",
            "quic:connection_state_updated",
            "quic:tuple_assigned",
            "plait:path_state_updated",
            "quic:migration_state_updated",
            "plait:path_state_updated",
            "quic:migration_state_updated",
            "quic:packet_sent",
            "quic:packet_lost",
            "quic:packet_dropped",
            "quic:recovery_metrics_updated",
            "quic:recovery_metrics_updated",
            "plait:peer_report",
            "quic:mtu_updated",
            "quic:key_updated",
            "quic:key_updated",
            "quic:connection_closed",
        ]
    );
    let mut last = 0.0;
    for record in &records[1..] {
        let time = record["time"].as_f64().unwrap();
        assert!(time >= last && record["data"].is_object());
        last = time;
    }
    assert_eq!(last, 17.5);
}

#[test]
fn packets_name_their_path() {
    let records = parsed(&write(&all_events()));
    let sent = records.iter().find(|record| record["name"] == "quic:packet_sent").unwrap();
    assert_eq!(sent["tuple"], "p1");
    assert_eq!(
        sent["data"],
        json!({"header": {"packet_type": "1RTT", "packet_number": 7, "path_id": 1},
               "raw": {"length": 1350}, "ack_eliciting": true})
    );
    let lost = records.iter().find(|record| record["name"] == "quic:packet_lost").unwrap();
    assert_eq!(lost["data"]["trigger"], "time_threshold");
    let initial = records.iter().find(|record| record["name"] == "quic:packet_received").unwrap();
    assert_eq!(initial["data"]["header"], json!({"packet_type": "initial", "packet_number": 0}));
}

#[test]
fn what_the_peer_told_has_its_figures() {
    let records = parsed(&write(&all_events()));
    let told = records.iter().find(|record| record["name"] == "plait:peer_report").unwrap();
    assert_eq!(
        told["data"],
        json!({"path_id": 1, "state": "failed", "smoothed_rtt": 25.0, "rtt_variance": 3.0,
               "delivered_bytes_per_s": 1_250_000, "loss_ppm": 5_000})
    );
}

#[test]
fn metrics_are_milliseconds_and_only_what_changed() {
    let metrics = |rtt_ms: u64| TraceEvent::Metrics {
        path: PathId(2),
        rtt: Duration::from_millis(rtt_ms),
        rtt_min: Duration::from_millis(10),
        rtt_var: Duration::from_micros(1_500),
        window_bytes: 12_000,
        in_flight_bytes: 0,
        ssthresh_bytes: 9_000,
    };
    let records = parsed(&write(&[started(), metrics(20), metrics(20), metrics(21)]));
    let said: Vec<_> = records.iter().filter(|record| record["name"] == "quic:recovery_metrics_updated").collect();
    assert_eq!(said.len(), 2);
    assert_eq!(
        said[0]["data"],
        json!({"min_rtt": 10.0, "smoothed_rtt": 20.0, "rtt_variance": 1.5, "congestion_window": 12_000,
               "bytes_in_flight": 0, "ssthresh": 9_000, "path_id": 2})
    );
    assert_eq!(said[1]["data"], json!({"smoothed_rtt": 21.0, "path_id": 2}));
}

#[test]
fn an_end_names_its_trigger_and_only_a_close_has_a_code() {
    let end = |code, trigger| TraceEvent::Closed { locally: false, code, reason: String::new(), trigger };
    for (event, data) in [
        (
            end(Some(CloseCode(7)), CloseTrigger::Application),
            json!({"initiator": "remote", "error_code": 7, "trigger": "application"}),
        ),
        (end(None, CloseTrigger::StatelessReset), json!({"initiator": "remote", "trigger": "stateless_reset"})),
    ] {
        let records = parsed(&write(&[started(), event]));
        assert_eq!(records.last().unwrap()["data"], data);
    }
}

#[test]
fn addresses_of_both_families() {
    let records = parsed(&write(&[started()]));
    let tuple = &records.iter().find(|record| record["name"] == "quic:tuple_assigned").unwrap()["data"];
    assert_eq!(tuple["tuple_local"], json!({"ip_v4": "10.0.0.1", "port_v4": 4433, "connection_ids": []}));
    assert_eq!(tuple["tuple_remote"], json!({"ip_v6": "2001:db8::1", "port_v6": 443, "connection_ids": []}));
}

#[test]
fn the_same_events_give_the_same_bytes() {
    assert_eq!(write(&all_events()).bytes(), write(&all_events()).bytes());
}

#[test]
fn a_folder_gets_a_file_for_each_connection() {
    let dir = tempfile::tempdir().unwrap();
    let folder = QlogFolder::new(dir.path().join("new")).unwrap();
    let mut observer = folder.observer();
    observer.on_event(Instant::ZERO, &started());
    drop(observer);
    // Never born, never written.
    drop(folder.observer());
    let names: Vec<_> = std::fs::read_dir(dir.path().join("new")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["ab01_server.sqlog"]);
    let text = std::fs::read_to_string(dir.path().join("new/ab01_server.sqlog")).unwrap();
    assert_eq!(text.matches('\x1e').count(), 4);
}

#[test]
fn a_full_disk_ends_the_log_only() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    // Written at once, and from a buffer that is flushed at the end.
    for buffer in [0, 1 << 20] {
        let said = Arc::new(Mutex::new(Vec::new()));
        let report: Report = {
            let said = Arc::clone(&said);
            Arc::new(move |error| said.lock().unwrap().push(error.kind()))
        };
        let writer = io::BufWriter::with_capacity(buffer, Full);
        let mut observer = QlogObserver::to_writer(Box::new(writer)).reporting(Some(report));
        for event in all_events() {
            observer.on_event(Instant::ZERO, &event);
        }
        drop(observer);
        assert_eq!(*said.lock().unwrap(), [io::ErrorKind::StorageFull], "it is told once");
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let said = Arc::new(Mutex::new(0));
    let folder = {
        let said = Arc::clone(&said);
        QlogFolder::new(dir.path().join("gone")).unwrap().on_failure(move |_| *said.lock().unwrap() += 1)
    };
    std::fs::remove_dir(dir.path().join("gone")).unwrap();
    let mut observer = folder.observer();
    observer.on_event(Instant::ZERO, &started());
    observer.on_event(Instant::ZERO, &started());
    drop(observer);
    assert_eq!(*said.lock().unwrap(), 1);
}
