//! What is asked for, when anew, and what probe time-outs reckon with meanwhile.

use plait_wire::frame::{Frame, Frames};

use super::*;

const MS: Duration = Duration::from_millis(1);
const USUAL: Duration = Duration::from_millis(25);
const WISH: AckWish = AckWish { eliciting_threshold: Some(24), max_ack_delay: None, reordering_threshold: None };

fn at(ms: u32) -> Instant {
    Instant::ZERO + MS * ms
}

fn facts(rtt_ms: u32, window_packets: u64, packet_threshold: u64) -> PathFacts {
    PathFacts { rtt: Some(MS * rtt_ms), window_packets: Some(window_packets), packet_threshold }
}

fn request(wish: AckWish) -> AckRequests {
    let mut requests = AckRequests::default();
    requests.ask(wish, MS, USUAL);
    requests
}

/// A look where it is time for one; little is sent.
fn look(request: &mut AckRequests, now: Instant, round_trip: Option<Duration>, facts: &PathFacts) {
    if request.is_review_due(now) && request.begin_review(now, round_trip, 0) {
        request.review(now, round_trip, facts);
    }
}

/// The frame that is due, as (sequence, packets, delay in microseconds, reordering).
fn written(request: &mut AckRequests) -> Option<(u64, u64, u64, u64)> {
    if !request.wants_frame() {
        return None;
    }
    let (mut bytes, mut sent) = (Vec::new(), Vec::new());
    request.ours_mut()?.fill(&mut FrameWriter::new(&mut bytes, 1200, &mut sent));
    let Some(Ok(Frame::AckFrequency(f))) = Frames::new(&bytes).next() else { panic!("{bytes:?}") };
    assert_eq!(sent, [SentFrame::AckFrequency(f.sequence)]);
    Some((f.sequence, f.ack_eliciting_threshold, f.max_ack_delay_us, f.reordering_threshold))
}

#[test]
fn what_suits_the_paths_is_asked_for() {
    let asked = |wish, facts: &PathFacts| {
        let mut request = request(wish);
        look(&mut request, at(0), Some(MS), facts);
        written(&mut request).map(|(_, packets, delay, reordering)| (packets, delay, reordering))
    };
    // A round trip, within what the peer can keep and would by itself; a quarter of the window.
    assert_eq!(asked(WISH, &facts(10, 1_000, 3)), Some((24, 10_000, 3)));
    assert_eq!(asked(WISH, &facts(0, 40, 9)), Some((10, 1_000, 9)));
    assert_eq!(asked(WISH, &facts(400, 2, 3)), Some((1, 25_000, 3)));
    let unknown = PathFacts { rtt: None, window_packets: None, packet_threshold: 3 };
    assert_eq!(asked(WISH, &unknown), Some((24, 25_000, 3)));
    // What the application says, within what the protocol lets it.
    let stated = |ms| AckWish { max_ack_delay: Some(MS * ms), reordering_threshold: Some(0), ..WISH };
    assert_eq!(asked(stated(90), &facts(10, 1_000, 3)), Some((24, 90_000, 0)));
    assert_eq!(asked(stated(0), &facts(10, 1_000, 3)), Some((24, 1_000, 0)));
    assert_eq!(asked(stated(1_000_000), &facts(10, 1_000, 3)), Some((24, 16_383_999, 0)));
    let each = AckWish { eliciting_threshold: Some(0), ..WISH };
    assert_eq!(asked(each, &facts(10, 1_000, 3)), Some((0, 10_000, 3)));
}

#[test]
fn it_is_asked_for_anew_where_that_makes_a_difference_and_at_a_pace() {
    let mut request = request(WISH);
    let mut next = |ms, now: &PathFacts| {
        look(&mut request, at(ms), Some(MS * 100), now);
        written(&mut request)
            .map(|(sequence, packets, delay, reordering)| (sequence, packets, delay / 1_000, reordering))
    };
    assert_eq!(next(0, &facts(20, 10, 3)), Some((0, 2, 20, 3)));
    assert_eq!(next(50, &facts(20, 20, 3)), None, "too soon");
    assert_eq!(next(100, &facts(20, 20, 3)), Some((1, 5, 20, 3)));
    assert_eq!(next(250, &facts(24, 24, 4)), None, "hardly moved");
    assert_eq!(next(350, &facts(8, 24, 4)), Some((2, 6, 8, 4)));
    assert_eq!(next(450, &facts(8, 24, 40)), Some((3, 6, 8, 40)));
    assert_eq!(next(600, &facts(8, 24, 40)), None);
}

#[test]
fn without_a_wish_a_peer_is_asked_where_paths_carry_much() {
    let mut request = request(AckWish::default());
    let (mut packets_sent, mut last) = (0, 0);
    let mut next = |ms, window, packets_in_250us| {
        packets_sent += u64::from(ms - last) * 4 * packets_in_250us;
        last = ms;
        if request.is_review_due(at(ms)) && request.begin_review(at(ms), Some(MS * 4), packets_sent) {
            request.review(at(ms), Some(MS * 4), &facts(4, window, 3));
        }
        let asked = written(&mut request);
        (asked, request.terms().peer_max_delay)
    };
    assert_eq!(next(0, 1_000, 0), (None, None));
    assert_eq!(next(10, 1_000, 9), (None, None), "few packets");
    assert_eq!(next(20, 36, 90), (None, None), "a quarter of the window is few");
    assert_eq!(next(30, 1_000, 60), (Some((0, 60, 1_000, 3)), Some(USUAL)));
    assert_eq!(next(39, 1_000, 90).0, None, "looked at lately");
    assert_eq!(next(40, 1_000, 80).0, None, "hardly moved");
    assert_eq!(next(50, 1_000, 100).0, Some((1, 100, 1_000, 3)));
    assert_eq!(next(60, 80, 100).0, Some((2, 20, 1_000, 3)), "a smaller window");
    // RFC 9000 13.2.2: every second packet, after any disorder, and within the delay that the peer announced
    assert_eq!(next(70, 1_000, 9).0, Some((3, 1, 25_000, 1)));
    assert_eq!(next(90, 1_000, 0).0, None);
    assert_eq!(next(100, 1_000, 10).0, Some((4, 10, 1_000, 3)));
}

#[test]
fn what_is_stated_is_asked_for_however_little_paths_carry() {
    let delay = AckWish { max_ack_delay: Some(MS * 7), ..AckWish::default() };
    let mut request = request(delay);
    assert_eq!(request.terms().peer_max_delay, Some(USUAL));
    look(&mut request, at(0), None, &facts(20, 1_000, 3));
    assert_eq!(written(&mut request), Some((0, 1, 7_000, 3)));
}

#[test]
fn the_newest_goes_again_as_things_are_then() {
    let mut request = request(WISH);
    look(&mut request, at(0), Some(MS), &facts(20, 10, 3));
    assert_eq!(written(&mut request), Some((0, 2, 20_000, 3)));
    look(&mut request, at(50), Some(MS), &facts(20, 40, 3));
    assert_eq!(written(&mut request), Some((1, 10, 20_000, 3)));
    request.ours_mut().unwrap().on_lost(0);
    assert!(!request.wants_frame(), "a newer one is on its way");
    request.ours_mut().unwrap().on_lost(1);
    look(&mut request, at(60), Some(MS), &facts(20, 44, 3));
    assert_eq!(written(&mut request), Some((2, 11, 20_000, 3)));
    request.ours_mut().unwrap().on_acked(2);
    request.ours_mut().unwrap().on_lost(2);
    assert!(!request.wants_frame());
}

#[test]
fn time_outs_reckon_with_the_longest_delay_that_may_hold() {
    // ACK_FREQUENCY draft, section 7
    let stated = |ms| AckWish { max_ack_delay: Some(MS * ms), ..WISH };
    let mut shorter = request(stated(5));
    look(&mut shorter, at(0), Some(MS), &facts(20, 100, 3));
    assert_eq!(shorter.terms().peer_max_delay, Some(USUAL));
    written(&mut shorter).unwrap();
    assert_eq!(shorter.terms().peer_max_delay, Some(USUAL), "it may not have arrived");
    shorter.ours_mut().unwrap().on_lost(0);
    assert_eq!(shorter.terms().peer_max_delay, Some(USUAL));
    written(&mut shorter).unwrap();
    shorter.ours_mut().unwrap().on_acked(0);
    assert_eq!(shorter.terms().peer_max_delay, Some(USUAL), "the ack of an older one");
    shorter.ours_mut().unwrap().on_acked(1);
    assert_eq!(shorter.terms().peer_max_delay, Some(MS * 5));

    let mut longer = request(stated(300));
    look(&mut longer, at(0), Some(MS), &facts(20, 100, 3));
    assert_eq!(longer.terms().peer_max_delay, Some(USUAL), "not asked for yet");
    written(&mut longer).unwrap();
    assert_eq!(longer.terms().peer_max_delay, Some(MS * 300), "it may have arrived");
    longer.ours_mut().unwrap().on_acked(0);
    assert_eq!(longer.terms().peer_max_delay, Some(MS * 300));
}

#[test]
fn the_peers_newest_word_counts() {
    let frame = |sequence, delay_us| AckFrequency {
        sequence,
        ack_eliciting_threshold: 9,
        max_ack_delay_us: delay_us,
        reordering_threshold: 0,
    };
    let mut requests = AckRequests::default();
    assert_eq!(requests.terms(), AckTerms::default());
    assert_eq!(requests.on_frame(&frame(3, 2_000)), Ok(true));
    for stale in [3, 2, 0] {
        assert_eq!(requests.on_frame(&frame(stale, 5_000)), Ok(false));
    }
    for invalid in [0, 999, 16_384_000, u64::MAX] {
        assert_eq!(requests.on_frame(&frame(9, invalid)), Err(Violation::AckDelayOutOfRange));
    }
    assert_eq!(requests.terms().ours, Some(AckPolicy::requested(9, MS * 2, 0)));
}
