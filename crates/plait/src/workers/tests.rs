//! What becomes of a connection when threads that serve its paths fail. The rings have room for two messages here.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{Connection, ConnectionError, Endpoint, EndpointConfig, PathId, ServerConfig, TransportConfig};

#[allow(dead_code)]
pub(super) mod support {
    extern crate self as plait;
    include!("../../doc/pair.in");
}
use support::{Outcome, configs, run};

fn endpoint(server: Option<ServerConfig>, sockets: usize) -> Endpoint {
    let mut config = EndpointConfig::fresh().unwrap();
    config.workers(2);
    Endpoint::new(config, server, vec![SocketAddr::from(([127, 0, 0, 1], 0)); sockets]).unwrap()
}

/// A client and a server with several paths, and two threads each.
pub(super) struct Ends {
    pub(super) client: Connection,
    pub(super) server: Connection,
    pub(super) client_endpoint: Endpoint,
    pub(super) server_endpoint: Endpoint,
}

async fn connected() -> Ends {
    connected_by("fullmesh", 2).await
}

/// The same with a policy that opens paths, and so many sockets of the client.
pub(super) async fn connected_by(path_policy: &str, sockets: usize) -> Ends {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(crate::path_policy(path_policy).unwrap());
    transport.scheduler(crate::scheduler("round-robin").unwrap());
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let (server_endpoint, client_endpoint) = (endpoint(Some(server_config), 1), endpoint(None, sockets));
    let connecting =
        client_endpoint.connect_with(client_config, server_endpoint.local_addr().unwrap(), "localhost").unwrap();
    let (client, server) = tokio::join!(connecting, async { server_endpoint.accept().await.unwrap().await });
    Ends { client: client.unwrap(), server: server.unwrap(), client_endpoint, server_endpoint }
}

const BYTES: usize = 10_000_000;

/// Sends bytes up, again and again until `trouble` has happened to the client, and checks that all arrive as they were sent.
async fn upload(ends: &Ends, trouble: impl Future<Output = ()>) -> Outcome {
    let has_happened = Cell::new(false);
    let happens = async {
        trouble.await;
        has_happened.set(true);
    };
    let uploads = async {
        while !has_happened.get() {
            upload_once(ends).await?;
        }
        // Once more, beginning after it.
        upload_once(ends).await
    };
    let ((), uploaded) = tokio::join!(happens, uploads);
    uploaded
}

pub(super) async fn upload_once(ends: &Ends) -> Outcome {
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
    let send = async {
        let mut send = ends.client.open_uni().await?;
        send.write_all(&bytes).await?;
        send.finish()?;
        send.stopped().await?;
        Outcome::Ok(())
    };
    let receive = async {
        let got = ends.server.accept_uni().await?.read_to_end(BYTES).await?;
        assert!(got == bytes, "wrong bytes");
        Outcome::Ok(())
    };
    let (sent, received) = tokio::join!(send, receive);
    sent.and(received)
}

/// Until both threads of the client serve a path.
async fn both_lent(ends: &Ends) {
    while ends.client_endpoint.workers().iter().any(|worker| worker.loans == 0) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_full_ring_holds_nobody_up_for_long() {
    run(async {
        let ends = connected().await;
        upload(&ends, both_lent(&ends)).await
    });
}

#[test]
fn no_thread_sends_another_train_once_the_peer_has_closed() {
    // RFC 9000 10.2.2
    run(async {
        let ends = connected().await;
        let closes = async {
            both_lent(&ends).await;
            ends.server.close(7, b"enough");
            ends.client.closed().await;
            // The train that was being sent meanwhile has left by then.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let sent = || ends.client_endpoint.workers().iter().map(|worker| worker.sent_bytes).collect::<Vec<_>>();
            let before = sent();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(sent(), before);
        };
        assert!(upload(&ends, closes).await.is_err(), "the upload ends with the connection");
        Ok(())
    });
}

#[test]
fn a_thread_that_panics_costs_its_path_and_no_byte() {
    run(async {
        let ends = connected().await;
        let panics = async {
            both_lent(&ends).await;
            ends.client_endpoint.shared().workers().unwrap().fault(1).unwrap().panic_once();
            while ends.client.path(PathId(1)).is_some() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let mut news = ends.client.path_events();
        upload(&ends, panics).await?;
        // On a machine that holds everybody up it may fall silent, and be given up, as any path.
        let mut has_failed = false;
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(1), news.next()).await {
            has_failed |= matches!(event, crate::PathEvent::Failed { id: PathId::ZERO });
        }
        assert!(ends.client.path(PathId::ZERO).is_some() || has_failed, "the other path is as it was");
        assert!(ends.client.close_reason().is_none());
        Ok(())
    });
}

#[test]
fn a_thread_that_stalls_is_not_waited_for_for_ever() {
    run(async {
        let ends = connected().await;
        let stalls = async {
            both_lent(&ends).await;
            ends.client_endpoint.shared().workers().unwrap().fault(1).unwrap().stall();
        };
        upload(&ends, stalls).await?;
        assert!(ends.client.close_reason().is_none());
        assert!(ends.client.path(PathId::ZERO).is_some(), "the other path is as it was");
        Ok(())
    });
}

#[test]
fn a_socket_that_takes_nothing_gives_its_path_back() {
    run(async {
        let ends = connected().await;
        let jams = async {
            both_lent(&ends).await;
            let socket = ends.client_endpoint.shared().lock().sockets.iter().nth(1).cloned().unwrap();
            socket.jam();
        };
        upload(&ends, jams).await
    });
}

#[test]
fn a_reader_that_pauses_stops_no_thread() {
    run(async {
        let ends = connected().await;
        let mut send = ends.client.open_uni().await?;
        let writes = async {
            send.write_all(&vec![7; BYTES]).await?;
            send.finish()?;
            send.stopped().await?;
            Outcome::Ok(())
        };
        let reads = async {
            let mut recv = ends.server.accept_uni().await?;
            let mut got = 0;
            while let Some(chunk) = recv.read_chunk(1 << 20, crate::Order::Ordered).await? {
                // Longer than anybody's patience, now and then.
                if got / 4_000_000 != (got + chunk.bytes.len()) / 4_000_000 {
                    tokio::time::sleep(Duration::from_millis(400)).await;
                }
                got += chunk.bytes.len();
            }
            assert_eq!(got, BYTES);
            Outcome::Ok(())
        };
        let (written, read) = tokio::join!(writes, reads);
        written.and(read)
    });
}

#[test]
fn a_path_that_waits_to_be_opened_ends_with_the_connection() {
    run(async {
        let ends = connected().await;
        let (client, server) = (ends.client.clone(), ends.server.clone());
        let trouble = async {
            both_lent(&ends).await;
            let remote = client.remote_address();
            let opening = loop {
                // All paths are needed for a new one, and this thread does not give its own back, if it has one just now.
                ends.client_endpoint.shared().workers().unwrap().freeze(1, Duration::from_millis(200));
                let opener = client.clone();
                let open = async move { opener.open_path((SocketAddr::from(([127, 0, 0, 1], 9)), remote)).await };
                let opening = tokio::spawn(open);
                tokio::time::sleep(Duration::from_millis(5)).await;
                if !opening.is_finished() {
                    break opening;
                }
            };
            server.close(7, b"enough");
            assert!(matches!(client.closed().await, ConnectionError::ApplicationClosed(_)));
            let opened = tokio::time::timeout(Duration::from_secs(5), opening).await.unwrap().unwrap();
            assert!(opened.is_err());
        };
        let uploaded = upload(&ends, trouble).await;
        assert!(uploaded.is_err(), "the connection is over");
        Ok(())
    });
}
