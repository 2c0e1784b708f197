//! What every congestion controller is told and what it answers.

use std::fmt::Debug;
use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

/// The slow start threshold before the first congestion event: none.
pub const NO_THRESHOLD: u64 = u64::MAX;

/// RTT figures of a path at one moment (RFC 9002 5); all zero before the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttSample {
    /// The newest sample, ack delay taken off where RFC 9002 5.3 says so.
    pub latest: Duration,
    /// Smoothed over the samples as in RFC 9002 5.3.
    pub smoothed: Duration,
    /// Smallest sample over the present way back.
    pub min: Duration,
    /// The path that brought the newest ack; none before the first.
    pub via: Option<PathId>,
    /// How much sooner acks come than by the path's own way back, where they take another (RFC 10069 3.1); else zero. What was
    /// acked counts as in flight for so long, so that windows are those of [`Self::own`].
    pub shortcut: Duration,
    /// The same, known, but not counted yet: the window of the first slow start is one of the acks' round trip. Else zero.
    pub uncounted: Duration,
    /// The newest sample by the path's own way back while acks take another; none without one, or where they take that.
    pub home: Option<HomeSample>,
}

/// A sample of a path's RTT by its own way back, from an ack that came that way beside the one that others take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeSample {
    /// Number of the packet that was acked.
    pub number: u64,
    /// When its ack came.
    pub at: Instant,
    /// From when it left until its ack came.
    pub rtt: Duration,
    /// The smallest such sample of the path.
    pub min: Duration,
    /// The sample of that packet, or of one just before, by the way that acks take; none where the own way was the faster one.
    pub other: Option<Duration>,
}

impl HomeSample {
    /// The part of its round trip by which a packet may be late that met no queue.
    const WAIT_DIVISOR: u32 = 8;

    /// A sample tells of the path as it is for so many of its round trips.
    const ROUNDS: u32 = 2;

    /// True where the packet met no queue on its way there, whatever those say whose acks came another way.
    pub(crate) fn is_prompt(&self) -> bool {
        Self::is_within(self.rtt, self.min)
    }

    /// True where a packet that took so long met no queue, on a way whose smallest round trip is `min`.
    pub(crate) fn is_within(rtt: Duration, min: Duration) -> bool {
        rtt <= min + min / Self::WAIT_DIVISOR
    }

    /// True where so few of its round trips have passed since `at` that it may still hold, or that a newer one may be on its way.
    pub(crate) fn is_within_reach(&self, at: Instant, now: Instant) -> bool {
        now.since(at) < self.min * Self::ROUNDS
    }
}

impl RttSample {
    /// How long packets wait: by how much the smoothed round trip is above the smallest.
    pub(crate) fn wait(&self) -> Duration {
        self.smoothed.saturating_sub(self.min)
    }

    /// The path's own round trip, smoothed: there and back on itself.
    pub fn own(&self) -> Duration {
        self.smoothed + self.shortcut
    }

    /// The same figures as acks by the own way would have shown them.
    pub(crate) fn by_own_way(&self) -> Self {
        let add = |time: Duration| time + self.shortcut + self.uncounted;
        Self {
            latest: add(self.latest),
            smoothed: add(self.smoothed),
            min: add(self.min),
            shortcut: Duration::ZERO,
            ..*self
        }
    }

    /// Which part of the path's own round trip that of its acks is.
    pub(crate) fn ack_part(&self) -> f64 {
        if self.shortcut.is_zero() {
            return 1.0;
        }
        self.smoothed.as_secs_f64() / self.own().as_secs_f64()
    }
}

/// What kept the sender from sending more when the acked packets were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window (or the pacer): the window was in use, so it may grow.
    Window,
    /// The application, flow control or the scheduler: the window may not grow (RFC 9002 7.8).
    Application,
}

/// One ACK frame's news, in sums over the packets it acknowledged for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The path that carried the packets.
    pub path: PathId,
    /// When the frame arrived.
    pub now: Instant,
    /// In-flight bytes newly acked that were sent after the current recovery period began; may be 0.
    pub bytes: u64,
    /// All in-flight bytes newly acked, `bytes` included.
    pub bytes_total: u64,
    /// When the newest acked packet was sent.
    pub sent_at: Instant,
    /// Largest packet number acked.
    pub largest: u64,
    /// The next packet number to be sent: packets of the round that begins now have at least this number.
    pub next_number: u64,
    /// The path's RTT figures, this ACK's sample included.
    pub rtt: RttSample,
    /// Bytes in flight once this ACK is accounted for; those acked by a shortcut count until they would be home the own way.
    pub in_flight: u64,
    /// What limited the sender.
    pub limit: Limit,
    /// How fast bytes were delivered.
    pub delivery: RateSample,
}

/// What became of the bytes in flight while one packet was under way (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered on this path so far.
    pub total_bytes: u64,
    /// The same when the packet left.
    pub prior_bytes: u64,
    /// Over how long their difference was delivered; zero where that cannot be told.
    pub interval: Duration,
    /// Bytes in flight when the packet had left, its own included.
    pub flight_bytes: u64,
    /// Bytes declared lost since it left.
    pub lost_bytes: u64,
    /// Whether the window and the pacer set the pace then, or the sender had too little to send on this path.
    pub limit: Limit,
}

impl RateSample {
    /// Bytes delivered meanwhile.
    pub fn bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.prior_bytes)
    }

    /// The delivery rate; none without an interval.
    pub fn bytes_per_s(&self) -> Option<u64> {
        let rate = (u128::from(self.bytes()) * 1_000_000_000).checked_div(self.interval.as_nanos())?;
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// Packets that one pass of loss detection found lost, in sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When the pass was made.
    pub now: Instant,
    /// Bytes declared lost.
    pub bytes: u64,
    /// Bytes in flight afterwards.
    pub in_flight: u64,
    /// Since the newest of them left; its interval is zero.
    pub delivery: RateSample,
}

/// What showed congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// Packets were declared lost; once per recovery period (RFC 9002 7.3.2).
    Loss,
    /// The peer's CE count rose; once per recovery period (RFC 9002 7.3.2).
    Ecn,
    /// Everything sent over a long span was lost (RFC 9002 7.6). Told after the `Loss` of the same detection, if that
    /// one began a period: it collapses the window and leaves the threshold to `Loss`.
    Persistent,
}

/// A congestion event on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The path that is congested.
    pub path: PathId,
    /// When it was noticed.
    pub now: Instant,
    /// When the newest packet left that shows it, by its loss or its mark.
    pub sent_at: Instant,
    /// What showed it.
    pub kind: CongestionKind,
    /// Bytes declared lost; 0 for ECN.
    pub lost_bytes: u64,
    /// Bytes in flight afterwards.
    pub in_flight: u64,
}

/// The congestion controller of one path. RFC 9002 7: one that a network of others can live with (RFC 8085 3.1).
///
/// The caller keeps the recovery period (RFC 9002 7.3.2): it reports [`CongestionKind::Loss`] or `Ecn` once per period
/// and leaves packets sent before its start out of [`Acked::bytes`]. All sizes are bytes.
pub trait CongestionController: Send + Debug {
    /// The name that configuration and results use.
    fn name(&self) -> &'static str;

    /// Bytes that may be in flight; never below two datagrams.
    fn window(&self) -> u64;

    /// Slow start threshold; [`NO_THRESHOLD`] before the first congestion event.
    fn ssthresh(&self) -> u64;

    /// Bytes per second to pace at, given the smoothed RTT; none leaves it to the pacer's default (RFC 9002 7.7).
    fn pacing_rate(&self, _rtt: Duration) -> Option<u64> {
        None
    }

    /// An in-flight packet of `bytes` left; `in_flight` counts it already.
    fn on_sent(&mut self, _now: Instant, _bytes: u64, _in_flight: u64, _number: u64) {}

    /// An ACK frame acknowledged packets; called once per frame, also when [`Acked::bytes`] is 0.
    fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics);

    /// Packets were declared lost; called at every pass that finds any, before [`Self::on_congestion`] where that follows.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Congestion was noticed.
    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics);

    /// The path's largest datagram is now of `bytes`.
    fn on_max_datagram_bytes(&mut self, bytes: u64);

    /// OLIA's l_r, for its siblings; 0 where the controller does not keep it.
    fn between_losses_bytes(&self) -> u64 {
        0
    }

    /// Adds to the path's metrics what siblings may want to know beyond window, threshold and RTT.
    fn add_to_metrics(&self, _metrics: &mut PathMetrics) {}

    /// Acks come home `times` as late from now on, for a reason that is not on the way there: by a longer way back. A window that
    /// is as many times as large keeps the rate that it was. Nothing for controllers that work in rates.
    fn on_longer_way_back(&mut self, _times: f64) {}

    /// The last congestion event proved false: every packet that showed it was acked after all.
    fn on_spurious(&mut self) {}

    /// True where the rate follows from the window and from how soon acks are home. What was acked by a shortcut then counts as in
    /// flight until it would have been by the path's own way.
    fn is_ack_clocked(&self) -> bool {
        true
    }

    /// True where the controller reads its siblings' metrics.
    fn is_coupled(&self) -> bool {
        false
    }
}

/// Makes one controller for each path; sits in the configuration and is shared by connections.
pub trait ControllerFactory: Send + Sync + Debug {
    /// Name of what it builds.
    fn name(&self) -> &'static str;

    /// A controller for `path`, whose largest datagram is of `max_datagram_bytes`.
    fn build(&self, path: PathId, now: Instant, max_datagram_bytes: u64) -> Box<dyn CongestionController>;
}
