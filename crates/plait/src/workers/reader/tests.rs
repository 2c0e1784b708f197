//! Servers with a socket for each thread.

use std::net::SocketAddr;
use std::time::Duration;

use crate::workers::tests::support::{Outcome, configs, run};
use crate::workers::tests::{Ends, connected_by, upload_once};
use crate::{Endpoint, EndpointConfig, EndpointError, PathId, ServerConfig};

fn server(address: SocketAddr, settings: ServerConfig) -> Result<Endpoint, EndpointError> {
    let mut config = EndpointConfig::fresh().unwrap();
    config.workers(2);
    Endpoint::new(config, Some(settings), [address])
}

/// Ends whose two paths the system deals to one socket of the server, or to both.
async fn dealt(to_one: bool) -> Ends {
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
            let figures = || ends.server_endpoint.workers();
            for _ in 0..20 {
                upload_once(&ends).await?;
                if figures().iter().all(|worker| worker.loans > 0 && worker.received_bytes > 1_000_000) {
                    break;
                }
            }
            assert!(figures().iter().all(|worker| worker.received_bytes > 1_000_000), "{to_one}: {:?}", figures());
            let handed_over: u64 = figures().iter().map(|worker| worker.handed_over).sum();
            assert_eq!(handed_over > 500, to_one, "{:?}", figures());
            Outcome::Ok(())
        });
    }
}

#[test]
fn many_connections_are_served_over_the_sockets_of_one_address() {
    run(async {
        let (server_config, client_config) = configs();
        let server = server(SocketAddr::from(([127, 0, 0, 1], 0)), server_config)?;
        let address = server.local_addr()?;
        let mut connections = Vec::new();
        for at in 0..16_u8 {
            let client = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            let connecting = client.connect_with(client_config.clone(), address, "localhost")?;
            let (client, accepted) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
            let accepted = accepted?;
            let mut send = accepted.open_uni().await?;
            send.write_all(&[at; 100_000]).await?;
            send.finish()?;
            connections.push((client?, accepted));
        }
        for (at, (client, _)) in connections.iter().enumerate() {
            let got = client.accept_uni().await?.read_to_end(100_000).await?;
            assert!(got == [at as u8; 100_000], "the bytes of connection {at}");
        }
        let threads = connections.iter().filter_map(|(_, server)| server.shared.routes.arrived_at(PathId::ZERO));
        let by_thread = threads.fold([0; 2], |mut count, thread| {
            count[thread] += 1;
            count
        });
        assert!(by_thread.iter().sum::<usize>() == 16 && by_thread.iter().all(|count| *count > 0), "{by_thread:?}");
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
