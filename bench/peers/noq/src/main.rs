//! noq as server and client of the comparison.

use std::net::UdpSocket;
use std::sync::Arc;

use bytes::Bytes;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Connection, Endpoint, EndpointConfig, MtuDiscoveryConfig, RecvStream, SendStream, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};
use peer_common::{
    CHUNK_BYTES, ClientTask, Measured, REQUEST_BYTES_MAX, Role, SERVER_NAME, ServerTask, WINDOW_BYTES, announce,
    datagram_bytes, wanted,
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match Role::from_args() {
        Role::Server(task) => serve(&task).await,
        Role::Client(task) => fetch(&task).await,
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
    config.receive_window(VarInt::from_u32(WINDOW_BYTES)).send_window(WINDOW_BYTES.into());
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(datagram_bytes());
    config.mtu_discovery_config(Some(discovery));
    Arc::new(config)
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(datagram_bytes().max(1472)).expect("a size");
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

async fn serve(task: &ServerTask) {
    let tls = QuicServerConfig::try_from(task.tls()).expect("a cipher suite");
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = endpoint(Some(config));
    announce(endpoint.local_addr().expect("an address"));
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else {
            continue;
        };
        tokio::spawn(answer(connection));
    }
}

async fn answer(connection: Connection) {
    let payload = Bytes::from(vec![7; CHUNK_BYTES]);
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(give(send, receive, payload.clone()));
    }
}

async fn give(mut send: SendStream, mut receive: RecvStream, payload: Bytes) {
    let asked = receive.read_to_end(REQUEST_BYTES_MAX).await.expect("a request");
    let mut left = wanted(&asked);
    while left > 0 {
        let chunk = payload.slice(..payload.len().min(left as usize));
        left -= chunk.len() as u64;
        send.write_chunk(chunk).await.expect("room");
    }
    send.finish().expect("an open stream");
}

async fn fetch(task: &ClientTask) {
    let tls = QuicClientConfig::try_from(task.tls()).expect("a cipher suite");
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = endpoint(None);
    let connecting = endpoint.connect_with(config, task.server, SERVER_NAME).expect("a start");
    let connection = connecting.await.expect("a connection");
    let measured = Measured::start();
    let streams: Vec<_> = (0..task.streams).map(|at| tokio::spawn(take(connection.clone(), task.share(at)))).collect();
    for stream in streams {
        stream.await.expect("a stream");
    }
    measured.finish();
}

async fn take(connection: Connection, bytes: u64) {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(&bytes.to_be_bytes()).await.expect("room");
    send.finish().expect("an open stream");
    let mut got = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.expect("data") {
        got += chunk.len() as u64;
    }
    assert_eq!(got, bytes);
}
