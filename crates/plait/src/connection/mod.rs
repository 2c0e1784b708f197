//! A connection as applications hold it.

mod attempt;
mod connecting;
mod driver;
mod home;
mod inbox;
mod policies;
mod resident;
mod state;
mod stats;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use plait_base::{Dir, PathId, Side, StreamId};
use plait_crypto::{ExportError, UpdateRefused};
use plait_engine::connection::{ConnectionError, HandshakeSummary};
use rustls_pki_types::CertificateDer;
use tokio::task::JoinHandle;

use crate::stream::{Early, RecvStream, SendStream};
use crate::wakers::until;

pub use attempt::{Attempt, AttemptOutcome};
pub(crate) use connecting::Contest;
pub use connecting::{Connecting, ZeroRttAccepted};
pub(crate) use driver::Driver;
pub(crate) use home::Home;
pub(crate) use inbox::{Inbox, InboxBudget, cost};
pub(crate) use resident::Resident;
pub(crate) use state::{ConnectionRef, Shared, Standing, State};
pub use stats::ConnectionStats;

/// A QUIC connection, over one path or several.
///
/// Cheap to clone; all clones are one connection. When the last clone, and the last of its streams, is dropped, the
/// connection is closed with code 0. Every `async` method may be cancelled without loss.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// let (client, server) = pair().await;
/// let (mut send, mut recv) = client.open_bi().await?;
/// send.write_all(b"ping").await?;
/// send.finish()?;
/// let (mut answer, mut question) = server.accept_bi().await?;
/// assert_eq!(question.read_to_end(100).await?, b"ping");
/// answer.write_all(b"pong").await?;
/// answer.finish()?;
/// assert_eq!(recv.read_to_end(100).await?, b"pong");
/// client.close(0, b"done");
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) shared: Arc<ConnectionRef>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared: Arc::new(ConnectionRef(shared)) }
    }

    /// Opens a bidirectional stream, waiting while the peer allows no more. The peer learns of it with the first bytes.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let (id, early) = self.open(Dir::Bi).await?;
        Ok((SendStream::new(self.shared.clone(), id, early), RecvStream::new(self.shared.clone(), id, early)))
    }

    /// Opens a stream on which only we send, waiting while the peer allows no more.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let (id, early) = self.open(Dir::Uni).await?;
        Ok(SendStream::new(self.shared.clone(), id, early))
    }

    async fn open(&self, dir: Dir) -> Result<(StreamId, Early), ConnectionError> {
        until(self.shared.notifies.available(dir), || {
            let mut state = self.shared.lock();
            if let Err(error) = state.check() {
                return Some(Err(error));
            }
            let early = Early::of(&state);
            let id = state.engine.streams().open(dir);
            if id.is_none() {
                // The peer is told that we are blocked.
                state.wake_driver();
            }
            id.map(|id| Ok((id, early)))
        })
        .await
    }

    /// The next bidirectional stream that the peer opened.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Dir::Bi).await?;
        let shared = || self.shared.clone();
        Ok((SendStream::new(shared(), id, Early::No), RecvStream::new(shared(), id, Early::No)))
    }

    /// The next stream that the peer opened and on which only it sends.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = self.accept(Dir::Uni).await?;
        Ok(RecvStream::new(self.shared.clone(), id, Early::No))
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        until(self.shared.notifies.opened(dir), || {
            let mut state = self.shared.lock();
            // What arrived before the end may still be accepted and read.
            let id = state.engine.streams().accept(dir);
            id.map_or_else(|| state.check().err().map(Err), |id| Some(Ok(id)))
        })
        .await
    }

    /// Closes the connection at once: what has not arrived yet is lost. `code` is the application's, at most
    /// 2^62 - 1; `reason` is for people, at most 512 bytes of it are sent. Nothing happens when it is closed already.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared.close(code, Bytes::copy_from_slice(reason));
    }

    /// Waits for the end, and tells why.
    pub async fn closed(&self) -> ConnectionError {
        until(&self.shared.notifies.closed, || self.close_reason()).await
    }

    /// Why the connection ended; none while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.shared.lock().error.clone()
    }

    /// Which end we are.
    pub fn side(&self) -> Side {
        self.shared.lock().engine.connection().side()
    }

    /// The peer's address on the path with the lowest id.
    pub fn remote_address(&self) -> SocketAddr {
        self.first_path().map_or_else(|| self.shared.lock().remote, |path| path.tuple.remote)
    }

    /// Our address on that path, once it is known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.first_path().map(|path| path.tuple.local.ip()).filter(|ip| !ip.is_unspecified())
    }

    /// The smallest smoothed RTT among the open paths; zero before the first sample.
    pub fn rtt(&self) -> Duration {
        self.stats().paths.iter().filter_map(|path| path.rtt).min().unwrap_or_default()
    }

    /// What was negotiated in the handshake; complete once the connection is.
    pub fn handshake_data(&self) -> HandshakeSummary {
        self.shared.lock().engine.connection().session().summary()
    }

    /// The peer's certificates, its own first; none when it showed none.
    pub fn peer_identity(&self) -> Option<Vec<CertificateDer<'static>>> {
        let chain = self.shared.lock().engine.connection().session().peer_certificates()?;
        Some(chain.into_iter().map(CertificateDer::from).collect())
    }

    /// Fills `out` with a secret that both ends share, and nobody else (RFC 5705).
    ///
    /// # Errors
    /// The handshake is not complete, or more is asked for than there is.
    pub fn export_keying_material(&self, out: &mut [u8], label: &[u8], context: &[u8]) -> Result<(), ExportError> {
        self.shared.lock().engine.connection().session().export_keying_material(out, label, context)
    }

    /// Begins a key update (RFC 9001 6). They happen by themselves as often as security asks for.
    ///
    /// # Errors
    /// Too early; the error says why. Where threads serve the connection's paths
    /// ([`EndpointConfig::workers`](crate::EndpointConfig::workers)) the update begins once they gave them back, and an update that
    /// is too early then is left out.
    pub fn force_key_update(&self) -> Result<(), UpdateRefused> {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let begun = state.now_or_later(now, |engine, now| engine.update_keys(now));
        state.wake_driver();
        begun.unwrap_or(Ok(()))
    }

    /// The attempts to connect of which this connection came, in their order; on a server none.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.shared.lock().attempts.clone()
    }

    /// True once both ends agreed on Multiflow: the flows of each direction have addresses of their own.
    pub fn is_multiflow(&self) -> bool {
        self.shared.lock().engine.connection().paths().is_multiflow()
    }

    /// True once both ends agreed on RFC 10069 or Multiflow: the connection may use several paths.
    pub fn is_multipath(&self) -> bool {
        self.shared.lock().engine.connection().is_multipath()
    }

    /// Runs a task of the application beside this connection: on the thread of the endpoint that serves it
    /// ([`EndpointConfig::workers`](crate::EndpointConfig::workers)), where no other thread has to be woken for what arrives. A client's
    /// connection has no such thread, nor has one with several paths, which several threads serve: their tasks run on the
    /// runtime that the endpoint was made in. A task stays where it begins.
    ///
    /// That thread serves other connections as well, so a task there must not block, nor compute for long without `.await`. It ends with
    /// the endpoint and its connections at the latest.
    ///
    /// ```
    /// # mod support { include!("../../doc/pair.in"); }
    /// # use support::*;
    /// # run(async {
    /// # let (client, server) = pair().await;
    /// let beside = server.clone();
    /// let greeted = server.spawn(async move {
    ///     let mut greeting = beside.open_uni().await?;
    ///     greeting.write_all(b"welcome").await?;
    ///     greeting.finish()?;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    /// });
    /// let bytes = client.accept_uni().await?.read_to_end(100).await?;
    /// assert_eq!(&bytes[..], b"welcome");
    /// greeted.await??;
    /// # Ok(())
    /// # });
    /// ```
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let home = &self.shared.home;
        let has_several = || self.shared.lock().engine.connection().paths().tuples().nth(1).is_some();
        let runtime = if home.residence().is_some() && has_several() { home.application() } else { home.runtime() };
        runtime.spawn(task)
    }

    /// A number that no other connection of this process has while this one exists.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.shared.0).addr()
    }

    fn first_path(&self) -> Option<plait_engine::connection::PathStatistics> {
        let now = self.shared.clock.now();
        let state = self.shared.lock();
        let first = state.engine.connection().paths().ids().into_iter().min().unwrap_or(PathId::ZERO);
        state.engine.connection().path_statistics(now, first)
    }
}
