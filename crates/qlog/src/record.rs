//! The records as they are written: fields in a fixed order, absent ones left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use plait_base::PathId;
use serde::{Serialize, Serializer};

/// First record of a file.
#[derive(Serialize)]
pub(crate) struct FileHeader<'a> {
    pub(crate) file_schema: &'static str,
    pub(crate) serialization_format: &'static str,
    // Tools made for drafts before the schema URIs look for these two.
    pub(crate) qlog_version: &'static str,
    pub(crate) qlog_format: &'static str,
    pub(crate) title: &'static str,
    pub(crate) trace: Trace<'a>,
}

/// What the file is about.
#[derive(Serialize)]
pub(crate) struct Trace<'a> {
    pub(crate) vantage_point: VantagePoint,
    pub(crate) common_fields: CommonFields<'a>,
    pub(crate) event_schemas: [&'static str; 2],
}

/// The end that wrote the trace.
#[derive(Serialize)]
pub(crate) struct VantagePoint {
    pub(crate) name: &'static str,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

/// What holds for every event.
#[derive(Serialize)]
pub(crate) struct CommonFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_id: Option<&'a str>,
    pub(crate) protocol_types: [&'static str; 1],
    pub(crate) time_format: &'static str,
    pub(crate) reference_time: ReferenceTime,
}

/// Where the clock began: the connection's birth on a clock without a date.
#[derive(Serialize)]
pub(crate) struct ReferenceTime {
    pub(crate) clock_type: &'static str,
    pub(crate) epoch: &'static str,
}

/// One line of a trace: time, name and data of an event.
#[derive(Serialize)]
pub(crate) struct TraceRecord<'a, D> {
    pub(crate) time: Millis,
    pub(crate) name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tuple: Option<&'a str>,
    pub(crate) data: D,
}

/// Milliseconds, to the microsecond.
#[derive(Clone, Copy)]
pub(crate) struct Millis(pub(crate) Duration);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_micros() as f64 / 1e3)
    }
}

/// Header of a packet.
#[derive(Serialize)]
pub(crate) struct Header {
    pub(crate) packet_type: &'static str,
    pub(crate) packet_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_id: Option<u32>,
}

/// Sizes on the wire.
#[derive(Serialize)]
pub(crate) struct Raw {
    pub(crate) length: usize,
}

/// `packet_sent`, `packet_received`, `packet_lost`.
#[derive(Serialize)]
pub(crate) struct Packet {
    pub(crate) header: Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ack_eliciting: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<&'static str>,
}

/// Data of `packet_dropped`.
#[derive(Serialize)]
pub(crate) struct Dropped {
    pub(crate) raw: Raw,
    pub(crate) trigger: &'static str,
}

/// Data of `recovery_metrics_updated`.
#[derive(Default, Serialize)]
pub(crate) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_rtt: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smoothed_rtt: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt_variance: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pto_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ssthresh: Option<u64>,
    pub(crate) path_id: u32,
}

/// Data of `connection_started`.
#[derive(Serialize)]
pub(crate) struct Started {
    pub(crate) local: TupleEndpoint,
    pub(crate) remote: TupleEndpoint,
}

/// One end of a tuple.
#[derive(Serialize)]
pub(crate) struct TupleEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_v4: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port_v4: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_v6: Option<Ipv6Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port_v6: Option<u16>,
    pub(crate) connection_ids: [&'static str; 0],
}

impl From<SocketAddr> for TupleEndpoint {
    fn from(address: SocketAddr) -> Self {
        let port = Some(address.port());
        let none = Self { ip_v4: None, port_v4: None, ip_v6: None, port_v6: None, connection_ids: [] };
        match address.ip().to_canonical() {
            IpAddr::V4(ip) => Self { ip_v4: Some(ip), port_v4: port, ..none },
            IpAddr::V6(ip) => Self { ip_v6: Some(ip), port_v6: port, ..none },
        }
    }
}

/// Data of `tuple_assigned`.
#[derive(Serialize)]
pub(crate) struct TupleAssigned<'a> {
    pub(crate) tuple_id: &'a str,
    pub(crate) tuple_local: TupleEndpoint,
    pub(crate) tuple_remote: TupleEndpoint,
}

/// Data of `migration_state_updated`.
#[derive(Serialize)]
pub(crate) struct Migration<'a> {
    pub(crate) new: &'static str,
    pub(crate) tuple_id: &'a str,
}

/// `plait:path_state_updated`, which no draft has.
#[derive(Serialize)]
pub(crate) struct PathChange {
    pub(crate) path_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<&'static str>,
    pub(crate) new: &'static str,
}

/// Data of `version_information`.
#[derive(Serialize)]
pub(crate) struct Version {
    pub(crate) chosen_version: String,
}

/// Data of `connection_state_updated`.
#[derive(Serialize)]
pub(crate) struct ConnectionState {
    pub(crate) new: &'static str,
    pub(crate) multipath: bool,
}

/// `plait:peer_report`: what the peer told of a path on which it sends.
#[derive(Serialize)]
pub(crate) struct PeerReported {
    pub(crate) path_id: u32,
    pub(crate) state: &'static str,
    pub(crate) smoothed_rtt: Millis,
    pub(crate) rtt_variance: Millis,
    pub(crate) delivered_bytes_per_s: u64,
    pub(crate) loss_ppm: u64,
}

/// Data of `mtu_updated`.
#[derive(Serialize)]
pub(crate) struct Mtu<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<u16>,
    pub(crate) new: u16,
    pub(crate) tuple_id: &'a str,
}

/// Data of `key_updated`.
#[derive(Serialize)]
pub(crate) struct KeyUpdated {
    pub(crate) key_type: &'static str,
    pub(crate) key_phase: u64,
    pub(crate) trigger: &'static str,
}

/// Data of `connection_closed`.
#[derive(Serialize)]
pub(crate) struct Closed<'a> {
    pub(crate) initiator: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_code: Option<u64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) reason: &'a str,
    pub(crate) trigger: &'static str,
}

/// The path's number in a header; packets with a long header have none to choose from.
pub(crate) fn path_id(path: PathId, data_space: bool) -> Option<u32> {
    data_space.then_some(path.0)
}
