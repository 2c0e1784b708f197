//! The transport of a connection: streams, datagrams, timing, wire habits, recovery and paths.

use std::sync::Arc;
use std::time::Duration;

use plait_base::limits;
use plait_base::observe::ObserverFactory;
use plait_base::units::VARINT_MAX;
use plait_congestion::ControllerFactory;
use plait_congestion::{AutoFactory, CubicFactory};
use plait_schedule::MinRttFactory;
use plait_schedule::SchedulerFactory;
use plait_stream::Window;

use super::Switch;
use super::path_tuning::PathTuning;
use super::recovery::{AckFrequencyConfig, AckTuning, MtuDiscoveryConfig, MtuTuning, RecoveryTuning};

/// Streams and flow control (RFC 9000 2 and 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTuning {
    /// Bidirectional streams that the peer may have open at once; 0 to 2^60.
    pub(crate) max_bidi: u64,
    /// Unidirectional streams that the peer may have open at once; 0 to 2^60.
    pub(crate) max_uni: u64,
    /// What the peer may send on one stream ahead of the reader.
    pub(crate) stream_window: WindowTuning,
    /// What the peer may send on all streams ahead of the reader.
    pub(crate) window: WindowTuning,
    /// Bytes written by the application and not yet acknowledged that we keep.
    pub(crate) send_window_bytes: u64,
    /// Whether windows grow when the application reads as fast as the peer sends.
    pub(crate) auto_tune: Switch,
    /// Which paths carry the data of a stream.
    pub(crate) placement: StreamPlacement,
}

/// Which paths carry the data of a stream that we send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamPlacement {
    /// Any: the scheduler decides for each packet.
    #[default]
    Pooled,
    /// One: streams take paths in turn, by their numbers, over the paths that may carry data. Where a path comes, fails or ends, the
    /// streams are dealt anew. The scheduler decides about all else: control frames and datagrams.
    Pinned,
}

impl StreamPlacement {
    /// Every placement with its name.
    pub const NAMES: [(&'static str, Self); 2] =
        [(Self::Pooled.name(), Self::Pooled), (Self::Pinned.name(), Self::Pinned)];

    /// What scenario files, and programs that ask a server for one, call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::Pinned => "pinned",
        }
    }
}

/// A receive window: where it begins and how far auto-tuning may raise it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowTuning {
    /// Bytes at first.
    pub(crate) first_bytes: u64,
    /// Bytes at most; at least `first_bytes`.
    pub(crate) max_bytes: u64,
    /// Where the maximum comes from.
    pub(crate) ceiling: Ceiling,
}

/// Where the maximum of a window comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ceiling {
    /// Nobody set one: that of our defaults, or the first window where one was set.
    Implied,
    /// The application set it.
    Stated,
}

impl WindowTuning {
    fn new(first_bytes: u64, max_bytes: u64) -> Self {
        Self { first_bytes, max_bytes, ceiling: Ceiling::Implied }
    }

    /// A window that was set holds on the wire, unless a maximum allows more.
    fn set_first(&mut self, bytes: u64) {
        self.first_bytes = bytes.min(VARINT_MAX);
        self.max_bytes = match self.ceiling {
            Ceiling::Implied => self.first_bytes,
            Ceiling::Stated => self.max_bytes.max(self.first_bytes),
        };
    }

    fn set_max(&mut self, bytes: u64) {
        self.max_bytes = bytes.min(VARINT_MAX);
        self.first_bytes = self.first_bytes.min(self.max_bytes);
        self.ceiling = Ceiling::Stated;
    }

    /// The window as streams are to keep it.
    pub(crate) fn tuned(&self, auto_tune: Switch) -> Window {
        match auto_tune {
            Switch::On => Window { first: self.first_bytes, max: self.max_bytes },
            Switch::Off => Window::fixed(self.first_bytes),
        }
    }
}

/// Application datagrams (RFC 9221).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramTuning {
    /// Bytes of received datagrams that wait for the application; none refuses datagrams altogether.
    pub(crate) receive_buffer_bytes: Option<usize>,
    /// Bytes of outgoing datagrams that wait for the network.
    pub(crate) send_buffer_bytes: usize,
}

/// Timers of the whole connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimingTuning {
    /// Silence on all paths after which the connection is dropped; none leaves it to the peer (RFC 9000 10.1).
    pub(crate) max_idle_timeout: Option<Duration>,
    /// Time that a handshake may take, however busy the peer is; none leaves it to the idle timeout.
    pub(crate) handshake_timeout: Option<Duration>,
    /// Send a PING on each open path that was silent for so long; none sends none.
    pub(crate) keep_alive_interval: Option<Duration>,
    /// Time between our own key updates; none updates only when an AEAD limit comes near (RFC 9001 6).
    pub(crate) key_update_interval: Option<Duration>,
}

/// Optional behaviour on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireTuning {
    /// Mark packets ECT(0) and react to CE, each path validated for itself (RFC 9000 13.4).
    pub(crate) ecn: Switch,
    /// Spin the latency bit (RFC 9000 17.4); even when on, one connection in sixteen does not.
    pub(crate) spin: Switch,
    /// Send the fixed bit at random values to peers that allow it, and allow it to them (RFC 9287).
    pub(crate) grease: Switch,
    /// Hand several datagrams of one size to the operating system at once.
    pub(crate) segmentation_offload: Switch,
}

/// Parameters of the transport of a connection, on either side.
///
/// ```
/// use plait_engine::config::TransportConfig;
/// use std::time::Duration;
/// let mut transport = TransportConfig::default();
/// transport.max_idle_timeout(Some(Duration::from_secs(10))).max_concurrent_uni_streams(0);
/// ```
#[derive(Clone, Debug)]
pub struct TransportConfig {
    pub(crate) streams: StreamTuning,
    pub(crate) datagrams: DatagramTuning,
    pub(crate) timing: TimingTuning,
    pub(crate) wire: WireTuning,
    pub(crate) recovery: RecoveryTuning,
    pub(crate) ack: AckTuning,
    pub(crate) mtu: MtuTuning,
    pub(crate) paths: PathTuning,
    pub(crate) scheduler: Arc<dyn SchedulerFactory>,
    pub(crate) controller: Arc<dyn ControllerFactory>,
    pub(crate) multipath_controller: Option<Arc<dyn ControllerFactory>>,
    pub(crate) observers: Option<Arc<dyn ObserverFactory>>,
}

const MIB: u64 = 1 << 20;

impl Default for StreamTuning {
    fn default() -> Self {
        Self {
            max_bidi: limits::DEFAULT_MAX_STREAMS,
            max_uni: limits::DEFAULT_MAX_STREAMS,
            stream_window: WindowTuning::new(MIB, 16 * MIB),
            window: WindowTuning::new(3 * MIB / 2, 24 * MIB),
            send_window_bytes: 16 * MIB,
            auto_tune: Switch::On,
            placement: StreamPlacement::Pooled,
        }
    }
}

impl Default for DatagramTuning {
    fn default() -> Self {
        Self {
            receive_buffer_bytes: Some(limits::DEFAULT_DATAGRAM_BUFFER_BYTES),
            send_buffer_bytes: limits::DEFAULT_DATAGRAM_BUFFER_BYTES,
        }
    }
}

impl Default for TimingTuning {
    fn default() -> Self {
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Some(Duration::from_secs(30)),
            keep_alive_interval: None,
            key_update_interval: None,
        }
    }
}

impl Default for WireTuning {
    fn default() -> Self {
        Self { ecn: Switch::On, spin: Switch::On, grease: Switch::On, segmentation_offload: Switch::On }
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            streams: StreamTuning::default(),
            datagrams: DatagramTuning::default(),
            timing: TimingTuning::default(),
            wire: WireTuning::default(),
            recovery: RecoveryTuning::default(),
            ack: AckTuning::default(),
            mtu: MtuTuning::default(),
            paths: PathTuning::default(),
            scheduler: Arc::new(MinRttFactory),
            controller: Arc::new(CubicFactory::default()),
            multipath_controller: Some(Arc::new(AutoFactory::default())),
            observers: None,
        }
    }
}

/// Streams and flow control.
impl TransportConfig {
    /// Bidirectional streams that the peer may have open at once. 0 to 2^60, default 256.
    pub fn max_concurrent_bidi_streams(&mut self, count: u64) -> &mut Self {
        self.streams.max_bidi = count.min(limits::MAX_STREAM_COUNT);
        self
    }

    /// Unidirectional streams that the peer may have open at once. 0 to 2^60, default 256.
    pub fn max_concurrent_uni_streams(&mut self, count: u64) -> &mut Self {
        self.streams.max_uni = count.min(limits::MAX_STREAM_COUNT);
        self
    }

    /// Bytes that the peer may send on one stream ahead of the reader. Up to 2^62 - 1, default 1 MiB.
    ///
    /// The window keeps this size unless [`Self::max_stream_receive_window`] is set too: then it starts here and
    /// grows up to that, which is raised to this value if it lies below.
    pub fn stream_receive_window(&mut self, bytes: u64) -> &mut Self {
        self.streams.stream_window.set_first(bytes);
        self
    }

    /// Bytes to which auto-tuning may raise one stream's window; a larger starting window is lowered to it. Up to
    /// 2^62 - 1, default 16 MiB.
    pub fn max_stream_receive_window(&mut self, bytes: u64) -> &mut Self {
        self.streams.stream_window.set_max(bytes);
        self
    }

    /// Bytes that the peer may send on all streams ahead of the reader. Up to 2^62 - 1, default 1.5 MiB.
    ///
    /// The window keeps this size unless [`Self::max_receive_window`] is set too: then it starts here and grows up to
    /// that, which is raised to this value if it lies below.
    pub fn receive_window(&mut self, bytes: u64) -> &mut Self {
        self.streams.window.set_first(bytes);
        self
    }

    /// Bytes to which auto-tuning may raise the connection's window: the memory that a peer can make us spend on
    /// unread stream data, with at most half as much for keeping it. Up to 2^62 - 1, default 24 MiB.
    pub fn max_receive_window(&mut self, bytes: u64) -> &mut Self {
        self.streams.window.set_max(bytes);
        self
    }

    /// Whether windows grow while the application keeps up; when off they stay as they start. Default on.
    pub fn auto_tune_windows(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.streams.auto_tune = switch.into();
        self
    }

    /// Bytes written and not yet acknowledged that we keep, over all streams. Default 16 MiB.
    pub fn send_window(&mut self, bytes: u64) -> &mut Self {
        self.streams.send_window_bytes = bytes;
        self
    }

    /// Which paths carry the data of a stream. Default [`StreamPlacement::Pooled`].
    ///
    /// A stream that keeps to one path is as fast as that path; it arrives without gaps that another path is to fill, and is what
    /// others do who bind streams to paths. To be compared with, or for streams that must not wait for each other's paths.
    pub fn stream_placement(&mut self, placement: StreamPlacement) -> &mut Self {
        self.streams.placement = placement;
        self
    }

    /// Bytes of received datagrams that wait for the application, beyond which the oldest are dropped; none refuses
    /// datagrams. Default 1 MiB.
    pub fn datagram_receive_buffer_size(&mut self, bytes: Option<usize>) -> &mut Self {
        self.datagrams.receive_buffer_bytes = bytes;
        self
    }

    /// Bytes of outgoing datagrams that wait for the network. Default 1 MiB.
    pub fn datagram_send_buffer_size(&mut self, bytes: usize) -> &mut Self {
        self.datagrams.send_buffer_bytes = bytes;
        self
    }
}

/// Timing and habits on the wire.
impl TransportConfig {
    /// Silence on all paths after which the connection is dropped; the smaller of both ends' values counts. None
    /// disables it. At least 1 ms, below 2^62 ms; default 30 s (RFC 9000 10.1).
    pub fn max_idle_timeout(&mut self, timeout: Option<Duration>) -> &mut Self {
        let (shortest, longest) = (Duration::from_millis(1), Duration::from_millis(VARINT_MAX));
        self.timing.max_idle_timeout = timeout.map(|t| t.clamp(shortest, longest));
        self
    }

    /// Time after which a handshake that is not complete is given up, even while the peer keeps sending. None leaves it
    /// to the idle timeout alone. At least 1 ms, default 30 s: five probe time-outs, doubled each time, go by within it.
    pub fn handshake_timeout(&mut self, timeout: Option<Duration>) -> &mut Self {
        self.timing.handshake_timeout = timeout.map(|t| t.max(limits::TIMER_GRANULARITY));
        self
    }

    /// Send a PING on each path that was silent for so long. At least 1 ms; default none. Must be shorter than both
    /// ends' idle timeouts to keep the connection alive.
    pub fn keep_alive_interval(&mut self, interval: Option<Duration>) -> &mut Self {
        self.timing.keep_alive_interval = interval.map(|i| i.max(limits::TIMER_GRANULARITY));
        self
    }

    /// Time between key updates that we begin. Default none: only before an AEAD limit (RFC 9001 6.6).
    pub fn key_update_interval(&mut self, interval: Option<Duration>) -> &mut Self {
        self.timing.key_update_interval = interval.map(|i| i.max(limits::TIMER_GRANULARITY));
        self
    }

    /// Whether to use explicit congestion notification where a path carries it. Default on.
    pub fn ecn(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.wire.ecn = switch.into();
        self
    }

    /// Whether on-path observers may measure the RTT by the spin bit (RFC 9000 17.4). Default on.
    pub fn allow_spin(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.wire.spin = switch.into();
        self
    }

    /// Whether to grease the fixed bit (RFC 9287). Default on.
    pub fn grease_quic_bit(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.wire.grease = switch.into();
        self
    }

    /// Whether to hand trains of datagrams to the operating system. Default on.
    pub fn enable_segmentation_offload(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.wire.segmentation_offload = switch.into();
        self
    }
}

/// Loss recovery and path MTU.
impl TransportConfig {
    /// RTT assumed before the first sample. At least 1 ms, default 333 ms (RFC 9002 6.2.2).
    pub fn initial_rtt(&mut self, rtt: Duration) -> &mut Self {
        self.recovery.initial_rtt = rtt.max(limits::TIMER_GRANULARITY);
        self
    }

    /// Packets acknowledged beyond a missing one after which it counts as lost. At least 3, default 3
    /// (RFC 9002 6.1.1).
    pub fn packet_threshold(&mut self, packets: u32) -> &mut Self {
        self.recovery.packet_threshold = packets.max(3);
        self
    }

    /// RTTs after which a packet sent before an acknowledged one counts as lost. 1 to 8, default 1.125
    /// (RFC 9002 6.1.2).
    pub fn time_threshold(&mut self, factor: f32) -> &mut Self {
        self.recovery.time_threshold = if factor.is_finite() { factor.clamp(1.0, 8.0) } else { 1.125 };
        self
    }

    /// Whether packets leave evenly over an RTT (RFC 9002 7.7) or as the window allows. Default on.
    pub fn pacing(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.recovery.pacing = switch.into();
        self
    }

    /// Bytes that pacing lets leave at once on one path, UDP payload. 1200 or more; none, the default, is ten datagrams or
    /// what leaves in 2 ms at the path's rate, whichever is more; two or 1 ms while several paths are in use, until losses
    /// show a queue that holds more. Smaller values suit limiters with short queues, such as policers of cloud providers, and
    /// cost more system calls: a train of segments (GSO) leaves at once and is bounded by it. The kernel is not asked to spread the segments of a train. Without [`pacing`](Self::pacing) it has no effect.
    pub fn max_burst_bytes(&mut self, bytes: Option<u32>) -> &mut Self {
        self.recovery.max_burst_bytes = bytes.map(|bytes| bytes.max(u32::from(MtuTuning::SMALLEST)));
        self
    }

    /// Longest time for which we delay an ACK. 1 ms to 2^14 - 1 ms, default 25 ms (RFC 9000 18.2).
    pub fn max_ack_delay(&mut self, delay: Duration) -> &mut Self {
        self.ack.max_delay = delay.clamp(limits::TIMER_GRANULARITY, Duration::from_millis(limits::MAX_ACK_DELAY_MS));
        self
    }

    /// Unit of the delay in our ACKs: 2^exponent microseconds. 0 to 20, default 3 (RFC 9000 18.2).
    pub fn ack_delay_exponent(&mut self, exponent: u8) -> &mut Self {
        self.ack.delay_exponent = exponent.min(limits::MAX_ACK_DELAY_EXPONENT as u8);
        self
    }

    /// Ack-eliciting packets after which an ACK is sent at once. At least 1, default 2 (RFC 9000 13.2.2).
    pub fn ack_eliciting_threshold(&mut self, packets: u32) -> &mut Self {
        self.ack.eliciting_threshold = packets.max(1);
        self
    }

    /// How rarely the peer is to acknowledge, where it lets us ask by ACK_FREQUENCY; once it was asked, probes ask for an ack at
    /// once. Default [`AckFrequencyConfig::default`], which asks where paths carry much. None: as the peer sees fit, every second
    /// packet by RFC 9000 13.2.2.
    pub fn ack_frequency_config(&mut self, config: Option<AckFrequencyConfig>) -> &mut Self {
        self.ack.wish = config.map(|config| config.wish());
        self
    }

    /// UDP payload of the first packets of a path. 1200 to 65527 bytes, default 1200 (RFC 9000 14.1). On a path that does
    /// not carry a larger value the first packets are lost; after a probe time-out [`Self::min_mtu`] serves instead.
    pub fn initial_mtu(&mut self, bytes: u16) -> &mut Self {
        self.mtu.initial = bytes.clamp(MtuTuning::SMALLEST, MtuTuning::LARGEST);
        self
    }

    /// UDP payload that every path is known to carry, below which black hole detection never falls. 1200 to 65527
    /// bytes, default 1200.
    pub fn min_mtu(&mut self, bytes: u16) -> &mut Self {
        self.mtu.min = bytes.clamp(MtuTuning::SMALLEST, MtuTuning::LARGEST);
        self
    }

    /// How to search for a larger MTU (RFC 8899); none tries nothing above [`Self::initial_mtu`].
    pub fn mtu_discovery_config(&mut self, config: Option<MtuDiscoveryConfig>) -> &mut Self {
        self.mtu.discovery = config;
        self
    }

    /// Largest UDP payload that we accept, announced to the peer. 1200 to 65527, default 65527 (RFC 9000 18.2).
    pub fn max_udp_payload_size(&mut self, bytes: u16) -> &mut Self {
        self.mtu.max_receive = bytes.clamp(MtuTuning::SMALLEST, MtuTuning::LARGEST);
        self
    }

    /// Makes the congestion controllers of connections with one path. Default `cubic`.
    ///
    /// It serves paths of multipath connections too unless [`Self::multipath_controller`] names another.
    pub fn congestion_controller_factory(&mut self, factory: Arc<dyn ControllerFactory>) -> &mut Self {
        self.controller = factory;
        self
    }

    /// The controllers of connections that negotiated multipath; none uses those of one path. Default `auto`: CUBIC on each
    /// path, coupled until paths are shown to have queues of their own.
    pub fn multipath_controller(&mut self, factory: Option<Arc<dyn ControllerFactory>>) -> &mut Self {
        self.multipath_controller = factory;
        self
    }

    /// Decides which path carries what. Default `minrtt`.
    pub fn scheduler(&mut self, factory: Arc<dyn SchedulerFactory>) -> &mut Self {
        self.scheduler = factory;
        self
    }

    /// Observes every event of each connection from its birth on, for logs and metrics. Default none.
    pub fn observer_factory(&mut self, factory: Option<Arc<dyn ObserverFactory>>) -> &mut Self {
        self.observers = factory;
        self
    }
}
