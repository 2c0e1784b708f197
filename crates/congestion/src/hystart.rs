//! HyStart++ (RFC 9406): leaves the first slow start when the RTT rises, through a conservative phase.

use std::time::Duration;

use crate::controller::Acked;

/// RFC 9406 4.3: smallest rise that counts.
const RTT_RISE_MIN: Duration = Duration::from_millis(4);
/// RFC 9406 4.3: largest rise that is asked for.
const RTT_RISE_MAX: Duration = Duration::from_millis(16);
/// RFC 9406 4.3: MIN_RTT_DIVISOR, the share of the last round's RTT that counts as a rise.
const RTT_RISE_DIVISOR: u32 = 8;
/// RFC 9406 4.3: N_RTT_SAMPLE, samples a round needs before it is judged.
const SAMPLES: u32 = 8;
/// RFC 9406 4.3: CSS_GROWTH_DIVISOR.
const CONSERVATIVE_DIVISOR: u64 = 4;
/// RFC 9406 4.3: CSS_ROUNDS.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Where slow start stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HyStartPhase {
    /// Doubling per round.
    #[default]
    SlowStart,
    /// Growing a quarter as fast, to see whether the rise was a false alarm.
    Conservative,
    /// Done: congestion avoidance begins.
    Over,
}

impl HyStartPhase {
    /// True when slow start is done.
    pub(crate) fn is_over(self) -> bool {
        self == Self::Over
    }
}

/// One path's HyStart++ state.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyStart {
    phase: HyStartPhase,
    /// Packets from this number on belong to the next round.
    round_end: u64,
    rtt_min_last: Option<Duration>,
    rtt_min: Option<Duration>,
    samples: u32,
    /// The round minimum at which the conservative phase began.
    baseline: Option<Duration>,
    /// Conservative rounds begun.
    rounds: u32,
    /// The path's smallest RTT at the last ACK.
    least: Duration,
}

impl HyStart {
    /// How far `acked` bytes may grow the window. Senders pace, so L is infinite (RFC 9406 4.3).
    pub(crate) fn growth(&self, acked: u64) -> u64 {
        if self.phase == HyStartPhase::Conservative { acked / CONSERVATIVE_DIVISOR } else { acked }
    }

    /// Counts one ACK frame's RTT sample and moves between phases.
    pub(crate) fn on_acked(&mut self, ack: &Acked) -> HyStartPhase {
        if self.phase == HyStartPhase::Over {
            return HyStartPhase::Over;
        }
        if ack.rtt.min > self.least {
            // It never rises but where acks come back another way: what was measured before compares with nothing.
            (self.phase, self.baseline) = (HyStartPhase::SlowStart, None);
            (self.rtt_min_last, self.rtt_min, self.samples) = (None, None, 0);
        }
        self.least = ack.rtt.min;
        // RFC 9406 4.2: a round ends when a packet sent after its start is acked.
        if ack.largest >= self.round_end {
            self.begin_round(ack.next_number);
            if self.phase == HyStartPhase::Over {
                return HyStartPhase::Over;
            }
        }
        self.samples += 1;
        let current = self.rtt_min.map_or(ack.rtt.latest, |m| m.min(ack.rtt.latest));
        self.rtt_min = Some(current);
        if self.samples >= SAMPLES {
            self.judge(current);
        }
        self.phase
    }

    fn begin_round(&mut self, next_number: u64) {
        if self.phase == HyStartPhase::Conservative {
            // RFC 9406 4.2: the round in which the phase began counts, however partial.
            if self.rounds >= CONSERVATIVE_ROUNDS {
                self.phase = HyStartPhase::Over;
                return;
            }
            self.rounds += 1;
        }
        self.rtt_min_last = self.rtt_min;
        self.rtt_min = None;
        self.samples = 0;
        self.round_end = next_number;
    }

    fn judge(&mut self, current: Duration) {
        match (self.phase, self.rtt_min_last, self.baseline) {
            (HyStartPhase::SlowStart, Some(last), _) => {
                let rise = (last / RTT_RISE_DIVISOR).clamp(RTT_RISE_MIN, RTT_RISE_MAX);
                if current >= last + rise {
                    self.phase = HyStartPhase::Conservative;
                    self.baseline = Some(current);
                    self.rounds = 1;
                }
            }
            // RFC 9406 4.2: the RTT fell again, the exit was premature.
            (HyStartPhase::Conservative, _, Some(baseline)) if current < baseline => {
                self.phase = HyStartPhase::SlowStart;
                self.baseline = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "hystart/tests.rs"]
mod tests;
