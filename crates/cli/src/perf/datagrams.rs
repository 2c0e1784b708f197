//! Datagrams at a rate, one way: how many are lost, late or unsteady.
//!
//! Each begins with its number and the time of its leaving in nanoseconds of the sender's clock, eight bytes each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use plait::{Connection, SendDatagramError};
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;

use super::load::DatagramLoad;
use crate::clock::Clock;
use crate::error::CliError;
use crate::units::rounded;

/// Number and time.
pub(crate) const STAMP_BYTES: usize = 16;
/// Longest pause between two looks at the clock: what is due meanwhile leaves at once.
const TICK: Duration = Duration::from_millis(1);
/// Shortest pause between two looks.
const LEAST_TICK: Duration = Duration::from_micros(100);
/// How long datagrams that are due are handed over before others have their turn.
const BURST: Duration = Duration::from_millis(10);
/// How long the path may grow to the size of a datagram, in round trips and beyond them, and how often that is looked at.
const SEARCH_RTTS: u32 = 20;
const SEARCH_TIME: Duration = Duration::from_secs(1);
const SEARCH_LOOK: Duration = Duration::from_millis(10);

/// What a receiver saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DatagramReport {
    /// Datagrams that came.
    pub(crate) received: u64,
    /// Bytes in these, stamps included.
    pub(crate) bytes: u64,
    /// Those that came after one which had left later.
    pub(crate) reordered: u64,
    /// Interarrival jitter (RFC 3550 6.4.1), milliseconds.
    pub(crate) jitter_ms: f64,
    /// Time from the first that came to the last, seconds.
    #[serde(default)]
    pub(crate) span_s: f64,
}

/// Counts datagrams as they come.
#[derive(Debug)]
pub(crate) struct DatagramTally {
    clock: Clock,
    report: DatagramReport,
    first: Option<Duration>,
    highest: Option<u64>,
    /// Arrival less departure of the one before, nanoseconds of two clocks.
    transit: Option<i128>,
    jitter_ns: f64,
}

impl DatagramTally {
    /// Nothing has come.
    pub(crate) fn new() -> Self {
        let (first, highest, transit) = (None, None, None);
        Self { clock: Clock::start(), report: DatagramReport::default(), first, highest, transit, jitter_ns: 0.0 }
    }

    /// One came now; what has no stamp is none of ours.
    pub(crate) fn on_datagram(&mut self, datagram: &[u8]) {
        self.on_datagram_at(self.clock.elapsed(), datagram);
    }

    fn on_datagram_at(&mut self, at: Duration, datagram: &[u8]) {
        let Some((number, rest)) = datagram.split_first_chunk::<8>() else { return };
        let Some((sent, _)) = rest.split_first_chunk::<8>() else { return };
        let (number, sent) = (u64::from_be_bytes(*number), u64::from_be_bytes(*sent));
        self.report.received += 1;
        self.report.bytes += datagram.len() as u64;
        let first = *self.first.get_or_insert(at);
        self.report.span_s = rounded(at.saturating_sub(first).as_secs_f64(), 6);
        if self.highest.is_some_and(|highest| number < highest) {
            self.report.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        let transit = at.as_nanos() as i128 - i128::from(sent);
        if let Some(before) = self.transit.replace(transit) {
            // RFC 3550 6.4.1: J += (|D| - J) / 16
            self.jitter_ns += ((transit - before).unsigned_abs() as f64 - self.jitter_ns) / 16.0;
        }
    }

    /// What it saw so far.
    pub(crate) fn report(&self) -> DatagramReport {
        DatagramReport { jitter_ms: rounded(self.jitter_ns / 1e6, 4), ..self.report }
    }
}

/// What is told of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DatagramSummary {
    /// Largest that the path takes at the end, bytes.
    pub(crate) max_bytes: Option<usize>,
    /// Bytes of each.
    pub(crate) size_bytes: u64,
    /// Rate asked for.
    pub(crate) asked_mbps: f64,
    /// Datagrams that we handed over.
    pub(crate) sent: u64,
    /// Those of them that our own queue dropped, because the path is slower than the rate.
    pub(crate) dropped_unsent: u64,
    /// Those that our own queue still had when the time was over; they leave late, or never.
    pub(crate) queued: u64,
    /// What the server saw; none where it does not say.
    pub(crate) received: Option<DatagramReport>,
    /// Share of those sent that never came; those dropped in our own queue, for want of a faster path, are among them.
    pub(crate) loss: Option<f64>,
}

impl DatagramSummary {
    /// What we know of it when the time is over; before it began, our queue had room for so many bytes.
    pub(crate) fn new(connection: &Connection, load: &DatagramLoad, sent: u64, room: usize) -> Self {
        let waiting = room.saturating_sub(connection.datagram_send_buffer_space()) as u64;
        Self {
            max_bytes: connection.max_datagram_size(),
            size_bytes: load.size_bytes,
            asked_mbps: load.rate_mbps,
            sent,
            dropped_unsent: connection.stats().datagrams_dropped_unsent,
            queued: waiting / load.size_bytes.max(1),
            received: None,
            loss: None,
        }
    }

    /// What the server saw.
    pub(crate) fn hear(&mut self, received: Option<DatagramReport>) {
        let share = |report: DatagramReport| self.sent.saturating_sub(report.received) as f64 / self.sent.max(1) as f64;
        self.loss = received.map(|report| rounded(share(report), 6));
        self.received = received;
    }

    /// Bytes that the server has, and the time that they took after a load of so many seconds: some came after its end. Where
    /// it does not tell, bytes that left.
    pub(crate) fn moved(&self, seconds: f64) -> (u64, f64) {
        match self.received {
            Some(received) => (received.bytes, seconds.max(received.span_s)),
            None => (self.sent.saturating_sub(self.dropped_unsent + self.queued) * self.size_bytes, seconds),
        }
    }
}

/// Waits until the path takes datagrams as long as those of `load`: the search for its MTU takes some round trips.
pub(crate) async fn wait_for_room(connection: &Connection, load: &DatagramLoad) -> Result<(), CliError> {
    let wanted = usize::try_from(load.size_bytes).unwrap_or(usize::MAX);
    let (clock, mut asked) = (Clock::start(), false);
    loop {
        match connection.max_datagram_size() {
            Some(most) if most >= wanted => return Ok(()),
            // A path without data is searched once datagrams are used. Without a stamp, this one counts nowhere.
            Some(_) if !std::mem::replace(&mut asked, true) => {
                connection.send_datagram(Bytes::new()).map_err(|error| refused(connection, &error))?;
            }
            Some(_) if clock.elapsed() < SEARCH_TIME + connection.rtt() * SEARCH_RTTS => {}
            Some(_) => return Err(refused(connection, &SendDatagramError::TooLarge)),
            None => return Err(refused(connection, &SendDatagramError::UnsupportedByPeer)),
        }
        tokio::time::sleep(SEARCH_LOOK).await;
    }
}

/// Sends at the rate of `load` for its time, or as fast as it can be done; `sent` counts them.
pub(crate) async fn send(connection: &Connection, load: &DatagramLoad, sent: &AtomicU64) -> Result<(), CliError> {
    let spacing_s = load.size_bytes as f64 * 8.0 / (load.rate_mbps * 1e6);
    let padding = Bytes::from(vec![0; usize::try_from(load.size_bytes).unwrap_or(0).saturating_sub(STAMP_BYTES)]);
    let clock = Clock::start();
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(spacing_s.min(1.0)).clamp(LEAST_TICK, TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut next = 0_u64;
    loop {
        ticks.tick().await;
        let (now, burst) = (clock.elapsed().min(load.time), Clock::start());
        let due = (now.as_secs_f64() / spacing_s) as u64;
        while next < due && burst.elapsed() < BURST {
            let mut datagram = BytesMut::with_capacity(STAMP_BYTES + padding.len());
            datagram.put_u64(next);
            datagram.put_u64(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX));
            datagram.extend_from_slice(&padding);
            connection.send_datagram(datagram.freeze()).map_err(|error| refused(connection, &error))?;
            next += 1;
            sent.store(next, Ordering::Relaxed);
        }
        if now == load.time {
            return Ok(());
        }
        // Others have their turn even where more is due than can be handed over.
        tokio::task::yield_now().await;
    }
}

fn refused(connection: &Connection, error: &SendDatagramError) -> CliError {
    let hint = match connection.max_datagram_size() {
        Some(most) => format!("the path takes {most} bytes at most, see -l"),
        None => "the server must take datagrams".to_owned(),
    };
    CliError::running(format!("a datagram could not be sent: {error}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(number: u64, sent_ms: u64) -> Vec<u8> {
        let mut datagram = BytesMut::new();
        datagram.put_u64(number);
        datagram.put_u64(sent_ms * 1_000_000);
        datagram.extend_from_slice(&[0; 84]);
        datagram.to_vec()
    }

    #[test]
    fn what_counts_is_what_came() {
        let (size_bytes, asked_mbps, max_bytes) = (100, 1.0, Some(1200));
        let (sent, dropped_unsent, received, loss) = (10, 4, None, None);
        let queued = 1;
        let mut told =
            DatagramSummary { max_bytes, size_bytes, asked_mbps, sent, dropped_unsent, queued, received, loss };
        told.hear(None);
        assert_eq!((told.moved(2.0), told.loss), ((500, 2.0), None));
        let came = DatagramReport { received: 5, bytes: 500, span_s: 1.5, ..DatagramReport::default() };
        told.hear(Some(came));
        assert_eq!((told.moved(2.0), told.loss), ((500, 2.0), Some(0.5)));
        // What our queue still had came after the time was over.
        told.hear(Some(DatagramReport { span_s: 2.5, ..came }));
        assert_eq!(told.moved(2.0), (500, 2.5));
    }

    #[test]
    fn arrivals_are_counted() {
        let mut tally = DatagramTally::new();
        // As far apart as they left, then one 16 ms late, which the next one overtakes.
        for (number, sent, came) in [(0, 0, 50), (1, 10, 60), (3, 30, 80), (2, 20, 86)] {
            tally.on_datagram_at(Duration::from_millis(came), &stamped(number, sent));
        }
        tally.on_datagram_at(Duration::from_millis(90), b"no stamp");
        let told = tally.report();
        assert_eq!((told.received, told.bytes, told.reordered), (4, 400, 1));
        assert_eq!((told.jitter_ms, told.span_s), (1.0, 0.036));
    }
}
