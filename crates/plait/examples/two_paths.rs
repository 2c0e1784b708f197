//! One download over two local addresses, and what each path carried. Start `plait serve` first.

use std::{net::SocketAddr, sync::Arc};

use plait::{ClientConfig, Endpoint, EndpointConfig, TransportConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut transport = TransportConfig::default();
    transport.path_policy(plait::path_policy("fullmesh").ok_or("no such policy")?);
    let mut config = ClientConfig::insecure(["hq-interop"])?; // trusts anybody: for trials only
    config.transport_config(Arc::new(transport));

    let locals: [SocketAddr; 2] = ["127.0.0.1:0".parse()?, "127.0.0.2:0".parse()?];
    let endpoint = Endpoint::new(EndpointConfig::fresh()?, None, locals)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect("127.0.0.1:4433".parse()?, "localhost")?.await?;

    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"GET /bytes/10M\r\n").await?;
    send.finish()?;
    let body = recv.read_to_end(20_000_000).await?;
    println!("{} bytes", body.len());
    for stats in connection.paths().iter().filter_map(plait::Path::stats) {
        println!("{} is {}: {} bytes received", stats.route, stats.state.name(), stats.received_bytes);
    }
    connection.close(0, b"done");
    endpoint.wait_idle().await;
    Ok(())
}
