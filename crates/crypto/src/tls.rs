//! TLS 1.3 for QUIC by rustls: configurations of both sides, and the session of one connection (RFC 9001 4).

mod client;
mod exporter;
mod hello;
mod key_log_capture;
mod options;

mod promise;
mod retired;
mod server;
mod session;
mod sessions;
mod store;

pub use client::{ClientTlsBuilder, ClientTlsConfig, any_certificate};
pub use hello::{Hello, read_client_hello, read_encrypted_extensions};
pub use options::{CipherSuite, Identity, Protection};
pub use server::{ServerTlsBuilder, ServerTlsConfig};
pub use session::{KeyChange, TlsSession};
pub use store::SessionStore;

/// Re-exported so that callers name the same rustls that the configurations take.
pub use rustls;

#[cfg(test)]
pub(crate) mod tests;
