//! One direction of a link: its values, changes to them, and the link that they make.

use std::time::Duration;

use plait_netsim::link::{
    Aqm, CoDelConfig, FqCoDelConfig, Jitter, LinkConfig, LinkState, Loss, Order, QueueLimit, Rate, RedConfig, Reorder,
    Service, Trace,
};

use super::error::ScenarioError;
use super::reader::Reader;
use super::traces::Traces;

/// UDP and IPv4 headers.
pub const OVERHEAD_BYTES: u32 = 28;
/// A shorter queue turns a handshake's burst into loss.
const QUEUE_PACKETS_MIN: u64 = 10;

/// Bound of a queue as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueuePlan {
    /// As many bytes as the rate sends in this time, but at least ten full packets.
    Time(Duration),
    /// At most so many bytes.
    Bytes(u64),
    /// At most so many packets.
    Packets(u64),
}

/// Who manages a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AqmPlan {
    /// Nobody: what finds no room is dropped.
    #[default]
    DropTail,
    /// CoDel (RFC 8289).
    CoDel(CoDelConfig),
    /// RED (Floyd and Jacobson 1993).
    Red(RedPlan),
    /// CoDel in a queue for each flow (RFC 8290).
    FqCoDel(FqCoDelConfig),
}

/// RED as written: where a threshold is missing, the queue that it manages says it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedPlan {
    /// Mean queue in bytes below which nothing is dropped; else a third of `max_bytes`.
    pub min_bytes: Option<u64>,
    /// Mean queue in bytes at which a share of `drop_max` is dropped, and at twice which all is; else three times
    /// `min_bytes`. Without either all is dropped at the bound of the queue: they are a sixth and a half of it.
    pub max_bytes: Option<u64>,
    /// Share dropped at `max_bytes`; else that of [`RedConfig`].
    pub drop_max: Option<f64>,
    /// Weight of a new sample in the mean; else that of [`RedConfig`].
    pub weight: Option<f64>,
}

impl RedPlan {
    /// The settings for a queue of so many bytes.
    fn config(&self, bound_bytes: u64) -> RedConfig {
        let default = RedConfig::default();
        let (min_bytes, max_bytes) = match (self.min_bytes, self.max_bytes) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, min.saturating_mul(3)),
            (None, Some(max)) => (max / 3, max),
            (None, None) => (bound_bytes.max(6) / 6, bound_bytes.max(6) / 2),
        };
        RedConfig {
            min_bytes,
            max_bytes,
            drop_max: self.drop_max.unwrap_or(default.drop_max),
            weight: self.weight.unwrap_or(default.weight),
        }
    }
}

/// How the delays of packets that follow each other hang together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterKind {
    /// Each packet has its own, but none overtakes: it arrives together with the one before it instead.
    #[default]
    Ordered,
    /// Each packet has its own, and overtakes where it is the shorter.
    Free,
    /// The delay wanders slowly: packets stay in order and apart.
    Drift,
}

const JITTER_KINDS: [(&str, JitterKind); 3] =
    [("ordered", JitterKind::Ordered), ("free", JitterKind::Free), ("drift", JitterKind::Drift)];

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// How fast it sends, or the trace that says so.
    pub rate: Rate,
    /// Delay from one end to the other, without that of the queue.
    pub delay: Duration,
    /// Bound of the queue.
    pub queue: QueuePlan,
    /// Who manages it.
    pub aqm: AqmPlan,
    /// Which datagrams are lost at random.
    pub loss: Loss,
    /// Spread of the jitter around the delay, each way.
    pub jitter: Duration,
    /// How it hits packets that follow each other.
    pub jitter_kind: JitterKind,
    /// Which datagrams are held back so that others overtake them.
    pub reorder: Reorder,
    /// Share of datagrams doubled.
    pub duplicate: f64,
    /// Share of datagrams damaged.
    pub corrupt: f64,
    /// Up or down.
    pub state: LinkState,
    /// Largest IP packet.
    pub mtu_bytes: u32,
}

impl Default for LinkPlan {
    fn default() -> Self {
        Self {
            rate: Rate::Fixed(10_000_000),
            delay: Duration::from_millis(10),
            queue: QueuePlan::Time(Duration::from_millis(50)),
            aqm: AqmPlan::DropTail,
            loss: Loss::None,
            jitter: Duration::ZERO,
            jitter_kind: JitterKind::Ordered,
            reorder: Reorder::default(),
            duplicate: 0.0,
            corrupt: 0.0,
            state: LinkState::Up,
            mtu_bytes: 1500,
        }
    }
}

impl LinkPlan {
    /// The settings of the link that this plan describes.
    pub fn config(&self, service: Service) -> LinkConfig {
        let queue = match self.queue {
            QueuePlan::Bytes(bytes) => QueueLimit::bytes(bytes),
            QueuePlan::Packets(packets) => QueueLimit::packets(packets as usize),
            QueuePlan::Time(time) => match self.rate.mean_bps() {
                None => QueueLimit::NONE,
                Some(bps) => {
                    let bytes = (bps as f64 / 8.0 * time.as_secs_f64()) as u64;
                    QueueLimit::bytes(bytes.max(QUEUE_PACKETS_MIN * u64::from(self.mtu_bytes)))
                }
            },
        };
        let (jitter, order) = match self.jitter_kind {
            _ if self.jitter.is_zero() => (Jitter::None, Order::Kept),
            JitterKind::Ordered => (Jitter::Uniform(self.jitter), Order::Kept),
            JitterKind::Free => (Jitter::Uniform(self.jitter), Order::Free),
            JitterKind::Drift => (Jitter::Drift(self.jitter), Order::Kept),
        };
        LinkConfig {
            rate: self.rate.clone(),
            delay: self.delay,
            queue,
            aqm: self.aqm(&queue),
            loss: self.loss,
            jitter,
            order,
            reorder: self.reorder,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            state: self.state,
            service,
            ..LinkConfig::default()
        }
        .sizes(self.mtu_bytes, OVERHEAD_BYTES)
    }

    fn aqm(&self, queue: &QueueLimit) -> Aqm {
        match self.aqm {
            AqmPlan::DropTail => Aqm::DropTail,
            AqmPlan::CoDel(codel) => Aqm::CoDel(codel),
            AqmPlan::FqCoDel(fq) => Aqm::FqCoDel(fq),
            AqmPlan::Red(red) => {
                let packets = queue.packets.map(|packets| packets as u64 * u64::from(self.mtu_bytes));
                // A queue without a bound is that of a link without a rate: nothing ever waits in it.
                Aqm::Red(red.config(queue.bytes.or(packets).unwrap_or(2 * RedConfig::default().max_bytes)))
            }
        }
    }
}

/// Changes to a direction: what is there is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkEdit {
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Duration>,
    pub(super) queue: Option<QueuePlan>,
    pub(super) aqm: Option<AqmPlan>,
    pub(super) loss: Option<Loss>,
    pub(super) jitter: Option<Duration>,
    pub(super) jitter_kind: Option<JitterKind>,
    pub(super) reorder: Option<Reorder>,
    pub(super) duplicate: Option<f64>,
    pub(super) corrupt: Option<f64>,
    pub(super) state: Option<LinkState>,
    pub(super) mtu_bytes: Option<u32>,
}

impl LinkEdit {
    /// Sets what is there.
    pub fn apply(&self, plan: &mut LinkPlan) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        // A new key is asked for here.
        let Self { rate, delay, queue, aqm, loss, jitter, jitter_kind, reorder, duplicate, corrupt, state, mtu_bytes } =
            self;
        set(&mut plan.rate, rate);
        set(&mut plan.delay, delay);
        set(&mut plan.queue, queue);
        set(&mut plan.aqm, aqm);
        set(&mut plan.loss, loss);
        set(&mut plan.jitter, jitter);
        set(&mut plan.jitter_kind, jitter_kind);
        set(&mut plan.reorder, reorder);
        set(&mut plan.duplicate, duplicate);
        set(&mut plan.corrupt, corrupt);
        set(&mut plan.state, state);
        set(&mut plan.mtu_bytes, mtu_bytes);
    }

    /// Whether it changes what holds for datagrams that wait already: all but what is asked of those that enter.
    pub fn touches_queue(&self) -> bool {
        let entering = Self { mtu_bytes: self.mtu_bytes, ..Self::default() };
        *self != entering
    }

    /// Reads the keys of one direction.
    pub(crate) fn read(reader: &Reader<'_>, traces: &Traces) -> Result<Self, ScenarioError> {
        let mbps = reader.number("rate_mbps", 0.0..=1_000_000.0, "Mbit/s (10^6 bit/s)")?;
        let trace = reader.text("trace")?.map(|name| read_trace(reader, name, traces)).transpose()?;
        // A trace takes the place of a rate beside it.
        let rate = trace.map(Rate::Trace).or(mbps.map(|mbps| Rate::Fixed((mbps * 1e6).round() as u64)));
        let state = reader.choice("state", &[("up", LinkState::Up), ("down", LinkState::Down)])?;
        let share = reader.number("reorder", 0.0..=1.0, "")?;
        let extra = reader.millis("reorder_ms", 0.0..=60_000.0)?;
        let reorder = (share.is_some() || extra.is_some())
            .then(|| Reorder { probability: share.unwrap_or(0.01), extra: extra.unwrap_or(Duration::from_millis(10)) });
        Ok(Self {
            rate,
            delay: reader.millis("delay_ms", 0.0..=60_000.0)?,
            queue: read_queue(reader)?,
            aqm: read_aqm(reader)?,
            loss: read_loss(reader)?,
            jitter: reader.millis("jitter_ms", 0.0..=60_000.0)?,
            jitter_kind: reader.choice("jitter_kind", &JITTER_KINDS)?,
            reorder,
            duplicate: reader.number("duplicate", 0.0..=1.0, "")?,
            corrupt: reader.number("corrupt", 0.0..=1.0, "")?,
            state,
            mtu_bytes: reader.whole("mtu_bytes", 1228..=65_535, "bytes")?.map(|bytes| bytes as u32),
        })
    }

    /// Both, where `stronger` wins.
    pub(crate) fn over(self, stronger: Self) -> Self {
        Self {
            rate: stronger.rate.or(self.rate),
            delay: stronger.delay.or(self.delay),
            queue: stronger.queue.or(self.queue),
            aqm: stronger.aqm.or(self.aqm),
            loss: stronger.loss.or(self.loss),
            jitter: stronger.jitter.or(self.jitter),
            jitter_kind: stronger.jitter_kind.or(self.jitter_kind),
            reorder: stronger.reorder.or(self.reorder),
            duplicate: stronger.duplicate.or(self.duplicate),
            corrupt: stronger.corrupt.or(self.corrupt),
            state: stronger.state.or(self.state),
            mtu_bytes: stronger.mtu_bytes.or(self.mtu_bytes),
        }
    }

    /// With a round trip split evenly.
    pub(crate) fn with_rtt(mut self, rtt: Option<Duration>) -> Self {
        self.delay = self.delay.or(rtt.map(|rtt| rtt / 2));
        self
    }
}

/// `aqm` is a word, or a table with a `kind` and its settings.
fn read_aqm(reader: &Reader<'_>) -> Result<Option<AqmPlan>, ScenarioError> {
    let kinds = [
        ("drop-tail", AqmPlan::DropTail),
        ("codel", AqmPlan::CoDel(CoDelConfig::default())),
        ("red", AqmPlan::Red(RedPlan::default())),
        ("fq-codel", AqmPlan::FqCoDel(FqCoDelConfig::default())),
    ];
    if !reader.has_table("aqm") {
        return reader.choice("aqm", &kinds);
    }
    let Some(table) = reader.table("aqm")? else { return Ok(None) };
    let plan = match table.required_choice("kind", &kinds)? {
        AqmPlan::DropTail => AqmPlan::DropTail,
        AqmPlan::CoDel(_) => AqmPlan::CoDel(read_codel(&table)?),
        AqmPlan::FqCoDel(default) => {
            let whole = |key, range, or: u64| Ok(table.whole(key, range, "")?.unwrap_or(or));
            AqmPlan::FqCoDel(FqCoDelConfig {
                codel: read_codel(&table)?,
                quantum_bytes: whole("quantum_bytes", 1..=65_535, u64::from(default.quantum_bytes))? as u32,
                queues: whole("queues", 1..=65_536, u64::from(default.queues))? as u32,
                packets: whole("packets", 1..=1 << 20, default.packets as u64)? as usize,
                device_packets: whole("device_packets", 0..=1 << 20, default.device_packets as u64)? as usize,
            })
        }
        AqmPlan::Red(_) => {
            let bytes = |key| table.whole(key, 1..=1 << 40, "bytes");
            let red = RedPlan {
                min_bytes: bytes("min_bytes")?,
                max_bytes: bytes("max_bytes")?,
                drop_max: table.number("drop_max", 0.0..=1.0, "")?,
                weight: table.number("weight", 0.0..=1.0, "")?,
            };
            if let (Some(min), Some(max)) = (red.min_bytes, red.max_bytes)
                && min >= max
            {
                return Err(table.complain("max_bytes", "is not above min_bytes", "more than min_bytes"));
            }
            AqmPlan::Red(red)
        }
    };
    table.finish()?;
    Ok(Some(plan))
}

fn read_codel(table: &Reader<'_>) -> Result<CoDelConfig, ScenarioError> {
    let default = CoDelConfig::default();
    Ok(CoDelConfig {
        target: table.millis("target_ms", 0.001..=60_000.0)?.unwrap_or(default.target),
        interval: table.millis("interval_ms", 0.001..=60_000.0)?.unwrap_or(default.interval),
        ..default
    })
}

fn read_queue(reader: &Reader<'_>) -> Result<Option<QueuePlan>, ScenarioError> {
    let time = reader.millis("queue_ms", 0.0..=600_000.0)?.map(QueuePlan::Time);
    let bytes = reader.whole("queue_bytes", 0..=1 << 40, "bytes")?.map(QueuePlan::Bytes);
    let packets = reader.whole("queue_packets", 1..=1 << 30, "packets")?.map(QueuePlan::Packets);
    if usize::from(time.is_some()) + usize::from(bytes.is_some()) + usize::from(packets.is_some()) > 1 {
        let accepted = "one of queue_ms, queue_bytes and queue_packets";
        return Err(reader.complain("queue_bytes", "the queue is bounded twice", accepted));
    }
    Ok(time.or(bytes).or(packets))
}

/// The words of a loss model's `kind`.
#[derive(Clone, Copy)]
enum LossKind {
    Bernoulli,
    GilbertElliott,
    Bursts,
    PerByte,
}

fn read_loss(reader: &Reader<'_>) -> Result<Option<Loss>, ScenarioError> {
    let share = reader.number("loss", 0.0..=1.0, "(share of datagrams, each way)")?;
    let model = reader.table("loss_model")?;
    let Some(model) = model else {
        return Ok(share.map(|p| if p > 0.0 { Loss::Bernoulli(p) } else { Loss::None }));
    };
    if share.is_some() {
        return Err(reader.complain("loss_model", "there is a loss too", "one of loss and loss_model"));
    }
    let share = |key: &'static str, default: f64| Ok(model.number(key, 0.0..=1.0, "")?.unwrap_or(default));
    let kinds = [
        ("bernoulli", LossKind::Bernoulli),
        ("gilbert-elliott", LossKind::GilbertElliott),
        ("bursts", LossKind::Bursts),
        ("per-byte", LossKind::PerByte),
    ];
    let loss = match model.required_choice("kind", &kinds)? {
        LossKind::Bernoulli => Loss::Bernoulli(share("p", 0.01)?),
        LossKind::PerByte => Loss::PerByte(share("p", 8e-6)?),
        LossKind::GilbertElliott if model.has("good_ms") || model.has("bad_ms") => {
            let millis =
                |key, or: u64| Ok(model.millis(key, 0.001..=3_600_000.0)?.unwrap_or(Duration::from_millis(or)));
            let (good, bad) = (millis("good_ms", 1000)?, millis("bad_ms", 10)?);
            Loss::TimedGilbertElliott {
                good,
                bad,
                loss_good: share("loss_good", 0.0)?,
                loss_bad: share("loss_bad", 1.0)?,
            }
        }
        LossKind::GilbertElliott => Loss::GilbertElliott {
            to_bad: share("to_bad", 0.01)?,
            to_good: share("to_good", 0.25)?,
            loss_good: share("loss_good", 0.0)?,
            loss_bad: share("loss_bad", 1.0)?,
        },
        LossKind::Bursts if model.has("burst_ms") => {
            let burst = model.millis("burst_ms", 0.001..=3_600_000.0)?.unwrap_or_default();
            Loss::timed_bursts(share("mean", 0.01)?, burst)
        }
        LossKind::Bursts => {
            let (mean, burst) = (share("mean", 0.01)?, model.number("burst", 1.0..=1e6, "datagrams")?.unwrap_or(4.0));
            // One datagram comes through at least between two bursts.
            let most = burst / (burst + 1.0);
            if mean > most {
                let allowed = format!("a share of at most {most:.3}, or `bernoulli`");
                return Err(model.complain(
                    "mean",
                    format!("bursts of {burst} cannot lose a share of {mean}"),
                    allowed,
                ));
            }
            Loss::bursts(mean, burst)
        }
    };
    model.finish()?;
    Ok(Some(loss))
}

fn read_trace(reader: &Reader<'_>, name: &str, traces: &Traces) -> Result<Trace, ScenarioError> {
    let text = traces.read(name).map_err(|why| {
        reader.complain("trace", format!("`{name}` cannot be read: {why}"), "a file in the mahimahi format")
    })?;
    Trace::parse(&text)
        .map_err(|why| reader.complain("trace", format!("`{name}`: {why}"), "a file in the mahimahi format"))
}
