//! noq as server and client of the comparison.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Connection, Endpoint, EndpointConfig, FourTuple, MtuDiscoveryConfig, PathStatus, RecvStream,
    SendStream, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use peer_common::{
    CHUNK_BYTES, ClientTask, Peer, Question, Role, SERVER_NAME, ServerTask, Setting, announce, datagram_bytes, run,
    window_bytes,
};

/// Between two attempts to open a path.
const PATH_PAUSE: Duration = Duration::from_millis(5);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match Role::from_args() {
        Role::Server(task) => serve(&task).await,
        Role::Client(task) => run(Client::new(&task), task.load).await,
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let window = window_bytes();
    config.stream_receive_window(VarInt::from_u32(window));
    config.receive_window(VarInt::from_u32(window)).send_window(window.into());
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(datagram_bytes());
    config.mtu_discovery_config(Some(discovery));
    let setting = Setting::from_environment();
    if let Some(paths) = setting.paths {
        config.max_concurrent_multipath_paths(paths);
    }
    if let Some(idle) = setting.path_idle {
        config.default_path_max_idle_timeout(Some(idle));
        // A path without data would be given up too.
        config.default_path_keep_alive_interval(Some(idle / 3));
    }
    Arc::new(config)
}

fn endpoint(server: Option<ServerConfig>, address: SocketAddr) -> Endpoint {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(datagram_bytes().max(1472)).expect("a size");
    let socket = UdpSocket::bind(address).expect("a socket");
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

async fn serve(task: &ServerTask) {
    let tls = QuicServerConfig::try_from(task.tls()).expect("a cipher suite");
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    let endpoint = endpoint(Some(config), Setting::from_environment().server_address());
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
    while let Some(chunk) = receive.read_chunk(usize::MAX).await.ok()? {
        question.take(&chunk);
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
        let tls = QuicClientConfig::try_from(task.tls()).expect("a cipher suite");
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(transport());
        let setting = Setting::from_environment();
        Self { endpoint: endpoint(None, setting.client_address()), config, server: task.server }
    }
}

impl Peer for Client {
    type Connection = Connection;
    type Stream = (SendStream, RecvStream);

    async fn connect(&self) -> Connection {
        let connecting = self.endpoint.connect_with(self.config.clone(), self.server, SERVER_NAME);
        connecting.expect("a start").await.expect("a connection")
    }

    fn open_paths(&self, connection: &Connection) {
        for local in Setting::from_environment().further() {
            let (connection, tuple) = (connection.clone(), FourTuple::new(self.server, Some(*local)));
            tokio::spawn(async move {
                // Connection ids for the path may still be under way, and what asks for it may be lost.
                while connection.close_reason().is_none() {
                    match connection.open_path(tuple, PathStatus::Available).await {
                        Ok(_) => return,
                        Err(_) => tokio::time::sleep(PATH_PAUSE).await,
                    }
                }
            });
        }
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
        while let Some(chunk) = receive.read_chunk(usize::MAX).await.expect("data") {
            got += chunk.len() as u64;
        }
        got
    }
}
