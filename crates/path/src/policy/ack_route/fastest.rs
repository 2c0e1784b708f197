//! Acks by the path of the smallest RTT, and how it is noticed that another way is shorter.

use std::time::Duration;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::observe::PathState;
use plait_base::{Instant, PathId};
use smallvec::SmallVec;

use super::{AckCarrier, AckPaths, AckRoute, best, can_carry, rank};

/// How long acks keep to their own paths after they crowded the fastest one, round trips of that one then.
const HOME_ROUND_TRIPS: u32 = 32;

/// Fewer bytes crowd no path: it has to carry datagrams of so many (RFC 9000 14).
const CROWD_BYTES_MIN: u64 = MIN_DATAGRAM_BYTES as u64;

/// So many bytes on a path are worth a packet that asks how long its own way back is, a first window (RFC 9002 7.2).
const QUESTION_BYTES: u64 = 12_000;

/// A sender that sees a queue may hold its window for so many round trips to be sure.
const STEADY_ROUNDS: u32 = 8;

/// Acks stay away from a path that they filled while the other one is measured so often, in round trips of the first.
const MEASURED_ROUND_TRIPS: u32 = 4;

/// Acks that take another way go home as well for so many round trips of their own path. That a way is thin shows only once it
/// is full, and meanwhile the sender hears enough.
const TRIAL_ROUND_TRIPS: u32 = 8;
/// So many of them go home in each of these round trips.
const TRIAL_ACKS: u32 = 8;

/// Samples that are so many round trips apart tell of what was between them.
const BETWEEN_ROUND_TRIPS: u32 = 4;

/// An RTT that is so many times that of another path is no queue of data any more.
const ANOTHER_PATH: u32 = 8;

/// Acks travel on the path of the smallest RTT, and stay there until another is clearly faster.
///
/// The smallest RTT may belong to a thin path. Where the acks of others fill it, as its RTT shows, or where acks are home sooner
/// by their own path, as the answer to one that went there as well shows, all acks keep to their own paths for a while. Those of a
/// path that they seem to fill by themselves go elsewhere then, and now and then home as well.
#[derive(Clone, Debug, Default)]
pub struct Fastest {
    /// The path that carries the acks of others.
    last: Option<PathId>,
    /// When it became that.
    since: Option<Instant>,
    home: Option<OwnPaths>,
    calm: Calm,
    looks: Vec<Look>,
}

/// The path that carries the acks of others, when its RTT last was what it can be.
#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    at: Option<Instant>,
    sent_bytes: u64,
    received_bytes: u64,
}

/// Acks keep to their own paths.
#[derive(Clone, Debug)]
struct OwnPaths {
    until: Instant,
    /// When those that waited on the path that they left have arrived.
    drained_at: Instant,
    /// Paths that their own acks seem to fill.
    full: SmallVec<[Full; 2]>,
}

/// A path that its own acks seem to fill.
#[derive(Clone, Copy, Debug)]
struct Full {
    path: PathId,
    /// When they went elsewhere.
    since: Instant,
    /// When one of them last went home as well.
    asked: Option<Instant>,
    /// They were no sooner there.
    is_home: bool,
}

impl Full {
    /// True where an ack goes home as well, after an eighth of a round trip at first and a whole one later: the other way may be the
    /// thin one, and the sender hears enough until that shows.
    fn asks(&mut self, now: Instant, rtt: Duration) -> bool {
        let is_on_trial = now.since(self.since) < rtt * TRIAL_ROUND_TRIPS;
        let pause = if is_on_trial { rtt / TRIAL_ACKS } else { rtt };
        let asks = self.asked.is_none_or(|asked| now.since(asked) >= pause);
        if asks {
            self.asked = Some(now);
        }
        asks
    }
}

impl OwnPaths {
    /// The paths of the acks of `own`.
    fn choose(&mut self, now: Instant, own: &AckCarrier, carriers: &[AckCarrier]) -> AckPaths {
        let beside = |c: &&AckCarrier| c.id != own.id && c.state == own.state;
        let other = carriers.iter().filter(beside).filter(|c| c.rtt.is_some()).min_by_key(|c| (c.rtt, c.id));
        let only = |path| std::iter::once(path).collect();
        let Some(other) = other else { return only(own.id) };
        let Some(full) = self.full.iter_mut().find(|full| full.path == own.id) else {
            let is_new = own.rtt_at.is_some_and(|(rtt, at)| at >= self.drained_at + rtt);
            if !is_new || !is_shorter(other, own) {
                return only(own.id);
            }
            self.full.push(Full { path: own.id, since: now, asked: None, is_home: false });
            return only(other.id);
        };
        // The queue may be one of data on the way here, and the other path have had room for no more than few acks.
        if let Some(rtt) = own.rtt {
            let measured_at = other.rtt_at.map_or(full.since, |(_, at)| at.max(full.since));
            let is_overdue = other.asked_at.is_some_and(|asked| rtt < worth(now.since(asked)));
            full.is_home |= is_overdue || now.since(measured_at) > rtt * MEASURED_ROUND_TRIPS;
        }
        if full.is_home {
            return only(own.id);
        }
        let home = own.rtt.is_some_and(|rtt| full.asks(now, rtt)).then_some(own.id);
        std::iter::once(other.id).chain(home).collect()
    }
}

/// How much a path had brought at some time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    received_bytes: u64,
}

/// What is known of a path whose acks take another way.
#[derive(Clone, Copy, Debug)]
struct Look {
    path: PathId,
    /// When it was looked at last, about once a round trip.
    last: Mark,
    /// When one of its acks last went home as well.
    asked: Option<Mark>,
    /// The most that it brought between two looks, bytes a second.
    most: u64,
    /// How many looks ago that grew by a quarter.
    steady: u32,
    /// The newest sample of the path that was older than that of the path that carries its acks.
    before: Option<(Duration, Instant)>,
}

impl Look {
    /// It is looked at again.
    fn note(&mut self, here: Mark) {
        let bytes = here.received_bytes.saturating_sub(self.last.received_bytes);
        let micros = here.at.since(self.last.at).as_micros().max(1);
        let rate = u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX);
        self.steady = if rate > self.most.saturating_add(self.most / 4) { 0 } else { self.steady.saturating_add(1) };
        (self.last, self.most) = (here, self.most.max(rate));
    }
}

impl Fastest {
    /// True where the queue on `last` may be our own: its RTT is not what it can be, and what we sent there since it was
    /// is no small part of what came. An ack or two are, once the path was slow for a round trip: between two samples a queue of
    /// data may begin of which hardly anything has come yet.
    fn is_crowded(&mut self, now: Instant, last: &AckCarrier) -> bool {
        let (Some(latest), Some(least)) = (last.rtt_latest, last.rtt_least) else { return false };
        if latest <= least * 2 {
            self.calm = Calm { at: Some(now), sent_bytes: last.sent_bytes, received_bytes: last.received_bytes };
            return false;
        }
        let Calm { at, sent_bytes, received_bytes } = self.calm;
        let sent = last.sent_bytes.saturating_sub(sent_bytes);
        let is_told = sent > CROWD_BYTES_MIN || at.is_some_and(|at| now.since(at) >= latest);
        is_told && sent > last.received_bytes.saturating_sub(received_bytes) / 2
    }

    /// True where an ack of `own` goes home as well: `last` is new to them, that way may have become the shorter one, `last` has a
    /// queue, or the path brings more than it did, or did so lately, so that its sender may be in slow start and look for a queue. Enough has come
    /// since the last that did, and that is a round trip ago. The answer tells how long the way home is, and the ack shows the
    /// peer a queue on the way that it takes otherwise. A shorter path is not asked: `is_faster` moves acks there.
    fn asks(&mut self, now: Instant, own: &AckCarrier, last: &AckCarrier) -> bool {
        let paths = own.rtt_least.zip(last.rtt_least).filter(|(own, last)| last <= own);
        let Some(((least, last_least), (rtt, _))) = paths.zip(last.rtt_at) else { return false };
        // An answer that has not come yet takes so long at least.
        let rtt = last.asked_at.map_or(rtt, |asked| rtt.max(now.since(asked)));
        let is_on_trial = self.since.is_some_and(|since| now.since(since) < least * TRIAL_ROUND_TRIPS);
        let is_in_doubt = is_on_trial || least < worth(rtt) || rtt > last_least * 2;
        let here = Mark { at: now, received_bytes: own.received_bytes };
        let Some(look) = self.looks.iter_mut().find(|look| look.path == own.id) else {
            let asked = is_in_doubt.then_some(here);
            self.looks.push(Look { path: own.id, last: here, asked, most: 0, steady: STEADY_ROUNDS, before: None });
            return is_in_doubt;
        };
        let is_past = |mark: &Mark, pause: Duration| {
            now.since(mark.at) >= pause && here.received_bytes.saturating_sub(mark.received_bytes) >= QUESTION_BYTES
        };
        if is_past(&look.last, rtt.max(least)) {
            look.note(here);
        }
        let pause = if is_on_trial { least / TRIAL_ACKS } else { rtt.max(least) };
        let is_due = look.asked.is_none_or(|asked| is_past(&asked, pause));
        let asks = (is_in_doubt || look.steady < STEADY_ROUNDS) && is_due;
        if asks {
            look.asked = Some(here);
        }
        asks
    }

    /// True where the samples of `own` before and after that of `last` are both clearly shorter. A queue on the way here would have
    /// to come and go between them: most likely `last` is the longer way for acks.
    fn is_longer_between(&mut self, own: &AckCarrier, last: &AckCarrier) -> bool {
        let Some(look) = self.looks.iter_mut().find(|look| look.path == own.id) else { return false };
        let Some(((rtt, own_at), (last_rtt, last_at))) = own.rtt_at.zip(last.rtt_at) else { return false };
        if own_at < last_at {
            look.before = Some((rtt, own_at));
            return false;
        }
        let before = look.before.filter(|(_, at)| *at < last_at && own_at.since(*at) < last_rtt * BETWEEN_ROUND_TRIPS);
        before.is_some_and(|(before, _)| before.max(rtt) < worth(last_rtt))
    }
}

impl AckRoute for Fastest {
    fn name(&self) -> &'static str {
        "fastest"
    }

    fn choose(&mut self, now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        if let [last] = carriers
            && Some(last.id) == self.last
            && last.rtt.is_some()
            && can_carry(&last)
        {
            // No other is there to compare with; when one comes, it counts how this one did.
            self.is_crowded(now, last);
            return std::iter::once(last.id).collect();
        }
        self.choose_among(now, of, carriers)
    }

    fn on_path_closing(&mut self, path: PathId) {
        self.last = self.last.filter(|&last| last != path);
        self.looks.retain(|look| look.path != path);
        if let Some(home) = &mut self.home {
            home.full.retain(|full| full.path != path);
        }
    }
}

impl Fastest {
    #[inline(never)]
    fn choose_among(&mut self, now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        let unmeasured = |c: &&AckCarrier| c.id == of && c.rtt.is_none() && rank(c.state) <= rank(PathState::Backup);
        if let Some(own) = carriers.iter().find(unmeasured) {
            // It may be the fastest of all: an ack that went elsewhere would hide that, and slow its first round trips.
            return std::iter::once(own.id).collect();
        }
        let Some(mut chosen) = best(carriers) else { return AckPaths::new() };
        let as_good = |c: &&AckCarrier| rank(c.state) == rank(chosen.state);
        let own = carriers.iter().filter(as_good).find(|c| c.id == of && c.is_paired);
        if chosen.rtt.is_none() {
            // Nothing measured yet: the path that brought the data works.
            chosen = carriers.iter().filter(can_carry).find(|c| c.id == of).unwrap_or(chosen);
        }
        let mut asks = false;
        let last = carriers.iter().filter(as_good).find(|c| Some(c.id) == self.last);
        if let Some((last, rtt)) = last.and_then(|c| Some((c, c.rtt?))) {
            let is_crowded = self.is_crowded(now, last);
            if let Some(own) = own.filter(|own| own.id != last.id) {
                if is_crowded && last.rtt_latest > own.rtt || is_shorter(own, last) || self.is_longer_between(own, last)
                {
                    self.home = last.rtt_latest.map(|latest| OwnPaths {
                        until: now + latest * HOME_ROUND_TRIPS,
                        drained_at: now + latest,
                        full: SmallVec::new(),
                    });
                    self.last = None;
                } else {
                    asks = self.asks(now, own, last);
                }
            }
            if chosen.rtt.is_none_or(|fastest| !is_faster(chosen, fastest, last, rtt, is_crowded)) {
                chosen = last;
            }
        }
        if let Some((own, home)) = own.zip(self.home.as_mut().filter(|home| now < home.until)) {
            return home.choose(now, own, carriers);
        }
        if chosen.rtt.is_some() && self.last != Some(chosen.id) {
            (self.last, self.since) = (Some(chosen.id), Some(now));
        }
        let home = own.filter(|own| asks && own.id != chosen.id);
        std::iter::once(chosen).chain(home).map(|c| c.id).collect()
    }
}

/// The longest RTT that is clearly shorter: less by an eighth.
fn worth(rtt: Duration) -> Duration {
    rtt - rtt / 8
}

/// True where acks are clearly sooner home by `own` than by `last`.
///
/// An RTT is two ways, and a queue on the way here says nothing of the way that acks go. But the peer's acks of both paths come
/// here one way as a rule, so that the difference between two samples taken at about the same time is that between the ways
/// back. The one of `own` has to be the newer: a queue here that grows makes it longer, and one that drains makes it shorter by
/// no more than the time between the two, which is added.
///
/// So it is where the answer to a packet that left by `own` later than one by `last` was here first: a queue that grows fast
/// holds up the samples that would show it.
///
/// A path that is clearly longer without queues is left for the shorter one, as `is_faster` says: that is no reason to go home.
fn is_shorter(own: &AckCarrier, last: &AckCarrier) -> bool {
    let Some((rtt, own_at)) = own.rtt_at.filter(|_| last.rtt_least.map(worth) <= own.rtt_least) else { return false };
    let is_measured = last.rtt_at.is_some_and(|(last, at)| own_at >= at && rtt + own_at.since(at) < worth(last));
    // Where nothing came by that path since, its way here may be what holds the answer up.
    let tells = |asked: &Instant| own.rtt_via == last.rtt_via || last.heard_at.is_some_and(|at| at > *asked);
    is_measured || last.asked_at.filter(tells).is_some_and(|asked| rtt < worth(own_at.since(asked)))
}

/// True where acks had better move from `last` to `chosen`.
///
/// RFC 10069 5.4: a stable way back keeps RTT samples comparable; an eighth at least must be gained. And an RTT is two
/// ways: that of a path whose other way is full of its own data says nothing of the way that acks go, so that a path
/// which is longer without queues takes over only where the queue may be ours, or where the last one has become another
/// path altogether.
fn is_faster(chosen: &AckCarrier, fastest: Duration, last: &AckCarrier, rtt: Duration, is_crowded: bool) -> bool {
    let may_move = is_crowded || chosen.rtt_least <= last.rtt_least;
    fastest < if may_move { worth(rtt) } else { rtt / ANOTHER_PATH }
}
