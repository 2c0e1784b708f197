//! Transport parameters: what each end declares in its TLS handshake (RFC 9000 18).

mod announcements;
mod check;
mod decode;
mod encode;
mod preferred;
mod version_info;

#[cfg(test)]
mod tests;

pub use announcements::{AdditionalAddressesUse, AnnouncementParameters, Announcements};
pub use check::HandshakeCids;
pub use preferred::PreferredAddress;
pub use version_info::VersionInfo;

use plait_base::{ConnectionId, PathId, ResetToken};

/// Identifiers of transport parameters, RFC 9000 18.2 where no other document is named.
#[allow(missing_docs)] // each has the name of its parameter
mod ids {
    pub(crate) const ORIGINAL_DCID: u64 = 0x00;
    pub(crate) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(crate) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(crate) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(crate) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(crate) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(crate) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(crate) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(crate) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(crate) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(crate) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(crate) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(crate) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(crate) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(crate) const ACTIVE_CID_LIMIT: u64 = 0x0e;
    pub(crate) const INITIAL_SCID: u64 = 0x0f;
    pub(crate) const RETRY_SCID: u64 = 0x10;
    /// version_information (RFC 9368).
    pub(crate) const VERSION_INFORMATION: u64 = 0x11;
    /// max_datagram_frame_size (RFC 9221).
    pub(crate) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    /// initial_max_path_id (RFC 10069 2.1).
    pub(crate) const INITIAL_MAX_PATH_ID: u64 = 0x3e;
    // draft-deconinck-quic-multipath-07, Multiflow
    pub(crate) const MAX_SENDING_UNIFLOW_ID: u64 = 0x40;
    /// grease_quic_bit (RFC 9287).
    pub(crate) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    /// plait_announcements: a parameter of ours, bits; the last byte of its number is its version.
    pub(crate) const ANNOUNCEMENTS: u64 = 0x2d50_5801;
    /// plait_unconfirmed_paths: a parameter of ours, without a value.
    pub(crate) const UNCONFIRMED_PATHS: u64 = 0x3170_6c74;
    /// The delay in draft-ietf-quic-ack-frequency.
    pub(crate) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    // draft-piraux-quic-additional-addresses-04
    pub(crate) const ADDITIONAL_ADDRESSES: u64 = 0x9_25ad_da04;
    /// NAT traversal as noq has it.
    pub(crate) const NAT_TRAVERSAL: u64 = 0x3d7f_9112_0401;
}

/// What one end declares. The default is what RFC 9000 18.2 lets absent parameters mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// Connection ids that tie the parameters to the packets of the handshake.
    pub cids: CidParameters,
    /// Flow control at the start.
    pub limits: InitialLimits,
    /// How the sender acknowledges.
    pub acks: AckParameters,
    /// Silence after which the connection ends, milliseconds; 0 means never.
    pub max_idle_timeout_ms: u64,
    /// Reset token of the handshake's connection id; only from a server.
    pub stateless_reset_token: Option<ResetToken>,
    /// Largest UDP payload that the sender takes, bytes, 1200 and up.
    pub max_udp_payload_bytes: u64,
    /// Whether the peer may move a path on its own account.
    pub active_migration: ActiveMigration,
    /// Another address of a server.
    pub preferred_address: Option<PreferredAddress>,
    /// Connection ids that the sender keeps, 2 and up; for each path where multipath is negotiated.
    pub active_cid_limit: u64,
    /// Largest DATAGRAM frame that the sender takes, bytes, type and length included; 0 means none (RFC 9221 3).
    pub max_datagram_frame_bytes: u64,
    /// Whether the sender reads packets with a fixed bit of 0.
    pub fixed_bit: GreaseQuicBit,
    /// Largest path id that the sender accepts at first; none without the extension (RFC 10069 2.1).
    pub initial_max_path_id: Option<PathId>,
    /// Largest id of a uniflow on which the sender wishes to send; none without Multiflow.
    pub max_sending_uniflow_id: Option<PathId>,
    /// How addresses and paths are told of.
    pub announcements: AnnouncementParameters,
    /// Versions (RFC 9368 3).
    pub version_info: Option<VersionInfo>,
    /// Whether paths may be opened before the sender has read the end of the handshake.
    pub unconfirmed_paths: UnconfirmedPaths,
}

/// Connection ids of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CidParameters {
    /// Destination id of the client's first Initial; from a server, always.
    pub original_dcid: Option<ConnectionId>,
    /// Source id of the sender's first Initial; from both, always.
    pub initial_scid: Option<ConnectionId>,
    /// Source id of the Retry; from a server that sent one.
    pub retry_scid: Option<ConnectionId>,
}

/// Flow control at the start: bytes and stream counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitialLimits {
    /// Bytes of all streams together.
    pub max_data: u64,
    /// Bytes of a bidirectional stream that the sender of the parameter opens.
    pub max_stream_data_bidi_local: u64,
    /// Bytes of a bidirectional stream that the receiver of the parameter opens.
    pub max_stream_data_bidi_remote: u64,
    /// Bytes of a unidirectional stream that the receiver of the parameter opens.
    pub max_stream_data_uni: u64,
    /// Bidirectional streams that the receiver of the parameter may open, at most 2^60.
    pub max_streams_bidi: u64,
    /// Unidirectional streams that the receiver of the parameter may open, at most 2^60.
    pub max_streams_uni: u64,
}

/// How an end acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckParameters {
    /// Ack delays are sent shifted right by this, 0 to 20.
    pub delay_exponent: u8,
    /// Longest intended delay of an ack, milliseconds, below 2^14.
    pub max_delay_ms: u64,
    /// Shortest delay that the sender can keep to, microseconds, at most `max_delay_ms`; none without the
    /// ACK_FREQUENCY extension.
    pub min_delay_us: Option<u64>,
}

/// The disable_active_migration parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActiveMigration {
    /// The peer may move.
    #[default]
    Allowed,
    /// The peer keeps to one address towards the address of the handshake.
    Disabled,
}

/// The grease_quic_bit parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GreaseQuicBit {
    /// The fixed bit must be 1.
    #[default]
    Unsupported,
    /// The fixed bit may be 0 (RFC 9287).
    Supported,
}

/// The parameter plait_unconfirmed_paths of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnconfirmedPaths {
    /// Nothing is known: a packet of a new path that overtakes the client's Finished may be more than it can bear.
    #[default]
    Unknown,
    /// Such packets wait for the Finished, as RFC 9001 5.7 has it, and open their path then. A Handshake packet in front of one
    /// in its datagram may bring it.
    Welcome,
}

impl Default for AckParameters {
    fn default() -> Self {
        Self { delay_exponent: 3, max_delay_ms: 25, min_delay_us: None }
    }
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            cids: CidParameters::default(),
            limits: InitialLimits::default(),
            acks: AckParameters::default(),
            max_idle_timeout_ms: 0,
            stateless_reset_token: None,
            max_udp_payload_bytes: plait_base::limits::MAX_DATAGRAM_BYTES as u64,
            active_migration: ActiveMigration::default(),
            preferred_address: None,
            active_cid_limit: 2,
            max_datagram_frame_bytes: 0,
            fixed_bit: GreaseQuicBit::default(),
            initial_max_path_id: None,
            max_sending_uniflow_id: None,
            announcements: AnnouncementParameters::default(),
            version_info: None,
            unconfirmed_paths: UnconfirmedPaths::default(),
        }
    }
}
