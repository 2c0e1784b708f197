//! What a path did so far, for results and people.

/// Counters that a path keeps itself; the flows keep the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathCounters {
    /// UDP payload bytes sent.
    pub(crate) sent_bytes: u64,
    /// UDP payload bytes received in authentic datagrams.
    pub(crate) received_bytes: u64,
    /// Bytes of STREAM data received.
    pub(crate) stream_bytes_received: u64,
}

/// What paths did together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTotals {
    /// UDP payload bytes sent.
    pub sent_bytes: u64,
    /// UDP payload bytes received in authentic datagrams.
    pub received_bytes: u64,
    /// Bytes of STREAM data received, repeated ones too.
    pub stream_bytes_received: u64,
    /// Packets that were sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// ACK and PATH_ACK frames sent for 0-RTT and 1-RTT packets.
    pub ack_frames_sent: u64,
    /// ACK and PATH_ACK frames received for 0-RTT and 1-RTT packets.
    pub ack_frames_received: u64,
}

impl std::ops::Add for PathTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
            stream_bytes_received: self.stream_bytes_received + other.stream_bytes_received,
            packets_sent: self.packets_sent + other.packets_sent,
            packets_lost: self.packets_lost + other.packets_lost,
            ack_frames_sent: self.ack_frames_sent + other.ack_frames_sent,
            ack_frames_received: self.ack_frames_received + other.ack_frames_received,
        }
    }
}
