//! Addresses of ours that change while data flows: every policy, with several paths and with one, survives.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{Connection, Endpoint, PathEvent, PathState, TransportConfig};

use crate::pair::{Outcome, configs, endpoint, run};

/// How a connection chooses its paths.
#[derive(Clone, Copy, Debug)]
struct Habit {
    policy: &'static str,
    paths_max: u32,
}

const HABITS: [Habit; 4] = [
    Habit { policy: "manual", paths_max: 8 },
    Habit { policy: "fullmesh", paths_max: 8 },
    Habit { policy: "manual", paths_max: 0 },
    Habit { policy: "fullmesh", paths_max: 0 },
];

/// A client with sockets on `ips`, connected to a server on all addresses.
async fn connected(habit: Habit, ips: &[&str]) -> (Endpoint, Connection, Connection) {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(plait::path_policy(habit.policy).unwrap()).max_concurrent_multipath_paths(habit.paths_max);
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let server = endpoint(Some(server_config), &["0.0.0.0"]);
    let client = endpoint(None, ips);
    let remote = SocketAddr::from(([127, 0, 0, 1], server.local_addr().unwrap().port()));
    let connecting = client.connect_with(client_config, remote, "localhost").unwrap();
    let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    (client, near.unwrap(), far.unwrap())
}

/// Sends bytes from the server while the client does nothing but read.
fn download(far: &Connection, near: &Connection, bytes: usize) -> tokio::task::JoinHandle<Outcome> {
    let (far, near) = (far.clone(), near.clone());
    tokio::spawn(async move {
        let send = async {
            let mut send = far.open_uni().await?;
            for _ in 0..bytes / 100_000 {
                send.write_all(&vec![5; 100_000]).await?;
            }
            send.finish()?;
            send.stopped().await?;
            Outcome::Ok(())
        };
        let receive = async {
            let got = near.accept_uni().await?.read_to_end(bytes).await?;
            assert_eq!(got.len(), bytes);
            Outcome::Ok(())
        };
        let (sent, received) = tokio::join!(send, receive);
        sent.and(received)
    })
}

fn locals(connection: &Connection) -> Vec<IpAddr> {
    let open = connection.stats().paths.into_iter().filter(|path| path.state != PathState::Closing);
    open.map(|path| path.tuple.local.ip()).collect()
}

/// Waits for what must come in time; the bound is only against a test that never ends.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

#[test]
fn a_new_address_in_the_middle_of_a_download() {
    run(async {
        for habit in HABITS {
            for before in ["127.0.0.1", "0.0.0.0"] {
                let (client, near, far) = connected(habit, &[before]).await;
                let running = download(&far, &near, 20_000_000);
                tokio::time::sleep(Duration::from_millis(10)).await;
                for address in ["127.0.0.4:0", "127.0.0.5:0"] {
                    client.rebind(address.parse::<SocketAddr>()?)?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                running.await??;
                download(&far, &near, 1_000_000).await??;
                let last: IpAddr = "127.0.0.5".parse()?;
                until(&format!("{habit:?} from {before}: {:?}", near.stats()), || locals(&near) == [last]).await;
            }
        }
        Ok(())
    });
}

#[test]
fn a_path_whose_socket_goes_takes_one_that_no_other_uses() {
    run(async {
        let manual = HABITS[0];
        let (client, near, far) = connected(manual, &["127.0.0.1", "127.0.0.2"]).await;
        let second: IpAddr = "127.0.0.2".parse()?;
        near.open_path((second, near.remote_address())).await?;
        let first = client.local_addr()?;
        let running = download(&far, &near, 20_000_000);
        client.remove_socket(first);
        // No other address is free, and the second path works: the first one has failed, and nothing else.
        let state = || near.stats().paths.first().map(|path| path.state);
        until("the state of a path without an address", || state() == Some(PathState::Failed)).await;
        let third = client.add_socket("127.0.0.3:0".parse::<SocketAddr>()?)?;
        until("the first path goes on from the new address", || state() == Some(PathState::Active)).await;
        running.await??;
        assert_eq!(locals(&near), [third.ip(), second]);
        Ok(())
    });
}

#[test]
fn the_application_hears_when_nothing_works_and_when_something_does_again() {
    run(async {
        for habit in HABITS {
            let (client, near, far) = connected(habit, &["127.0.0.1"]).await;
            download(&far, &near, 1_000_000).await??;
            let mut events = near.path_events();
            client.remove_socket(client.local_addr()?);
            let mut send = near.open_uni().await?;
            send.write_all(b"nobody hears this yet").await?;
            while !matches!(events.next().await, Some(PathEvent::AllFailed { .. })) {}
            client.add_socket("127.0.0.6:0".parse::<SocketAddr>()?)?;
            while !matches!(events.next().await, Some(PathEvent::Restored { .. })) {}
            send.finish()?;
            let heard = far.accept_uni().await?.read_to_end(100).await?;
            assert_eq!(heard, b"nobody hears this yet", "{habit:?}");
        }
        Ok(())
    });
}

#[test]
fn a_hint_asks_all_paths_and_breaks_nothing() {
    run(async {
        for habit in HABITS {
            let (client, near, far) = connected(habit, &["0.0.0.0"]).await;
            let running = download(&far, &near, 10_000_000);
            for _ in 0..20 {
                client.handle_network_change();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            running.await??;
            assert_eq!(locals(&near), ["127.0.0.1".parse::<IpAddr>()?], "{habit:?}");
        }
        Ok(())
    });
}
