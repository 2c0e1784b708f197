//! Several loopback addresses: several paths at once, added and removed while data flows.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{AddressScope, Connection, Endpoint, Extension, PathEvent, PathState, TransportConfig};

use crate::pair::{Outcome, configs, endpoint, run};

/// A client with sockets on `ips` under a path policy, connected to a server on 127.0.0.1.
async fn connected(policy: &str, ips: &[&str]) -> (Endpoint, Connection, Connection) {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(plait::path_policy(policy).unwrap()).scheduler(plait::scheduler("round-robin").unwrap());
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let server = endpoint(Some(server_config), &["127.0.0.1"]);
    let client = endpoint(None, ips);
    let connecting = client.connect_with(client_config, server.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    (client, near.unwrap(), far.unwrap())
}

/// Waits until so many paths carry data.
async fn until_active(connection: &Connection, count: usize) {
    let active = || connection.stats().paths.iter().filter(|path| path.state == PathState::Active).count();
    while active() != count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Sends bytes one way in the background and checks their number.
fn transfer(from: &Connection, to: &Connection, bytes: usize) -> tokio::task::JoinHandle<Outcome> {
    let (from, to) = (from.clone(), to.clone());
    tokio::spawn(async move {
        let send = async {
            let mut send = from.open_uni().await?;
            let block = vec![5; 100_000];
            for _ in 0..bytes / block.len() {
                send.write_all(&block).await?;
            }
            send.finish()?;
            send.stopped().await?;
            Outcome::Ok(())
        };
        let receive = async {
            let mut recv = to.accept_uni().await?;
            let mut got = 0;
            let mut block = vec![0; 100_000];
            while let Some(read) = recv.read(&mut block).await? {
                got += read;
            }
            assert_eq!(got, bytes);
            Outcome::Ok(())
        };
        let (sent, received) = tokio::join!(send, receive);
        sent.and(received)
    })
}

#[test]
fn two_addresses_two_paths_and_both_carry_data() {
    run(async {
        let (_endpoint, near, far) = connected("fullmesh", &["127.0.0.1", "127.0.0.2"]).await;
        assert!(near.is_multipath() && far.is_multipath());
        until_active(&near, 2).await;
        transfer(&far, &near, 20_000_000).await??;
        let stats = near.stats();
        let locals: Vec<IpAddr> = stats.paths.iter().map(|path| path.tuple.local.ip()).collect();
        assert_eq!(locals, ["127.0.0.1".parse::<IpAddr>()?, "127.0.0.2".parse()?]);
        for path in &stats.paths {
            assert!(path.stream_bytes_received > 1_000_000, "{path:?}");
        }
        Ok(())
    });
}

#[test]
fn the_application_opens_and_closes_paths() {
    run(async {
        let (_endpoint, near, far) = connected("manual", &["127.0.0.1", "127.0.0.2"]).await;
        let mut events = near.path_events();
        let second: IpAddr = "127.0.0.2".parse()?;
        let path = near.open_path((second, near.remote_address())).await?;
        assert!(matches!(events.next().await, Some(PathEvent::Opened { id, .. }) if id == path.id()));
        assert!(matches!(events.next().await, Some(PathEvent::Established { id }) if id == path.id()));
        assert_eq!(near.paths().len(), 2);
        // Its window starts small, and a transfer over loopback is short: it takes a few to show.
        let mut rounds = 0;
        while path.stats().unwrap().sent_bytes < 500_000 {
            assert!(rounds < 20, "still quiet: {:?}", near.stats());
            transfer(&near, &far, 5_000_000).await??;
            rounds += 1;
        }
        path.close()?;
        loop {
            match events.next().await.unwrap() {
                PathEvent::Abandoned { id, .. } => break assert_eq!(id, path.id()),
                // The machine may have been too busy to answer in time, as seen from either end.
                PathEvent::Failed { .. } | PathEvent::Recovered { .. } | PathEvent::RemoteStatus { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(near.paths().len(), 1);
        transfer(&near, &far, 1_000_000).await??;
        let unknown: IpAddr = "127.0.0.9".parse()?;
        assert_eq!(near.open_path((unknown, near.remote_address())).await.err(), Some(plait::OpenPathError::NoSocket));
        near.close(0, b"");
        while events.next().await.is_some() {}
        Ok(())
    });
}

#[test]
fn backup_paths_stay_quiet() {
    run(async {
        let (_endpoint, near, far) = connected("manual", &["127.0.0.1", "127.0.0.2"]).await;
        let second: IpAddr = "127.0.0.2".parse()?;
        let path = near.open_path_with((second, near.remote_address()), plait::PathStatus::Backup).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = path.stats().unwrap().sent_bytes;
        transfer(&near, &far, 5_000_000).await??;
        let sent = path.stats().unwrap().sent_bytes - before;
        assert!(sent < 500_000, "{sent} bytes on a backup path");
        path.set_status(plait::PathStatus::Available)?;
        // Its window starts small, and a transfer over loopback is short: it takes a few to show.
        let mut rounds = 0;
        while path.stats().unwrap().sent_bytes - before < 500_000 {
            assert!(rounds < 20, "still quiet: {:?}", near.stats());
            transfer(&near, &far, 5_000_000).await??;
            rounds += 1;
        }
        Ok(())
    });
}

#[test]
fn sockets_come_and_go_while_data_flows() {
    run(async {
        let (endpoint, near, far) = connected("fullmesh", &["127.0.0.1"]).await;
        let transfers = transfer(&far, &near, 30_000_000);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let added: SocketAddr = endpoint.add_socket("127.0.0.3:0".parse::<SocketAddr>()?)?;
        until_active(&near, 2).await;
        assert_eq!(endpoint.local_addrs().len(), 2);
        transfers.await??;
        transfer(&far, &near, 5_000_000).await??;
        let second = near.stats().paths.iter().find(|p| p.tuple.local == added).cloned().unwrap();
        assert!(second.received_bytes > 100_000, "{second:?}");

        let first = endpoint.local_addr()?;
        let transfers = transfer(&far, &near, 10_000_000);
        assert!(endpoint.remove_socket(first));
        assert!(!endpoint.remove_socket(first));
        transfers.await??;
        let open: Vec<_> = near.paths().iter().filter_map(|path| path.stats()).map(|path| path.tuple.local).collect();
        assert_eq!(open, [added]);
        Ok(())
    });
}

#[test]
fn a_connection_of_one_path_moves_with_its_socket() {
    run(async {
        let (mut server_config, mut client_config) = configs();
        let mut transport = TransportConfig::default();
        transport.max_concurrent_multipath_paths(0);
        let transport = Arc::new(transport);
        client_config.transport_config(transport.clone());
        server_config.transport_config(transport);
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let client = endpoint(None, &["127.0.0.1"]);
        let connecting = client.connect_with(client_config, server.local_addr()?, "localhost")?;
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (near, far) = (near?, far?);
        assert!(!near.is_multipath());
        transfer(&near, &far, 1_000_000).await??;
        let moved = client.rebind("127.0.0.4:0".parse::<SocketAddr>()?)?;
        transfer(&far, &near, 1_000_000).await??;
        assert_eq!(far.remote_address(), moved);
        Ok(())
    });
}

#[test]
fn sums_of_a_connection_do_not_run_back_when_a_path_ends() {
    run(async {
        let (_endpoint, client, server) = connected("fullmesh", &["127.0.0.1", "127.0.0.2"]).await;
        until_active(&client, 2).await;
        transfer(&client, &server, 3_000_000).await??;
        transfer(&server, &client, 3_000_000).await??;
        let sums = |end: &Connection| {
            let stats = end.stats();
            [stats.sent_bytes, stats.received_bytes, stats.packets_sent, stats.packets_lost]
        };
        let mut last = [sums(&client), sums(&server)];
        client.paths()[1].close()?;
        // Until both ends have forgotten it, and a little longer.
        let mut forgotten = 0;
        while forgotten < 10 {
            let now = [sums(&client), sums(&server)];
            let grows = std::iter::zip(last.as_flattened(), now.as_flattened()).all(|(last, now)| last <= now);
            assert!(grows, "{last:?}, then {now:?}");
            last = now;
            forgotten += usize::from(client.stats().paths.len() == 1 && server.stats().paths.len() == 1);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    });
}

/// A client, and a server of two addresses that tells them: the endpoints, the ends of a connection.
async fn told(extension: Extension) -> (Endpoint, Endpoint, Connection, Connection) {
    let (mut server_config, mut client_config) = configs();
    let mut transport = TransportConfig::default();
    transport.path_policy(plait::path_policy("fullmesh").unwrap()).extension(extension);
    transport.announce_addresses(true).address_scope(AddressScope::Any);
    let transport = Arc::new(transport);
    client_config.transport_config(transport.clone());
    server_config.transport_config(transport);
    let server = endpoint(Some(server_config), &["127.0.0.1", "127.0.0.2"]);
    let client = endpoint(None, &["127.0.0.1"]);
    let first = server.local_addrs()[0];
    let connecting = client.connect_with(client_config, first, "localhost").unwrap();
    let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
    (server, client, near.unwrap(), far.unwrap())
}

/// Both kinds of connections: paths lead to each address that the server has, and only as long as it has it.
#[test]
fn a_server_tells_the_addresses_of_its_sockets() {
    for extension in [Extension::Multipath, Extension::Multiflow] {
        run(async {
            let (server, _client, near, far) = told(extension).await;
            assert_eq!(near.is_multiflow(), extension == Extension::Multiflow);
            until_active(&near, 2).await;
            let remotes = || {
                let paths = near.stats().paths;
                let active = paths.iter().filter(|path| path.state == PathState::Active);
                active.map(|path| path.tuple.remote).collect::<Vec<_>>()
            };
            assert_eq!(remotes(), server.local_addrs());
            let third = server.add_socket("127.0.0.3:0".parse::<SocketAddr>()?)?;
            until_active(&near, 3).await;
            assert_eq!(remotes(), server.local_addrs());
            assert!(server.remove_socket(third));
            while remotes().contains(&third) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            transfer(&far, &near, 1_000_000).await??;
            Ok(())
        });
    }
}
