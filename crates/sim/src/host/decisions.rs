//! What a scheduler decided, and why each path was or was not taken.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_base::{Instant, PathId};
use plait_engine::schedule::{Decision, Demand, PathView, WaitReason, WhyIdle, candidates, why_idle};

/// Decisions in a row that differ; later ones are counted, not kept.
const LOG_MAX: usize = 50_000;
/// By how much a peer delays acks unless it says otherwise (RFC 9000 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// What a decision meant for one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathVerdict {
    /// It carried the packet.
    Sent,
    /// It carried a copy.
    Copied,
    /// It was left out, for this reason.
    Idle(WhyIdle),
}

impl PathVerdict {
    /// Every verdict, in the order of the counts.
    pub const ALL: [Self; 13] = [
        Self::Sent,
        Self::Copied,
        Self::Idle(WhyIdle::Window),
        Self::Idle(WhyIdle::Paced),
        Self::Idle(WhyIdle::Scheduler),
        Self::Idle(WhyIdle::NotValidated),
        Self::Idle(WhyIdle::Failed),
        Self::Idle(WhyIdle::Backup),
        Self::Idle(WhyIdle::PeerBackup),
        Self::Idle(WhyIdle::Amplification),
        Self::Idle(WhyIdle::NoCid),
        Self::Idle(WhyIdle::Socket),
        Self::Idle(WhyIdle::NoData),
    ];

    /// The word that programs read; reasons are those of `why_idle`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Copied => "copied",
            Self::Idle(why) => why.name(),
        }
    }

    /// What it means, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Sent => "packet sent here",
            Self::Copied => "copy sent here",
            Self::Idle(WhyIdle::Window) => "window full",
            Self::Idle(WhyIdle::Paced) => "held by the pacer",
            Self::Idle(WhyIdle::Socket) => "its socket is full",
            Self::Idle(WhyIdle::Scheduler) => "open, but another path was preferred",
            Self::Idle(WhyIdle::NotValidated) => "not validated yet",
            Self::Idle(WhyIdle::Failed) => "fell silent",
            Self::Idle(WhyIdle::Backup) => "kept as backup",
            Self::Idle(WhyIdle::PeerBackup) => "peer keeps it as backup",
            Self::Idle(WhyIdle::Amplification) => "amplification limit",
            Self::Idle(WhyIdle::NoCid) => "no connection id left",
            Self::Idle(WhyIdle::NoData) => "nothing to send",
        }
    }

    /// What `decision` meant for `path`, one of `paths`; none where it is closing.
    fn of(decision: Decision, path: &PathView, paths: &[PathView], demand: &Demand) -> Option<Self> {
        match decision {
            Decision::Send(id) | Decision::SendAlso { primary: id, .. } if id == path.id => Some(Self::Sent),
            Decision::SendAlso { copies, .. } if copies.ids(paths).any(|id| id == path.id) => Some(Self::Copied),
            _ => why_idle(path, paths, demand).map(Self::Idle),
        }
    }
}

/// How often each of [`PathVerdict::ALL`] came.
pub type Verdicts = [u64; PathVerdict::ALL.len()];

/// One path at a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Id of the path.
    pub path: PathId,
    /// What the decision meant for it.
    pub verdict: Option<PathVerdict>,
    /// Its smoothed RTT.
    pub rtt: Option<Duration>,
    /// Its congestion window, bytes.
    pub window_bytes: u64,
    /// Its bytes in flight.
    pub in_flight_bytes: u64,
}

/// Decisions in a row that were alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When the first was made.
    pub first: Instant,
    /// When the last was.
    pub last: Instant,
    /// How many decisions in a row were alike.
    pub count: u64,
    /// What was decided.
    pub decision: Decision,
    /// Each path at the first of them.
    pub paths: Vec<Seen>,
}

/// Every decision with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// How often which verdict came, by path id.
    pub verdicts: BTreeMap<u32, Verdicts>,
    /// The decisions in order, as many as are kept.
    pub log: Vec<Logged>,
    /// Decisions that came when the log was full.
    pub left_out: u64,
}

impl Record {
    fn note(&mut self, decision: Decision, paths: &[PathView], demand: &Demand) {
        let seen = |path: &PathView| Seen {
            path: path.id,
            verdict: PathVerdict::of(decision, path, paths, demand),
            rtt: path.rtt,
            window_bytes: path.window_bytes,
            in_flight_bytes: path.in_flight_bytes,
        };
        let seen: Vec<Seen> = paths.iter().map(seen).collect();
        for one in &seen {
            let place = PathVerdict::ALL.iter().position(|known| Some(*known) == one.verdict);
            let counts = self.verdicts.entry(one.path.0).or_default();
            if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
                *count += 1;
            }
        }
        let alike = |last: &&mut Logged| {
            last.decision == decision
                && last.paths.iter().map(|p| (p.path, p.verdict)).eq(seen.iter().map(|p| (p.path, p.verdict)))
        };
        let full = self.log.len() >= LOG_MAX;
        match self.log.last_mut().filter(alike) {
            Some(last) => {
                last.count += 1;
                last.last = demand.now;
            }
            None if full => self.left_out += 1,
            None => {
                self.log.push(Logged { first: demand.now, last: demand.now, count: 1, decision, paths: seen });
            }
        }
    }
}

/// Decisions of a scheduler, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Packets that were also copied elsewhere.
    pub copied: u64,
    /// Waits for a faster path though another was open.
    pub waited_faster: u64,
    /// Waits because every usable path was full or paced.
    pub waited_busy: u64,
    /// Waits without a usable path.
    pub waited_no_path: u64,
    /// Longest time with data, a usable open path and no packet sent.
    pub idle_longest: Duration,
    /// Longest probe time-out of a path on which data was on its way during such times.
    pub idle_pto: Duration,
    idle_since: Option<Instant>,
    /// Each decision with its reasons, where that was wanted.
    pub record: Option<Box<Record>>,
}

impl Decisions {
    /// Counts a decision, and keeps it where that is wanted.
    pub(super) fn note(&mut self, decision: Decision, paths: &[PathView], demand: &Demand) {
        match decision {
            Decision::Send(_) => {}
            Decision::SendAlso { .. } => self.copied += 1,
            Decision::Wait(WaitReason::Faster(_)) => self.waited_faster += 1,
            Decision::Wait(WaitReason::Busy) => self.waited_busy += 1,
            Decision::Wait(WaitReason::NoPath) => self.waited_no_path += 1,
        }
        let may_send = || demand.unsent_bytes > 0 && candidates(paths).next().is_some();
        let idle = matches!(decision, Decision::Wait(_)) && may_send();
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(demand.now));
        if let Some(since) = self.idle_since {
            self.idle_longest = self.idle_longest.max(demand.now.since(since));
            let awaited = paths.iter().filter(|path| path.in_flight_bytes > 0);
            // RFC 9002 6.2.1
            let pto = awaited.filter_map(|path| Some(path.rtt? + 4 * path.rtt_var + MAX_ACK_DELAY)).max();
            self.idle_pto = self.idle_pto.max(pto.unwrap_or_default());
        }
        if let Some(record) = &mut self.record {
            record.note(decision, paths, demand);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_engine::schedule::{Backlog, DemandKind, Room};

    #[test]
    fn every_path_has_a_reason_and_like_decisions_are_one_line() {
        let mut decisions = Decisions { record: Some(Box::default()), ..Decisions::default() };
        let mut paths = [PathView::new(PathId(0)), PathView::new(PathId(1))];
        paths[1].room = Room::Window;
        let demand = |ms: u64| Demand {
            now: Instant::from_nanos(ms * 1_000_000),
            kind: DemandKind::Stream,
            unsent_bytes: 9_000,
            send_credit_bytes: 9_000,
            backlog: Backlog::Growing,
        };
        (1..4).for_each(|ms| decisions.note(Decision::Send(PathId(0)), &paths, &demand(ms)));
        paths[1].room = Room::Free;
        decisions.note(Decision::Send(PathId(0)), &paths, &demand(4));
        decisions.note(Decision::Wait(WaitReason::Busy), &paths, &demand(5));
        let record = decisions.record.expect("it was wanted");
        let count = |path: u32, verdict| {
            let place = PathVerdict::ALL.iter().position(|known| *known == verdict).expect("all are there");
            record.verdicts[&path][place]
        };
        assert_eq!((count(0, PathVerdict::Sent), count(1, PathVerdict::Idle(WhyIdle::Window))), (4, 3));
        assert_eq!(count(1, PathVerdict::Idle(WhyIdle::Scheduler)), 2);
        assert_eq!(record.log.iter().map(|line| line.count).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!((decisions.waited_busy, record.left_out), (1, 0));
    }
}
