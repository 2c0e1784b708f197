//! plait as server and client of the comparison.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use peer_common::{
    ALPN, CHUNK_BYTES, ClientTask, Peer, Question, Role, SERVER_NAME, ServerTask, WINDOW_BYTES, announce,
    datagram_bytes, run,
};
use plait::{
    ClientConfig, Connection, Endpoint, EndpointConfig, MtuDiscoveryConfig, Order, RecvStream, SendStream,
    ServerConfig, TransportConfig,
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match Role::from_args() {
        Role::Server(task) => serve(&task).await,
        Role::Client(task) => run(Client::new(&task), task.load).await,
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let window = u64::from(WINDOW_BYTES);
    config.max_stream_receive_window(window).max_receive_window(window).send_window(window);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(datagram_bytes());
    config.mtu_discovery_config(Some(discovery));
    let cubic = plait::congestion_controller("cubic").expect("a controller");
    config.congestion_controller_factory(cubic).multipath_controller(None);
    Arc::new(config)
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let own: SocketAddr = ([127, 0, 0, 1], 0).into();
    Endpoint::new(EndpointConfig::fresh().expect("random numbers"), server, [own]).expect("an endpoint")
}

async fn serve(task: &ServerTask) {
    let (chain, key) = task.identity();
    let mut config = ServerConfig::with_single_cert(chain, key, [ALPN]).expect("an identity");
    config.transport_config(transport());
    let endpoint = endpoint(Some(config));
    let payload = Bytes::from(vec![7; CHUNK_BYTES]);
    announce(endpoint.local_addr().expect("an address"));
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else {
            continue;
        };
        tokio::spawn(answer(connection, payload.clone()));
    }
}

async fn answer(connection: Connection, payload: Bytes) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        tokio::spawn(give(send, receive, payload.clone()));
    }
}

/// Ends early where the client goes.
async fn give(mut send: SendStream, mut receive: RecvStream, payload: Bytes) -> Option<()> {
    let mut question = Question::default();
    while let Some(chunk) = receive.read_chunk(usize::MAX, Order::Ordered).await.ok()? {
        question.take(&chunk.bytes);
    }
    let mut left = question.wanted()?;
    while left > 0 {
        let chunk = payload.slice(..payload.len().min(left as usize));
        left -= chunk.len() as u64;
        send.write_chunk(chunk).await.ok()?;
    }
    send.finish().ok()
}

#[derive(Clone)]
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    server: SocketAddr,
}

impl Client {
    fn new(task: &ClientTask) -> Self {
        let mut config = ClientConfig::with_roots(task.roots(), [ALPN]).expect("roots");
        config.transport_config(transport());
        Self { endpoint: endpoint(None), config, server: task.server }
    }
}

impl Peer for Client {
    type Connection = Connection;
    type Stream = (SendStream, RecvStream);

    async fn connect(&self) -> Connection {
        let connecting = self.endpoint.connect_with(self.config.clone(), self.server, SERVER_NAME);
        connecting.expect("a start").await.expect("a connection")
    }

    async fn open(connection: &Connection) -> Self::Stream {
        connection.open_bi().await.expect("a stream")
    }

    async fn write((send, _): &mut Self::Stream, data: Bytes) {
        send.write_chunk(data).await.expect("room");
    }

    async fn finish((mut send, mut receive): Self::Stream) -> u64 {
        send.finish().expect("an open stream");
        let mut got = 0;
        while let Some(chunk) = receive.read_chunk(usize::MAX, Order::Ordered).await.expect("data") {
            got += chunk.bytes.len() as u64;
        }
        got
    }
}
