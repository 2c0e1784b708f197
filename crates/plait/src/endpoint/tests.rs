//! Connections while a socket takes nothing.

use std::sync::Arc;
use std::time::Duration;

use super::Endpoint;
use crate::sockets::SharedSocket;
use crate::{Connection, PathState, TransportConfig};

#[allow(dead_code)]
mod support {
    extern crate self as plait;
    include!("../../doc/pair.in");
}
use support::{Outcome, configs, endpoint, run};

/// What waits for a full socket at most: the train that found it full.
const MAX_TRAIN_BYTES: u64 = 65_000;

/// A client with sockets on `ips` and the policy `fullmesh`, connected to a server on 127.0.0.1.
async fn connected(ips: &[&str]) -> (Endpoint, Connection, Connection) {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(crate::path_policy("fullmesh").unwrap());
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let server = endpoint(Some(server_config), &["127.0.0.1"]);
    let client = endpoint(None, ips);
    let connecting = client.connect_with(client_config, server.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    (client, near.unwrap(), far.unwrap())
}

fn sockets(endpoint: &Endpoint) -> Vec<Arc<SharedSocket>> {
    endpoint.shared.lock().sockets.iter().cloned().collect()
}

/// Sends bytes, and checks that as many arrive.
async fn transfer(from: &Connection, to: &Connection, bytes: usize) -> Outcome {
    let send = async {
        let mut send = from.open_uni().await?;
        send.write_all(&vec![5; bytes]).await?;
        send.finish()?;
        send.stopped().await?;
        Outcome::Ok(())
    };
    let receive = async {
        let got = to.accept_uni().await?.read_to_end(bytes).await?;
        assert_eq!(got.len(), bytes);
        Outcome::Ok(())
    };
    let (sent, received) = tokio::join!(send, receive);
    sent.and(received)
}

#[test]
fn a_stuck_socket_holds_up_no_other() {
    run(async {
        let (client, near, far) = connected(&["127.0.0.1", "127.0.0.2"]).await;
        let active = || near.stats().paths.iter().filter(|path| path.state == PathState::Active).count();
        while active() != 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        transfer(&near, &far, 1_000_000).await?;
        for stuck in sockets(&client) {
            let sent_bytes = || {
                let paths = near.stats().paths;
                paths.iter().find(|path| path.tuple.local == stuck.local()).map_or(0, |path| path.sent_bytes)
            };
            stuck.jam();
            let before = sent_bytes();
            // Both ways: data leaves by the other socket, and so do acks of what comes.
            transfer(&near, &far, 3_000_000).await?;
            transfer(&far, &near, 3_000_000).await?;
            let made = sent_bytes() - before;
            assert!(made <= MAX_TRAIN_BYTES, "{made} bytes wait for one full socket");
            assert!(stuck.free() > 0, "{} was tried", stuck.local());
            assert_eq!(near.stats().unsent_trains, 0);
            transfer(&near, &far, 1_000_000).await?;
        }
        Ok(())
    });
}

#[test]
fn with_the_only_socket_stuck_all_waits_at_rest() {
    run(async {
        let (client, near, far) = connected(&["127.0.0.1"]).await;
        let stuck = sockets(&client).remove(0);
        stuck.jam();
        let (near_too, far_too) = (near.clone(), far.clone());
        let transfer = tokio::spawn(async move { transfer(&near_too, &far_too, 2_000_000).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!transfer.is_finished());
        let attempts = stuck.free();
        assert!((1..500).contains(&attempts), "{attempts} attempts: the task does not rest");
        transfer.await??;
        assert_eq!(near.stats().unsent_trains, 0);
        Ok(())
    });
}
