//! When the first slow start holds its window, goes on, or ends.

use super::*;
use crate::controller::HomeSample;
use crate::facts::acked;

const PACKETS: u64 = 20;
const BASE_MS: f64 = 80.0;

/// A path of 80 ms that acknowledges 1000 bytes each millisecond while packets wait: it holds 80,000 bytes.
struct Play {
    onset: Onset,
    window: u64,
    now: Instant,
    rounds: u64,
    /// What is in flight instead of the window.
    flight: Option<u64>,
    home: Option<HomeSample>,
    /// Smallest RTT by the way that acks take.
    min_ms: f64,
    shortcut: Duration,
}

impl Play {
    /// A window of 100,000 bytes after one round without a queue.
    fn new() -> Self {
        let mut play = Self {
            onset: Onset::default(),
            window: 80_000,
            now: Instant::from_nanos(1_000_000_000),
            rounds: 0,
            flight: None,
            home: None,
            min_ms: BASE_MS,
            shortcut: Duration::ZERO,
        };
        play.round(|_| BASE_MS);
        play
    }

    /// One round of acks a millisecond apart, each with the delay of its packet; the window is in flight. How much it grew.
    fn round(&mut self, delay_ms: impl Fn(u64) -> f64) -> i64 {
        let before = self.window;
        (0..PACKETS).for_each(|i| self.ack(i, delay_ms(i), 1000));
        self.rounds += 1;
        self.window as i64 - before as i64
    }

    fn ack(&mut self, i: u64, delay_ms: f64, eligible: u64) {
        self.now += Duration::from_millis(1);
        let mut ack = acked(1000);
        (ack.now, ack.largest, ack.next_number) = (self.now, self.rounds * PACKETS + i, (self.rounds + 1) * PACKETS);
        ack.rtt.min = Duration::from_secs_f64(self.min_ms / 1e3);
        ack.rtt.latest = Duration::from_secs_f64(delay_ms / 1e3);
        ack.rtt.via = Some(PathId(u32::from(self.min_ms != BASE_MS)));
        (ack.in_flight, ack.delivery.flight_bytes) = (50_000, self.flight.unwrap_or(self.window));
        (ack.rtt.home, ack.rtt.shortcut) = (self.home, self.shortcut);
        self.window = self.onset.on_acked(&ack, eligible, self.window);
    }

    /// Its newest packet is acked by its own way too, after so long; 120 ms are the least.
    fn home(&mut self, rtt_ms: u64) {
        let (rtt, min) = (Duration::from_millis(rtt_ms), Duration::from_millis(120));
        self.home = Some(HomeSample { number: self.rounds * PACKETS, at: self.now, rtt, min, other: None });
    }
}

#[test]
fn without_a_queue_it_never_ends() {
    let mut play = Play::new();
    assert!((0..20).all(|_| play.round(|_| BASE_MS + 4.9) == 20_000), "5 ms are a sixteenth of 80");
    assert!(!play.onset.is_over() && !play.onset.is_holding());
}

#[test]
fn a_queue_at_the_end_of_a_round_holds_the_window_at_what_the_path_holds() {
    let mut play = Play::new();
    // 8 samples over an eighth of 80 ms: the eleventh packet that waits gives the alarm, and 9 of 20 come too early.
    let grown = play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
    assert!(play.onset.is_holding());
    // A fifth above 80,000 bytes, of which the window keeps no more.
    assert_eq!((grown, play.window), (-4_000, 96_000));
    assert_eq!(play.round(|_| BASE_MS + 6.0), 0, "packets that left before");
    assert!(play.onset.is_holding());
}

#[test]
fn that_is_what_the_acks_of_one_round_trip_by_the_own_way_are_for() {
    // Acks are home after 80 ms of 100, and bytes that they free count until then.
    let mut play = Play { shortcut: Duration::from_millis(20), window: 140_000, ..Play::new() };
    play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
    assert_eq!(play.window, 120_000);
}

#[test]
fn a_smaller_window_doubles_up_to_that_level() {
    let mut play = Play::new();
    play.window = 75_000;
    play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
    assert!(play.onset.is_holding());
    assert_eq!(play.window, 94_000, "19 packets acked before the alarm");
    assert_eq!(play.round(|_| BASE_MS + 6.0), 2_000);
}

#[test]
fn packets_that_wait_longer_at_a_larger_window_end_it() {
    let mut play = Play::new();
    play.round(|_| BASE_MS + 10.0);
    play.round(|_| BASE_MS + 10.0);
    assert!(play.onset.is_holding());
    // All of a round waited: an eighth more.
    let held = play.window;
    play.round(|_| BASE_MS + 10.0);
    assert_eq!(play.window, held + held / 8);
    play.round(|_| BASE_MS + 21.0);
    assert!(play.onset.is_holding() && !play.onset.is_over(), "the last that left before");
    let over = (0..5).any(|_| {
        play.round(|_| BASE_MS + 21.0);
        play.onset.is_over()
    });
    assert!(over);
}

#[test]
fn packets_that_wait_as_long_at_a_larger_window_end_the_alarm() {
    let mut play = Play::new();
    (0..8).for_each(|_| _ = play.round(|_| BASE_MS + 10.0));
    assert!(!play.onset.is_holding() && !play.onset.is_over(), "not by what this path has in its queue");
    assert_eq!(play.round(|_| BASE_MS + 10.0), 20_000, "doubling goes on");
}

#[test]
fn delays_that_vary_by_more_than_they_rose_end_the_alarm() {
    let mut play = Play::new();
    (0..3).for_each(|_| _ = play.round(|_| BASE_MS + 10.0));
    (0..4).for_each(|_| _ = play.round(|i| BASE_MS + 21.0 + if i % 2 == 0 { 30.0 } else { 0.0 }));
    assert!(!play.onset.is_holding() && !play.onset.is_over());
}

#[test]
fn packets_that_left_at_the_held_window_and_did_not_wait_end_the_alarm() {
    let mut play = Play::new();
    play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
    play.round(|i| if i > 4 { BASE_MS } else { BASE_MS + 6.0 });
    assert!(!play.onset.is_holding() && !play.onset.is_over());
    assert_eq!(play.round(|_| BASE_MS), 20_000, "doubling goes on");
}

#[test]
fn packets_that_left_with_less_in_flight_prove_nothing() {
    let mut play = Play::new();
    play.round(|_| BASE_MS + 6.0);
    // The application has little to send.
    play.flight = Some(40_000);
    (0..5).for_each(|_| _ = play.round(|i| if i == 0 { BASE_MS } else { BASE_MS + 6.0 }));
    assert!(play.onset.is_holding() && !play.onset.is_over());
}

#[test]
fn jitter_that_was_there_before_is_no_rise() {
    let jitter = |i: u64| BASE_MS + if i == 0 { 0.0 } else { 4.0 + (i % 2) as f64 * 8.0 };
    let mut play = Play::new();
    play.round(jitter);
    // 12 ms is what the delays of the round before differ by, and up and down is not how a queue fills.
    play.round(|_| BASE_MS + 11.0);
    play.round(|i| BASE_MS + if i == 0 { 0.0 } else { 10.0 + (i % 2) as f64 * 20.0 });
    assert!(!play.onset.is_holding());
}

#[test]
fn delays_that_went_up_and_down_before_have_to_be_exceeded_by_half() {
    for (rise_ms, holds) in [(8.5, false), (9.5, true)] {
        let mut play = Play::new();
        // What the sender's own bursts do: up to 6 ms, more than a sixteenth of the round trip, and back.
        play.round(|i| BASE_MS + if i == 0 { 0.0 } else { 1.5 + (i % 4) as f64 * 1.5 });
        play.round(|i| BASE_MS + if i < 5 { 0.0 } else { rise_ms });
        assert_eq!(play.onset.is_holding(), holds, "{rise_ms} ms");
    }
}

#[test]
fn delays_that_differed_by_less_than_a_rise_hide_no_queue() {
    let mut play = Play::new();
    play.round(|i| BASE_MS + if i == 0 { 0.0 } else { 1.0 + (i % 4) as f64 });
    play.round(|i| BASE_MS + if i < 5 { 0.0 } else { 6.0 });
    assert!(play.onset.is_holding());
}

#[test]
fn a_burst_and_a_gap_hide_no_queue_later_in_the_round() {
    let mut play = Play::new();
    play.round(|i| BASE_MS + if i < 3 { i as f64 * 8.0 } else { (i - 2) as f64 });
    assert!(play.onset.is_holding(), "{:?}", play.onset);
}

#[test]
fn delays_that_fall_back_are_no_queue() {
    let mut play = Play::new();
    play.round(|i| BASE_MS + 20.0 - (i % 2) as f64 * 10.0);
    assert!(!play.onset.is_holding());
}

#[test]
fn losses_show_the_window_at_which_the_packet_left() {
    let mut play = Play::new();
    let peak = play.window + 19_000;
    let before = play.now;
    play.round(|i| BASE_MS + if i < 9 { 0.0 } else { 6.0 });
    let struck = |play: &Play, sent_at| play.onset.struck(play.window, sent_at);
    assert_eq!((play.window, struck(&play, before), struck(&play, play.now)), (96_000, peak, peak));
    let after = play.now + Duration::from_nanos(1);
    play.round(|_| BASE_MS + 6.0);
    assert_eq!((struck(&play, before), struck(&play, after)), (peak, 96_000));
    // Where packets come out of order, a loss may be found when the hold is over.
    play.round(|_| BASE_MS);
    assert!(!play.onset.is_holding() && !play.onset.is_over());
    assert_eq!(struck(&play, before), peak.max(play.window));
    assert_eq!(struck(&play, after), play.window);
}

#[test]
fn one_bunch_of_acks_is_one_sample() {
    let mut play = Play::new();
    for i in 0..PACKETS {
        play.now = Instant::from_nanos(2_000_000_000);
        play.ack(i, BASE_MS + 30.0, 1000);
    }
    assert!(!play.onset.is_holding());
}

#[test]
fn a_window_that_is_not_in_use_stays() {
    let mut play = Play::new();
    (0..PACKETS).for_each(|i| play.ack(i, BASE_MS + 30.0, 0));
    assert_eq!((play.window, play.onset.is_holding()), (100_000, false));
}

#[test]
fn acks_that_come_back_another_way_are_no_rise() {
    let mut play = Play::new();
    // All acks of a round, every third of the next, and the first of one more take a way that is longer by a quarter.
    for is_other in [|_| true, |i| i % 3 == 0, |i| i == 0, |_| false] {
        for i in 0..PACKETS {
            play.min_ms = if is_other(i) { BASE_MS * 1.25 } else { BASE_MS };
            play.ack(i, play.min_ms, 1000);
        }
        play.rounds += 1;
    }
    assert_eq!((play.window, play.onset.is_holding()), (180_000, false));
    // A wait is one on either way.
    play.min_ms = BASE_MS * 1.25;
    play.round(|_| BASE_MS * 1.25 + 6.0);
    assert!(play.onset.is_holding());
}

#[test]
fn a_smallest_round_trip_that_is_learnt_anew_is_no_rise() {
    let mut play = Play::new();
    // RFC 9002 5.2: after persistent congestion, on a route that became longer.
    let mut ack = acked(1000);
    ack.rtt.via = Some(PathId(0));
    (ack.rtt.min, ack.rtt.latest) = (Duration::from_millis(100), Duration::from_millis(106));
    assert!(play.onset.scale.take_in(&ack.rtt));
    let placed = play.onset.scale.place(&ack.rtt);
    assert_eq!((placed.min, placed.latest), (Duration::from_millis(80), Duration::from_millis(86)));
}

#[test]
fn acks_that_go_back_and_forth_hide_no_queue() {
    let mut play = Play::new();
    // The other way is longer by a fifth; the queue grows by 8 ms a round, whichever way acks take.
    let round = |number: u64| {
        play.min_ms = if number.is_multiple_of(2) { BASE_MS } else { BASE_MS * 1.2 };
        let way = play.min_ms;
        play.round(|i| way + 8.0 * (number as f64 + i as f64 / PACKETS as f64));
        play.onset.is_over()
    };
    assert!((0..30).any(round), "slow start goes on for ever");
}

/// A held window, of which no packet has come home yet by its own way.
fn held() -> Play {
    let mut play = Play::new();
    play.home(120);
    play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
    assert!(play.onset.is_holding());
    play
}

#[test]
fn a_packet_that_comes_home_without_a_wait_ends_the_alarm() {
    let mut play = held();
    assert_eq!(play.round(|_| BASE_MS + 6.0), 0, "the one that did left before");
    play.home(135);
    assert_eq!(play.round(|_| BASE_MS + 6.0), 20_000, "an eighth is no wait");
    assert!(!play.onset.is_holding());
    // What waits on the way that acks take is not heard of any more,
    assert_eq!(play.round(|i| BASE_MS + 30.0 + i as f64), 20_000);
    // until packets that come home wait as well.
    play.home(136);
    play.round(|_| BASE_MS + 30.0);
    play.round(|_| BASE_MS + 60.0);
    assert!(play.onset.is_holding());
}

#[test]
fn one_that_hardly_waited_elsewhere_ends_no_alarm() {
    let ends = |rtt_ms: u64, other_ms: u64| {
        let mut play = held();
        play.round(|_| BASE_MS + 6.0);
        play.home(rtt_ms);
        play.home = play.home.map(|home| HomeSample { other: Some(Duration::from_millis(other_ms)), ..home });
        play.round(|_| BASE_MS + 6.0);
        !play.onset.is_holding()
    };
    assert!(ends(121, 86));
    assert!(!ends(121, 84), "after a pause it waited on neither way");
    assert!(!ends(130, 90), "the queue is on the way there");
    assert!(ends(130, 120));
}

#[test]
fn one_that_waits_at_home_too_proves_a_queue() {
    let mut play = held();
    play.home(136);
    play.round(|_| BASE_MS + 6.0);
    assert!(play.onset.is_holding());
}

#[test]
fn acks_that_go_home_leave_behind_the_queue_of_another_way() {
    // 120 ms are the least by the own way: 135 ms are no wait, 136 are one.
    for (was_away, rtt_ms, is_held) in [(true, 135.0, false), (true, 136.0, true), (false, 90.0, true)] {
        let mut play = Play::new();
        if was_away {
            play.home(120);
        }
        play.round(|i| if i < 9 { BASE_MS } else { BASE_MS + 6.0 });
        play.home = None;
        // What left before the alarm proves nothing.
        play.rounds -= 1;
        play.ack(PACKETS - 1, rtt_ms, 0);
        assert!(play.onset.is_holding());
        play.rounds += 1;
        play.ack(0, rtt_ms, 0);
        assert_eq!(play.onset.is_holding(), is_held, "{rtt_ms}");
    }
}

#[test]
fn what_came_home_long_ago_tells_nothing_of_today() {
    let mut play = held();
    play.round(|_| BASE_MS + 6.0);
    play.home(120);
    play.round(|_| BASE_MS + 6.0);
    // Deaf for two round trips of 120 ms, then again two rounds to an alarm.
    let rounds = (0..40).take_while(|round| {
        play.round(|_| BASE_MS + 30.0 + f64::from(20 * round));
        !play.onset.is_holding()
    });
    let rounds = rounds.count();
    assert!((10..16).contains(&rounds), "{rounds}");
}

#[test]
fn the_end_waits_for_a_packet_to_come_home() {
    let rounds_until_over = |home: Option<u64>| {
        let mut play = Play::new();
        home.into_iter().for_each(|rtt_ms| play.home(rtt_ms));
        let rounds = (0..40).take_while(|round| {
            play.round(|_| BASE_MS + if *round < 3 { 10.0 } else { 21.0 });
            !play.onset.is_over()
        });
        rounds.count()
    };
    let without = rounds_until_over(None);
    // 240 ms after the alarm, in rounds of 20 ms.
    assert!(without < 9 && (11..15).contains(&rounds_until_over(Some(120))), "{without}");
}
