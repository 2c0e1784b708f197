//! Draws a world, a transfer and faults from a seed.

use std::time::Duration;

use plait_base::Random;
use plait_engine::Version;
use plait_netsim::Damage;
use plait_netsim::link::{Jitter, LinkConfig, Loss, Order as Ordering, QueueLimit, Reorder};

use super::{End, Fault, Leg, Pairing, Trial, Width};
use crate::peers::{Kind, Order, PeerOptions, Request, Welcome};

/// IPv4 and UDP headers, bytes.
const HEADERS_BYTES: u32 = 28;
/// What every QUIC path must carry (RFC 9000 14), bytes.
const PAYLOAD_MIN_BYTES: u64 = 1200;
const KEEP_ALIVE: Duration = Duration::from_millis(800);

impl Trial {
    /// The trial of this pairing and seed.
    pub fn draw(pairing: Pairing, seed: u64) -> Self {
        let mut random = Random::from_u64(seed.wrapping_mul(31).wrapping_add(pairing.name.len() as u64));
        let r = &mut random;
        let count = match pairing.width {
            Width::Single => 1,
            Width::Several => 2 + r.below(2) as usize,
        };
        let mut legs: Vec<Leg> = (0..count).map(|_| leg(r)).collect();
        let requests = requests(r);
        let bytes: u64 = requests.iter().map(|q| q.bytes).sum();
        let expected = expected(&legs, bytes);
        let mut faults = faults(r, &pairing, count, expected);
        faults.sort_by_key(|(at, _)| *at);
        spare_peers(&pairing, &mut legs, &mut faults);
        let moves = faults.iter().any(|(_, f)| matches!(f, Fault::NewPort(_) | Fault::NewAddress(_)));
        let options = PeerOptions {
            welcome: if r.chance(0.2) { Welcome::Retry } else { Welcome::Direct },
            version: if only_plait(&pairing) && r.chance(0.3) { Version::V2 } else { Version::V1 },
            // Not drawn: seeds mean what they meant before servers had a preference.
            prefers: Some(Version::V2).filter(|_| only_plait(&pairing) && seed.is_multiple_of(3)),
            // A client that is silent behind a NAT which forgot it can never be reached.
            keep_alive: moves.then_some(KEEP_ALIVE),
            ..PeerOptions::default()
        };
        // quinn and noq as clients never accept a Retry after a damaged one.
        let flips = options.welcome == Welcome::Direct || pairing.client.is_plait();
        let outages: Duration =
            faults.iter().map(|(_, f)| if let Fault::Outage(_, d) = f { *d } else { Duration::ZERO }).sum();
        Self {
            pairing,
            seed,
            damage: if flips && r.chance(0.7) { Damage::Flip } else { Damage::Checksum },
            options,
            requests,
            closer: if r.chance(0.5) { End::Client } else { End::Server },
            limit: Duration::from_secs(12) + expected * 8 + outages * 6,
            legs,
            faults,
        }
    }
}

fn only_plait(pairing: &Pairing) -> bool {
    pairing.client.is_plait() && pairing.server.is_plait()
}

fn between(r: &mut Random, low: u64, high: u64) -> u64 {
    low + r.below(high - low + 1)
}

fn millis(r: &mut Random, low: u64, high: u64) -> Duration {
    Duration::from_millis(between(r, low, high))
}

fn leg(r: &mut Random) -> Leg {
    let rate = 1_000_000 * [1, 2, 5, 10, 20, 50][r.below(6) as usize];
    let delay = millis(r, 1, 100);
    let mtu = (between(r, PAYLOAD_MIN_BYTES, 1472)) as u32 + HEADERS_BYTES;
    let queue = millis(r, 10, 200);
    let forward = link(r, (rate, delay, queue, mtu));
    let backward = link(r, (rate, delay, queue, mtu));
    Leg { forward, backward }
}

fn link(r: &mut Random, (rate, delay, queue, mtu): (u64, Duration, Duration, u32)) -> LinkConfig {
    let bytes = (rate as f64 / 8.0 * queue.as_secs_f64()) as u64;
    let mut link = LinkConfig::new(rate, delay)
        .queue(QueueLimit::bytes(bytes.max(between(r, 8, 30) * 1500)))
        .sizes(mtu, HEADERS_BYTES);
    link.loss = match r.below(4) {
        0 => Loss::None,
        1 => Loss::Bernoulli(r.unit() * 0.005),
        2 => Loss::Bernoulli(r.unit() * 0.03),
        // Bursts count datagrams: a long one outlasts every probe of a handshake, and no peer can help that.
        _ => Loss::bursts(r.unit() * 0.02, 2.0 + r.unit() * 1.5),
    };
    if r.chance(0.3) {
        link.reorder = Reorder { probability: r.unit() * 0.05, extra: millis(r, 1, 30) };
    }
    if r.chance(0.2) {
        link =
            link.jitter(Jitter::Uniform(millis(r, 1, 10)), if r.chance(0.5) { Ordering::Free } else { Ordering::Kept });
    }
    if r.chance(0.3) {
        link.duplicate = r.unit() * 0.05;
    }
    if r.chance(0.3) {
        link.corrupt = r.unit() * 0.01;
    }
    link
}

/// 50 to 500 KB, as one stream or many.
fn requests(r: &mut Random) -> Vec<Request> {
    let total = between(r, 50_000, 500_000);
    let count = match r.below(3) {
        0 => 1,
        1 => between(r, 2, 5),
        _ => between(r, 10, 150),
    };
    (0..count)
        .map(|i| {
            let bytes = match r.below(10) {
                0 => 0,
                1 => between(r, 1, 100),
                _ => total / count,
            };
            let request = if r.chance(0.6) { Request::download(bytes) } else { Request::upload(bytes) };
            Request { seed: request.seed ^ (i << 32), ..request }
        })
        .collect()
}

/// How long the transfer may take on the worst path alone, if nothing happens to it.
fn expected(legs: &[Leg], bytes: u64) -> Duration {
    let one = |link: &LinkConfig| {
        let plait_netsim::link::Rate::Fixed(rate) = link.rate else { return 0.0 };
        let loss = match link.loss {
            Loss::Bernoulli(p) => p,
            Loss::GilbertElliott { to_bad, to_good, .. } => to_bad / (to_bad + to_good),
            _ => 0.0,
        } + link.corrupt;
        let rtt = link.delay.as_secs_f64() * 2.0 + 0.05;
        // The throughput of a window that halves at every loss (Mathis et al., 1997).
        let window = 1200.0 * 1.2 / (rtt * loss.max(1e-4).sqrt());
        bytes as f64 / window.min(rate as f64 / 8.0 * 0.5) + 8.0 * rtt
    };
    let worst = legs.iter().flat_map(|leg| [&leg.forward, &leg.backward]).map(one).fold(0.0, f64::max);
    Duration::from_secs_f64(worst)
}

fn faults(r: &mut Random, pairing: &Pairing, legs: usize, expected: Duration) -> Vec<(Duration, Fault)> {
    let mut faults = Vec::new();
    let count = r.below(5);
    for _ in 0..count {
        let at = expected.mul_f64(r.unit() * r.unit());
        let leg = r.below(legs as u64) as usize;
        let end = if r.chance(0.5) { End::Client } else { End::Server };
        let fault = match r.below(if legs > 1 { 8 } else { 5 }) {
            0 => Fault::NewPort(leg),
            1 => Fault::NewAddress(leg),
            2 => Fault::Outage(leg, millis(r, 200, if legs > 1 { 3000 } else { 1000 })),
            3 => Fault::Shrink(leg, PAYLOAD_MIN_BYTES as u32 + HEADERS_BYTES),
            4 => Fault::Order(end, Order::UpdateKeys),
            5 => Fault::Order(end, Order::ClosePath(leg)),
            6 => Fault::Order(end, Order::Backup(leg)),
            _ => Fault::Order(end, Order::Available(leg)),
        };
        if is_fair(pairing, legs, &faults, &fault) {
            faults.push((at, fault));
        }
    }
    faults
}

/// Faults that the peers are not made for stay away from them.
fn is_fair(pairing: &Pairing, legs: usize, so_far: &[(Duration, Fault)], fault: &Fault) -> bool {
    match fault {
        // quinn and noq update at once even while their last update is unconfirmed: one is enough for them.
        Fault::Order(_, Order::UpdateKeys) if !only_plait(pairing) => {
            !so_far.iter().any(|(_, f)| matches!(f, Fault::Order(_, Order::UpdateKeys)))
        }
        // Both ends may close different paths at the same time; one must be left.
        Fault::Order(_, Order::ClosePath(_)) => {
            let closed = |f: &Fault| matches!(f, Fault::Order(_, Order::ClosePath(_)));
            so_far.iter().filter(|(_, f)| closed(f)).count() + 1 < legs
        }
        _ => true,
    }
}

/// Takes out what a peer is known not to survive; the faults themselves stay theirs.
fn spare_peers(pairing: &Pairing, legs: &mut [Leg], faults: &mut Vec<(Duration, Fault)>) {
    let moved: Vec<usize> = faults
        .iter()
        .filter_map(|(_, f)| match f {
            Fault::NewPort(leg) | Fault::NewAddress(leg) => Some(*leg),
            _ => None,
        })
        .collect();
    if !pairing.server.is_plait() {
        // quinn and noq keep the MTU of the old address and put PATH_CHALLENGE into full packets: nothing passes.
        faults.retain(|(_, f)| !matches!(f, Fault::Shrink(leg, _) if moved.contains(leg)));
    }
    let noq_ends =
        [(pairing.client, End::Client), (pairing.server, End::Server)].map(|(k, e)| (k == Kind::Noq).then_some(e));
    let mut gentle: Vec<usize> = Vec::new();
    if pairing.server == Kind::Noq {
        // noq does not repeat the PATH_CHALLENGE of a migration: lost once, the path stays mute.
        faults.retain(|(_, f)| !matches!(f, Fault::Outage(leg, _) if moved.contains(leg)));
        gentle.extend(&moved);
    }
    // noq now and then falls silent, with data unsent, after it closed a path where packets were being lost.
    let closes = |f: &Fault| matches!(f, Fault::Order(end, Order::ClosePath(_)) if noq_ends.contains(&Some(*end)));
    if faults.iter().any(|(_, f)| closes(f)) {
        gentle.extend(0..legs.len());
        faults.retain(|(_, f)| !matches!(f, Fault::Outage(..) | Fault::Shrink(..)));
    }
    for leg in gentle {
        for link in [&mut legs[leg].forward, &mut legs[leg].backward] {
            (link.loss, link.corrupt) = (Loss::None, 0.0);
            link.queue = QueueLimit::bytes(1 << 20);
        }
    }
}
