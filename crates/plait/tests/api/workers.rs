//! Connections whose paths are served by threads of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use plait::{Connection, Endpoint, EndpointConfig, ServerConfig, TransportConfig, WorkerFigures};

use super::pair::{Outcome, configs, run};

fn endpoint(server: Option<ServerConfig>, workers: usize, sockets: usize) -> Endpoint {
    let mut config = EndpointConfig::fresh().unwrap();
    config.workers(workers);
    Endpoint::new(config, server, vec![SocketAddr::from(([127, 0, 0, 1], 0)); sockets]).unwrap()
}

/// Both ends of a connection over so many paths between two addresses, each end with so many threads.
struct Ends {
    client: Connection,
    server: Connection,
    endpoints: [Endpoint; 2],
}

async fn connected(paths: usize, workers: [usize; 2]) -> Ends {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(plait::path_policy("fullmesh").unwrap()).max_concurrent_multipath_paths(8);
    // Every path carries something, however slow the reader is.
    transport.scheduler(plait::scheduler("round-robin").unwrap());
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let server_endpoint = endpoint(Some(server_config), workers[1], 1);
    let client_endpoint = endpoint(None, workers[0], paths);
    let connecting =
        client_endpoint.connect_with(client_config, server_endpoint.local_addr().unwrap(), "localhost").unwrap();
    let (client, server) = tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
    Ends { client: client.unwrap(), server: server.unwrap(), endpoints: [client_endpoint, server_endpoint] }
}

/// The byte of stream `salt` at `offset`.
fn byte(salt: u64, offset: usize) -> u8 {
    (offset as u64 ^ (offset as u64 >> 8).wrapping_mul(31) ^ salt.wrapping_mul(77)) as u8
}

/// Sends so many bytes on a stream of its own, and checks that they arrive.
async fn transfer(from: &Connection, to: &Connection, salt: u64, bytes: usize) -> Outcome {
    let send = async {
        let mut send = from.open_uni().await?;
        send.write_all(&salt.to_be_bytes()).await?;
        let mut at = 0;
        while at < bytes {
            let piece: Vec<u8> = (at..bytes.min(at + 100_000)).map(|at| byte(salt, at)).collect();
            at += piece.len();
            send.write_all(&piece).await?;
        }
        send.finish()?;
        send.stopped().await?;
        Outcome::Ok(())
    };
    let receive = async {
        let mut recv = to.accept_uni().await?;
        let mut name = [0; 8];
        recv.read_exact(&mut name).await?;
        let salt = u64::from_be_bytes(name);
        let mut at = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, plait::Order::Ordered).await? {
            assert!(chunk.bytes.iter().zip(at..).all(|(is, at)| *is == byte(salt, at)), "wrong bytes from {at} on");
            at += chunk.bytes.len();
        }
        assert_eq!(at, bytes);
        Outcome::Ok(())
    };
    let (sent, received) = tokio::join!(send, receive);
    sent.and(received)
}

const BYTES: usize = 20_000_000;

/// Whether a thread served a path that carried more than its control frames.
fn is_busy(worker: &WorkerFigures) -> bool {
    worker.loans > 0 && worker.sent_bytes + worker.received_bytes > BYTES as u64 / 10
}

#[test]
fn one_stream_is_right_up_and_down_whoever_has_threads() {
    for workers in [[2, 1], [1, 2], [2, 2]] {
        run(async move {
            let ends = connected(2, workers).await;
            // A path goes to a thread once a look finds it busy and at rest, which a short load may not meet.
            for turn in 0..10 {
                transfer(&ends.client, &ends.server, 2 * turn, BYTES).await?;
                transfer(&ends.server, &ends.client, 2 * turn + 1, BYTES).await?;
                if ends.endpoints.iter().flat_map(Endpoint::workers).all(|worker| is_busy(&worker)) {
                    break;
                }
            }
            for (endpoint, workers) in ends.endpoints.iter().zip(workers) {
                let figures = endpoint.workers();
                assert_eq!(figures.len(), if workers > 1 { workers } else { 0 });
                for worker in figures {
                    assert!(is_busy(&worker), "{workers:?}: {worker:?}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn many_streams_both_ways_at_once() {
    run(async {
        let ends = connected(3, [2, 2]).await;
        let streams = (0..10).map(|salt| {
            let (client, server) = (ends.client.clone(), ends.server.clone());
            tokio::spawn(async move {
                transfer(&client, &server, salt, 2_000_000).await.and(transfer(&server, &client, salt, 2_000_000).await)
            })
        });
        for stream in streams.collect::<Vec<_>>() {
            stream.await.unwrap()?;
        }
        Ok(())
    });
}
