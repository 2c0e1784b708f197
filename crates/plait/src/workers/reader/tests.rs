//! Servers with a socket for each thread.

use std::net::SocketAddr;
use std::time::Duration;

use crate::workers::steer::refusal;
use crate::workers::tests::support::{Outcome, configs, run};
use crate::workers::tests::{Ends, connected_by, upload_once};
use crate::{Connection, Endpoint, EndpointConfig, EndpointError, PathId, ServerConfig};

fn server(address: SocketAddr, settings: ServerConfig) -> Result<Endpoint, EndpointError> {
    server_of(2, address, settings)
}

fn server_of(threads: usize, address: SocketAddr, settings: ServerConfig) -> Result<Endpoint, EndpointError> {
    let mut config = EndpointConfig::fresh().unwrap();
    config.workers(threads);
    Endpoint::new(config, Some(settings), [address])
}

/// How many datagrams the server's threads handed to each other.
fn handed_over(server: &Endpoint) -> u64 {
    server.workers().iter().map(|worker| worker.handed_over).sum()
}

/// How many datagrams of paths that a thread serves were handed to the one where the connection did not begin.
fn handed_to_other(ends: &Ends) -> u64 {
    let home = ends.server.shared.home.thread().unwrap();
    ends.server_endpoint.workers()[1 - home].handed_over
}

/// Both threads have served a path that carried much.
async fn both_busy(ends: &Ends) -> Outcome {
    let is_busy = |worker: &crate::WorkerFigures| worker.loans > 0 && worker.received_bytes > 1_000_000;
    for _ in 0..20 {
        upload_once(ends).await?;
        if ends.server_endpoint.workers().iter().all(is_busy) {
            return Outcome::Ok(());
        }
    }
    let at = [0, 1, 2].map(|id| ends.server.shared.routes.arrived_at(PathId(id)));
    panic!("arrived at {at:?}: {:?} {:?}", ends.server_endpoint.workers(), ends.server.stats());
}

/// Ends whose two paths the system deals to one socket of the server, or to both, by their addresses.
async fn dealt(to_one: bool) -> Ends {
    refusal::want();
    for _ in 0..100 {
        let ends = connected_by("fullmesh", 2).await;
        let at = |id| ends.server.shared.routes.arrived_at(PathId(id));
        while at(1).is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if (at(0) == at(1)) == to_one {
            return ends;
        }
    }
    panic!("a hundred pairs of ports were all dealt otherwise");
}

#[test]
fn each_thread_serves_a_path_wherever_its_datagrams_arrive() {
    for to_one in [true, false] {
        run(async {
            let ends = dealt(to_one).await;
            both_busy(&ends).await?;
            assert_eq!(handed_to_other(&ends) > 50, to_one, "{:?}", ends.server_endpoint.workers());
            Outcome::Ok(())
        });
    }
}

#[test]
fn paths_arrive_at_threads_of_their_own_whatever_their_addresses() {
    for _ in 0..4 {
        run(async {
            let ends = connected_by("fullmesh", 2).await;
            both_busy(&ends).await?;
            let at = |id| ends.server.shared.routes.arrived_at(PathId(id));
            let home = ends.server.shared.home.thread();
            assert_eq!((at(0), at(1)), (home, home.map(|thread| (thread + 1) % 2)));
            assert!(ends.server.shared.home.residence().is_none(), "what lends paths leaves its thread");
            // On a machine that holds a thread up, a path may be given up for another, which arrives at the other thread.
            let paths: Vec<PathId> = ends.server.paths().iter().map(crate::Path::id).collect();
            let is_as_dealt = handed_to_other(&ends) == 0 || paths != [PathId(0), PathId(1)];
            assert!(is_as_dealt, "{:?} {paths:?}", ends.server_endpoint.workers());
            Outcome::Ok(())
        });
    }
}

/// How many datagrams are handed over while a client moves from port to port, so often or until some are.
async fn handed_over_to_a_roamer(moves: u8) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let (server, connections) = clients(1).await?;
    let (client, near, far) = &connections[0];
    // RFC 9000 9: it moves once its handshake is confirmed.
    exchange((near, far), 0).await?;
    for salt in 0..moves {
        if handed_over(&server) > 0 {
            break;
        }
        client.rebind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        exchange((near, far), salt).await?;
    }
    Ok(handed_over(&server))
}

#[test]
fn a_client_that_moves_stays_with_its_thread() {
    run(async {
        assert_eq!(handed_over_to_a_roamer(8).await?, 0);
        // By addresses it does not, and is served all the same.
        refusal::want();
        assert!(handed_over_to_a_roamer(40).await? > 0);
        Outcome::Ok(())
    });
}

/// A client whose socket is replaced as soon as it may send: the server's word that the handshake is confirmed is on its way then, to
/// where it was.
async fn moves_at_once(threads: usize) -> Outcome {
    let (server_config, config) = configs();
    let server = server_of(threads, SocketAddr::from(([127, 0, 0, 1], 0)), server_config)?;
    let client = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let first = client.local_addr()?;
    let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
    let moves = async {
        let near = connecting.await?;
        let second = client.rebind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((near, second))
    };
    let (moved, far) = tokio::join!(moves, async { server.accept().await.unwrap().await });
    let ((near, second), far) = (moved?, far?);
    exchange((&near, &far), 0).await?;
    // RFC 9000 9: it left once it might.
    while far.remote_address() != second || Endpoint::client(first).is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    exchange((&near, &far), 1).await
}

#[test]
fn a_client_that_moves_before_its_handshake_is_confirmed_goes_on() {
    for threads in [1, 2, 1, 2, 1, 2] {
        run(moves_at_once(threads));
    }
}

/// Connections of clients with a socket each, with the endpoints of the clients.
async fn clients(count: usize) -> Result<(Endpoint, Vec<(Endpoint, Connection, Connection)>), EndpointError> {
    let (server_config, config) = configs();
    let server = server(SocketAddr::from(([127, 0, 0, 1], 0)), server_config)?;
    let mut connections = Vec::new();
    for _ in 0..count {
        let client = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let connecting = client.connect_with(config.clone(), server.local_addr().unwrap(), "localhost").unwrap();
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        connections.push((client, near.unwrap(), far.unwrap()));
    }
    Ok((server, connections))
}

/// Bytes both ways, and back whole.
async fn exchange((near, far): (&Connection, &Connection), salt: u8) -> Outcome {
    let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at ^ (at >> 8)) as u8 ^ salt).collect();
    for (from, to) in [(near, far), (far, near)] {
        let send = async {
            let mut send = from.open_uni().await?;
            send.write_all(&bytes).await?;
            send.finish()?;
            Outcome::Ok(())
        };
        let (sent, got) = tokio::join!(send, async {
            to.accept_uni()
                .await?
                .read_to_end(bytes.len())
                .await
                .map_err(Box::<dyn std::error::Error + Send + Sync>::from)
        });
        sent?;
        assert!(got? == bytes, "wrong bytes");
    }
    Outcome::Ok(())
}

#[test]
fn a_connection_lives_on_the_thread_where_it_arrives() {
    run(async {
        let (server, connections) = clients(16).await?;
        for (at, (_, near, far)) in connections.iter().enumerate() {
            exchange((near, far), at as u8).await?;
        }
        let mut by_thread = [0; 2];
        for (_, _, far) in &connections {
            by_thread[far.shared.home.thread().unwrap()] += 1;
            assert_eq!(far.shared.routes.arrived_at(PathId::ZERO), far.shared.home.thread());
        }
        let figures = server.workers();
        let took: Vec<u64> = figures.iter().map(|worker| worker.connections).collect();
        assert!(by_thread == took[..] && by_thread.iter().all(|count| *count > 0), "{by_thread:?} {took:?}");
        for worker in &figures {
            let share = worker.connections * 200_000;
            assert!(worker.received_bytes > share && worker.sent_bytes > share, "{figures:?}");
            assert_eq!((worker.handed_over, worker.loans), (0, 0), "{figures:?}");
        }
        let known = |thread| server.shared().workers().unwrap().directory(thread).unwrap().lock().connections();
        // Ids of paths to come lead to others.
        assert!([0, 1].iter().all(|thread| known(*thread) as u64 >= by_thread[*thread]));
        // What is known of them goes with them.
        connections.iter().for_each(|(_, near, _)| near.close(0, b""));
        let forgotten = async {
            while [0, 1].iter().any(|thread| known(*thread) > 0) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), forgotten).await?;
        Outcome::Ok(())
    });
}

/// The thread that a task beside the connection runs on.
async fn thread_of_a_task(connection: &Connection) -> Option<String> {
    connection.spawn(async { std::thread::current().name().map(str::to_owned) }).await.unwrap()
}

#[test]
fn a_task_beside_a_connection_runs_on_its_thread() {
    run(async {
        for (_, near, far) in &clients(4).await?.1 {
            let thread = far.shared.home.thread().map(|thread| format!("plait-worker-{thread}"));
            assert_eq!(thread_of_a_task(far).await, thread);
            assert!(!thread_of_a_task(near).await.is_some_and(|name| name.starts_with("plait-worker")));
        }
        // Threads that serve its paths are left to them, before they do and after.
        let ends = connected_by("fullmesh", 2).await;
        let is_on_a_worker =
            || async { thread_of_a_task(&ends.server).await.is_some_and(|name| name.starts_with("plait-worker")) };
        while ends.server.paths().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(!is_on_a_worker().await);
        both_busy(&ends).await?;
        assert!(!is_on_a_worker().await);
        Outcome::Ok(())
    });
}

#[test]
fn a_thread_that_stands_still_holds_up_its_own_connections_and_no_others() {
    run(async {
        let (server, connections) = clients(8).await?;
        let on = |thread| connections.iter().filter(move |(_, _, far)| far.shared.home.thread() == Some(thread));
        let still = Duration::from_secs(5);
        let before = tokio::time::Instant::now();
        server.shared().workers().unwrap().freeze(0, still);
        for (_, near, far) in on(1).take(1) {
            exchange((near, far), 1).await?;
        }
        assert!(on(1).count() == 0 || before.elapsed() < still, "{:?}", before.elapsed());
        for (_, near, far) in on(0) {
            exchange((near, far), 2).await?;
        }
        Outcome::Ok(())
    });
}

#[test]
fn a_connection_whose_task_falls_ends_alone() {
    run(async {
        let (server, connections) = clients(6).await?;
        let (_, near, far) = &connections[0];
        let thread = far.shared.home.thread().unwrap();
        server.shared().workers().unwrap().fault(thread).unwrap().panic_connection_once();
        near.send_datagram(bytes::Bytes::from_static(b"fall"))?;
        // It falls, or another of that thread that something woke before.
        let is_over = |(_, _, far): &(Endpoint, Connection, Connection)| far.close_reason().is_some();
        while !connections.iter().any(is_over) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (fallen, others): (Vec<_>, Vec<_>) = connections.iter().partition(|connection| is_over(connection));
        let [(_, _, fallen)] = fallen[..] else { panic!("{} fell", fallen.len()) };
        assert_eq!(fallen.shared.home.thread(), Some(thread));
        assert!(matches!(fallen.close_reason(), Some(crate::ConnectionError::TransportError(_))));
        for (_, near, far) in others {
            exchange((near, far), 3).await?;
        }
        Outcome::Ok(())
    });
}

#[test]
fn an_address_that_another_server_has_is_in_use_and_free_again_after_it() {
    run(async {
        let first = server(SocketAddr::from(([127, 0, 0, 1], 0)), configs().0)?;
        let address = first.local_addr()?;
        let refused = server(address, configs().0).unwrap_err().to_string();
        assert!(refused.contains("is in use"), "{refused}");
        assert!(Endpoint::client(address).is_err(), "nobody else gets a part of its datagrams");
        drop(first);
        // Its threads end with it.
        let closed = async {
            while server(address, configs().0).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await?;
        Outcome::Ok(())
    });
}

#[test]
fn a_socket_that_is_removed_is_closed_on_every_thread() {
    run(async {
        let server = server(SocketAddr::from(([127, 0, 0, 1], 0)), configs().0)?;
        let address = server.local_addr()?;
        assert!(server.remove_socket(address));
        let closed = async {
            while Endpoint::client(address).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), closed).await?;
        Outcome::Ok(())
    });
}
