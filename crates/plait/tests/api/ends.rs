//! How connections begin and end: close reasons, idle timeout, 0-RTT, refusals, and endpoints that are given up.

use std::sync::Arc;
use std::time::Duration;

use plait::{ConnectError, ConnectionError, TransportConfig, WriteError};

use crate::early::meet;
use crate::pair::{configs, endpoint, pair, run};

#[test]
fn a_close_tells_its_code_and_reason() {
    run(async {
        let (client, server) = pair().await;
        let waiting = tokio::spawn({
            let server = server.clone();
            async move { server.accept_bi().await.map(|_| ()) }
        });
        tokio::task::yield_now().await;
        client.close(42, b"enough");
        assert_eq!(client.close_reason(), Some(ConnectionError::LocallyClosed));
        assert_eq!(client.open_bi().await.err(), Some(ConnectionError::LocallyClosed));
        let ConnectionError::ApplicationClosed(close) = server.closed().await else { panic!("wrong end") };
        assert_eq!((close.code, &close.reason[..]), (42, &b"enough"[..]));
        assert!(matches!(waiting.await?, Err(ConnectionError::ApplicationClosed(_))));
        Ok(())
    });
}

#[test]
fn a_close_that_was_waited_for_has_left() {
    let (server_config, client_config) = configs();
    let (address, addressed) = std::sync::mpsc::channel();
    let far = std::thread::spawn(move || {
        run(async move {
            let server = endpoint(Some(server_config), &["127.0.0.1"]);
            address.send(server.local_addr()?)?;
            let connection = server.accept().await.unwrap().await?;
            let ConnectionError::ApplicationClosed(close) = connection.closed().await else { panic!("wrong end") };
            assert_eq!(close.code, 7);
            Ok(())
        });
    });
    let address = addressed.recv().unwrap();
    run(async move {
        let client = endpoint(None, &["127.0.0.1"]);
        let connection = client.connect_with(client_config, address, "localhost")?.await?;
        let early = tokio::time::timeout(Duration::from_millis(20), client.wait_closes_sent()).await;
        assert!(early.is_err(), "an open connection has sent no close");
        connection.close(7, b"");
        client.wait_closes_sent().await;
        Ok(())
    });
    // The client's runtime and its sockets are gone: what was not sent by now never will be.
    far.join().unwrap();
}

#[test]
fn dropping_all_handles_closes() {
    run(async {
        let (client, server) = pair().await;
        let mut send = client.open_uni().await?;
        drop(client);
        send.write_all(b"still open").await?;
        let mut recv = server.accept_uni().await?;
        let mut word = [0; 10];
        recv.read_exact(&mut word).await?;
        drop(send);
        let ConnectionError::ApplicationClosed(close) = server.closed().await else { panic!("wrong end") };
        assert_eq!(close.code, 0);
        Ok(())
    });
}

#[test]
fn silence_times_out() {
    run(async {
        let (mut server_config, mut client_config) = configs();
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(Some(Duration::from_millis(300)));
        let transport = Arc::new(transport);
        server_config.transport_config(transport.clone());
        client_config.transport_config(transport);
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let client = endpoint(None, &["127.0.0.1"]);
        let connecting = client.connect_with(client_config, server.local_addr()?, "localhost")?;
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (near, far) = (near?, far?);
        assert_eq!(near.closed().await, ConnectionError::TimedOut);
        assert_eq!(far.closed().await, ConnectionError::TimedOut);
        tokio::time::timeout(Duration::from_secs(2), client.wait_idle()).await?;
        Ok(())
    });
}

#[test]
fn early_data_arrives_with_the_first_packets() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let address = server.local_addr()?;
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                let Ok((connection, _)) = incoming.accept().unwrap().into_0rtt() else { panic!("servers always can") };
                tokio::spawn(async move {
                    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                        let got = recv.read_to_end(1000).await.unwrap();
                        send.write_all(&got).await.unwrap();
                        send.finish().unwrap();
                    }
                });
            }
        });
        let client = endpoint(None, &["127.0.0.1"]);
        client.set_default_client_config(client_config);
        let connecting = client.connect(address, "localhost")?;
        let first = match connecting.into_0rtt() {
            Ok(_) => panic!("there is no session yet"),
            Err(connecting) => connecting.await?,
        };
        let (mut send, mut recv) = first.open_bi().await?;
        send.write_all(b"first").await?;
        send.finish()?;
        assert_eq!(recv.read_to_end(1000).await?, b"first");
        first.close(0, b"");

        let Ok((second, accepted)) = client.connect(address, "localhost")?.into_0rtt() else {
            panic!("the session is known")
        };
        let (mut send, mut recv) = second.open_bi().await?;
        send.write_all(b"early").await?;
        send.finish()?;
        assert!(accepted.await);
        assert_eq!(recv.read_to_end(1000).await?, b"early");
        assert!(second.handshake_data().resumed);
        Ok(())
    });
}

#[test]
fn refused_early_data_is_told() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let address = server.local_addr()?;
        let client = endpoint(None, &["127.0.0.1"]);
        client.set_default_client_config(client_config);
        meet(&client, &server).await?;
        let serve = |server: plait::Endpoint| async move { server.accept().await.unwrap().await };
        // The same certificate would not help: this server has forgotten its sessions.
        let (other_config, _) = configs();
        server.set_server_config(Some(other_config));
        let Ok((near, accepted)) = client.connect(address, "localhost")?.into_0rtt() else { panic!("session") };
        let mut send = near.open_uni().await?;
        send.write_all(b"early").await?;
        let far = tokio::spawn(serve(server.clone()));
        assert!(!accepted.await);
        // The other certificate is not trusted, or the stream is gone: in both cases nothing is taken as delivered.
        assert!(matches!(send.write(b"x").await, Err(WriteError::ZeroRttRejected | WriteError::ConnectionLost(_))));
        drop(far);
        Ok(())
    });
}

#[test]
fn strangers_are_refused_retried_and_ignored() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let address = server.local_addr()?;
        let client = endpoint(None, &["127.0.0.1"]);
        client.set_default_client_config(client_config);

        let connecting = client.connect(address, "localhost")?;
        server.accept().await.unwrap().refuse();
        assert!(matches!(connecting.await, Err(ConnectionError::ConnectionClosed(_))));

        let connecting = client.connect(address, "localhost")?;
        drop(server.accept().await.unwrap());
        assert!(matches!(connecting.await, Err(ConnectionError::ConnectionClosed(_))));

        let connecting = tokio::spawn(client.connect(address, "localhost")?);
        let incoming = server.accept().await.unwrap();
        assert!(incoming.may_retry() && !incoming.remote_address_validated());
        incoming.retry()?;
        let incoming = server.accept().await.unwrap();
        assert!(!incoming.may_retry() && incoming.remote_address_validated());
        let incoming = incoming.retry().unwrap_err().into_incoming();
        let far = incoming.await?;
        assert_eq!(connecting.await??.remote_address(), address);
        drop(far);

        assert!(matches!(client.connect("[::1]:1".parse()?, "localhost").err(), Some(ConnectError::NoSocket(_))));
        Ok(())
    });
}

#[test]
fn a_closed_endpoint_is_idle_soon() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let address = server.local_addr()?;
        let client = endpoint(None, &["127.0.0.1"]);
        client.set_default_client_config(client_config);
        let (near, far) =
            tokio::join!(client.connect(address, "localhost")?, async { server.accept().await.unwrap().await });
        let (near, far) = (near?, far?);
        server.close(7, b"shut");
        assert!(server.accept().await.is_none());
        assert!(matches!(near.closed().await, ConnectionError::ApplicationClosed(close) if close.code == 7));
        assert_eq!(far.closed().await, ConnectionError::LocallyClosed);
        assert_eq!(server.connect(address, "localhost").err(), Some(ConnectError::NoDefaultClientConfig));
        client.wait_idle().await;
        server.wait_idle().await;
        assert_eq!(server.open_connections(), 0);
        Ok(())
    });
}

#[test]
fn a_closed_endpoint_accepts_nobody_who_waits_for_its_decision() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let client = endpoint(None, &["127.0.0.1"]);
        let connecting = client.connect_with(client_config, server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.unwrap();
        server.close(7, b"shut");
        assert_eq!(incoming.await.err(), Some(ConnectionError::LocallyClosed));
        assert!(matches!(connecting.await, Err(ConnectionError::ConnectionClosed(_))), "the client is refused");
        assert_eq!(server.open_connections(), 0);
        Ok(())
    });
}

#[test]
fn a_client_may_be_accepted_after_the_last_handle_is_gone() {
    run(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let client = endpoint(None, &["127.0.0.1"]);
        client.set_default_client_config(client_config);
        let address = server.local_addr()?;
        let connecting = [client.connect(address, "localhost")?, client.connect(address, "localhost")?];
        let [wanted, unwanted] = [server.accept().await.unwrap(), server.accept().await.unwrap()];
        drop((server, client));
        // The endpoints' tasks have had every chance to end.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let remote = wanted.remote_address();
        let far = tokio::time::timeout(Duration::from_secs(5), wanted).await??;
        assert_eq!(far.remote_address(), remote);
        drop(unwanted);
        let [first, second] = connecting;
        let (first, second) = tokio::join!(first, second);
        let (near, refused) = if first.is_ok() { (first, second) } else { (second, first) };
        assert!(matches!(refused, Err(ConnectionError::ConnectionClosed(_))));
        let near = near?;
        near.open_uni().await?.write_all(b"x").await?;
        far.accept_uni().await?;
        // The address is free again once nothing needs it.
        drop((near, far));
        while std::net::UdpSocket::bind(address).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    });
}

#[test]
fn nobody_waits_for_clients_of_a_runtime_that_is_gone() {
    let (server_config, client_config) = configs();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async { endpoint(Some(server_config), &["127.0.0.1"]) });
    run(async move {
        let accepting = server.clone();
        let waiting = tokio::spawn(async move { accepting.accept().await.is_none() });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        runtime.shutdown_background();
        assert!(tokio::time::timeout(Duration::from_secs(5), waiting).await??);
        assert!(server.accept().await.is_none());
        let begun = server.connect_with(client_config, server.local_addr()?, "localhost");
        assert_eq!(begun.err(), Some(ConnectError::EndpointStopping));
        Ok(())
    });
}

#[test]
fn both_ends_export_the_same_secret() {
    run(async {
        let (client, server) = pair().await;
        let (mut a, mut b) = ([0; 32], [0; 32]);
        client.export_keying_material(&mut a, b"label", b"context")?;
        server.export_keying_material(&mut b, b"label", b"context")?;
        assert_eq!(a, b);
        assert_eq!(client.handshake_data().alpn.as_deref(), Some(&b"example"[..]));
        assert_eq!(server.handshake_data().server_name.as_deref(), Some("localhost"));
        assert_eq!(client.peer_identity().map(|chain| chain.len()), Some(1));
        assert!(server.peer_identity().is_none());
        assert_ne!(client.stable_id(), server.stable_id());
        Ok(())
    });
}
