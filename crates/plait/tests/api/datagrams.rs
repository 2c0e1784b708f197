//! Datagrams over loopback.

use std::sync::Arc;

use bytes::Bytes;
use plait::{Connection, MtuDiscoveryConfig, PathId, SendDatagramError, TransportConfig};

use crate::pair::{Outcome, configs, endpoint, pair, run};

#[test]
fn datagrams_go_both_ways() {
    run(async {
        let (client, server) = pair().await;
        client.send_datagram(Bytes::from_static(b"there"))?;
        assert_eq!(&server.read_datagram().await?[..], b"there");
        server.send_datagram_wait(Bytes::from_static(b"back")).await?;
        assert_eq!(&client.read_datagram().await?[..], b"back");
        Ok(())
    });
}

#[test]
fn sizes_are_bounded() {
    // RFC 9221 3-2
    run(async {
        let (client, server) = pair().await;
        let max = client.max_datagram_size().unwrap();
        assert!(max > 1000);
        client.send_datagram(Bytes::from(vec![7; max]))?;
        assert_eq!(server.read_datagram().await?.len(), max);
        let too_large = Bytes::from(vec![7; client.max_datagram_size().unwrap() + 200_000]);
        assert_eq!(client.send_datagram(too_large), Err(SendDatagramError::TooLarge));
        Ok(())
    });
}

#[test]
fn datagrams_that_nobody_reads_are_counted() {
    run(async {
        let (client, server) = pair().await;
        while server.stats().datagrams_dropped_unread == 0 {
            client.send_datagram_wait(Bytes::from(vec![7; 1000])).await?;
        }
        assert_eq!(client.stats().datagrams_dropped_unread, 0);
        Ok(())
    });
}

#[test]
fn a_patient_sender_waits_for_room() {
    run(async {
        const COUNT: usize = 5000;
        let (client, server) = pair().await;
        let reading = tokio::spawn(async move {
            let mut got = 0;
            while let Ok(datagram) = server.read_datagram().await {
                assert_eq!(datagram.len(), 1000);
                got += 1;
            }
            got
        });
        for _ in 0..COUNT {
            client.send_datagram_wait(Bytes::from(vec![1; 1000])).await?;
        }
        while client.datagram_send_buffer_space() < 1_000_000 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        client.close(0, b"");
        let got = reading.await?;
        assert!(got > COUNT / 2 && got <= COUNT, "{got} of {COUNT} arrived");
        assert!(matches!(client.send_datagram(Bytes::new()), Err(SendDatagramError::ConnectionLost(_))));
        Ok(())
    });
}

/// Sends bytes on a stream of its own and waits until they were read.
async fn pass(from: &Connection, to: &Connection, bytes: usize) -> Outcome {
    let send = async {
        let mut stream = from.open_uni().await?;
        stream.write_all(&vec![6; bytes]).await?;
        stream.finish()?;
        Outcome::Ok(())
    };
    let receive = async {
        assert_eq!(to.accept_uni().await?.read_to_end(bytes).await?.len(), bytes);
        Outcome::Ok(())
    };
    let (sent, received) = tokio::join!(send, receive);
    sent.and(received)
}

#[test]
fn what_the_system_refuses_as_too_large_is_sent_in_smaller_datagrams() {
    // RFC 9000 14.2: an IPv4 packet holds 65507 bytes of UDP payload, so that the system refuses the first size at once
    run(async {
        let (mut server_config, mut client_config) = configs();
        let mut transport = TransportConfig::default();
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(65_527);
        transport.initial_mtu(65_527).mtu_discovery_config(Some(discovery));
        let transport = Arc::new(transport);
        client_config.transport_config(transport.clone());
        server_config.transport_config(transport);
        let (server, client) = (endpoint(Some(server_config), &["127.0.0.1"]), endpoint(None, &["127.0.0.1"]));
        let connecting = client.connect_with(client_config, server.local_addr().unwrap(), "localhost").unwrap();
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (near, far) = (near?, far?);
        let size =
            |end: &Connection| end.path(PathId::ZERO).and_then(|path| path.stats()).map_or(0, |s| s.max_datagram_bytes);
        // The search finds what fits, while data flows.
        while size(&near) < 60_000 || size(&far) < 60_000 || size(&near).max(size(&far)) > 65_507 {
            pass(&near, &far, 300_000).await?;
            pass(&far, &near, 300_000).await?;
        }
        Ok(())
    });
}
