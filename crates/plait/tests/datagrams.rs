//! Datagrams over loopback.

mod pair;

use bytes::Bytes;
use pair::{pair, run};
use plait::SendDatagramError;

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
