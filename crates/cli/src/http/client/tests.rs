//! Requests of which the server has heard enough.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plait::{Endpoint, EndpointConfig};

use super::*;
use crate::http::FILES;
use crate::options::{ClientTls, Suites, Trust};
use crate::tls::Shown;
use crate::{identity, transport};

/// How far the end of the stopped stream has come when the rest of the request is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reset {
    OnItsWay,
    Acknowledged,
}

#[tokio::test]
async fn answers_to_requests_that_were_stopped_are_read() {
    read_the_answer(Reset::OnItsWay).await;
}

#[tokio::test]
async fn answers_are_read_also_when_the_stopped_stream_is_forgotten() {
    read_the_answer(Reset::Acknowledged).await;
}

async fn read_the_answer(reset: Reset) {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let shown = Shown::self_signed(&identity::fresh().unwrap(), &[], []).unwrap();
    let server = Endpoint::server(transport::server_config(FILES, shown, Suites::All).unwrap(), any_port).unwrap();
    let address = server.local_addr().unwrap();
    tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        recv.stop(0).unwrap();
        send.write_all(b"hello").await.unwrap();
        send.finish().unwrap();
        connection.closed().await;
    });
    let client = Endpoint::new(EndpointConfig::fresh().unwrap(), None, [any_port]).unwrap();
    client.set_default_client_config(transport::client_config(&ClientTls::new(FILES, Trust::Anybody)).unwrap());
    let connection = client.connect(address, "localhost").unwrap().await.unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    // The server hears of the stream by its first byte.
    send.write_all(b"G").await.unwrap();
    assert_eq!(send.stopped().await.unwrap(), Some(0));
    while reset == Reset::Acknowledged && send.priority().is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    send_request(&mut send, "/hello").await.unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"hello");
}
