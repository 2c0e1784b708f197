//! What the peers share: flags, certificates, the synthetic body and their reports. Knows no QUIC stack.

pub mod args;
pub mod body;
pub mod report;
pub mod tls;
