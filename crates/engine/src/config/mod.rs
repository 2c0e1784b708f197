//! What a user may set: the endpoint, its two roles, and the transport of a connection.
//!
//! Setter names follow quinn where quinn has the setting and noq where only noq has it. A setter never fails: a value
//! outside the documented range is moved to its nearest end.

mod client;
mod endpoint;
mod extension;
mod path_tuning;
mod paths;
mod recovery;
mod server;
#[cfg(test)]
mod tests;
mod tokens;
mod transport;

pub use client::{ClientConfig, NETWORK_DELAY};
pub use endpoint::EndpointConfig;
pub use extension::Extension;
pub use path_tuning::MigrationPolicy;
pub use recovery::{AckFrequencyConfig, MtuDiscoveryConfig};
pub use server::{RetryPolicy, ServerConfig};
pub(crate) use tokens::token_name;
pub use tokens::{MemoryTokenStore, NoTokenStore, TokenStore};
pub(crate) use transport::TimingTuning;
pub use transport::{StreamPlacement, TransportConfig};

/// A setting that is on or off. Setters take `impl Into<Switch>`, so that `true` and `false` work too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The feature is used.
    On,
    /// The feature is not used.
    Off,
}

impl Switch {
    /// True when on.
    pub(crate) fn is_on(self) -> bool {
        self == Self::On
    }
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}
