//! Counters of a send flow, and the snapshot of them that statistics show.

use std::time::Duration;

use super::SendFlow;

/// Sums over a flow's life; they steer nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) packets_acked: u64,
    pub(crate) packets_lost: u64,
    pub(crate) bytes_lost: u64,
    pub(crate) spurious: u64,
    pub(crate) ack_frames_received: u64,
    pub(crate) congestion_events: u64,
    pub(crate) persistent: u64,
    pub(crate) timeouts: u64,
    /// Share of the latest packets that were lost, of 2^16.
    recent_loss: u32,
}

/// One packet moves the share of recent losses by a sixteenth.
const RECENT_SHIFT: u32 = 4;

impl Counters {
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.packets_sent += 1;
        self.bytes_sent += bytes;
    }

    /// Counts packets that arrived.
    pub(crate) fn on_acked(&mut self, packets: u64) {
        self.packets_acked += packets;
        if self.recent_loss >> RECENT_SHIFT > 0 {
            self.forget_losses(packets);
        }
    }

    #[inline(never)]
    fn forget_losses(&mut self, packets: u64) {
        // After so many nothing is left of older losses.
        for _ in 0..packets.min(256) {
            self.recent_loss -= self.recent_loss >> RECENT_SHIFT;
        }
    }

    /// `packets` of `bytes` in all were lost.
    pub(crate) fn on_lost(&mut self, packets: u64, bytes: u64) {
        self.packets_lost += packets;
        self.bytes_lost += bytes;
        for _ in 0..packets.min(256) {
            self.recent_loss += ((1 << 16) - self.recent_loss) >> RECENT_SHIFT;
        }
    }
}

/// A send flow's figures at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendStats {
    /// Packets sent, of all spaces.
    pub packets_sent: u64,
    /// Their bytes of UDP payload, wherever they went.
    pub sent_bytes: u64,
    /// Packets that an ack named.
    pub packets_acked: u64,
    /// Packets declared lost; spurious ones included, discarded ones not.
    pub packets_lost: u64,
    /// Bytes of the lost packets.
    lost_bytes: u64,
    /// Packets declared lost whose ack came after all.
    pub packets_spurious: u64,
    /// ACK and PATH_ACK frames received for 0-RTT and 1-RTT packets of this flow.
    pub ack_frames_received: u64,
    /// Times that the window was cut.
    pub congestion_events: u64,
    /// Times that the window collapsed (RFC 9002 7.6).
    pub(crate) persistent_congestions: u64,
    /// Probe time-outs that passed.
    pub timeouts: u64,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// What was in flight as the packets left that the smoothed RTT tells of, bytes.
    pub rtt_flight_bytes: u64,
    /// RTT variation (RFC 9002 5.3).
    pub rtt_var: Duration,
    /// Smallest RTT over the present way back.
    pub rtt_min: Option<Duration>,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Delivery rate, bits per second; none before the first sample.
    pub delivery_rate_bps: Option<u64>,
    /// Share of the latest packets, some sixteen, that were lost: parts per thousand.
    pub loss_per_mille: u32,
}

impl SendFlow {
    /// The figures now.
    #[inline(always)]
    pub(crate) fn stats(&self) -> SendStats {
        let c = &self.counters;
        SendStats {
            packets_sent: c.packets_sent,
            sent_bytes: c.bytes_sent,
            packets_acked: c.packets_acked,
            packets_lost: c.packets_lost,
            lost_bytes: c.bytes_lost,
            packets_spurious: c.spurious,
            ack_frames_received: c.ack_frames_received,
            congestion_events: c.congestion_events,
            persistent_congestions: c.persistent,
            timeouts: c.timeouts,
            rtt: self.rtt.measured(),
            rtt_flight_bytes: self.rate.rtt_flight_bytes(),
            rtt_var: self.rtt.var(),
            rtt_min: self.rtt.measured().map(|_| self.rtt.min()),
            window_bytes: self.window(),
            in_flight_bytes: self.in_flight,
            delivery_rate_bps: self.rate.estimate_bps(),
            loss_per_mille: (c.recent_loss * 1000) >> 16,
        }
    }
}
