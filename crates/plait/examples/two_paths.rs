//! One download over two local addresses, and what each path carried. Start `plait serve` first.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait::{ClientConfig, Endpoint, EndpointConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (wifi, cellular) = (IpAddr::from(Ipv4Addr::new(127, 0, 0, 1)), IpAddr::from(Ipv4Addr::new(127, 0, 0, 2)));
    let sockets = [SocketAddr::new(wifi, 0), SocketAddr::new(cellular, 0)];
    let endpoint = Endpoint::new(EndpointConfig::fresh()?, None, sockets)?;
    endpoint.set_default_client_config(ClientConfig::insecure(["hq-interop"])?); // trusts anybody: for trials only

    let connection = endpoint.connect("127.0.0.1:4433".parse()?, "localhost")?.await?;
    connection.open_path((cellular, connection.remote_address())).await?;

    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"GET /bytes/100M\r\n").await?;
    send.finish()?;
    let body = recv.read_to_end(200_000_000).await?;
    println!("{} bytes", body.len());
    for stats in connection.paths().iter().filter_map(plait::Path::stats) {
        println!("{} is {}: {} bytes received", stats.tuple, stats.state.name(), stats.received_bytes);
    }
    connection.close(0, b"done");
    endpoint.wait_idle().await;
    Ok(())
}
