//! Policies that change while a connection lives: the new one acts, and nothing is lost on the way.

use plait::{ACK_ROUTES, CONGESTION_CONTROLLERS, Connection, REINJECTIONS, SCHEDULERS};

use crate::pair::{pair, run};

const BODY_BYTES: usize = 300_000;

/// Sends a body, changing to a policy when half of it is written.
async fn send(server: &Connection, client: &Connection, change: impl FnOnce(&Connection)) {
    let body: Vec<u8> = (0..BODY_BYTES).map(|i| (i % 251) as u8).collect();
    let reading = {
        let (client, body) = (client.clone(), body.clone());
        tokio::spawn(async move {
            let mut recv = client.accept_uni().await.unwrap();
            assert!(recv.read_to_end(BODY_BYTES).await.unwrap() == body);
        })
    };
    let mut send = server.open_uni().await.unwrap();
    send.write_all(&body[..BODY_BYTES / 2]).await.unwrap();
    change(server);
    send.write_all(&body[BODY_BYTES / 2..]).await.unwrap();
    send.finish().unwrap();
    reading.await.unwrap();
}

#[test]
fn every_policy_takes_over_in_the_middle() {
    run(async {
        let (client, server) = pair().await;
        let second: std::net::IpAddr = "127.0.0.2".parse()?;
        client.open_path((second, client.remote_address())).await?;
        for &name in SCHEDULERS {
            send(&server, &client, |server| server.set_scheduler(&*plait::scheduler(name).unwrap())).await;
            assert_eq!(server.policies().scheduler, name);
        }
        for &name in REINJECTIONS {
            send(&server, &client, |server| server.set_reinjection(&*plait::reinjection(name).unwrap())).await;
            assert_eq!(server.policies().reinjection, name);
        }
        for &name in ACK_ROUTES {
            // Acks are the receiver's.
            send(&server, &client, |_| client.set_ack_route(&*plait::ack_route(name).unwrap())).await;
            assert_eq!(client.policies().ack_route, name);
        }
        for &name in CONGESTION_CONTROLLERS {
            let controller = plait::congestion_controller(name).unwrap();
            send(&server, &client, |server| server.set_congestion_controller(controller)).await;
            assert_eq!(server.policies().congestion, name);
        }
        // The other side has its own.
        assert_eq!((client.policies().scheduler, client.policies().congestion), ("minrtt", "auto"));
        Ok(())
    });
}

#[test]
fn a_new_controller_begins_with_its_first_window() {
    run(async {
        let (client, server) = pair().await;
        send(&server, &client, |_| {}).await;
        let windows = || server.stats().paths.iter().map(|path| path.cwnd_bytes).collect::<Vec<_>>();
        let before = windows();
        server.set_congestion_controller(plait::congestion_controller("newreno").unwrap());
        // RFC 9002 7.2: at most ten datagrams, or 14720 bytes where that is less.
        assert!(windows().iter().all(|window| *window <= 14_720) && before[0] > 14_720, "{before:?} {:?}", windows());
        let second: std::net::IpAddr = "127.0.0.2".parse()?;
        client.open_path((second, client.remote_address())).await?;
        // A path that opens later gets one of the kind too.
        send(&server, &client, |_| {}).await;
        assert_eq!((server.policies().congestion, server.stats().paths.len()), ("newreno", 2));
        Ok(())
    });
}
