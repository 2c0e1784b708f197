//! What an idle connection costs a server and a client: resident memory of two processes, one with clients that asked for
//! nothing, one with all those clients on one endpoint.
//! Usage: `idle [CONNECTIONS] [multipath]`; it starts itself once more, as the server. `IDLE_SERVER` names another program
//! to measure: it is started with `serve`, speaks the protocol `idle`, and prints its address.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use plait::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

/// Longer than the last acknowledgements and timers of a handshake need.
const QUIET: Duration = Duration::from_secs(3);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(600)));
    transport.into()
}

/// Lives until its standard input ends.
async fn serve() -> Outcome<()> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![identity.cert.der().clone()], key.into(), ["idle"])?;
    config.transport_config(transport());
    let address: SocketAddr = "127.0.0.1:0".parse()?;
    let endpoint = Endpoint::new(EndpointConfig::fresh()?, Some(config), [address])?;
    println!("{}", endpoint.local_addr()?);
    let accepting = tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                while let Ok((_, mut recv)) = connection.accept_bi().await {
                    let _ = recv.read_to_end(1 << 20).await;
                }
            });
        }
    });
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    accepting.abort();
    std::process::exit(0)
}

fn resident(process: u32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().is_some_and(|arg| arg == "serve") {
        return serve().await;
    }
    let count: u64 = args.next().map_or(Ok(1_000), |n| n.parse())?;
    let extension = args.next().is_some();

    let mut server = Command::new(std::env::var_os("IDLE_SERVER").unwrap_or(std::env::current_exe()?.into()));
    let mut server = server.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    // A profiler in front of the server may say something first.
    let address = loop {
        if let Ok(address) = lines.next_line().await?.ok_or("the server ended")?.parse::<SocketAddr>() {
            break address;
        }
    };

    let mut config = ClientConfig::insecure(["idle"])?; // trusts anybody: for trials only
    let mut ours = TransportConfig::clone(&transport());
    ours.max_concurrent_multipath_paths(if extension { 8 } else { 0 });
    config.transport_config(ours.into());
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(config);

    // One first: what is made once is made.
    let mut connections = vec![endpoint.connect(address, "localhost")?.await?];
    tokio::time::sleep(QUIET).await;
    let processes = (server.id().unwrap_or_default(), std::process::id());
    let before = (resident(processes.0)?, resident(processes.1)?);
    let each = |since: (u64, u64)| -> Outcome<String> {
        let grew =
            |process, before| Ok::<_, Box<dyn std::error::Error>>(resident(process)?.saturating_sub(before) / count);
        Ok(format!(
            "{} bytes each at the server, {} at the client",
            grew(processes.0, since.0)?,
            grew(processes.1, since.1)?
        ))
    };
    for _ in 0..count {
        connections.push(endpoint.connect(address, "localhost")?.await?);
    }
    println!("{count} connections made: {}", each(before)?);
    tokio::time::sleep(QUIET).await;
    println!("after {QUIET:?} of silence: {}", each(before)?);
    drop(server.stdin.take());
    server.wait().await?;
    Ok(())
}
