//! Rules that hold in every run, whatever the network does.

use std::time::Duration;

use plait_base::limits::{MAX_DATAGRAM_BYTES, MAX_PATHS};
use plait_netsim::{Duplex, Network, Totals};

use crate::host::acks::AckBook;
use crate::host::ledger::{Ledger, SharedLedger};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A byte arrived in the wrong place, or too many or too few did.
    Bytes(String),
    /// The sender had data and an open path and yet sent nothing for so long.
    IdleSender(Duration),
    /// Datagrams that neither arrived nor were lost nor are on their way.
    Conservation {
        /// Sent and doubled.
        made: u64,
        /// Arrived, lost or on their way.
        seen: u64,
    },
    /// A bound of `limits.rs` was passed.
    Bound(&'static str),
    /// An acknowledgement or a packet number that cannot be.
    Acks(String),
    /// A lent path had no holder or several, or what was lent was not counted right.
    Loans(String),
    /// A host asked for timers at one instant without end.
    Spinning,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(what) => write!(f, "bytes: {what}"),
            Self::IdleSender(time) => write!(f, "idle sender for {} ms", time.as_millis()),
            Self::Conservation { made, seen } => write!(f, "{made} datagrams made and {seen} seen"),
            Self::Bound(what) => write!(f, "bound passed: {what}"),
            Self::Acks(what) => write!(f, "acks: {what}"),
            Self::Loans(what) => write!(f, "loans: {what}"),
            Self::Spinning => f.write_str("a host spins"),
        }
    }
}

/// A scheduler may wait for a faster path for so many of the longest RTTs, and at least this long.
const IDLE_RTTS: u32 = 4;
const IDLE_MIN: Duration = Duration::from_secs(1);

/// The sender never rests long with data and an open path, but to learn whether the path it keeps to has failed.
pub(crate) fn idle_sender(ledger: &Ledger) -> Option<Fault> {
    let rtt = ledger.paths.values().filter_map(|figures| figures.rtt).max().unwrap_or_default();
    let idle = ledger.decisions.idle_longest;
    let pto = ledger.decisions.idle_pto;
    (idle > IDLE_MIN.max(rtt * IDLE_RTTS).max(pto)).then_some(Fault::IdleSender(idle))
}

/// Every datagram that was sent or doubled arrived, was lost or is on its way.
pub(crate) fn conservation(totals: &Totals, on_the_way: usize) -> Option<Fault> {
    let made = totals.sent + totals.doubled;
    let seen = totals.arrived + totals.lost + on_the_way as u64;
    (made != seen).then_some(Fault::Conservation { made, seen })
}

/// Every datagram that was offered to a link went on, was dropped or waits in its queue, whoever shares the link.
pub(crate) fn links(net: &Network, links: &[Duplex]) -> Option<Fault> {
    let ids = links.iter().flat_map(|duplex| [duplex.forward, duplex.backward]);
    ids.filter_map(|id| net.link(id)).find_map(|link| {
        let stats = link.stats();
        let seen = stats.forwarded_packets + stats.drops_total() + link.pending() as u64;
        (stats.offered_packets != seen).then_some(Fault::Conservation { made: stats.offered_packets, seen })
    })
}

/// What is acknowledged was sent, was received and stays so; no number is used or accepted twice. Of both ends, each
/// connection against the one of the other end that it fits.
pub(crate) fn acks(ends: &[SharedLedger; 2]) -> Option<Fault> {
    let (one, other) = (&ends[0].lock().acks, &ends[1].lock().acks);
    let wrong = one.iter().chain(other).find_map(|book| book.wrong().map(str::to_owned));
    let false_acks = |mine: &[AckBook], theirs: &[AckBook]| {
        let best = |book: &AckBook| {
            let mut told = theirs.iter().map(|peer| book.false_acks(peer));
            let first = told.next().unwrap_or_else(|| book.false_acks(&AckBook::default()))?;
            told.all(|told| told.is_some()).then_some(first)
        };
        mine.iter().find_map(best)
    };
    wrong.or_else(|| false_acks(one, other)).or_else(|| false_acks(other, one)).map(Fault::Acks)
}

/// Bytes in flight beyond the window: probes and copies that no window holds back (RFC 9002 7.5).
const BEYOND_WINDOW_BYTES: u64 = 128 * 1024;

/// Bounds that the observers of one end show.
pub(crate) fn bounds(ledger: &Ledger) -> Option<Fault> {
    let window = ledger.paths.values().any(|figures| figures.window_max_bytes > 1 << 40);
    let datagram = ledger.paths.values().any(|figures| usize::from(figures.mtu_bytes) > MAX_DATAGRAM_BYTES);
    let checks = [
        (window, "congestion window"),
        (datagram, "MAX_DATAGRAM_BYTES"),
        (ledger.beyond_window_bytes > BEYOND_WINDOW_BYTES, "bytes in flight beyond the window"),
    ];
    checks.into_iter().find_map(|(passed, what)| passed.then_some(Fault::Bound(what)))
}

/// Path ids that may linger: closing ones drain for three probe time-outs.
const LINGERING_PATHS: usize = 4 * MAX_PATHS;

/// Bounds that a connection shows while it runs.
pub(crate) fn census((open, known): (usize, usize)) -> Option<Fault> {
    match (open > MAX_PATHS, known > LINGERING_PATHS) {
        (true, _) => Some(Fault::Bound("MAX_PATHS")),
        (_, true) => Some(Fault::Bound("closing paths")),
        _ => None,
    }
}
