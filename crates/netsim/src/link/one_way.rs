//! One direction of a link: offered datagrams come out later, changed, twice or not at all.

use std::time::Duration;

use plait_base::{Ecn, Instant, Random};

use crate::link::aqm::{Care, Red};
use crate::link::config::{Aqm, LinkConfig, LinkState, LossPlace, Service};
use crate::link::live::{LiveQueue, Management, Taking};
use crate::link::pipe::Pipe;
use crate::link::planned::{PlannedQueue, fits};
use crate::link::rate::{Rate, Transmitter};
use crate::link::stats::LinkStats;
use crate::link::verdict::{DropCause, Outcome, Release, Verdict};

/// One direction of a link. Calls must come with non-decreasing `now`.
///
/// Two ways of service share one interface. Where the fate of a datagram depends only on what came before it,
/// [`Link::offer`] answers with its arrival times at once and no timer runs. CoDel, FQ-CoDel, [`Service::Live`] and a rate of 0
/// answer [`Verdict::Queued`]; the caller then keeps the datagram and asks [`Link::poll`] at [`Link::deadline`].
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    stats: LinkStats,
    pipe: Pipe,
    transmitter: Transmitter,
    /// When the last datagram has left, of those that were planned and those that have been sent.
    free_at: Instant,
    planned: PlannedQueue,
    live: LiveQueue,
    red: Red,
    cut_at: Option<Instant>,
}

impl Link {
    /// A link with these settings; a trace begins at the origin of time.
    pub fn new(config: LinkConfig, random: Random) -> Self {
        // Forked from a copy, so that the wire draws the same with RED and without.
        let red = Red::new(random.clone().fork());
        Self {
            config,
            stats: LinkStats::default(),
            pipe: Pipe::new(random),
            transmitter: Transmitter::default(),
            free_at: Instant::ZERO,
            planned: PlannedQueue::default(),
            live: LiveQueue::default(),
            red,
            cut_at: None,
        }
    }

    /// The present settings.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// What happened so far.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// When the link last went down: datagrams offered before and due to depart after this are lost, also those
    /// whose arrival has been announced already.
    pub fn cut_at(&self) -> Option<Instant> {
        self.cut_at
    }

    /// Bytes that wait at `now`, header overhead included, without the datagram being sent.
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        self.planned.advance(now);
        self.planned.bytes() + self.live.bytes()
    }

    /// Datagrams that wait at `now`, without the one being sent.
    pub fn queued_packets(&mut self, now: Instant) -> usize {
        self.planned.advance(now);
        self.planned.packets() + self.live.packets()
    }

    /// Datagrams whose fate is still open: they wait in a real queue or are being sent from one.
    pub fn pending(&self) -> usize {
        self.live.pending()
    }

    /// How long a datagram offered at `now` would wait before being sent.
    pub fn queue_time(&self, now: Instant) -> Duration {
        self.free_at.since(now).saturating_add(self.live.wait(now, &self.config.rate))
    }

    /// A datagram of `size` bytes, marked `ecn`, enters at `now`.
    pub fn offer(&mut self, now: Instant, size: usize, ecn: Option<Ecn>) -> Verdict {
        self.offer_flow(now, size, ecn, 0)
    }

    /// Whether the queue treats flows apart, so that [`Link::offer_flow`] wants to know the flow.
    pub(crate) fn heeds_flows(&self) -> bool {
        match self.config.aqm {
            Aqm::FqCoDel(_) => true,
            Aqm::DropTail | Aqm::Red(_) | Aqm::CoDel(_) => false,
        }
    }

    /// As [`Link::offer`], of a flow: a hash of what tells it from others.
    pub fn offer_flow(&mut self, now: Instant, size: usize, ecn: Option<Ecn>, flow: u64) -> Verdict {
        let bytes = size as u64 + u64::from(self.config.overhead_bytes);
        self.stats.offered_packets += 1;
        self.stats.offered_bytes += bytes;
        self.serve(now);
        match self.admit(now, bytes, ecn) {
            Err(cause) => {
                self.stats.on_drop(cause);
                Verdict::Dropped(cause)
            }
            Ok(ecn) if self.is_live() => self.enqueue(now, bytes, ecn, flow),
            Ok(ecn) => self.plan(now, bytes, ecn),
        }
    }

    /// When [`Link::poll`] has something to do; none while the queue is empty or stands still.
    pub fn deadline(&self) -> Option<Instant> {
        self.live.deadline()
    }

    /// The next datagram to leave the queue by `now`; to be called until it answers none.
    pub fn poll(&mut self, now: Instant) -> Option<Release> {
        self.serve(now);
        self.live.poll_released()
    }

    /// Sends from the real queue what leaves by `now`.
    fn serve(&mut self, now: Instant) {
        loop {
            if let Some(sent) = self.live.poll_sent(now) {
                self.free_at = sent.at;
                let outcome = self.pipe.carry(&self.config, &mut self.stats, (sent.at, sent.bytes, sent.ecn));
                self.live.release(Release { ticket: sent.ticket, outcome });
                self.take(sent.at);
            } else if let Some(gate) = self.live.open_gate(now) {
                self.take(gate);
            } else {
                return;
            }
        }
    }

    /// Changes settings at `now`. What has been announced stands, except what a link going down cuts off: see
    /// [`Link::cut_at`].
    pub fn change(&mut self, now: Instant, edit: impl FnOnce(&mut LinkConfig)) {
        let (rate, state) = (self.config.rate.clone(), self.config.state);
        edit(&mut self.config);
        if self.config.rate != rate {
            if matches!(self.config.rate, Rate::Trace(_)) {
                self.transmitter.restart(now);
            }
            self.live.on_rate(now, &self.config.rate, &mut self.transmitter);
        }
        if state == LinkState::Up && self.config.state == LinkState::Down {
            self.cut_at = Some(now);
            self.planned.clear();
            self.free_at = self.free_at.min(now);
            self.live.flush(&mut self.stats);
        }
        self.take(now);
    }

    /// Whether datagrams are queued for real.
    fn is_live(&self) -> bool {
        let decides_at_exit = match self.config.aqm {
            Aqm::CoDel(_) | Aqm::FqCoDel(_) => true,
            Aqm::DropTail | Aqm::Red(_) => false,
        };
        self.config.service == Service::Live
            || decides_at_exit
            || self.config.rate == Rate::Fixed(0)
            || !self.live.is_empty()
    }

    /// Whether a datagram may enter, and with what mark.
    fn admit(&mut self, now: Instant, bytes: u64, ecn: Option<Ecn>) -> Result<Option<Ecn>, DropCause> {
        if self.config.state == LinkState::Down {
            return Err(DropCause::Down);
        }
        if bytes > u64::from(self.config.mtu_bytes) {
            return Err(DropCause::TooBig);
        }
        if self.pipe.loses(&self.config, LossPlace::Entry, (now, bytes)) {
            return Err(DropCause::Loss);
        }
        self.planned.advance(now);
        let queued = (self.planned.bytes() + self.live.bytes(), self.planned.packets() + self.live.packets());
        let idle = self.free_at <= now && self.live.is_idle();
        if !idle && !fits(&self.config.queue, bytes, queued, || self.queue_time(now)) {
            return Err(DropCause::QueueFull);
        }
        let Aqm::Red(red) = &self.config.aqm else { return Ok(ecn) };
        let slot = self.config.rate.time_of(1500);
        let idle_since = self.live.is_idle().then_some(self.free_at).filter(|since| *since < now);
        match self.red.on_enqueue(red, (now, idle_since, slot), queued.0) {
            Care::Pass => Ok(ecn),
            Care::Signal if ecn.is_some() => {
                self.stats.marked += 1;
                Ok(Some(Ecn::Ce))
            }
            Care::Signal | Care::Drop => Err(DropCause::Aqm),
        }
    }

    fn plan(&mut self, now: Instant, bytes: u64, ecn: Option<Ecn>) -> Verdict {
        let (begin, end) = self.transmitter.send(&self.config.rate, now.max(self.free_at), bytes);
        self.free_at = end;
        self.stats.on_wait(begin.since(now));
        if begin > now {
            self.planned.push(begin, bytes);
            self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(self.planned.bytes());
        }
        match self.pipe.carry(&self.config, &mut self.stats, (end, bytes, ecn)) {
            Outcome::Forward(delivery) => Verdict::Forward(delivery),
            Outcome::Dropped(cause) => Verdict::Dropped(cause),
        }
    }

    fn enqueue(&mut self, now: Instant, bytes: u64, ecn: Option<Ecn>, flow: u64) -> Verdict {
        let (live, mut taking) = self.taking();
        let ticket = live.push(now, (bytes, ecn, flow), &mut taking);
        self.take(now);
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(self.live.bytes());
        Verdict::Queued(ticket)
    }

    /// Lets the queue send its next datagram, not before what was planned has left.
    fn take(&mut self, at: Instant) {
        let free_at = self.free_at;
        let (live, mut taking) = self.taking();
        live.take(at.max(free_at), &mut taking);
    }

    fn taking(&mut self) -> (&mut LiveQueue, Taking<'_>) {
        let Self { config, live, transmitter, stats, .. } = self;
        let management = match &config.aqm {
            Aqm::CoDel(codel) => Management::CoDel(codel),
            Aqm::FqCoDel(fq) => Management::FqCoDel(fq),
            Aqm::DropTail | Aqm::Red(_) => Management::None,
        };
        (live, Taking { rate: &config.rate, management, transmitter, stats })
    }
}
