//! Whose turn it is while no pair of addresses has answered: a client's attempts, one soon after the other (RFC 8305 5).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plait_base::limits::MAX_CONNECT_ATTEMPTS;
use plait_base::{FourTuple, Instant};

/// An attempt that was answered gets so many times the time of this answer before another one begins.
const ANSWERED_PATIENCE: u32 = 2;

/// How long an attempt goes unanswered before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptDelays {
    /// Where that one is from an address of ours of the same IP version that had no attempt yet: most often another network.
    pub network: Duration,
    /// Where it is from one that had, or of another IP version, which may be the same network.
    pub other: Duration,
}

/// Pairs of addresses on which a client tries to reach a server, and when the next has its turn.
///
/// It knows nothing of the attempts themselves. Whoever makes them tells it how they fare, asks for the next pair at
/// [`Self::deadline`], and keeps the first attempt whose handshake is complete.
#[derive(Clone, Debug)]
pub struct Race {
    waiting: VecDeque<FourTuple>,
    /// Our addresses that had their turn.
    tried: Vec<IpAddr>,
    delays: AttemptDelays,
    next_at: Instant,
}

impl Race {
    /// Attempts on `pairs`, `delays` apart, the first at once. What comes twice, or after
    /// [`MAX_CONNECT_ATTEMPTS`] others, is left out.
    pub fn new(now: Instant, delays: AttemptDelays, pairs: impl IntoIterator<Item = FourTuple>) -> Self {
        let mut waiting = VecDeque::new();
        for pair in pairs {
            if waiting.len() < MAX_CONNECT_ATTEMPTS && !waiting.contains(&pair) {
                waiting.push_back(pair);
            }
        }
        Self { waiting, tried: Vec::new(), delays, next_at: now }
    }

    /// How long the pair that comes next waits for an answer to those before.
    fn delay(&self) -> Duration {
        let Some(next) = self.waiting.front().map(|pair| pair.local.ip()) else { return self.delays.other };
        let is_other_version = self.tried.iter().all(|ip| ip.is_ipv4() != next.is_ipv4());
        if is_other_version || self.tried.contains(&next) { self.delays.other } else { self.delays.network }
    }

    /// The pair whose turn has come.
    pub fn poll(&mut self, now: Instant) -> Option<FourTuple> {
        if self.next_at > now {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.tried.push(next.local.ip());
        self.next_at = now + self.delay();
        Some(next)
    }

    /// When [`Self::poll`] will have a pair; none when all had their turn.
    pub fn deadline(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    /// An attempt failed, or the network says that it will: the next pair has its turn at once.
    pub fn on_failed(&mut self, now: Instant) {
        self.next_at = self.next_at.min(now);
    }

    /// The attempt that began at `began` was answered. Others wait, as its handshake is likely to be done soon; only not
    /// for ever, as what comes next may be lost.
    pub fn on_answered(&mut self, now: Instant, began: Instant) {
        self.next_at = self.next_at.max(now + (now.since(began) * ANSWERED_PATIENCE).max(self.delay()));
    }
}

/// The pairs of our addresses and the peer's that are of one family, in the order in which they are tried: the first of
/// each first, then those that differ from it the least, other addresses of ours before others of the peer. The
/// families of the peer's addresses take turns (RFC 8305 4).
pub fn pairs(locals: &[SocketAddr], remotes: &[SocketAddr]) -> Vec<FourTuple> {
    let mut ranked = Vec::new();
    for (far, remote) in interleaved(remotes).into_iter().enumerate() {
        let suitable = locals.iter().filter(|local| local.is_ipv4() == remote.is_ipv4());
        ranked.extend(suitable.enumerate().map(|(near, local)| (near + far, FourTuple { local: *local, remote })));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, pair)| pair).collect()
}

/// The addresses in their order, but the two families in turn.
fn interleaved(remotes: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = remotes.first() else { return Vec::new() };
    let (same, other): (Vec<SocketAddr>, Vec<SocketAddr>) =
        remotes.iter().copied().partition(|remote| remote.is_ipv4() == first.is_ipv4());
    let rounds = same.len().max(other.len());
    (0..rounds).flat_map(|n| [same.get(n), other.get(n)]).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(250);
    const DELAYS: AttemptDelays = AttemptDelays { network: Duration::from_millis(10), other: DELAY };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn pair(n: u16) -> FourTuple {
        FourTuple { local: SocketAddr::from(([10, 0, 0, 1], n)), remote: address("10.9.0.1:443") }
    }

    fn race(pairs: u16) -> Race {
        Race::new(at(0), DELAYS, (0..pairs).map(pair))
    }

    /// All turns from now on, with their times in milliseconds.
    fn turns(race: &mut Race) -> Vec<(u64, FourTuple)> {
        let mut turns = Vec::new();
        while let Some(when) = race.deadline() {
            turns.push((when.since(at(0)).as_millis() as u64, race.poll(when).unwrap()));
        }
        turns
    }

    #[test]
    fn attempts_follow_one_another() {
        // RFC 8305 5: Connection Attempt Delay
        assert_eq!(turns(&mut race(3)), [(0, pair(0)), (250, pair(1)), (500, pair(2))]);
        let mut race = race(2);
        assert_eq!(race.poll(at(0)), Some(pair(0)));
        assert_eq!(race.poll(at(249)), None);
        assert_eq!(race.poll(at(250)), Some(pair(1)));
        assert_eq!((race.poll(at(9999)), race.deadline()), (None, None));
    }

    #[test]
    fn a_failure_brings_the_next_at_once() {
        let mut race = race(4);
        assert_eq!(race.poll(at(0)), Some(pair(0)));
        race.on_failed(at(7));
        assert_eq!(race.deadline(), Some(at(7)));
        assert_eq!(turns(&mut race), [(7, pair(1)), (257, pair(2)), (507, pair(3))]);
    }

    #[test]
    fn an_answer_holds_the_others_back_for_a_while() {
        let mut race = race(3);
        assert_eq!(race.poll(at(0)), Some(pair(0)));
        race.on_answered(at(200), at(0));
        assert_eq!(race.deadline(), Some(at(600)));
        // A fast answer holds them back for the usual delay.
        assert_eq!(race.poll(at(600)), Some(pair(1)));
        race.on_answered(at(601), at(600));
        assert_eq!(race.deadline(), Some(at(851)));
        // What was answered may fail all the same.
        race.on_failed(at(700));
        assert_eq!(turns(&mut race), [(700, pair(2))]);
    }

    #[test]
    fn another_network_is_tried_sooner() {
        // RFC 8305 8: at least 10 ms
        let locals = ["10.0.0.1:1", "10.0.1.1:1", "10.0.1.1:2", "[2001:db8::1]:1", "[2001:db8::2]:1"].map(address);
        let pairs = locals.map(|local| FourTuple { local, remote: address("10.9.0.1:443") });
        let mut race = Race::new(at(0), DELAYS, pairs);
        let times: Vec<_> = turns(&mut race).iter().map(|(at, _)| *at).collect();
        // The same address again, and then another IP version, may be the same network.
        assert_eq!(times, [0, 10, 260, 510, 520]);
        let mut race = Race::new(at(0), DELAYS, pairs);
        race.poll(at(0));
        race.on_answered(at(9), at(0));
        assert_eq!(race.deadline(), Some(at(27)), "one that was answered gets twice its time");
    }

    #[test]
    fn attempts_are_few() {
        let mut many = Race::new(at(0), DELAYS, (0..1000).map(|n| pair(n % 500)));
        assert_eq!(turns(&mut many).len(), MAX_CONNECT_ATTEMPTS);
        let mut same = Race::new(at(0), DELAYS, [pair(1), pair(1), pair(2)]);
        assert_eq!(turns(&mut same), [(0, pair(1)), (250, pair(2))]);
    }

    #[test]
    fn what_differs_least_comes_first() {
        let locals = ["10.0.0.1:1", "10.0.1.1:1", "[2001:db8::1]:1"].map(address);
        let remotes = ["10.9.0.1:443", "10.9.0.2:443", "[2001:db8::9]:443"].map(address);
        let found: Vec<_> = pairs(&locals, &remotes).iter().map(|p| (p.local, p.remote)).collect();
        let expected = [
            (locals[0], remotes[0]),
            (locals[1], remotes[0]),
            (locals[2], remotes[2]),
            (locals[0], remotes[1]),
            (locals[1], remotes[1]),
        ];
        assert_eq!(found, expected);
        assert_eq!(pairs(&locals[2..], &remotes[..2]), []);
    }
}
