//! How exact the links are on this machine: packets of known times sent through them, against what the model says.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::unistd::gettid;
use plait_sim::scenario::{Scenario, Traces, Tree};

use crate::clock::{ClockPoint, pause};
use crate::emulator::{Emulator, LinkRecord};
use crate::error::LabError;
use crate::host::{Family, Hosts, Layout};
use crate::tool;

/// Rates that are measured: Mbit/s of each path, and paths.
const RATES: [(f64, usize); 6] = [(0.1, 1), (1.0, 1), (10.0, 1), (50.0, 1), (100.0, 1), (100.0, 2)];
/// The most that paths carry together in what is measured, Mbit/s.
pub(crate) fn measured_mbps() -> f64 {
    RATES.iter().map(|(rate, paths)| rate * *paths as f64).fold(0.0, f64::max)
}

/// How long each of both measurements of a rate sends.
const SEND_TIME: Duration = Duration::from_secs(2);
/// The link's own delay, and the share that it loses.
const DELAY: Duration = Duration::from_millis(10);
const LOSS: f64 = 0.01;
/// Shares of the rate at which packets are sent: delays are measured below it, the rate itself above.
const BELOW: f64 = 0.9;
const ABOVE: f64 = 1.2;
/// Bytes of an IP packet: of slow links smaller ones, so that there are enough of them.
const PACKET_BYTES: usize = 1500;
const SMALL_PACKET_BYTES: usize = 200;
const SMALL_BELOW_MBPS: f64 = 2.0;
/// Headers of IPv4 and UDP in a packet.
const HEADER_BYTES: usize = 28;
/// From one burst of the sender to the next.
const TICK: Duration = Duration::from_micros(500);
/// Priority of the threads that measure, below the loop's: the links are measured, not who else wants the processor.
const PRIORITY: u8 = 5;
/// Silence after which nothing more comes.
const SILENCE: Duration = Duration::from_millis(300);

/// What holds for a machine on which runs count.
const RATE_ERROR_MAX: f64 = 0.001;
const ADDED_MEDIAN_MAX: Duration = Duration::from_micros(200);
const ADDED_P99_MAX: Duration = Duration::from_millis(1);

/// How exact the links were at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Rate of each path, Mbit/s.
    pub rate_mbps: f64,
    /// Paths at once.
    pub paths: usize,
    /// Packets whose delay was measured.
    pub packets: usize,
    /// The rate that was measured over the one that was asked for, less one.
    pub rate_error: f64,
    /// How much later than the model says packets came to the other host's application: median, p99 and the most, seconds.
    pub added_s: [f64; 3],
    /// Mean difference of the delay added to neighbours (RFC 3550 6.4.1), seconds.
    pub jitter_s: f64,
    /// The share of packets lost, less the one that was asked for.
    pub loss_error: f64,
    /// Packets that were lost though the link had not dropped them.
    pub astray: u64,
    /// How late the loop handed 99 of 100 packets over, seconds.
    pub late_p99_s: f64,
    /// Whether it is exact enough for runs to count.
    pub is_good: bool,
}

/// When packets of a path left and came, by their number.
struct Trip {
    sent: Vec<ClockPoint>,
    came: Vec<Option<ClockPoint>>,
}

/// Measures every rate; `on` hears of each.
///
/// # Errors
/// The hosts cannot be built, or it was told to stop.
pub(super) fn measure(files: &Path, stop: &AtomicBool, mut on: impl FnMut(&Accuracy)) -> Result<(), LabError> {
    for (place, (rate_mbps, paths)) in RATES.into_iter().enumerate() {
        let folder = |kind| files.join(format!("accuracy-{place}-{kind}"));
        let (trips, record) = send(&folder("rate"), (rate_mbps, paths, 0.0), ABOVE, stop)?;
        let size = packet_bytes(rate_mbps);
        let errors = trips.iter().map(|trip| rate_of(trip, size) / (rate_mbps * 1e6) - 1.0);
        let rate_error = errors.fold(0.0, |worst: f64, error| if error.abs() > worst.abs() { error } else { worst });
        let refused = record.refused;
        let (trips, record) = send(&folder("delay"), (rate_mbps, paths, LOSS), BELOW, stop)?;
        let mut added: Vec<f64> = trips.iter().flat_map(|trip| added(trip, size, rate_mbps)).collect();
        let steps = added.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let jitter_s = steps.sum::<f64>() / added.len().saturating_sub(1).max(1) as f64;
        added.sort_unstable_by(f64::total_cmp);
        let (offered, carried) = record.traffic.iter().fold((0, 0), |(offered, carried), link| {
            (offered + link.up.offered_packets, carried + link.up.forwarded_packets)
        });
        let at = |share: f64| added.get(((added.len().saturating_sub(1)) as f64 * share).round() as usize);
        let added_s = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or_default());
        let is_good = rate_error.abs() <= RATE_ERROR_MAX
            && added_s[0] <= ADDED_MEDIAN_MAX.as_secs_f64()
            && added_s[1] <= ADDED_P99_MAX.as_secs_f64();
        on(&Accuracy {
            rate_mbps,
            paths,
            packets: added.len(),
            rate_error,
            added_s,
            jitter_s,
            loss_error: (offered - carried) as f64 / offered.max(1) as f64 - LOSS,
            astray: carried.saturating_sub(added.len() as u64) + refused,
            late_p99_s: record.lateness.quantile(0.99).as_secs_f64(),
            is_good,
        });
    }
    Ok(())
}

fn packet_bytes(rate_mbps: f64) -> usize {
    if rate_mbps < SMALL_BELOW_MBPS { SMALL_PACKET_BYTES } else { PACKET_BYTES }
}

/// Equal links both ways, whose queue holds whatever is sent here.
fn scenario((rate_mbps, paths, loss): (f64, usize, f64)) -> Result<Scenario, LabError> {
    let delay_ms = DELAY.as_secs_f64() * 1e3;
    let path = format!("[[path]]\nrate_mbps = {rate_mbps:.3}\ndown = {{ delay_ms = {delay_ms:.1} }}\n");
    let up = format!("up = {{ delay_ms = {delay_ms:.1}, loss = {loss:.3} }}\nqueue_ms = 10000.0\n");
    let text = format!("{}[transfer]\nkind = \"download\"\nbytes = 1\n", (path + &up).repeat(paths));
    Ok(Scenario::read(&Tree::parse("accuracy", &text)?, &Traces::default())?)
}

/// Sends packets from client to server at `share` of the rate.
fn send(
    folder: &Path,
    network: (f64, usize, f64),
    share: f64,
    stop: &AtomicBool,
) -> Result<(Vec<Trip>, LinkRecord), LabError> {
    let (scenario, (rate_mbps, paths, _)) = (scenario(network)?, network);
    std::fs::create_dir_all(folder).map_err(LabError::file(folder))?;
    let (hosts, ends) = Hosts::build(&Layout::of(&scenario, Family::V4), folder)?;
    let server = hosts.ways.first().map(|way| way.server).ok_or(LabError::Stopped)?;
    let failed = || LabError::io("a socket on a host");
    let hear = hosts.server.inside(|| UdpSocket::bind(server))?.map_err(failed())?;
    hear.set_read_timeout(Some(SILENCE)).map_err(failed())?;
    let mut say = Vec::new();
    for way in &hosts.ways {
        let client = way.client;
        let socket = hosts.client.inside(|| UdpSocket::bind((client, 0)))?.map_err(failed())?;
        socket.connect(server).map_err(failed())?;
        say.push(socket);
    }
    let emulator = Emulator::start(&scenario, 1, ends)?;
    let size = packet_bytes(rate_mbps);
    let period = Duration::from_secs_f64(size as f64 * 8.0 / (rate_mbps * 1e6 * share));
    let over = AtomicBool::new(false);
    let (sent, came) = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            tool::raise(gettid(), PRIORITY);
            listen(&hear, paths, &over)
        });
        let speaking = scope.spawn(|| {
            tool::raise(gettid(), PRIORITY);
            speak(&say, (size, period), stop)
        });
        let sent = speaking.join().unwrap_or_default();
        over.store(true, Ordering::Relaxed);
        (sent, hearing.join().unwrap_or_default())
    });
    let record = emulator.stop();
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::Stopped);
    }
    let trip = |(sent, came): (Vec<ClockPoint>, Vec<(usize, ClockPoint)>)| {
        let mut times = vec![None; sent.len()];
        for (number, at) in came {
            if let Some(time) = times.get_mut(number) {
                *time = Some(at);
            }
        }
        Trip { sent, came: times }
    };
    Ok((sent.into_iter().zip(came).map(trip).collect(), record))
}

/// Sends packets of every path, one a period; gives their times.
fn speak(sockets: &[UdpSocket], (size, period): (usize, Duration), stop: &AtomicBool) -> Vec<Vec<ClockPoint>> {
    let begun = ClockPoint::now();
    let mut sent = vec![Vec::new(); sockets.len()];
    let mut packet = vec![0; size - HEADER_BYTES];
    while !stop.load(Ordering::Relaxed) {
        let passed = ClockPoint::now().since(begun);
        if passed > SEND_TIME {
            break;
        }
        let wanted = (passed.as_secs_f64() / period.as_secs_f64()) as usize;
        for (path, (socket, times)) in sockets.iter().zip(&mut sent).enumerate() {
            while times.len() < wanted {
                packet[0] = path as u8;
                packet[1..9].copy_from_slice(&(times.len() as u64).to_be_bytes());
                times.push(ClockPoint::now());
                // One that is not sent is one that does not come.
                let _ = socket.send(&packet);
            }
        }
        pause(TICK);
    }
    sent
}

/// Hears packets until there are no more; gives the number and the time of each, by path.
fn listen(socket: &UdpSocket, paths: usize, over: &AtomicBool) -> Vec<Vec<(usize, ClockPoint)>> {
    let mut came = vec![Vec::new(); paths];
    let mut packet = [0; PACKET_BYTES];
    loop {
        let size = socket.recv(&mut packet);
        let now = ClockPoint::now();
        match size {
            Ok(9..) => {
                let number = packet[1..9].iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
                came.get_mut(usize::from(packet[0])).into_iter().for_each(|path| path.push((number, now)));
            }
            Ok(_) => {}
            Err(_) if over.load(Ordering::Relaxed) => return came,
            Err(_) => {}
        }
    }
}

/// Bits a second between the first and the last packet that came, those between them counted whether they came or not:
/// a host that takes too few is no slower link.
fn rate_of(trip: &Trip, size: usize) -> f64 {
    let mut came = trip.came.iter().enumerate().filter_map(|(number, at)| Some((number, (*at)?)));
    let (Some(first), Some(last)) = (came.next(), came.next_back()) else { return 0.0 };
    let seconds = last.1.since(first.1).as_secs_f64();
    if seconds > 0.0 { (last.0 - first.0) as f64 * size as f64 * 8.0 / seconds } else { 0.0 }
}

/// How much later than an exact link would have it each packet came, seconds.
fn added(trip: &Trip, size: usize, rate_mbps: f64) -> Vec<f64> {
    let takes = Duration::from_secs_f64(size as f64 * 8.0 / (rate_mbps * 1e6));
    let mut free = ClockPoint::default();
    let mut late = Vec::new();
    for (sent, came) in trip.sent.iter().zip(&trip.came) {
        free = ClockPoint(free.max(*sent).0 + takes);
        late.extend(came.map(|at| at.0.as_secs_f64() - (free.0 + DELAY).as_secs_f64()));
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> ClockPoint {
        ClockPoint(Duration::from_micros(us))
    }

    #[test]
    fn the_model_of_a_link_is_a_queue_and_a_delay() {
        // 1500 bytes at 12 Mbit/s take 1 ms: the second waits for the first, the third does not come, the fourth is 50 µs late.
        let sent = vec![at(0), at(200), at(300), at(9_000)];
        let came = vec![Some(at(11_000)), Some(at(12_000)), None, Some(at(20_050))];
        let late = added(&Trip { sent, came }, 1500, 12.0);
        let micros: Vec<i64> = late.iter().map(|s| (s * 1e6).round() as i64).collect();
        assert_eq!(micros, [0, 0, 50]);
    }

    #[test]
    fn rates_are_between_the_first_and_the_last() {
        let came = (0..101).map(|n| (n != 50).then(|| at(5_000 + 1_000 * n))).collect();
        let rate = rate_of(&Trip { sent: Vec::new(), came }, 1500);
        assert!((rate / 12e6 - 1.0).abs() < 1e-9, "{rate}");
        assert_eq!(rate_of(&Trip { sent: Vec::new(), came: vec![None] }, 1500), 0.0);
    }

    #[test]
    fn every_rate_has_a_scenario() {
        for (rate, paths) in RATES {
            let scenario = scenario((rate, paths, LOSS)).unwrap();
            assert_eq!((scenario.paths.len(), scenario.paths[0].own.up.delay), (paths, DELAY));
        }
    }
}
