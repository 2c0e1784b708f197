//! The table of frame types: number, name, the packets that may carry it, and what it does to them.

#![allow(missing_docs)] // each constant is the type of the frame that it is named after

use crate::header::PacketKind;

pub(crate) const PADDING: u64 = 0x00;
pub(crate) const PING: u64 = 0x01;
pub(crate) const ACK: u64 = 0x02;
/// ACK with ECN counts.
pub(crate) const ACK_ECN: u64 = 0x03;
pub(crate) const RESET_STREAM: u64 = 0x04;
pub(crate) const STOP_SENDING: u64 = 0x05;
pub const CRYPTO: u64 = 0x06;
pub(crate) const NEW_TOKEN: u64 = 0x07;
/// STREAM, the lowest of its eight types.
pub(crate) const STREAM: u64 = 0x08;
/// STREAM bit: the stream ends here.
pub(crate) const STREAM_FIN: u64 = 0x01;
/// STREAM bit: a length is present.
pub(crate) const STREAM_LEN: u64 = 0x02;
/// STREAM bit: an offset is present.
pub(crate) const STREAM_OFF: u64 = 0x04;
/// STREAM, the highest of its eight types.
pub(crate) const STREAM_LAST: u64 = 0x0f;
pub(crate) const MAX_DATA: u64 = 0x10;
pub(crate) const MAX_STREAM_DATA: u64 = 0x11;
pub(crate) const MAX_STREAMS_BIDI: u64 = 0x12;
pub(crate) const MAX_STREAMS_UNI: u64 = 0x13;
pub(crate) const DATA_BLOCKED: u64 = 0x14;
pub(crate) const STREAM_DATA_BLOCKED: u64 = 0x15;
pub(crate) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub(crate) const STREAMS_BLOCKED_UNI: u64 = 0x17;
pub const NEW_CONNECTION_ID: u64 = 0x18;
pub(crate) const RETIRE_CONNECTION_ID: u64 = 0x19;
pub(crate) const PATH_CHALLENGE: u64 = 0x1a;
pub(crate) const PATH_RESPONSE: u64 = 0x1b;
/// CONNECTION_CLOSE by the transport.
pub(crate) const CONNECTION_CLOSE: u64 = 0x1c;
/// CONNECTION_CLOSE by the application.
pub(crate) const APPLICATION_CLOSE: u64 = 0x1d;
pub(crate) const HANDSHAKE_DONE: u64 = 0x1e;
pub(crate) const IMMEDIATE_ACK: u64 = 0x1f;
/// DATAGRAM to the end of the packet (RFC 9221).
pub(crate) const DATAGRAM: u64 = 0x30;
/// DATAGRAM with a length (RFC 9221).
pub(crate) const DATAGRAM_LEN: u64 = 0x31;
/// PATH_ACK (RFC 10069 4.1).
pub(crate) const PATH_ACK: u64 = 0x3e;
/// PATH_ACK with ECN counts (RFC 10069 4.1).
pub(crate) const PATH_ACK_ECN: u64 = 0x3f;
// draft-deconinck-quic-multipath-07, Multiflow
pub(crate) const MP_NEW_CONNECTION_ID: u64 = 0x40;
pub(crate) const MP_RETIRE_CONNECTION_ID: u64 = 0x41;
pub(crate) const MP_ACK: u64 = 0x42;
/// MP_ACK with ECN counts (Multiflow).
pub(crate) const MP_ACK_ECN: u64 = 0x43;
pub(crate) const ADD_ADDRESS: u64 = 0x44;
pub(crate) const REMOVE_ADDRESS: u64 = 0x45;
pub(crate) const UNIFLOWS: u64 = 0x46;
pub(crate) const ACK_FREQUENCY: u64 = 0xaf;
/// PATH_ABANDON (RFC 10069 4.2).
pub const PATH_ABANDON: u64 = 0x3e75;
/// PATH_STATUS_BACKUP (RFC 10069 4.3).
pub(crate) const PATH_STATUS_BACKUP: u64 = 0x3e76;
/// PATH_STATUS_AVAILABLE (RFC 10069 4.3).
pub(crate) const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
/// PATH_NEW_CONNECTION_ID (RFC 10069 4.4).
pub const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
/// PATH_RETIRE_CONNECTION_ID (RFC 10069 4.5).
pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
/// MAX_PATH_ID (RFC 10069 4.6).
pub const MAX_PATH_ID: u64 = 0x3e7a;
/// PATHS_BLOCKED (RFC 10069 4.7).
pub const PATHS_BLOCKED: u64 = 0x3e7b;
/// PATH_CIDS_BLOCKED (RFC 10069 4.7).
pub const PATH_CIDS_BLOCKED: u64 = 0x3e7c;
/// ADD_ADDRESS with an IPv4 address (noq's NAT traversal).
pub(crate) const NAT_ADD_ADDRESS_V4: u64 = 0x3d_7f90;
/// ADD_ADDRESS with an IPv6 address (noq's NAT traversal).
pub(crate) const NAT_ADD_ADDRESS_V6: u64 = 0x3d_7f91;
/// REACH_OUT with an IPv4 address (noq's NAT traversal).
pub(crate) const NAT_REACH_OUT_V4: u64 = 0x3d_7f92;
/// REACH_OUT with an IPv6 address (noq's NAT traversal).
pub(crate) const NAT_REACH_OUT_V6: u64 = 0x3d_7f93;
/// REMOVE_ADDRESS (noq's NAT traversal).
pub(crate) const NAT_REMOVE_ADDRESS: u64 = 0x3d_7f94;
/// MPX_ADD_ADDRESS, of plait's own.
pub(crate) const MPX_ADD_ADDRESS: u64 = 0x2d50_5810;
/// MPX_REMOVE_ADDRESS, of plait's own.
pub(crate) const MPX_REMOVE_ADDRESS: u64 = 0x2d50_5811;
/// MPX_PATHS, of plait's own.
pub(crate) const MPX_PATHS: u64 = 0x2d50_5812;
// draft-piraux-quic-additional-addresses-04
pub(crate) const ADDITIONAL_ADDRESSES: u64 = 0x9_25ad_da04;

/// The name of a frame type, as qlog writes it; `"unknown"` for those we do not speak.
pub fn name(frame_type: u64) -> &'static str {
    match frame_type {
        PADDING => "padding",
        PING => "ping",
        ACK | ACK_ECN => "ack",
        RESET_STREAM => "reset_stream",
        STOP_SENDING => "stop_sending",
        CRYPTO => "crypto",
        NEW_TOKEN => "new_token",
        STREAM..=STREAM_LAST => "stream",
        MAX_DATA => "max_data",
        MAX_STREAM_DATA => "max_stream_data",
        MAX_STREAMS_BIDI | MAX_STREAMS_UNI => "max_streams",
        DATA_BLOCKED => "data_blocked",
        STREAM_DATA_BLOCKED => "stream_data_blocked",
        STREAMS_BLOCKED_BIDI | STREAMS_BLOCKED_UNI => "streams_blocked",
        NEW_CONNECTION_ID => "new_connection_id",
        RETIRE_CONNECTION_ID => "retire_connection_id",
        PATH_CHALLENGE => "path_challenge",
        PATH_RESPONSE => "path_response",
        CONNECTION_CLOSE | APPLICATION_CLOSE => "connection_close",
        HANDSHAKE_DONE => "handshake_done",
        IMMEDIATE_ACK => "immediate_ack",
        DATAGRAM | DATAGRAM_LEN => "datagram",
        PATH_ACK | PATH_ACK_ECN => "path_ack",
        MP_NEW_CONNECTION_ID => "mp_new_connection_id",
        MP_RETIRE_CONNECTION_ID => "mp_retire_connection_id",
        MP_ACK | MP_ACK_ECN => "mp_ack",
        ADD_ADDRESS | NAT_ADD_ADDRESS_V4 | NAT_ADD_ADDRESS_V6 => "add_address",
        REMOVE_ADDRESS | NAT_REMOVE_ADDRESS => "remove_address",
        UNIFLOWS => "uniflows",
        NAT_REACH_OUT_V4 | NAT_REACH_OUT_V6 => "reach_out",
        MPX_ADD_ADDRESS => "mpx_add_address",
        MPX_REMOVE_ADDRESS => "mpx_remove_address",
        MPX_PATHS => "mpx_paths",
        ADDITIONAL_ADDRESSES => "additional_addresses",
        ACK_FREQUENCY => "ack_frequency",
        PATH_ABANDON => "path_abandon",
        PATH_STATUS_BACKUP => "path_status_backup",
        PATH_STATUS_AVAILABLE => "path_status_available",
        PATH_NEW_CONNECTION_ID => "path_new_connection_id",
        PATH_RETIRE_CONNECTION_ID => "path_retire_connection_id",
        MAX_PATH_ID => "max_path_id",
        PATHS_BLOCKED => "paths_blocked",
        PATH_CIDS_BLOCKED => "path_cids_blocked",
        _ => "unknown",
    }
}

/// True when packets of this kind may carry the frame; false also for types that we do not speak.
#[inline]
pub fn is_allowed(frame_type: u64, kind: PacketKind) -> bool {
    use PacketKind::{Handshake, Initial, OneRtt, ZeroRtt};
    match frame_type {
        // RFC 9000 12.4, table 3; 0-RTT and Handshake as RFC 9000 17.2.4 and RFC 9001 8.3 have it
        PADDING | PING | CONNECTION_CLOSE => true,
        ACK | ACK_ECN | CRYPTO => matches!(kind, Initial | Handshake | OneRtt),
        // RFC 9000 12.5: a 0-RTT packet cannot sensibly carry RETIRE_CONNECTION_ID or PATH_RESPONSE.
        NEW_TOKEN | RETIRE_CONNECTION_ID | PATH_RESPONSE | HANDSHAKE_DONE => kind == OneRtt,
        RESET_STREAM..=STREAM_LAST | MAX_DATA..=STREAMS_BLOCKED_UNI => matches!(kind, ZeroRtt | OneRtt),
        NEW_CONNECTION_ID | PATH_CHALLENGE | APPLICATION_CLOSE => matches!(kind, ZeroRtt | OneRtt),
        // RFC 9221 3, 6: remembered for 0-RTT
        DATAGRAM | DATAGRAM_LEN => matches!(kind, ZeroRtt | OneRtt),
        // Not remembered for 0-RTT: min_ack_delay and the multipath extension.
        IMMEDIATE_ACK | ACK_FREQUENCY => kind == OneRtt,
        _ if is_multipath(frame_type) || is_multiflow(frame_type) => kind == OneRtt,
        _ if is_announcement(frame_type) => kind == OneRtt,
        _ => false,
    }
}

/// True for types that we decode.
#[inline]
pub(crate) fn is_known(frame_type: u64) -> bool {
    matches!(frame_type, PADDING..=IMMEDIATE_ACK | DATAGRAM | DATAGRAM_LEN | ACK_FREQUENCY)
        || is_multipath(frame_type)
        || is_multiflow(frame_type)
        || is_announcement(frame_type)
}

/// True for the frames of RFC 10069 4, which only peers that negotiated it may send.
#[inline]
pub fn is_multipath(frame_type: u64) -> bool {
    matches!(frame_type, PATH_ACK | PATH_ACK_ECN | PATH_ABANDON..=PATH_CIDS_BLOCKED)
}

/// True for the frames of Multiflow (draft-deconinck-quic-multipath-07), which only peers that negotiated it may send.
#[inline]
pub fn is_multiflow(frame_type: u64) -> bool {
    matches!(frame_type, MP_NEW_CONNECTION_ID..=UNIFLOWS)
}

/// True for frames about addresses and paths of three further extensions: plait's own, noq's NAT traversal, and
/// draft-piraux-quic-additional-addresses.
#[inline]
fn is_announcement(frame_type: u64) -> bool {
    let is_mpx = matches!(frame_type, MPX_ADD_ADDRESS..=MPX_PATHS);
    is_mpx || matches!(frame_type, NAT_ADD_ADDRESS_V4..=NAT_REMOVE_ADDRESS | ADDITIONAL_ADDRESSES)
}

/// True for probing frames: a packet of nothing else does not move a path (RFC 9000 9.1; of Multiflow's frames only
/// MP_NEW_CONNECTION_ID is one).
#[inline]
pub fn is_probing(frame_type: u64) -> bool {
    matches!(frame_type, PADDING | PATH_CHALLENGE | PATH_RESPONSE | NEW_CONNECTION_ID | MP_NEW_CONNECTION_ID)
}

/// True for frames that make their packet ack-eliciting (RFC 9002 2, RFC 9000 19.21; RFC 10069 4: all but PATH_ACK;
/// Multiflow: all but MP_ACK).
#[inline]
pub fn is_ack_eliciting(frame_type: u64) -> bool {
    !matches!(
        frame_type,
        PADDING | ACK | ACK_ECN | PATH_ACK | PATH_ACK_ECN | MP_ACK | MP_ACK_ECN | CONNECTION_CLOSE | APPLICATION_CLOSE
    )
}
