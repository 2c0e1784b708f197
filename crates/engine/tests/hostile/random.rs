//! Nothing that arrives may cause a panic, an endless loop or a packet beyond what the rules allow.

use plait_base::{Dir, Random};
use plait_wire::varint;

use crate::puppet::{Packet, Rig, Setup, ms, tuple};
use crate::violations::raw;

/// Rounds of a test, times PLAIT_HOSTILE_ROUNDS where that is set: for long runs.
pub fn rounds(count: u64) -> u64 {
    let times = std::env::var("PLAIT_HOSTILE_ROUNDS").ok().and_then(|n| n.parse().ok());
    count * times.unwrap_or(1)
}

const ADDRESSES: [&str; 4] = [crate::puppet::PUPPET, "192.0.2.2:5000", "192.0.2.3:5000", "203.0.113.1:9"];

const TYPES: [u64; 46] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12,
    0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x30, 0x31, 0x3e, 0x3f, 0xaf, 0x3e75,
    0x3e76, 0x3e77, 0x3e78, 0x3e79, 0x3e7a, 0x3e7b, 0x3e7c, 0x21,
];

/// Mostly small numbers, now and then a large one.
fn number(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.below(1 << 62),
        1 => random.below(1 << 16),
        _ => random.below(9),
    }
}

fn frame(random: &mut Random, types: &[u64]) -> Vec<u8> {
    let kind = types[random.below(types.len() as u64) as usize];
    let mut out = raw(&[kind], &[]);
    for _ in 0..random.below(6) {
        varint::put(&mut out, number(random));
    }
    let mut tail = vec![0; random.below(30) as usize];
    random.fill(&mut tail);
    if random.chance(0.4) {
        out.extend_from_slice(&tail);
    }
    out
}

/// Frames that an honest peer might send, with figures near what is valid.
fn plausible(random: &mut Random) -> Vec<u8> {
    let small = |random: &mut Random| random.below(8);
    match random.below(14) {
        0 => crate::violations::stream(small(random) * 4, random.below(3_000), random.chance(0.1), &[1; 40]),
        1 => raw(&[0x04, small(random) * 4, 1, 3_000], &[]),
        2 => raw(&[0x05, small(random) * 4, 1], &[]),
        3 => raw(&[0x10, random.below(1 << 30)], &[]),
        4 => raw(&[0x3e76 + random.below(2), small(random), random.below(1_000)], &[]),
        5 => raw(&[0x3e75, small(random), 0], &[]),
        6 => raw(&[0x3e7a, 7 + random.below(20)], &[]),
        7 => raw(&[0x3e7b, small(random)], &[]),
        8 => [vec![0x1a], vec![random.below(256) as u8; 8]].concat(),
        9 => raw(&[0x31, 5], &[1; 5]),
        10 => raw(&[0x12, random.below(1_000)], &[]),
        11 => raw(&[0x3e79, 1 + random.below(7), 0], &[]),
        _ => vec![0x01],
    }
}

fn watch(rig: &mut Rig) {
    ADDRESSES[3..].iter().for_each(|a| rig.assert_amplification(a));
    rig.seen.clear();
    rig.wire.clear();
    rig.events.clear();
}

fn begin(seed: u64) -> Rig {
    let setup = Setup { seed, ..Setup::default() };
    if seed.is_multiple_of(2) { Rig::established_server(setup) } else { Rig::established_client(setup) }
}

#[test]
fn random_frames_never_panic() {
    for seed in 0..rounds(1_500) {
        let mut random = Random::from_u64(seed);
        let mut rig = begin(seed);
        for _ in 0..12 {
            let payload: Vec<u8> = (0..1 + random.below(3)).flat_map(|_| frame(&mut random, &TYPES)).collect();
            rig.send(Packet::one_rtt(payload));
            if random.chance(0.2) {
                rig.pass(ms(random.below(2_000)));
            }
            if !rig.is_open() {
                break;
            }
        }
        rig.pass(ms(3_000));
    }
}

#[test]
fn plausible_frames_on_any_path_from_anywhere_never_panic() {
    for seed in 0..rounds(150) {
        let mut random = Random::from_u64(seed ^ 0xabcd);
        let mut rig = begin(seed);
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        for _ in 0..120 {
            let path = if random.chance(0.5) { 0 } else { random.below(8) as u32 };
            if rig.peer.engine_cid(plait_base::PathId(path)).is_none() {
                continue;
            }
            let from = tuple(ADDRESSES[random.below(4) as usize]);
            let payload: Vec<u8> = (0..1 + random.below(4)).flat_map(|_| plausible(&mut random)).collect();
            let size = if random.chance(0.3) { 1200 } else { 0 };
            rig.send_all(from, &[Packet::one_rtt(payload).on(path).padded(size)]);
            match random.below(10) {
                0 => rig.pass(ms(random.below(3_000))),
                1 => rig.ack_all(),
                2 => {
                    let _ = rig.conn().send_stream(id).write(&[5; 5_000]);
                }
                3 => {
                    let from = rig.seen.len().saturating_sub(20);
                    ADDRESSES[..3].iter().for_each(|a| rig.answer_challenges(from, tuple(a), path));
                }
                4 => {
                    let now = rig.now;
                    let _ = rig.conn().update_keys(now);
                    let _ = rig.conn().close_path(now, plait_base::PathId(path), plait_base::CloseCode(u64::MAX));
                }
                _ => {}
            }
            if !rig.is_open() {
                break;
            }
            watch(&mut rig);
        }
        rig.pass(ms(60_000));
    }
}

#[test]
fn mutated_datagrams_never_panic() {
    for seed in 0..rounds(300) {
        let mut random = Random::from_u64(seed ^ 0x77);
        let mut rig = if seed.is_multiple_of(3) { crate::violations::half_way() } else { begin(seed) };
        for _ in 0..30 {
            let mut datagram = Vec::new();
            if rig.peer.one_rtt.is_some() {
                rig.peer
                    .seal(&Packet::one_rtt(plausible(&mut random)).padded(random.below(200) as usize), &mut datagram);
            } else {
                let kind = plait_wire::PacketKind::Initial;
                rig.peer.seal(&Packet::new(kind, frame(&mut random, &[0, 1, 2, 6, 0x1c])), &mut datagram);
            }
            for _ in 0..1 + random.below(4) {
                let at = random.below(datagram.len() as u64) as usize;
                match random.below(4) {
                    0 => datagram.truncate(at.max(1)),
                    1 => datagram[at] ^= 1 << random.below(8),
                    2 => datagram.insert(at, random.below(256) as u8),
                    _ => datagram.extend_from_slice(&[random.below(256) as u8; 20]),
                }
            }
            rig.deliver_from(tuple(ADDRESSES[random.below(2) as usize]), &datagram);
        }
        rig.pass(ms(100));
    }
}
