//! s2n-quic as server and client of the comparison.

use std::net::SocketAddr;

use bytes::Bytes;
use peer_common::{
    ALPN, CHUNK_BYTES, ClientTask, Peer, Question, Role, SERVER_NAME, ServerTask, WINDOW_BYTES, announce,
    datagram_bytes, run,
};
use s2n_quic::client::Connect;
use s2n_quic::provider::io::Default as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection, Server, connection::Handle};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match Role::from_args() {
        Role::Server(task) => serve(&task).await,
        Role::Client(task) => run(Fetcher::new(&task), task.load).await,
    }
}

fn limits() -> Limits {
    let window = u64::from(WINDOW_BYTES);
    let limits = Limits::new().with_data_window(window).and_then(|l| l.with_bidirectional_local_data_window(window));
    let limits = limits.and_then(|l| l.with_bidirectional_remote_data_window(window));
    limits.and_then(|l| l.with_max_send_buffer_size(WINDOW_BYTES)).expect("windows")
}

/// Datagrams as large as those of the others: IPv4 and UDP take 28 bytes more.
fn io() -> Io {
    let builder = Io::builder().with_receive_address(([127, 0, 0, 1], 0).into()).expect("an address");
    builder.with_max_mtu(datagram_bytes().saturating_add(28)).and_then(|builder| builder.build()).expect("a socket")
}

async fn serve(task: &ServerTask) {
    let tls = rustls::Server::builder().with_certificate(&*task.cert, &*task.key).expect("an identity");
    let tls = tls.with_application_protocols([ALPN].into_iter()).expect("a protocol").build().expect("TLS");
    let server = Server::builder().with_tls(tls).expect("TLS").with_limits(limits()).expect("limits");
    let mut server = server.with_io(io()).expect("a socket").start().expect("a server");
    let payload = Bytes::from(vec![7; CHUNK_BYTES]);
    announce(server.local_addr().expect("an address"));
    while let Some(connection) = server.accept().await {
        tokio::spawn(answer(connection, payload.clone()));
    }
}

async fn answer(mut connection: Connection, payload: Bytes) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(give(stream, payload.clone()));
    }
}

/// Ends early where the client goes.
async fn give(mut stream: BidirectionalStream, payload: Bytes) -> Option<()> {
    let mut question = Question::default();
    while let Some(piece) = stream.receive().await.ok()? {
        question.take(&piece);
    }
    let mut left = question.wanted()?;
    while left > 0 {
        let chunk = payload.slice(..payload.len().min(left as usize));
        left -= chunk.len() as u64;
        stream.send(chunk).await.ok()?;
    }
    stream.finish().ok()
}

#[derive(Clone)]
struct Fetcher {
    client: Client,
    server: SocketAddr,
}

impl Fetcher {
    fn new(task: &ClientTask) -> Self {
        let tls = rustls::Client::builder().with_certificate(&*task.cert).expect("a root");
        let tls = tls.with_application_protocols([ALPN].into_iter()).expect("a protocol").build().expect("TLS");
        let client = Client::builder().with_tls(tls).expect("TLS").with_limits(limits()).expect("limits");
        let client = client.with_io(io()).expect("a socket").start().expect("a client");
        Self { client, server: task.server }
    }
}

impl Peer for Fetcher {
    type Connection = Handle;
    type Stream = BidirectionalStream;

    async fn connect(&self) -> Handle {
        let connection = self.client.connect(Connect::new(self.server).with_server_name(SERVER_NAME)).await;
        connection.expect("a connection").split().0
    }

    async fn open(connection: &Handle) -> BidirectionalStream {
        connection.clone().open_bidirectional_stream().await.expect("a stream")
    }

    async fn write(stream: &mut BidirectionalStream, data: Bytes) {
        stream.send(data).await.expect("room");
    }

    async fn finish(mut stream: BidirectionalStream) -> u64 {
        stream.finish().expect("an open stream");
        let mut got = 0;
        let mut chunks = [const { Bytes::new() }; 64];
        loop {
            let (count, is_open) = stream.receive_vectored(&mut chunks).await.expect("data");
            for chunk in chunks.iter_mut().take(count) {
                got += std::mem::take(chunk).len() as u64;
            }
            if !is_open {
                return got;
            }
        }
    }
}
