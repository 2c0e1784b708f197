//! GSO batches leave as one call and arrive as the same datagrams, marks included.

use std::future::poll_fn;

use crate::net::{BindError, EcnCodepoint, Outgoing, ReceiveBatch, SendOutcome, Socket, SocketOptions};

fn bind(address: &str) -> Socket {
    Socket::bind(address.parse().unwrap(), &SocketOptions::default()).unwrap()
}

#[tokio::test]
async fn a_gso_batch_arrives_cut_apart() {
    let (a, b) = (bind("127.0.0.1:0"), bind("0.0.0.0:0"));
    let bytes: Vec<u8> = (0..10 * 1200 + 7).map(|i| (i / 1200) as u8).collect();
    let remote = format!("127.0.0.1:{}", b.local_addr().port()).parse().unwrap();
    let ecn = Some(EcnCodepoint::Ect0);
    let sent = if a.max_segments() >= 11 {
        let out = Outgoing { remote, source: None, ecn, bytes: &bytes, segment_bytes: Some(1200) };
        vec![poll_fn(|cx| a.poll_send(cx, &out)).await.unwrap()]
    } else {
        let mut sent = Vec::new();
        for bytes in bytes.chunks(1200) {
            let out = Outgoing { remote, source: None, ecn, bytes, segment_bytes: None };
            sent.push(poll_fn(|cx| a.poll_send(cx, &out)).await.unwrap());
        }
        sent
    };
    assert!(sent.iter().all(|s| *s == SendOutcome::Sent));
    let (mut batch, mut messages, mut arrived) = (ReceiveBatch::new(std::sync::Arc::default()), Vec::new(), 0);
    while arrived < bytes.len() {
        poll_fn(|cx| b.poll_receive(cx, &mut batch)).await.unwrap();
        messages.extend(batch.by_ref());
        arrived = messages.iter().map(|message| message.bytes.len()).sum();
    }
    for message in &messages {
        assert_eq!((message.remote, message.ecn), (a.local_addr(), ecn));
        assert_eq!(message.destination, Some("127.0.0.1".parse().unwrap()));
    }
    let got: Vec<&[u8]> = messages.iter().flat_map(|message| message.bytes.chunks(message.segment_bytes)).collect();
    assert_eq!(got, bytes.chunks(1200).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_comes_after_a_call_that_took_all_is_received_too() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let mut batch = ReceiveBatch::new(std::sync::Arc::default());
    let mut next = 0_u8;
    // One by one, and as many as fill the slots of a call or more.
    for count in [1, 1, 2, 3, 1, 4, 8, 9, 20, 1, 2] {
        for number in next..next + count {
            let out = Outgoing {
                remote: b.local_addr(),
                source: None,
                ecn: None,
                bytes: &[number; 100],
                segment_bytes: None,
            };
            assert_eq!(poll_fn(|cx| a.poll_send(cx, &out)).await.unwrap(), SendOutcome::Sent);
        }
        let mut arrived = Vec::new();
        while arrived.len() < usize::from(count) {
            poll_fn(|cx| b.poll_receive(cx, &mut batch)).await.unwrap();
            arrived.extend(batch.by_ref().flat_map(|message| {
                let pieces = message.bytes.chunks(message.segment_bytes);
                pieces.map(|piece| piece[0]).collect::<Vec<_>>()
            }));
        }
        assert_eq!(arrived, (next..next + count).collect::<Vec<_>>());
        next += count;
        let dry = poll_fn(|cx| std::task::Poll::Ready(b.poll_receive(cx, &mut batch).is_pending())).await;
        assert!(dry, "nothing is left");
    }
}

#[tokio::test]
async fn bind_errors_say_what_to_try() {
    let taken = bind("127.0.0.1:0");
    let again = Socket::bind(taken.local_addr(), &SocketOptions::default());
    assert!(matches!(again, Err(BindError::InUse(_))));
    let foreign = Socket::bind("192.0.2.77:0".parse().unwrap(), &SocketOptions::default());
    assert!(matches!(foreign, Err(BindError::NoSuchAddress(_))));
    if cfg!(target_os = "linux") {
        let options = SocketOptions { interface: Some("no-such-if0".into()), ..SocketOptions::default() };
        let missing = Socket::bind("127.0.0.1:0".parse().unwrap(), &options);
        assert!(matches!(missing, Err(BindError::NoSuchInterface(_) | BindError::Other(..))), "{missing:?}");
    }
}
