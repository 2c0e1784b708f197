//! What a user sets about streams, and the limits that a peer announced.

use plait_base::limits::DEFAULT_MAX_STREAMS;

/// A receive window: where it begins, and how far it may grow.
///
/// It doubles when a whole window is read within two RTTs, and where data beyond a gap fills it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that the peer may send ahead of the reader at first, and what we announce (RFC 9000 18.2).
    pub first: u64,
    /// Bytes beyond which it never grows; at least `first`.
    pub max: u64,
}

impl Window {
    /// A window that never grows, bytes.
    pub fn fixed(bytes: u64) -> Self {
        Self { first: bytes, max: bytes }
    }

    fn clamped(self, cap: u64) -> Self {
        let first = self.first.min(cap);
        Self { first, max: self.max.clamp(first, cap) }
    }
}

/// Limits of our own on streams; windows are capped at 2^60 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Bidirectional streams that the peer may have open at once, 0 to 2^60.
    pub max_bidi: u64,
    /// Unidirectional streams that the peer may have open at once, 0 to 2^60.
    pub max_uni: u64,
    /// Receive window of each stream.
    pub stream_window: Window,
    /// Receive window of the connection.
    pub window: Window,
    /// Bytes that the application may have written and the peer not yet acknowledged, over all streams.
    pub send_window: u64,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            max_bidi: DEFAULT_MAX_STREAMS,
            max_uni: DEFAULT_MAX_STREAMS,
            stream_window: Window { first: 1 << 20, max: 16 << 20 },
            window: Window { first: 3 << 19, max: 24 << 20 },
            send_window: 16 << 20,
        }
    }
}

impl StreamsConfig {
    /// What to announce in our transport parameters (RFC 9000 18.2).
    pub fn announced(&self) -> PeerLimits {
        let stream = self.stream_window.first;
        PeerLimits {
            max_data: self.window.first,
            max_stream_data_bidi_local: stream,
            max_stream_data_bidi_remote: stream,
            max_stream_data_uni: stream,
            max_streams_bidi: self.max_bidi,
            max_streams_uni: self.max_uni,
        }
    }

    pub(crate) fn clamped(mut self) -> Self {
        const CAP: u64 = 1 << 60;
        self.max_bidi = self.max_bidi.min(CAP);
        self.max_uni = self.max_uni.min(CAP);
        self.stream_window = self.stream_window.clamped(CAP);
        self.window = self.window.clamped(CAP);
        self
    }
}

/// Initial limits as one end announced them in its transport parameters (RFC 9000 18.2); "local" and "remote"
/// are meant from the announcing end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// Bytes over all streams (initial_max_data).
    pub max_data: u64,
    /// initial_max_stream_data_bidi_local, bytes: streams that the announcing end opens.
    pub max_stream_data_bidi_local: u64,
    /// initial_max_stream_data_bidi_remote, bytes: streams that the other end opens.
    pub max_stream_data_bidi_remote: u64,
    /// Bytes on a unidirectional stream (initial_max_stream_data_uni).
    pub max_stream_data_uni: u64,
    /// How many bidirectional streams (initial_max_streams_bidi).
    pub max_streams_bidi: u64,
    /// How many unidirectional streams (initial_max_streams_uni).
    pub max_streams_uni: u64,
}
