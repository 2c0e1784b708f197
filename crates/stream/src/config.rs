//! What a user sets about streams, and the limits that a peer announced.

use plait_base::limits::DEFAULT_MAX_STREAMS;

/// Whether receive windows grow with the speed at which the application reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoTune {
    /// Windows start small and double up to the configured maximum when a whole window is read within two RTTs.
    #[default]
    On,
    /// Windows have their maximum size from the start.
    Off,
}

/// First receive window of a stream that is tuned, bytes.
const FIRST_STREAM_WINDOW: u64 = 1 << 20;
/// First receive window of a connection that is tuned, bytes.
const FIRST_WINDOW: u64 = 3 << 19;

/// Limits of our own on streams; windows are capped at 2^60 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsConfig {
    /// Bidirectional streams that the peer may have open at once, 0 to 2^60.
    pub max_bidi: u64,
    /// Unidirectional streams that the peer may have open at once, 0 to 2^60.
    pub max_uni: u64,
    /// Largest receive window of a stream, bytes.
    pub stream_window: u64,
    /// Largest receive window of the connection, bytes.
    pub window: u64,
    /// Bytes that the application may have written and the peer not yet acknowledged, over all streams.
    pub send_window: u64,
    /// Whether the receive windows are tuned.
    pub auto_tune: AutoTune,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            max_bidi: DEFAULT_MAX_STREAMS,
            max_uni: DEFAULT_MAX_STREAMS,
            stream_window: 16 << 20,
            window: 24 << 20,
            send_window: 16 << 20,
            auto_tune: AutoTune::On,
        }
    }
}

impl StreamsConfig {
    /// First receive window of a stream, bytes.
    pub(crate) fn first_stream_window(&self) -> u64 {
        match self.auto_tune {
            AutoTune::On => self.stream_window.min(FIRST_STREAM_WINDOW),
            AutoTune::Off => self.stream_window,
        }
    }

    /// First receive window of the connection, bytes.
    pub(crate) fn first_window(&self) -> u64 {
        match self.auto_tune {
            AutoTune::On => self.window.min(FIRST_WINDOW),
            AutoTune::Off => self.window,
        }
    }

    /// What to announce in our transport parameters (RFC 9000 18.2).
    pub fn announced(&self) -> PeerLimits {
        let stream = self.first_stream_window();
        PeerLimits {
            max_data: self.first_window(),
            max_stream_data_bidi_local: stream,
            max_stream_data_bidi_remote: stream,
            max_stream_data_uni: stream,
            max_streams_bidi: self.max_bidi,
            max_streams_uni: self.max_uni,
        }
    }

    pub(crate) fn clamped(mut self) -> Self {
        const CAP: u64 = 1 << 60;
        for v in [&mut self.max_bidi, &mut self.max_uni, &mut self.stream_window, &mut self.window] {
            *v = (*v).min(CAP);
        }
        self
    }
}

/// Initial limits as one end announced them in its transport parameters (RFC 9000 18.2); "local" and "remote"
/// are meant from the announcing end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// initial_max_data, bytes.
    pub max_data: u64,
    /// initial_max_stream_data_bidi_local, bytes: streams that the announcing end opens.
    pub max_stream_data_bidi_local: u64,
    /// initial_max_stream_data_bidi_remote, bytes: streams that the other end opens.
    pub max_stream_data_bidi_remote: u64,
    /// initial_max_stream_data_uni, bytes.
    pub max_stream_data_uni: u64,
    /// initial_max_streams_bidi.
    pub max_streams_bidi: u64,
    /// initial_max_streams_uni.
    pub max_streams_uni: u64,
}
