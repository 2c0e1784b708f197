//! What applications ask of a connection: streams, datagrams, key updates, and what is known of the session and its paths.

mod datagrams;
mod paths;
mod policies;
mod session;
mod statistics;
mod streams;

pub use datagrams::ApplicationDatagrams;
pub use paths::ConnectionPaths;
pub use policies::Policies;
pub use session::{HandshakeSummary, Session};
pub use statistics::PathStatistics;
pub use streams::{OpenStreams, RecvStream, SendStream};

use plait_base::observe::TraceEvent;
use plait_base::{Instant, StreamId};
use plait_crypto::UpdateRefused;

use crate::connection::Connection;

impl Connection {
    /// The streams of the connection: to open one, or to accept one of the peer's.
    pub fn streams(&mut self) -> OpenStreams<'_> {
        OpenStreams { streams: &mut self.streams }
    }

    /// The sending part of a stream; whether there is one the calls on it say.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        SendStream { streams: &mut self.streams, id }
    }

    /// The receiving part of a stream; whether there is one the calls on it say.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        RecvStream { streams: &mut self.streams, id }
    }

    /// Application datagrams, those to send and those received.
    pub fn datagrams(&mut self) -> ApplicationDatagrams<'_> {
        let room = self.paths.table.frame_room();
        ApplicationDatagrams { queues: &mut self.datagrams, room }
    }

    /// What TLS agreed on.
    pub fn session(&self) -> Session<'_> {
        Session { handshake: &self.handshake, keys: self.keys.as_deref() }
    }

    /// Bytes of stream data that the peer acknowledged, each counted once all before it on its stream are.
    pub fn stream_bytes_acked(&self) -> u64 {
        self.streams.acked_bytes()
    }

    /// Starts a key update (RFC 9001 6).
    ///
    /// # Errors
    /// Too early; the refusal says why, and from when on an update is allowed where that is known.
    pub fn update_keys(&mut self, now: Instant) -> Result<(), UpdateRefused> {
        let keys = self.keys.as_mut().ok_or(UpdateRefused::HandshakeNotConfirmed)?;
        keys.update(now)?;
        self.events.observe(now, || TraceEvent::KeysUpdated { locally: true });
        // The peer learns of it by the next packet.
        let full = &self.scheduling.full_sockets;
        self.paths.ping_any(|tuple| full.hold(tuple));
        Ok(())
    }
}
