//! Settings: the engine's, made ready with the system's randomness and with common TLS set-ups.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use plait_crypto::tls::Identity;
use plait_crypto::{ClientTlsConfig, ConfigError, ServerTlsConfig};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::entropy::{self, NoEntropy};
use plait_engine::config;

/// Threads of an endpoint that serve paths, at most.
const MAX_WORKERS: usize = 1024;

/// Why settings could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// TLS refused its settings.
    #[error(transparent)]
    Tls(#[from] ConfigError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
}

macro_rules! wraps {
    ($name:ident) => {
        impl Deref for $name {
            type Target = config::$name;
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl From<config::$name> for $name {
            fn from(settings: config::$name) -> Self {
                Self(settings)
            }
        }
    };
}

/// Settings of outgoing connections; its setters are those of [`plait_engine::config::ClientConfig`].
///
/// ```
/// let mut config = plait::ClientConfig::insecure(["echo"]).unwrap();
/// let mut transport = plait::TransportConfig::default();
/// transport.path_policy(plait::path_policy("fullmesh").unwrap());
/// config.transport_config(std::sync::Arc::new(transport));
/// ```
#[derive(Clone, Debug)]
pub struct ClientConfig(config::ClientConfig);

wraps!(ClientConfig);

impl ClientConfig {
    /// With TLS settings of the application's making.
    pub fn new(tls: ClientTlsConfig) -> Self {
        Self(config::ClientConfig::new(tls))
    }

    /// Trusts servers whose certificates lead to one of `roots`, and speaks one of the application protocols `alpn`,
    /// best first.
    ///
    /// # Errors
    /// TLS refuses the roots.
    pub fn with_roots<P: Into<Vec<u8>>>(
        roots: RootCertStore,
        alpn: impl IntoIterator<Item = P>,
    ) -> Result<Self, SetupError> {
        Ok(Self::new(ClientTlsConfig::builder().roots(roots).alpn(alpn).build()?))
    }

    /// Trusts everybody: for tests and for servers whose identity does not matter. Anyone on the way can read and
    /// change what is sent.
    ///
    /// # Errors
    /// TLS cannot begin.
    pub fn insecure<P: Into<Vec<u8>>>(alpn: impl IntoIterator<Item = P>) -> Result<Self, SetupError> {
        Ok(Self::new(ClientTlsConfig::builder().accept_any_certificate().alpn(alpn).build()?))
    }

    pub(crate) fn into_engine(self) -> config::ClientConfig {
        self.0
    }
}

/// Settings of a server; its setters are those of [`plait_engine::config::ServerConfig`].
///
/// ```
/// # let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
/// # let key = plait::rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
/// # let chain = vec![made.cert.der().clone()];
/// let mut config = plait::ServerConfig::with_single_cert(chain, key, ["echo"]).unwrap();
/// let mut transport = plait::TransportConfig::default();
/// transport.scheduler(plait::scheduler("blest").unwrap());
/// config.transport_config(std::sync::Arc::new(transport));
/// ```
#[derive(Clone, Debug)]
pub struct ServerConfig(config::ServerConfig);

wraps!(ServerConfig);

impl ServerConfig {
    /// With TLS settings of the application's making, and a token key that nobody else has.
    ///
    /// # Errors
    /// The system gave no randomness.
    pub fn new(tls: ServerTlsConfig) -> Result<Self, SetupError> {
        Ok(Self(config::ServerConfig::from_random(tls, &mut entropy::random()?)))
    }

    /// Shows one certificate chain, its own first; speaks one of the application protocols `alpn` and takes 0-RTT.
    ///
    /// What arrives in 0-RTT may have been repeated by an attacker: see [`crate::Connecting::into_0rtt`]. Use
    /// [`Self::new`] for a server that takes none.
    ///
    /// # Errors
    /// The key does not fit the certificate.
    pub fn with_single_cert<P: Into<Vec<u8>>>(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        alpn: impl IntoIterator<Item = P>,
    ) -> Result<Self, SetupError> {
        let tls = ServerTlsConfig::builder(Identity::new(chain, key)).alpn(alpn).early_data().build()?;
        Self::new(tls)
    }

    pub(crate) fn into_engine(self) -> Arc<config::ServerConfig> {
        Arc::new(self.0)
    }
}

/// Settings of an endpoint; its setters are [`Self::workers`] and those of [`plait_engine::config::EndpointConfig`].
///
/// ```
/// # mod support { include!("../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// let mut config = plait::EndpointConfig::fresh()?;
/// config.workers(2);
/// let client = plait::Endpoint::new(config, None, ["127.0.0.1:0".parse::<std::net::SocketAddr>()?])?;
/// assert_ne!(client.local_addr()?.port(), 0);
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    engine: config::EndpointConfig,
    workers: usize,
}

impl Deref for EndpointConfig {
    type Target = config::EndpointConfig;
    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl DerefMut for EndpointConfig {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.engine
    }
}

impl From<config::EndpointConfig> for EndpointConfig {
    fn from(engine: config::EndpointConfig) -> Self {
        Self { engine, workers: 1 }
    }
}

impl EndpointConfig {
    /// Defaults, with a stateless reset key that nobody else has. Takes microseconds: the operating system gives the seed.
    ///
    /// # Errors
    /// The system gave no randomness.
    pub fn fresh() -> Result<Self, NoEntropy> {
        Ok(config::EndpointConfig::from_random(&mut entropy::random()?).into())
    }

    /// Serves the paths of connections, and the connections of clients, on so many threads, at most 1024. With 1, the default, or 0
    /// the tasks of the connections do all of it on the runtime that the endpoint was made in.
    ///
    /// A path that is busy is then served by one of these threads: it receives, opens, seals and sends there, while the task of its
    /// connection keeps the streams and all that is rare. A connection profits that has several paths and more to carry than one
    /// core can. Several paths may lead between the same two addresses, each from a socket of its own.
    ///
    /// A client's connection to a server is run by one of these threads altogether, the one where its first datagram arrived, until it
    /// has several paths that are busy; [`Connection::spawn`](crate::Connection::spawn) runs tasks of the application there. Connections that
    /// are observed, that use Multiflow or whose scheduler sends copies stay on their task.
    pub fn workers(&mut self, threads: usize) -> &mut Self {
        self.workers = threads.min(MAX_WORKERS);
        self
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers
    }

    /// Length of our connection ids.
    pub(crate) fn cid_bytes(&self) -> usize {
        self.engine.cid_bytes()
    }

    pub(crate) fn into_engine(self) -> config::EndpointConfig {
        self.engine
    }
}
