//! Handshakes over several pairs of addresses, of which some are dead.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plait::{
    Attempt, AttemptOutcome, ClientConfig, Connection, ConnectionError, Endpoint, PathEvent, ServerConfig, Unreachable,
};

use crate::pair::{Outcome, configs, endpoint, run};

const SHORT_DELAY: Duration = Duration::from_millis(50);
/// TLS alert no_application_protocol as a code of QUIC (RFC 9001 4.8).
const NO_ALPN: u64 = 0x178;

/// Somebody who never answers.
fn mute() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// An address at which nobody listens.
fn closed() -> SocketAddr {
    mute().1
}

/// A server that takes everybody, and its address.
fn serve(config: ServerConfig) -> (Endpoint, SocketAddr) {
    let server = endpoint(Some(config), &["127.0.0.1"]);
    let (address, accepting) = (server.local_addr().unwrap(), server.clone());
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    connection.closed().await;
                }
            });
        }
    });
    (server, address)
}

fn hasty(mut config: ClientConfig) -> ClientConfig {
    config.attempt_delay(SHORT_DELAY);
    config
}

fn outcomes(attempts: &[Attempt]) -> Vec<AttemptOutcome> {
    attempts.iter().map(|attempt| attempt.outcome.clone()).collect()
}

/// Both ends speak, and nothing is left of the other attempts once the connection ends.
async fn check(client: &Endpoint, connection: Connection) -> Outcome {
    connection.open_uni().await?.write_all(b"hello").await?;
    connection.close(0, b"");
    client.wait_idle().await;
    assert_eq!(client.open_connections(), 0);
    Ok(())
}

#[test]
fn a_dead_address_of_the_server_is_passed_over() {
    run(async {
        let (server_config, client_config) = configs();
        let (_server, address) = serve(server_config);
        let (_mute, dead) = mute();
        let client = endpoint(None, &["127.0.0.1"]);
        let connection = client.connect_any(hasty(client_config), &[dead, address], "localhost")?.await?;
        assert_eq!(connection.remote_address(), address);
        let attempts = connection.attempts();
        assert_eq!(outcomes(&attempts), [AttemptOutcome::Open, AttemptOutcome::Connected]);
        assert_eq!((attempts[0].tuple.remote, attempts[1].tuple.remote), (dead, address));
        assert!(attempts[1].after >= SHORT_DELAY, "{attempts:?}");
        check(&client, connection).await
    });
}

#[test]
fn one_attempt_is_enough_where_all_is_well() {
    run(async {
        let (server_config, client_config) = configs();
        let (server, address) = serve(server_config);
        let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
        let connection = client.connect_with(client_config, address, "localhost")?.await?;
        assert_eq!(outcomes(&connection.attempts()), [AttemptOutcome::Connected]);
        assert_eq!((client.open_connections(), server.open_connections()), (1, 1));
        check(&client, connection).await
    });
}

/// Brings datagrams from clients to `server` and back, each way in half of `rtt`; counts those of each client.
async fn far_away(server: SocketAddr, rtt: Duration) -> (SocketAddr, Arc<Mutex<BTreeMap<IpAddr, usize>>>) {
    relay(server, rtt, |_, _| true).await
}

/// The same, but for datagrams of clients that do not pass.
async fn relay(
    server: SocketAddr,
    rtt: Duration,
    mut passes: impl FnMut(IpAddr, &[u8]) -> bool + Send + 'static,
) -> (SocketAddr, Arc<Mutex<BTreeMap<IpAddr, usize>>>) {
    let front = Arc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let (address, counts) = (front.local_addr().unwrap(), Arc::new(Mutex::new(BTreeMap::new())));
    let counted = Arc::clone(&counts);
    tokio::spawn(async move {
        let (mut backs, mut buffer) = (BTreeMap::new(), vec![0; 65_536]);
        while let Ok((len, client)) = front.recv_from(&mut buffer).await {
            *counted.lock().unwrap().entry(client.ip()).or_default() += 1;
            if !passes(client.ip(), &buffer[..len]) {
                continue;
            }
            if let Entry::Vacant(vacant) = backs.entry(client) {
                let back = Arc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
                tokio::spawn(pass_back(Arc::clone(&back), Arc::clone(&front), client, rtt / 2));
                vacant.insert(back);
            }
            deliver(&backs[&client], buffer[..len].to_vec(), server, rtt / 2);
        }
    });
    (address, counts)
}

async fn pass_back(
    back: Arc<tokio::net::UdpSocket>,
    front: Arc<tokio::net::UdpSocket>,
    to: SocketAddr,
    after: Duration,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok((len, _)) = back.recv_from(&mut buffer).await {
        deliver(&front, buffer[..len].to_vec(), to, after);
    }
}

fn deliver(by: &Arc<tokio::net::UdpSocket>, datagram: Vec<u8>, to: SocketAddr, after: Duration) {
    let by = Arc::clone(by);
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        let _ = by.send_to(&datagram, to).await;
    });
}

#[test]
fn a_known_round_trip_spares_the_second_attempt() {
    run(async {
        let (server_config, client_config) = configs();
        let (_server, address) = serve(server_config);
        let (address, counts) = far_away(address, Duration::from_millis(500)).await;
        let config = hasty(client_config);
        let other: IpAddr = "127.0.0.2".parse()?;
        for round in 0.. {
            let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
            let connection = client.connect_with(config.clone(), address, "localhost")?.await?;
            let attempts = connection.attempts();
            connection.open_uni().await?.write_all(b"hello").await?;
            // Tokens come after the handshake, and so does what the losers have to say.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            connection.close(0, b"");
            let spent = counts.lock().unwrap().remove(&other).unwrap_or_default();
            println!("round {round}: {} attempts, {spent} datagrams by the second address", attempts.len());
            match round {
                0 => assert!(attempts.len() == 2 && spent >= 1, "nothing was known: {attempts:?}"),
                // A machine that stands still for a quarter of a second looks like a server that does not answer.
                1 | 2 if attempts.len() > 1 => {}
                _ => {
                    assert_eq!((attempts.len(), spent), (1, 0), "{attempts:?}");
                    break;
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_attempt_that_loses_is_closed_at_once() {
    // RFC 9000 10.2.3, RFC 8305 8: 10 ms at least
    run(async {
        let (server_config, mut config) = configs();
        let (server, address) = serve(server_config);
        let (address, counts) = far_away(address, Duration::from_millis(200)).await;
        config.attempt_delay(Duration::ZERO);
        let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
        let connection = client.connect_with(config, address, "localhost")?.await?;
        let attempts = connection.attempts();
        assert_eq!(attempts.len(), 2, "{attempts:?}");
        assert!(attempts[1].after >= Duration::from_millis(10), "{attempts:?}");
        let won = attempts.iter().find(|attempt| attempt.outcome == AttemptOutcome::Connected);
        let lost = attempts.iter().find(|attempt| attempt.outcome != AttemptOutcome::Connected).unwrap();
        assert_eq!(connection.local_ip(), won.map(|attempt| attempt.tuple.local.ip()));
        // The first packet, and what tells the server: it would keep the connection for its idle time otherwise.
        let spent = || counts.lock().unwrap().get(&lost.tuple.local.ip()).copied().unwrap_or_default();
        let told = async {
            while spent() < 2 || server.open_connections() > 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), told).await?;
        check(&client, connection).await
    });
}

#[test]
fn the_attempt_that_loses_proves_its_address() {
    // RFC 10069 3.1-4
    run(async {
        let (server_config, mut config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let other: IpAddr = "127.0.0.2".parse()?;
        // The first large packet of the path passes, its challenge. No answer to the server's does, which is as large.
        let mut large = 0;
        let passes = move |from: IpAddr, datagram: &[u8]| {
            let is_large = from == other && datagram[0] & 0x80 == 0 && datagram.len() >= 1_000;
            large += usize::from(is_large);
            !is_large || large == 1
        };
        let (address, _) = relay(server.local_addr()?, Duration::from_millis(200), passes).await;
        config.attempt_delay(Duration::ZERO);
        let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
        let (accepted, mut far) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                let accepted = accepted.clone();
                tokio::spawn(async move { incoming.await.map(|connection| accepted.send(connection)) });
            }
        });
        let near = client.connect_with(config, address, "localhost")?.await?;
        assert_eq!(near.attempts().len(), 2, "{:?}", near.attempts());
        if near.local_ip() == Some(other) {
            // The machine stood still, and the second attempt was the first to be answered: nothing to see.
            return check(&client, near).await;
        }
        let mut events = far.recv().await.unwrap().path_events();
        let _path = near.open_path((other, address)).await?;
        loop {
            match tokio::time::timeout(Duration::from_secs(10), events.next()).await?.unwrap() {
                PathEvent::Established { .. } => return check(&client, near).await,
                PathEvent::Abandoned { id, .. } => panic!("{id:?} was given up, unproven"),
                _ => {}
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_port_ends_it_at_once() {
    run(async {
        let (_, client_config) = configs();
        let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
        // Less than the idle timeout, which would end it too.
        let mut connecting = client.connect_with(client_config, closed(), "localhost")?;
        let refused = ConnectionError::Unreachable(Unreachable::Port);
        assert_eq!((&mut connecting).await.err(), Some(refused.clone()));
        let failed = AttemptOutcome::Failed(refused);
        assert_eq!(outcomes(&connecting.attempts()), [failed.clone(), failed]);
        client.wait_idle().await;
        Ok(())
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_refusal_brings_the_next_attempt() {
    run(async {
        let (server_config, client_config) = configs();
        let (_server, address) = serve(server_config);
        let client = endpoint(None, &["127.0.0.1"]);
        let connection = client.connect_any(client_config, &[closed(), address], "localhost")?.await?;
        let refused = AttemptOutcome::Failed(ConnectionError::Unreachable(Unreachable::Port));
        assert_eq!(outcomes(&connection.attempts()), [refused, AttemptOutcome::Connected]);
        check(&client, connection).await
    });
}

#[test]
fn what_the_server_says_for_certain_ends_it() {
    run(async {
        let (server_config, _) = configs();
        let (_server, address) = serve(server_config);
        let (_mute, dead) = mute();
        let client = endpoint(None, &["127.0.0.1"]);
        let other = ClientConfig::insecure(["something else"])?;
        let ended = client.connect_any(hasty(other), &[dead, address], "localhost")?.await;
        let Err(ConnectionError::ConnectionClosed(error)) = ended else { panic!("{ended:?}") };
        assert_eq!(error.code.0, NO_ALPN);
        client.wait_idle().await;
        Ok(())
    });
}

#[test]
fn a_call_that_is_dropped_leaves_nothing_behind() {
    run(async {
        let (_, client_config) = configs();
        let client = endpoint(None, &["127.0.0.1", "127.0.0.2"]);
        let (_mute, dead) = mute();
        let mut connecting = client.connect_with(hasty(client_config), dead, "localhost")?;
        // Cancelled and taken up again.
        while connecting.attempts().len() < 2 {
            let _ = tokio::time::timeout(Duration::from_millis(5), &mut connecting).await;
        }
        assert_eq!(client.open_connections(), 2);
        drop(connecting);
        client.wait_idle().await;
        Ok(())
    });
}

#[test]
fn no_address_is_no_attempt() {
    run(async {
        let (_, client_config) = configs();
        let client = endpoint(None, &["127.0.0.1"]);
        let none = client.connect_any(client_config.clone(), &[], "localhost");
        assert_eq!(none.err(), Some(plait::ConnectError::NoAddress));
        let v6: SocketAddr = "[::1]:4433".parse()?;
        let other = client.connect_any(client_config, &[v6], "localhost");
        assert_eq!(other.err(), Some(plait::ConnectError::NoSocket(v6)));
        Ok(())
    });
}

#[test]
fn further_attempts_are_made_without_a_handle_of_the_endpoint() {
    run(async {
        let (server_config, client_config) = configs();
        let (_server, address) = serve(server_config);
        let (_mute, silent) = mute();
        let client = endpoint(None, &["127.0.0.1"]);
        let connecting = client.connect_any(hasty(client_config), &[silent, address], "localhost")?;
        drop(client);
        let connection = tokio::time::timeout(Duration::from_secs(5), connecting).await??;
        assert_eq!(connection.remote_address(), address);
        Ok(())
    });
}
