//! What becomes of streams when a server refuses 0-RTT.

use std::sync::Arc;
use std::time::Duration;

use plait::{ClientConfig, ClosedStream, Connection, Endpoint, ServerConfig, TransportConfig};

use crate::pair::{endpoint, run};

/// Bytes that the peer takes of a stream before anybody reads.
const WINDOW: u64 = 100_000;

/// Settings of two servers of one name that know nothing of each other's sessions, and of a client.
fn configs() -> ([ServerConfig; 2], ClientConfig) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut transport = TransportConfig::default();
    transport.max_concurrent_uni_streams(1);
    transport.stream_receive_window(WINDOW);
    let transport = Arc::new(transport);
    let servers = std::array::from_fn(|_| {
        let key = plait::rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let mut server = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key, ["example"]).unwrap();
        server.transport_config(transport.clone());
        server
    });
    let mut roots = plait::rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let mut client = ClientConfig::with_roots(roots, ["example"]).unwrap();
    client.attempt_delay(Duration::from_secs(2));
    (servers, client)
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Connects the client to the server, and ends that once it has the server's session tickets.
pub(crate) async fn meet(client: &Endpoint, server: &Endpoint) -> Result<(), Error> {
    let serve = async { server.accept().await.unwrap().await };
    let (near, far) = tokio::join!(client.connect(server.local_addr()?, "localhost")?, serve);
    let (near, far) = (near?, far?);
    // They travel with what the server sends next.
    let mut send = far.open_uni().await?;
    send.write_all(b"x").await?;
    send.finish()?;
    near.accept_uni().await?.read_to_end(9).await?;
    Ok(())
}

/// A connection whose 0-RTT is refused, and its other end; with what the client made of it before.
async fn refused<T, F>(early: impl FnOnce(Connection) -> F) -> Result<(Connection, Connection, T), Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let ([first, second], client_config) = configs();
    let server = endpoint(Some(first), &["127.0.0.1"]);
    let address = server.local_addr()?;
    let client = endpoint(None, &["127.0.0.1"]);
    client.set_default_client_config(client_config);
    meet(&client, &server).await?;
    let serve = || async { server.accept().await.unwrap().await };
    server.set_server_config(Some(second));
    let Ok((near, accepted)) = client.connect(address, "localhost")?.into_0rtt() else { panic!("session") };
    let made = early(near.clone()).await?;
    let (accepted, far) = tokio::join!(accepted, serve());
    assert!(!accepted);
    Ok((near, far?, made))
}

#[test]
fn who_waits_to_open_a_stream_gets_one_after_the_refusal() {
    run(async {
        let early = |near: Connection| async move {
            near.open_uni().await?.write_all(b"early").await?;
            let waiting = tokio::spawn(async move { near.open_uni().await.map(|send| send.id()) });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished(), "the server allows one");
            Ok(waiting)
        };
        let (_near, _far, waiting) = refused(early).await?;
        tokio::time::timeout(Duration::from_secs(5), waiting).await???;
        Ok(())
    });
}

#[test]
fn a_refused_stream_leaves_the_new_one_with_its_id_alone() {
    run(async {
        let early = |near: Connection| async move {
            let (mut send, recv) = near.open_bi().await?;
            send.write_all(b"early").await?;
            Ok((send, recv))
        };
        let (near, far, refused) = refused(early).await?;
        let (mut send, mut recv) = near.open_bi().await?;
        assert_eq!(refused.0.id(), send.id(), "ids start over");
        assert_eq!((refused.0.set_priority(5), refused.0.priority()), (Err(ClosedStream), Err(ClosedStream)));
        assert_eq!(send.priority(), Ok(0));
        let writing = tokio::spawn(async move { send.write_all(&vec![0; 4 * WINDOW as usize]).await.map(|()| send) });
        let reading = tokio::spawn(async move { recv.read_exact(&mut [0; 4]).await });
        let (mut answer, mut question) = far.accept_bi().await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!writing.is_finished() && !reading.is_finished());
        drop(refused);
        answer.write_all(b"word").await?;
        tokio::time::timeout(Duration::from_secs(5), reading).await???;
        question.read_exact(&mut vec![0; 4 * WINDOW as usize]).await?;
        tokio::time::timeout(Duration::from_secs(5), writing).await???;
        Ok(())
    });
}
