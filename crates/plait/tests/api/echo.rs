//! Streams over loopback: echo, many at once, a large transfer, priorities and ends.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use plait::{ConnectionError, Order, ReadError, ReadToEndError, WriteError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::pair::{Outcome, configs, endpoint, pair, run};

#[test]
fn echo() {
    run(async {
        let (client, server) = pair().await;
        let (mut send, mut recv) = client.open_bi().await?;
        send.write_all(b"hello").await?;
        send.finish()?;
        let (mut back, mut from) = server.accept_bi().await?;
        tokio::io::copy(&mut from, &mut back).await?;
        back.shutdown().await?;
        let mut all = Vec::new();
        AsyncReadExt::read_to_end(&mut recv, &mut all).await?;
        assert_eq!(all, b"hello");
        assert_eq!(send.stopped().await?, None);
        Ok(())
    });
}

#[test]
fn many_streams() {
    run(async {
        const STREAMS: usize = 500;
        let (client, server) = pair().await;
        let serving = tokio::spawn(async move {
            for _ in 0..STREAMS {
                let (mut send, mut recv) = server.accept_bi().await?;
                tokio::spawn(async move {
                    let got = recv.read_to_end(10_000).await?;
                    send.write_all(&got).await?;
                    send.finish()?;
                    Outcome::Ok(())
                });
            }
            Ok::<_, ConnectionError>(server)
        });
        let mut asking = tokio::task::JoinSet::new();
        for n in 0..STREAMS {
            let client = client.clone();
            asking.spawn(async move {
                let (mut send, mut recv) = client.open_bi().await.unwrap();
                let question = vec![n as u8; n * 7 % 5000 + 1];
                send.write_all(&question).await.unwrap();
                send.finish().unwrap();
                assert_eq!(recv.read_to_end(10_000).await.unwrap(), question);
            });
        }
        while let Some(asked) = asking.join_next().await {
            asked?;
        }
        drop(serving.await??);
        Ok(())
    });
}

/// Sends `bytes` bytes one way and checks each of them.
async fn transfer(from: &plait::Connection, to: &plait::Connection, bytes: usize) -> Outcome {
    let mut send = from.open_uni().await?;
    let sending = tokio::spawn(async move {
        let block: Vec<u8> = (0..=250).cycle().take(251 * 400).collect();
        let block = Bytes::from(block);
        let mut left = bytes;
        while left > 0 {
            let piece = block.slice(..left.min(block.len()));
            left -= piece.len();
            send.write_chunk(piece).await?;
        }
        send.finish()?;
        send.stopped().await?;
        Outcome::Ok(())
    });
    let mut recv = to.accept_uni().await?;
    let mut got = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX, Order::Ordered).await? {
        assert_eq!(chunk.offset, got as u64);
        assert!(chunk.bytes.iter().enumerate().all(|(i, b)| usize::from(*b) == (got + i) % 251));
        got += chunk.bytes.len();
    }
    assert_eq!(got, bytes);
    sending.await?
}

#[test]
fn hundred_megabytes_on_one_path() {
    run(async {
        let (client, server) = pair().await;
        transfer(&client, &server, 100_000_000).await?;
        let stats = client.stats();
        assert_eq!(stats.paths.len(), 1);
        assert!(stats.sent_bytes >= 100_000_000);
        Ok(())
    });
}

#[test]
fn both_directions_at_once() {
    run(async {
        let (client, server) = pair().await;
        let (there, back) = tokio::join!(transfer(&client, &server, 5_000_000), transfer(&server, &client, 5_000_000));
        there?;
        back
    });
}

#[test]
fn threads_share_a_connection() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, server) = pair().await;
        let mut jobs = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let client = client.clone();
            jobs.spawn(async move {
                let mut send = client.open_uni().await.unwrap();
                send.write_all(&vec![1; 3_000_000]).await.unwrap();
                send.finish().unwrap();
                send.stopped().await.unwrap();
            });
            let server = server.clone();
            jobs.spawn(async move {
                let mut recv = server.accept_uni().await.unwrap();
                assert_eq!(recv.read_to_end(4_000_000).await.unwrap().len(), 3_000_000);
            });
        }
        while let Some(job) = jobs.join_next().await {
            job.unwrap();
        }
    });
}

#[test]
fn reset_and_stop_carry_their_codes() {
    run(async {
        let (client, server) = pair().await;
        let mut send = client.open_uni().await?;
        send.write_all(b"x").await?;
        let mut recv = server.accept_uni().await?;
        let mut one = [0; 1];
        recv.read_exact(&mut one).await?;
        send.reset(17)?;
        assert_eq!(recv.read(&mut one).await, Err(ReadError::Reset(17)));
        assert_eq!(recv.received_reset().await?, Some(17));

        let mut send = client.open_uni().await?;
        send.write_all(b"x").await?;
        let mut recv = server.accept_uni().await?;
        recv.stop(23)?;
        assert_eq!(send.stopped().await?, Some(23));
        assert_eq!(send.write(b"y").await, Err(WriteError::Stopped(23)));

        let mut send = client.open_uni().await?;
        send.write_all(b"12345").await?;
        drop(send);
        let mut recv = server.accept_uni().await?;
        assert_eq!(recv.read_to_end(4).await, Err(ReadToEndError::TooLong));
        Ok(())
    });
}

#[test]
fn a_reset_of_our_own_ends_the_wait_for_a_stop() {
    run(async {
        let (client, server) = pair().await;
        let mut send = client.open_uni().await?;
        send.write_all(&[7; 100_000]).await?;
        let mut recv = server.accept_uni().await?;
        // Begun before the reset, and given up for it.
        let waiting = tokio::time::timeout(Duration::from_millis(20), send.stopped()).await;
        assert!(waiting.is_err(), "nobody stopped it");
        send.reset(17)?;
        // A task of its own: the timer would look again by itself.
        let ended = tokio::spawn(async move { send.stopped().await });
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        assert_eq!(ended.expect("it is woken once the peer knows of the reset")??, None);
        assert_eq!(recv.received_reset().await?, Some(17));
        Ok(())
    });
}

#[test]
fn cancelled_reads_and_writes_lose_nothing() {
    run(async {
        const BYTES: usize = 3_000_000;
        let (client, server) = pair().await;
        let mut send = client.open_uni().await?;
        let sending = tokio::spawn(async move {
            let data: Vec<u8> = (0..BYTES).map(|i| (i / 3) as u8).collect();
            let mut sent = 0;
            while sent < BYTES {
                let end = BYTES.min(sent + 100_000);
                tokio::select! {
                    biased;
                    written = send.write(&data[sent..end]) => sent += written?,
                    () = tokio::time::sleep(Duration::from_micros(50)) => {}
                }
            }
            send.finish()?;
            send.stopped().await?;
            Outcome::Ok(())
        });
        let mut recv = server.accept_uni().await?;
        let mut got = 0;
        let mut buffer = vec![0; 30_000];
        loop {
            tokio::select! {
                biased;
                () = tokio::task::yield_now() => {}
                read = recv.read(&mut buffer) => {
                    let Some(bytes) = read? else { break };
                    assert!(buffer[..bytes].iter().enumerate().all(|(i, b)| *b == ((got + i) / 3) as u8));
                    got += bytes;
                }
            }
            if got < BYTES {
                // A read that is dropped half way.
                let _ = tokio::time::timeout(Duration::from_micros(20), std::future::pending::<()>()).await;
            }
        }
        assert_eq!(got, BYTES);
        sending.await?
    });
}

#[test]
fn cancelled_accepts_and_opens_take_nothing() {
    run(async {
        let (client, server) = pair().await;
        for _ in 0..3 {
            let wait = Duration::from_millis(5);
            assert!(tokio::time::timeout(wait, server.accept_uni()).await.is_err());
            assert!(tokio::time::timeout(wait, server.read_datagram()).await.is_err());
        }
        let mut send = client.open_uni().await?;
        send.write_all(b"x").await?;
        send.finish()?;
        assert_eq!(server.accept_uni().await?.read_to_end(9).await?, b"x");
        Ok(())
    });
}

#[test]
fn room_is_what_a_write_would_take() {
    run(async {
        let (mut server_config, client_config) = configs();
        let mut transport = plait::TransportConfig::default();
        transport.stream_receive_window(5_000);
        server_config.transport_config(transport.into());
        let server = endpoint(Some(server_config), &["127.0.0.1"]);
        let client = endpoint(None, &["127.0.0.1"]);
        let connecting = client.connect_with(client_config, server.local_addr()?, "localhost")?;
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (near, far) = (near?, far?);
        let mut send = near.open_uni().await?;
        assert_eq!(send.room().await?, 5_000);
        send.write_all(&[7; 5_000]).await?;
        {
            let mut room = std::pin::pin!(send.room());
            assert!(std::future::poll_fn(|cx| Poll::Ready(room.as_mut().poll(cx).is_pending())).await, "no credit");
            let mut recv = far.accept_uni().await?;
            recv.read_exact(&mut [0; 5_000]).await?;
            assert!((1..=5_000).contains(&room.await?), "credit came back");
            recv.stop(3)?;
        }
        while send.room().await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(send.room().await, Err(plait::WriteError::Stopped(3)));
        while near.stats().stream_bytes_acked < 5_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(near.stats().stream_bytes_acked, 5_000);
        Ok(())
    });
}

#[test]
fn a_stop_is_told_also_once_its_reset_is_acknowledged() {
    run(async {
        let (client, server) = pair().await;
        let mut finished = client.open_uni().await?;
        finished.write_all(&[2; 1 << 20]).await?;
        finished.finish()?;
        let mut read_in_part = server.accept_uni().await?;
        read_in_part.read_exact(&mut [0; 10]).await?;
        drop(read_in_part);
        let mut open = client.open_uni().await?;
        open.write_all(b"x").await?;
        server.accept_uni().await?.stop(7)?;
        // A stream of the peer that nobody has accepted yet.
        let (mut question, mut answer) = server.open_bi().await?;
        question.write_all(b"y").await?;
        answer.stop(8)?;
        tokio::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(finished.stopped().await?, Some(0), "most of it never arrived");
        assert_eq!(open.stopped().await?, Some(7));
        assert_eq!(open.write(b"x").await, Err(WriteError::Stopped(7)));
        let (mut send, _recv) = client.accept_bi().await?;
        assert_eq!(send.write(b"x").await, Err(WriteError::Stopped(8)));
        assert_eq!((send.stopped().await?, open.stopped().await?), (Some(8), Some(7)));
        Ok(())
    });
}
