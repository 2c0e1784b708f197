//! BBR, version 3 (draft-ietf-ccwg-bbr): sends as fast as bytes are delivered and keeps about one round trip in flight.
//!
//! It is *uncoupled*: each path has a BBR of its own, so several paths over one bottleneck take several flows' shares;
//! `coupled.rs` makes those of one queue act as one.
//! Where the draft lowers its short-term bounds after any round with a loss, this does after one that lost more than the 2 %
//! that it allows a probe: else random loss of 1 % takes a share of the bandwidth each round until the next probe. And where
//! the draft counts any loss of more than 2 %, this allows for chance while no queue shows, where some other thing than the
//! probe may be the reason.
//! Where the draft acts for each lost packet, this acts for each pass of loss detection, by its newest lost packet. A CE
//! mark counts like a round that lost too much: the draft leaves classic ECN open, RFC 3168 asks for an answer.

mod coupled;
mod cycle;
mod model;
mod together;

use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, PathId};

use crate::controller::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, Limit, Lost, NO_THRESHOLD,
};
use crate::window::initial_window;
pub(crate) use coupled::CoupledBbrFactory;
pub(crate) use cycle::BbrState;
use cycle::{AckPhase, Cycle, FullPipe};
use model::{Bounds, ExtraAcked, LOSS_MAX, MaxBandwidth, MinRtt, Rounds, share};
use together::Together;

/// PacingMarginPercent: paced a little slower than believed, so that no queue stays.
const PACING_MARGIN: f64 = 0.99;
/// Beta: what too much loss leaves of what was in flight.
const BETA: f64 = 0.7;
/// 1 - Headroom: what a cruising flow uses of what it could.
const HEADROOM: f64 = 0.85;
/// MinPipeCwnd: a window that the pipe never needs less than, datagrams.
const PIPE_MIN_DATAGRAMS: u64 = 4;
/// Losses in one round of Startup that may show a full pipe, datagrams.
const STARTUP_LOSSES: u64 = 6;
/// ProbeRTTDuration: how long the window stays small, so that queues drain.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Spreads what dice begin with over all bits.
const DICE: u64 = 0x9E37_79B9_7F4A_7C15;
/// Largest burst that a batch of datagrams makes, bytes.
const QUANTUM_MAX: u64 = 65_536;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BbrFactory;

impl ControllerFactory for BbrFactory {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn build(&self, path: PathId, now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Bbr::new(path, now, mss))
    }
}

/// One path's BBR.
#[derive(Clone, Debug)]
struct Bbr {
    mss: u64,
    window: u64,
    /// Bytes per second; 0 before the first rate sample.
    pacing: u64,
    phase: BbrState,
    rounds: Rounds,
    bandwidth: MaxBandwidth,
    bounds: Bounds,
    rtt: MinRtt,
    extra: ExtraAcked,
    full: FullPipe,
    cycle: Cycle,
    /// Bytes lost in the present round.
    lost_bytes: u64,
    visit: Visit,
    dice: u64,
    undo: Undo,
    /// Siblings that it is coupled with; none where nobody tells it of any.
    together: Together,
}

/// What a loss that proves false gives back (BBRSaveStateUponLoss).
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// As it was before the losses that were told last.
    newest: Option<Before>,
    /// As it was before the loss episode under way.
    episode: Option<Before>,
}

/// The model before losses.
#[derive(Clone, Copy, Debug)]
struct Before {
    phase: BbrState,
    window: u64,
    bounds: Bounds,
    full: FullPipe,
    cycle: Cycle,
}

/// A visit to ProbeRTT, and the pause of the application that may stand for one.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    /// When it may end; set once little enough is in flight.
    until: Option<Instant>,
    /// A whole round passed since then.
    round_done: bool,
    /// The window to return to.
    window: u64,
    /// Nothing was in flight when the newest burst began.
    idle_restart: bool,
}

impl Bbr {
    /// A controller with an initial window for datagrams of `mss` bytes.
    fn new(path: PathId, now: Instant, mss: u64) -> Self {
        let mss = mss.max(1);
        Self {
            mss,
            window: initial_window(mss),
            pacing: 0,
            phase: BbrState::Startup,
            rounds: Rounds::default(),
            bandwidth: MaxBandwidth::default(),
            bounds: Bounds::default(),
            rtt: MinRtt::default(),
            extra: ExtraAcked::default(),
            full: FullPipe::default(),
            cycle: Cycle::default(),
            lost_bytes: 0,
            visit: Visit::default(),
            dice: u64::from(path.0).wrapping_add(now.as_nanos()).wrapping_mul(DICE) | 1,
            undo: Undo::default(),
            together: Together::default(),
        }
    }

    /// The bandwidth it reckons with, bytes per second.
    fn bandwidth(&self) -> u64 {
        self.bounds.bandwidth(self.together.part(self.bandwidth.get()))
    }

    /// Startup goes on from what is left without this part, as if there had been no more.
    fn give(&mut self, part: f64) {
        let kept = 1.0 - part;
        self.window = share(self.window, kept).max(self.window_min());
        self.pacing = share(self.pacing, kept);
        self.bandwidth.scale(kept);
        self.full.scale(kept);
        self.together.on_given(self.bounds.delivered_bytes());
    }

    /// Bytes in flight that `gain` round trips of the smallest RTT hold; none before there is a model.
    fn pipe(&self, bandwidth: u64, gain: f64) -> Option<u64> {
        let rtt = self.rtt.get().filter(|_| bandwidth > 0)?;
        Some(share(bandwidth, gain * rtt.as_secs_f64()))
    }

    fn window_min(&self) -> u64 {
        PIPE_MIN_DATAGRAMS * self.mss
    }

    /// BBRInflight: that, and what batching, delayed acks and a small window need on top.
    fn inflight(&self, bandwidth: u64, gain: f64) -> u64 {
        let Some(pipe) = self.pipe(bandwidth, gain) else { return initial_window(self.mss) };
        let quantum = (self.pacing / 1000).clamp(self.mss, QUANTUM_MAX);
        let up = if self.phase == BbrState::Up { self.cycle.part(2 * self.mss) } else { 0 };
        pipe.max(3 * quantum).max(self.window_min()) + up
    }

    /// What a flow that leaves headroom to others has in flight at most.
    fn inflight_with_headroom(&self) -> u64 {
        match self.bounds.inflight_long {
            u64::MAX => u64::MAX,
            long => long.min(share(long, HEADROOM).min(long.saturating_sub(self.mss)).max(self.window_min())),
        }
    }

    fn probe_rtt_window(&self) -> u64 {
        self.pipe(self.bandwidth(), BbrState::ProbeRtt.window_gain()).unwrap_or(0).max(self.window_min())
    }

    fn take_samples(&mut self, ack: &Acked) -> u64 {
        let delivery = &ack.delivery;
        // A sample over less than a round trip measures how acks came, not how packets did.
        let is_sound =
            self.rtt.get().is_none_or(|min| delivery.interval >= min) && self.together.is_of_this_share(delivery);
        let rate = delivery.bytes_per_s().filter(|_| is_sound).unwrap_or(0);
        self.bounds.on_acked(delivery, rate);
        self.rounds.on_acked(delivery);
        if self.rounds.started {
            self.cycle.rounds += 1;
        }
        self.together.on_sample(rate);
        if delivery.limit == Limit::Window || rate >= self.bandwidth.get() {
            self.bandwidth.on_sample(rate);
            self.together.count(rate);
        }
        let limit = self.rtt.loss_limit(self.mss);
        self.bounds.adapt(self.phase.is_seeking(), self.bandwidth.get(), self.window, limit);
        let bandwidth = self.bandwidth();
        self.extra.on_acked(ack.now, ack.bytes_total, bandwidth, self.window, self.rounds.started);
        rate
    }

    fn check_startup(&mut self, ack: &Acked, rate: u64) {
        if self.rounds.started && !self.full.now && ack.delivery.limit == Limit::Window && rate > 0 {
            self.full.on_round(rate);
        }
        if self.phase != BbrState::Startup {
            return;
        }
        if self.rounds.started {
            let losses = std::mem::take(&mut self.lost_bytes);
            if losses >= STARTUP_LOSSES * self.mss && losses > share(ack.delivery.bytes() + losses, LOSS_MAX) {
                self.leave_startup();
            }
        }
        if self.full.reached {
            self.phase = BbrState::Drain;
        }
    }

    /// Loss or marks end Startup: what came through is what fits.
    fn leave_startup(&mut self) {
        self.full.set();
        let fits = self.pipe(self.bandwidth.get(), 1.0).unwrap_or(0).max(self.bounds.inflight_latest());
        self.bounds.inflight_long = fits.max(self.window_min());
    }

    fn start_down(&mut self, now: Instant, delivered_bytes: u64) {
        self.bounds.reset_signals();
        // A xorshift is dice enough to keep flows from probing in step.
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.cycle.restart(now, self.dice >> 11);
        self.rounds.restart(delivered_bytes);
        self.phase = BbrState::Down;
    }

    fn start_refill(&mut self, delivered_bytes: u64) {
        self.bounds.reset_short();
        self.cycle.refill();
        self.rounds.restart(delivered_bytes);
        self.phase = BbrState::Refill;
    }

    fn start_up(&mut self, now: Instant, delivered_bytes: u64, rate: u64) {
        self.cycle.probing = true;
        self.cycle.acks = AckPhase::Starting;
        self.cycle.since = now;
        self.rounds.restart(delivered_bytes);
        self.full.restart(rate);
        self.cycle.steepen(self.window, self.mss);
        self.phase = BbrState::Up;
    }

    /// AdaptLongTermModel: what this ack says of the upper bound.
    fn adapt_upper(&mut self, ack: &Acked) {
        let round = self.rounds.started;
        if self.cycle.acks == AckPhase::Starting && round {
            self.cycle.acks = AckPhase::Feedback;
        }
        if self.cycle.acks == AckPhase::Stopping && round {
            self.cycle.probing = false;
            self.cycle.acks = AckPhase::Init;
            if self.phase.is_probe_bandwidth() && ack.delivery.limit == Limit::Window {
                self.bandwidth.advance();
                self.together.advance();
            }
        }
        let long = self.bounds.inflight_long;
        if long == u64::MAX
            || self.rtt.loss_limit(self.mss).is_passed(ack.delivery.lost_bytes, ack.delivery.flight_bytes)
        {
            return;
        }
        self.bounds.inflight_long = long.max(ack.delivery.flight_bytes);
        if self.phase == BbrState::Up && ack.limit == Limit::Window && self.window >= self.bounds.inflight_long {
            self.bounds.inflight_long += self.cycle.climb(ack.bytes_total, self.mss);
            if round {
                self.cycle.steepen(self.window, self.mss);
            }
        }
    }

    fn step(&mut self, ack: &Acked, rate: u64) {
        let delivered = ack.delivery.total_bytes;
        if self.phase == BbrState::Drain && ack.in_flight <= self.inflight(self.bandwidth(), 1.0) {
            self.start_down(ack.now, delivered);
        }
        if !self.full.reached {
            return;
        }
        self.adapt_upper(ack);
        let target = self.inflight(self.bandwidth(), 1.0).min(self.bounds.inflight_long);
        match self.phase {
            BbrState::Down | BbrState::Cruise if self.cycle.is_due(ack.now, target / self.mss) => {
                self.start_refill(delivered);
            }
            BbrState::Down => {
                let drained = ack.in_flight <= self.inflight(self.bandwidth.get(), 1.0);
                if drained && ack.in_flight <= self.inflight_with_headroom() {
                    self.phase = BbrState::Cruise;
                }
            }
            BbrState::Refill if self.rounds.started => self.start_up(ack.now, delivered, rate),
            BbrState::Up => {
                if ack.limit == Limit::Window && self.window >= self.bounds.inflight_long {
                    // The bound is in the way: what it hides is not known yet.
                    self.full.restart(rate);
                } else if self.full.now {
                    self.start_down(ack.now, delivered);
                }
            }
            _ => {}
        }
    }

    fn check_probe_rtt(&mut self, ack: &Acked) {
        let delivered = ack.delivery.total_bytes;
        self.rtt.on_sample(ack.now, &ack.rtt);
        if self.phase != BbrState::ProbeRtt && self.rtt.expired && !self.visit.idle_restart {
            self.visit = Visit { window: self.window, ..Visit::default() };
            self.cycle.acks = AckPhase::Stopping;
            self.rounds.restart(delivered);
            self.phase = BbrState::ProbeRtt;
        }
        if ack.bytes_total > 0 {
            self.visit.idle_restart = false;
        }
        if self.phase != BbrState::ProbeRtt {
            return;
        }
        match self.visit.until {
            None if ack.in_flight <= self.probe_rtt_window() => {
                self.visit.until = Some(ack.now + PROBE_RTT_TIME);
                self.rounds.restart(delivered);
            }
            None => {}
            Some(until) => {
                self.visit.round_done |= self.rounds.started;
                if self.visit.round_done && ack.now >= until {
                    self.leave_probe_rtt(ack.now, delivered);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Instant, delivered_bytes: u64) {
        self.rtt.recent_at = now;
        self.window = self.window.max(self.visit.window);
        self.bounds.reset_short();
        if self.full.reached {
            self.start_down(now, delivered_bytes);
            self.phase = BbrState::Cruise;
        } else {
            self.phase = BbrState::Startup;
        }
    }

    fn set_pacing(&mut self, gain: f64) {
        let rate = share(self.bandwidth(), gain * PACING_MARGIN);
        if rate > 0 && (self.full.reached || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn set_window(&mut self, ack: &Acked) {
        let extra = self.cycle.part(self.extra.get());
        let most = self.inflight(self.bandwidth(), self.phase.window_gain()).saturating_add(extra);
        let grown = self.window.saturating_add(ack.bytes_total);
        if self.full.reached {
            self.window = grown.min(most);
        } else if self.window < most || ack.delivery.total_bytes < initial_window(self.mss) {
            self.window = grown;
        }
        let cap = match self.phase {
            BbrState::Down | BbrState::Refill | BbrState::Up => self.bounds.inflight_long,
            BbrState::Cruise => self.inflight_with_headroom(),
            BbrState::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_window()),
            BbrState::Startup | BbrState::Drain => u64::MAX,
        };
        self.window = self.window.min(cap.min(self.bounds.inflight_short())).max(self.window_min());
    }

    /// HandleInflightTooHigh: the probe found the limit.
    fn on_too_much(&mut self, now: Instant, delivered_bytes: u64, flight_bytes: u64, limit: Limit) {
        self.cycle.probing = false;
        if limit == Limit::Window {
            let target = self.inflight(self.bandwidth(), 1.0).min(self.bounds.inflight_long);
            self.bounds.inflight_long = flight_bytes.max(share(target, BETA)).max(self.window_min());
        }
        if self.phase == BbrState::Up {
            self.start_down(now, delivered_bytes);
        }
    }
}

impl CongestionController for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// None while Startup lasts, afterwards the window: there is no slow start any more.
    fn ssthresh(&self) -> u64 {
        if self.full.reached { self.window } else { NO_THRESHOLD }
    }

    fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        // Until the pipe is known to be full, a sender of a packet now and then is not held to that.
        let least = if self.full.reached && self.pacing > 0 { 0 } else { initial_window(self.mss) };
        let seconds = rtt.max(Duration::from_millis(1)).as_secs_f64();
        Some(self.pacing.max((least as f64 / seconds * BbrState::Startup.pacing_gain()) as u64))
    }

    fn is_ack_clocked(&self) -> bool {
        false
    }

    fn on_sent(&mut self, _now: Instant, bytes: u64, in_flight: u64, _number: u64) {
        if in_flight == bytes {
            // HandleRestartFromIdle
            self.visit.idle_restart = true;
            if self.phase.is_probe_bandwidth() {
                self.set_pacing(1.0);
            }
        }
    }

    fn on_acked(&mut self, ack: &Acked, _shared: &SharedPathMetrics) {
        let rate = self.take_samples(ack);
        self.check_startup(ack, rate);
        self.step(ack, rate);
        self.check_probe_rtt(ack);
        self.bounds.advance(&ack.delivery, rate);
        self.set_pacing(self.phase.pacing_gain());
        self.set_window(ack);
    }

    fn on_lost(&mut self, lost: &Lost) {
        let delivery = &lost.delivery;
        let Self { phase, window, bounds, full, cycle, .. } = *self;
        self.undo.newest = Some(Before { phase, window, bounds, full, cycle });
        self.lost_bytes += lost.bytes;
        self.bounds.on_congestion(lost.bytes);
        self.window = self.window.saturating_sub(lost.bytes).max(self.window_min());
        if self.cycle.probing && self.rtt.loss_limit(self.mss).is_passed(delivery.lost_bytes, delivery.flight_bytes) {
            // InflightAtLoss: what was in flight when the share lost went beyond the limit.
            let flight = delivery.flight_bytes.saturating_sub(self.mss) as f64;
            let lost_before = delivery.lost_bytes.saturating_sub(self.mss) as f64;
            let fits = flight + (LOSS_MAX * flight - lost_before) / (1.0 - LOSS_MAX);
            self.on_too_much(lost.now, delivery.total_bytes, fits.max(0.0) as u64, delivery.limit);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, _shared: &SharedPathMetrics) {
        match event.kind {
            CongestionKind::Loss => self.undo.episode = self.undo.newest,
            CongestionKind::Ecn => {
                self.undo.episode = None;
                self.bounds.on_congestion(u64::MAX);
                if self.phase == BbrState::Startup {
                    self.leave_startup();
                } else if self.cycle.probing {
                    let target = share(self.inflight(self.bandwidth(), 1.0), BETA);
                    self.cycle.probing = false;
                    self.bounds.inflight_long = event.in_flight.max(target).max(self.window_min());
                    if self.phase == BbrState::Up {
                        self.start_down(event.now, self.bounds.delivered_bytes());
                    }
                }
            }
            CongestionKind::Persistent => {
                self.undo.episode = None;
                self.window = 2 * self.mss;
            }
        }
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        let mss = mss.max(1);
        let untouched = self.pacing == 0 && self.window == initial_window(self.mss);
        self.mss = mss;
        self.window = if untouched { initial_window(mss) } else { self.window.max(2 * mss) };
    }

    fn on_spurious(&mut self) {
        let Some(before) = self.undo.episode.take() else { return };
        // BBRHandleSpuriousLossDetection
        self.lost_bytes = 0;
        self.bounds.restore(&before.bounds);
        self.window = self.window.max(before.window);
        self.full.restart(0);
        if self.phase == BbrState::ProbeRtt || self.phase == before.phase {
            return;
        }
        match before.phase {
            BbrState::Startup => (self.phase, self.full) = (BbrState::Startup, before.full),
            BbrState::Up => (self.phase, self.cycle) = (BbrState::Up, before.cycle),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "bbr/tests.rs"]
mod tests;
