//! What the clients have in common.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

/// A handshake that takes longer has failed.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A QUIC client.
pub trait Peer: Clone + Send + Sync + 'static {
    /// A connection, open as long as somebody has a copy.
    type Connection: Clone + Send + Sync + 'static;
    /// A stream to the server and its way back.
    type Stream: Send + 'static;

    /// A new connection, its handshake done.
    fn connect(&self) -> impl Future<Output = Self::Connection> + Send;

    /// Begins to open further paths in the background, where the setting names addresses for them.
    fn open_paths(&self, _connection: &Self::Connection) {}

    /// Opens a stream.
    fn open(connection: &Self::Connection) -> impl Future<Output = Self::Stream> + Send;

    /// Writes all of `data`.
    fn write(stream: &mut Self::Stream, data: Bytes) -> impl Future<Output = ()> + Send;

    /// Ends the way to the server, and reads the other to its end: how many bytes came.
    fn finish(stream: Self::Stream) -> impl Future<Output = u64> + Send;
}

/// A new connection, within ten seconds.
pub(crate) async fn connect<P: Peer>(peer: &P) -> P::Connection {
    timeout(CONNECT_TIME, peer.connect()).await.expect("a handshake within ten seconds")
}
