//! One download by a client on `0.0.0.0:0` that goes on while the machine's addresses change, with what its path did.
//! Usage: `roam SERVER_ADDRESS SIZE [multipath]`; start `plait serve` first.

use std::sync::Arc;

use plait::{ClientConfig, Endpoint, TransportConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (server, size) = (args.next().unwrap_or("127.0.0.1:4433".into()), args.next().unwrap_or("100M".into()));
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(if args.next().is_some() { 8 } else { 0 });
    let mut config = ClientConfig::insecure(["hq-interop"])?; // trusts anybody: for trials only
    config.transport_config(Arc::new(transport));

    let endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(server.parse()?, "localhost")?.await?;
    let mut events = connection.path_events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            eprintln!("{event:?}");
        }
    });

    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(format!("GET /bytes/{size}\r\n").as_bytes()).await?;
    send.finish()?;
    let (mut bytes, mut block) = (0, vec![0; 1 << 16]);
    while let Some(read) = recv.read(&mut block).await? {
        bytes += read;
    }
    let from = connection.local_ip().map_or("an unknown address".into(), |ip| ip.to_string());
    println!("{bytes} bytes, at last from {from}");
    connection.close(0, b"done");
    endpoint.wait_idle().await;
    Ok(())
}
