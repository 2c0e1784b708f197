//! Packet protection and TLS: the only floor that knows how packets are kept secret.
//!
//! * [`tls`]: configurations and the session that drives the handshake (RFC 9001 4).
//! * [`SealKeys`], [`OpenKeys`]: keys of Initial, Handshake and 0-RTT packets; sealing and opening in place (RFC 9001 5).
//! * [`OneRttKeys`]: the 1-RTT keys of all paths with their phases (RFC 9001 6, RFC 10069 2.5), and how much each may still
//!   be used (RFC 9001 6.6).
//! * [`retry`], [`TokenKey`], [`ResetKey`]: what an endpoint signs or seals for itself; [`CidSteering`]: where its ids lead.
//!
//! Nothing here knows frames, streams, paths or sockets. The nonce of every packet is built from path id and
//! packet number; on path 0 this is the nonce of RFC 9001, unless a session asks for Multiflow's ([`NonceForm`]).

mod backend;
mod error;
#[cfg(feature = "aws-lc-rs")]
mod header_cipher;
mod initial;
mod keys;
mod nonce;
mod null;
mod one_rtt;
#[cfg(feature = "aws-lc-rs")]
mod packet_cipher;
mod records;
mod reset;
pub mod retry;
mod steering;
pub mod tls;
mod tokens;
mod usage;
mod versioned;

pub use error::{ConfigError, ExportError, OpenError, SealError, UpdateRefused};
pub use initial::initial_keys;
pub use keys::{
    CIPHER_BLOCK_BYTES, EarlyKeys, Layout, OpenKeys, PacketKeys, SealKeys, TAG_BYTES, Unmasked, min_payload_bytes,
};
pub use nonce::NonceForm;
pub use one_rtt::{KeyFork, KeyPhase, OneRttKeys, Opened, PhaseMark, SealMark, SealQuota};
pub use reset::ResetKey;
pub use steering::CidSteering;
pub use tls::{CipherSuite, ClientTlsConfig, KeyChange, Protection, ServerTlsConfig, SessionStore, TlsSession};
pub use tokens::{Token, TokenKey};
