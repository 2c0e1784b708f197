//! The probe timer in all its states.

use super::*;

#[test]
fn probe_time_out_and_backoff() {
    // RFC 9002 6.2, 7.5-1
    // RFC 9002 6.2.1-1, 6.2.1-4
    let mut b = Bench::new();
    b.send(0);
    b.ack(100, &[0..=0]).unwrap();
    assert_eq!(b.flow.deadline(), None, "nothing in flight");
    b.send(200);
    // 100 + 4 * 50 + 25
    assert_eq!((b.flow.pto(Space::Data), b.flow.deadline()), (MS * 325, Some(at(525))));
    assert_eq!(b.timeout(524), TimerFired::None);
    assert_eq!(b.timeout(525), TimerFired::Pto { space: Space::Data, count: 2 });
    assert_eq!((b.flow.probes_due(Space::Data), b.flow.pto_count()), (2, 1));
    b.send(525);
    b.send(526);
    assert_eq!(b.flow.probes_due(Space::Data), 0);
    assert_eq!(b.flow.deadline(), Some(at(526 + 650)));
    assert!(b.lost().is_empty(), "a time-out alone loses nothing");
    assert_eq!(b.timeout(1176), TimerFired::Pto { space: Space::Data, count: 2 });
    assert_eq!(b.flow.deadline(), Some(at(1176 + 1300)), "also when no probe could leave");
    b.ack(1200, &[1..=1]).unwrap();
    assert_eq!(b.flow.pto_count(), 0);
}

#[test]
fn backoff_ends_somewhere() {
    let mut b = Bench::new();
    b.send(0);
    for _ in 0..40 {
        let now = b.flow.deadline().unwrap();
        assert!(now.since(b.now) <= Duration::from_secs(60), "{now}");
        let (shared, feedback) = (&mut b.shared, &mut b.feedback);
        assert!(matches!(b.flow.on_timeout(now, shared, feedback), TimerFired::Pto { .. }));
        assert!(b.flow.deadline().unwrap() > now);
        b.now = now;
    }
    assert_eq!(b.flow.stats().timeouts, 40);
}

#[test]
fn earliest_space_first_and_data_only_when_confirmed() {
    // RFC 9002 6.2.1-2, 6.2.1-3
    let mut b = Bench::with(SendConfig { handshake: HandshakeState::Unconfirmed, ..SendConfig::default() });
    b.send(0);
    assert_eq!(b.flow.deadline(), None, "no probe time-out for data before confirmation");
    b.send_in(10, Space::Handshake, packet());
    b.send_in(5, Space::Initial, packet());
    assert_eq!(b.flow.deadline(), Some(at(5 + 999)));
    assert_eq!(b.timeout(1004), TimerFired::Pto { space: Space::Initial, count: 2 });
    b.flow.discard(at(1004), Space::Initial, &mut b.feedback);
    b.flow.discard(at(1004), Space::Handshake, &mut b.feedback);
    b.flow.set_handshake(at(1004), HandshakeState::Confirmed);
    assert_eq!(b.flow.deadline(), Some(at(1024)));
}

#[test]
fn client_does_not_deadlock() {
    // RFC 9000 8.1-4, 8.1-5
    // RFC 9002 6.2.2.1-2, 6.2.2.1-3, 6.2.2.1-4
    let config = SendConfig { handshake: HandshakeState::AwaitingServer, ..SendConfig::default() };
    let mut b = Bench::with(config);
    b.send_in(0, Space::Initial, packet());
    b.ack_with(100, Space::Initial, MS, None, &[0..=0]).unwrap();
    // In flight is nothing, yet the server may be out of credit.
    assert_eq!(b.flow.deadline(), Some(at(100 + 300)));
    assert_eq!(b.timeout(400), TimerFired::Pto { space: Space::Initial, count: 1 });
    b.flow.set_handshake(at(400), HandshakeState::AwaitingValidation);
    assert_eq!(b.timeout(1000), TimerFired::Pto { space: Space::Handshake, count: 1 });
    b.send_in(1000, Space::Handshake, packet());
    b.ack_with(1100, Space::Handshake, MS, None, &[0..=0]).unwrap();
    assert_eq!(b.flow.pto_count(), 2, "no reset before validation is known");
    b.flow.set_handshake(at(1100), HandshakeState::Unconfirmed);
    assert_eq!(b.flow.deadline(), None);
}

#[test]
fn amplification_limit_stops_probes() {
    // RFC 9002 6.2.2.1-1
    let mut b = Bench::with(SendConfig { handshake: HandshakeState::Unconfirmed, ..SendConfig::default() });
    b.send_in(0, Space::Initial, packet());
    b.flow.set_probe_gate(ProbeGate::Amplification);
    assert_eq!((b.flow.deadline(), b.timeout(9999)), (None, TimerFired::None));
    b.flow.set_probe_gate(ProbeGate::Open);
    assert_eq!(b.flow.deadline(), Some(at(999)), "overdue: fires at once");
}

#[test]
fn loss_timer_goes_before_probes() {
    // RFC 9002 6.2.1-5
    let mut b = Bench::new();
    b.send(0);
    b.ack(100, &[0..=0]).unwrap();
    b.send(200);
    b.send(210);
    b.ack(310, &[2..=2]).unwrap();
    assert_eq!(b.flow.deadline(), Some(at(200) + MS * 225 / 2));
    assert_eq!(b.timeout(320), TimerFired::Lost);
}
