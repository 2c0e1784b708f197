//! Every bound on what a peer can make us keep or do, by name.

use std::time::Duration;

/// Longest connection id of QUIC v1, bytes (RFC 9000 17.2).
pub const MAX_CID_LEN: usize = 20;
/// Smallest UDP payload that carries an Initial, and the smallest MTU a path must prove (RFC 9000 14.1).
pub const MIN_DATAGRAM_BYTES: usize = 1200;
/// Largest UDP payload we ever build or read.
pub const MAX_DATAGRAM_BYTES: usize = 65_527;
/// Before its address is validated a peer gets at most this many times what it sent (RFC 9000 8.1).
pub const AMPLIFICATION_FACTOR: u64 = 3;

/// Paths a connection keeps open or draining at once.
pub const MAX_PATHS: usize = 64;
/// Paths that one MPX_PATHS tells of, the newest ids: at 25 bytes each they leave room in any packet.
pub const MAX_PATHS_TOLD: usize = 32;
/// Addresses of a host that are kept, its own and the other's (Multiflow, and what hosts tell each other of their addresses).
pub const MAX_HOST_ADDRESSES: usize = 32;
/// Path validations under way at once; attackers may open or migrate many paths (RFC 10069 7.2).
pub const MAX_VALIDATIONS: usize = 8;
/// PATH_RESPONSE frames waiting on one 4-tuple of a path; older challenges are forgotten (RFC 9000 8.2).
pub const MAX_QUEUED_PATH_RESPONSES: usize = 4;
/// Bytes of datagrams with PATH_RESPONSE that a pair of addresses gets beyond [`AMPLIFICATION_FACTOR`] times what came
/// from there. Each answer is grown to 1200 bytes (RFC 9000 8.2.2), so small challenges would draw many times their size.
pub const PATH_RESPONSE_BURST_BYTES: u64 = 8 * MIN_DATAGRAM_BYTES as u64;
/// Challenges of one validation whose answers are still accepted.
pub const MAX_OUTSTANDING_CHALLENGES: usize = 8;
/// Challenges of one validation that leave ahead of its clock: a peer that acknowledges them and answers none draws no more.
pub const MAX_EARLY_CHALLENGES: u32 = 2;

/// Connection ids that we issue and keep active for one path, at most.
pub const MAX_LOCAL_CIDS_PER_PATH: usize = 8;
/// active_connection_id_limit that we announce: ids of the peer that we keep for one path.
pub const MAX_REMOTE_CIDS_PER_PATH: u64 = 4;
/// RETIRE_CONNECTION_ID frames that may wait; a peer that forces more is closed (RFC 9000 5.1.2).
pub const MAX_PENDING_RETIREMENTS: usize = 64;

/// Ranges of received packet numbers that we remember and report for one space.
pub const MAX_ACK_RANGES: usize = 128;
/// Packets without anything to deliver, mostly acks, that one space of a path remembers beyond what it awaits an ack for.
/// A peer that acknowledges nothing makes us send any number of them; no honest one lets so many pass in a round trip.
pub const MAX_UNANSWERED_ACKS: usize = 16_384;
/// RTT samples of a path that are remembered for acks that come later by its own way back.
pub const MAX_RTT_MARKS: usize = 64;
/// Ranges of packet numbers below which duplicates are no longer told apart: all below count as seen.
pub const MAX_DEDUP_RANGES: usize = 512;

/// Disjoint received ranges beyond the read offset that are kept apart on one stream and on all of a connection, at least;
/// grows with the window.
pub const MIN_REASSEMBLY_FRAGMENTS: usize = 1024;
/// One more fragment is allowed for every so many bytes of receive window.
pub const REASSEMBLY_BYTES_PER_FRAGMENT: u64 = 512;
/// How long received data may stay in the buffer of its datagram; what is unread then is copied, so that a few bytes do
/// not keep large buffers.
pub const LOAN_TIME: Duration = Duration::from_millis(10);
/// Bytes of CRYPTO data beyond the read offset that we buffer in a space (RFC 9000 7.5 asks for at least 4096).
pub const MAX_CRYPTO_BUFFER_BYTES: u64 = 65_536;
/// Disjoint CRYPTO fragments that we buffer in a space.
pub const MAX_CRYPTO_FRAGMENTS: usize = 256;

/// Longest ClientHello, or EncryptedExtensions, whose transport parameters are read ahead of TLS, bytes.
pub const MAX_CLIENT_HELLO_BYTES: usize = 16_384;

/// Concurrent streams of each direction that a peer may open, by default.
pub const DEFAULT_MAX_STREAMS: u64 = 256;
/// Largest stream count that the wire allows (RFC 9000 4.6).
pub const MAX_STREAM_COUNT: u64 = 1 << 60;
/// Bytes of application datagrams queued in each direction, by default.
pub const DEFAULT_DATAGRAM_BUFFER_BYTES: usize = 1 << 20;

/// Datagrams of one unknown connection that wait for its handshake to be accepted.
pub const MAX_INCOMING_DATAGRAMS: usize = 8;
/// Bytes of datagrams that wait for the task of one connection, the places of its queue included; what comes then is
/// dropped, as a full socket buffer would.
pub const MAX_INBOX_BYTES: usize = 16 << 20;
/// The same over all connections of an endpoint.
pub const MAX_ENDPOINT_INBOX_BYTES: usize = 64 << 20;
/// Connections whose acceptance is undecided; further Initials are answered with Retry or dropped.
pub const MAX_INCOMING_CONNECTIONS: usize = 1024;
/// Connections that their peers closed and whose ids an endpoint still knows, so that late packets get no stateless reset
/// (RFC 9000 10.2.2): some hundred bytes each.
pub const MAX_DEPARTED_CONNECTIONS: usize = 4096;
/// Attempts of one client to reach one server, each on a pair of addresses of its own; names lead to any number of
/// addresses (RFC 8305 5).
pub const MAX_CONNECT_ATTEMPTS: usize = 8;
/// Addresses of a client that a server's connection keeps as proven, by attempts that the client gave up in favour of this
/// connection: as many as a client makes.
pub const MAX_PROVEN_ADDRESSES: usize = MAX_CONNECT_ATTEMPTS;
/// Packets that arrive before their keys, kept per connection.
pub const MAX_SAVED_PACKETS: usize = 16;
/// Bytes of packets that arrive before their keys, kept per connection.
pub const MAX_SAVED_BYTES: usize = 65_536;
/// Longest token that we accept or keep, bytes.
pub const MAX_TOKEN_BYTES: usize = 1024;
/// NEW_TOKEN tokens that a client keeps for one server.
pub const MAX_STORED_TOKENS: usize = 8;
/// Addresses that one NEW_TOKEN token names, at most.
pub const MAX_TOKEN_ADDRESSES: usize = 8;
/// Stateless replies (version negotiation, resets) that wait in an endpoint.
pub const MAX_QUEUED_REPLIES: usize = 256;
/// Longest reason phrase that we send, bytes.
pub const MAX_REASON_BYTES: usize = 512;
/// Addresses of ours that did not answer and that a path keeps to ask again.
pub const MAX_RESTING_CANDIDATES: usize = 8;
/// Events that wait for the application, beyond which the oldest repeatable ones merge.
pub const MAX_QUEUED_EVENTS: usize = 4096;

/// Ack delay a peer may announce, milliseconds (RFC 9000 18.2: below 2^14).
pub const MAX_ACK_DELAY_MS: u64 = (1 << 14) - 1;
/// Shortest ack delay that a peer may ask for, which we announce as min_ack_delay: what our timers keep to.
pub const MIN_ACK_DELAY: Duration = TIMER_GRANULARITY;
/// Ack delay exponent a peer may announce (RFC 9000 18.2).
pub const MAX_ACK_DELAY_EXPONENT: u64 = 20;

/// Largest packet threshold that reordering may lead to (RFC 9002 6.1.1); the time threshold finds losses beyond it.
pub const MAX_PACKET_THRESHOLD: u64 = 16_384;
/// RTT before the first sample (RFC 9002 6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Timer granularity (RFC 9002 6.1.2).
pub const TIMER_GRANULARITY: Duration = Duration::from_millis(1);
/// Exponent beyond which a probe time-out no longer doubles.
pub const MAX_PTO_BACKOFF: u32 = 10;
/// Longest probe time-out; a dead path is probed at least this often.
pub const MAX_PTO: Duration = Duration::from_secs(60);
/// Duplicate copies of frames waiting for another path.
pub const MAX_PENDING_COPIES: usize = 1024;
/// Bytes that are copied at once where a path's acks came later than it had promised, which a peer can bring about: so many,
pub const MAX_UNSTEADY_COPIES_BYTES: u64 = 64_000;
/// and one of so many that are sent, copies included: as much again as is new.
pub const UNSTEADY_COPIES_SHARE: u64 = 2;
/// Acks for paths that other threads serve, waiting to be passed on. Later acks repeat what the oldest said.
pub const MAX_PASSED_ACKS: usize = 1024;
/// Control frames remembered as under way on a path that another thread serves; no further ones go there.
pub const MAX_CARRIED_FRAMES: usize = 1024;
/// Packets opened that wait until all paths are back with the connection, since their frames are about paths, or for the connection
/// ids of the path that they open. Others are dropped before they are acknowledged.
pub const MAX_DEFERRED_PACKETS: usize = 64;
/// Bytes of such packets.
pub const MAX_DEFERRED_BYTES: usize = 131_072;
/// Messages of a path's server that nobody took, beyond which it drops datagrams that it cannot read.
pub const MAX_UNTAKEN_MESSAGES: usize = 1024;
