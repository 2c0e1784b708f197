//! An hq-interop peer on quiche: one path, bodies of `/bytes/N` only. quiche does no IO: the sockets are in `link`.

mod client;
mod link;
mod server;

use std::time::Duration;

use anyhow::Result;
use interop_peers::args::{Mode, Options};
use interop_peers::report::Report;
use interop_peers::tls;

/// Bytes that the other side may send before it hears of more room.
const CONNECTION_WINDOW: u64 = 16 << 20;
const STREAM_WINDOW: u64 = 8 << 20;
const STREAMS: u64 = 100;
/// Connection ids of ours at once, one for each address that a client comes from, and some to spare.
const IDS: u64 = 4;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<()> {
    match Mode::read()? {
        Mode::Certificate(dir) => tls::make_certificate(&dir),
        Mode::Server(options) => server::serve(&options).await,
        Mode::Client(options) => {
            let mut report = Report::default();
            let result = tokio::time::timeout(Duration::from_secs(60), client::fetch_all(&options, &mut report)).await;
            let error = match result {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("nothing more came".to_owned()),
            };
            let failed = error.is_some();
            report.print(error);
            std::process::exit(failed.into());
        }
    }
}

/// What both sides set, beginning with this version.
fn settings(version: u32, options: &Options) -> Result<quiche::Config> {
    anyhow::ensure!(!options.chacha20, "quiche cannot be held to one cipher suite");
    let mut config = quiche::Config::new(version)?;
    config.set_application_protos(&[b"hq-interop"])?;
    config.set_max_idle_timeout(IDLE_TIMEOUT.as_millis().try_into()?);
    config.set_max_recv_udp_payload_size(link::DATAGRAM_ROOM);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    // Packets leave as soon as they are made.
    config.enable_pacing(false);
    config.enable_early_data();
    config.set_active_connection_id_limit(IDS);
    Ok(config)
}

/// Gives the other side ids of ours for further addresses, as many as it takes, and says which.
fn offer_ids(connection: &mut quiche::Connection) -> Result<Vec<Vec<u8>>> {
    let mut offered = Vec::new();
    while connection.is_established() && connection.scids_left() > 0 {
        let (id, token) = (new_id()?, new_id()?);
        let token = token.iter().take(16).fold(0, |token: u128, byte| token << 8 | u128::from(*byte));
        connection.new_scid(&quiche::ConnectionId::from_ref(&id), token, false)?;
        offered.push(id.to_vec());
    }
    Ok(offered)
}

/// A connection id that nobody can guess.
fn new_id() -> Result<[u8; quiche::MAX_CONN_ID_LEN]> {
    let mut id = [0; quiche::MAX_CONN_ID_LEN];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut id).map_err(|_| anyhow::anyhow!("no random numbers"))?;
    Ok(id)
}
