//! The relay over real sockets: what arrives, not when, because test machines are busy.

use std::time::Duration;

use plait_netsim::link::{DropCause, Loss};

use super::*;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn relay(server: &UdpSocket, link: LinkConfig) -> Relay {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = server.local_addr().unwrap();
    Relay::start(RelayConfig { listen, server, up: link.clone(), down: link, seed: 1 }).unwrap()
}

#[test]
fn carries_both_ways_and_keeps_clients_apart() {
    let server = socket();
    let relay = relay(&server, LinkConfig::new(100_000_000, Duration::from_millis(2)));
    let clients = [socket(), socket()];
    let mut buffer = [0; 2000];
    let mut seen = Vec::new();
    for (n, client) in clients.iter().enumerate() {
        let clock = Clock::start();
        client.send_to(&[n as u8; 1200], relay.address()).unwrap();
        let (size, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..size], &[n as u8; 1200]);
        server.send_to(b"answer", from).unwrap();
        let (size, answered) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..size], answered), (&b"answer"[..], relay.address()));
        // Never early: twice the delay and the time on the wire.
        assert!(clock.elapsed() >= Duration::from_millis(4));
        seen.push(from);
    }
    assert_ne!(seen[0], seen[1]);
    let (up, down) = relay.stats();
    assert_eq!((up.forwarded_packets, down.forwarded_packets), (2, 2));
}

#[test]
fn loses_what_the_link_loses() {
    let server = socket();
    let relay = relay(&server, LinkConfig::new(100_000_000, Duration::ZERO).loss(Loss::Bernoulli(1.0)));
    let client = socket();
    for _ in 0..5 {
        client.send_to(&[0; 100], relay.address()).unwrap();
    }
    while relay.stats().0.offered_packets < 5 {
        std::thread::yield_now();
    }
    assert_eq!(relay.stats().0.drops(DropCause::Loss), 5);
}

#[test]
fn nothing_passes_a_killed_relay() {
    let server = socket();
    let relay = relay(&server, LinkConfig::new(100_000_000, Duration::from_millis(1)));
    let client = socket();
    relay.kill();
    client.send_to(&[0; 100], relay.address()).unwrap();
    while relay.stats().0.offered_packets < 1 {
        std::thread::yield_now();
    }
    assert_eq!(relay.stats().0.drops(DropCause::Down), 1);
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    assert!(server.recv_from(&mut [0; 2000]).is_err());
}

#[test]
fn a_taken_port_is_an_error() {
    let server = socket();
    let taken = socket();
    let config = RelayConfig {
        listen: taken.local_addr().unwrap(),
        server: server.local_addr().unwrap(),
        up: LinkConfig::default(),
        down: LinkConfig::default(),
        seed: 1,
    };
    assert_eq!(Relay::start(config).unwrap_err().kind(), io::ErrorKind::AddrInUse);
}
