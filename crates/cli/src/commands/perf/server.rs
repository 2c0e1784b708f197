//! `plait perf server`.

use std::sync::Arc;
use std::time::Duration;

use plait::Endpoint;

use crate::error::CliError;
use crate::listen;
use crate::output::eprint_line;
use crate::perf::args::PerfServerArgs;
use crate::perf::pipe::{PipeReader, PipeWriter};
use crate::perf::server::PerfServer;
use crate::perf::tcp::TcpHost;
use crate::service::Receiver;

/// Serves until stopped.
pub(super) async fn run(args: PerfServerArgs) -> Result<(), CliError> {
    let patience = Duration::from_secs(args.listen.patience.into());
    let service = args.service();
    if service.receiver == Receiver::Counts {
        eprint_line(
            "plait: a null receiver: full packets are acknowledged unread, whoever sent them; for measurements only",
        );
    }
    let server = Arc::new(PerfServer::new(args.listen.terms(), patience, service.receiver));
    let opened = listen::open(&args.listen, service).await?;
    let endpoint = opened.endpoint;
    let host = match args.also.kernel() {
        Some(kernel) => {
            let addresses = endpoint.local_addrs();
            Some(TcpHost::new(kernel, &addresses, opened.shown, args.listen.transport.cc)?)
        }
        None => None,
    };
    let over_tcp = async {
        let server = Arc::clone(&server);
        let take = move |writer: PipeWriter, reader: PipeReader| Arc::clone(&server).serve_tcp(writer, reader);
        match host {
            Some(host) => host.accept(take).await,
            None => std::future::pending().await,
        }
    };
    let serving = async {
        tokio::select! {
            () = over_quic(&endpoint, &server) => {}
            () = over_tcp => {}
        }
    };
    listen::until_stopped(endpoint.clone(), serving).await
}

/// Takes every connection that comes.
async fn over_quic(endpoint: &Endpoint, server: &Arc<PerfServer>) {
    while let Some(incoming) = endpoint.accept().await {
        let server = Arc::clone(server);
        tokio::spawn(async move {
            let remote = incoming.remote_address();
            match incoming.await {
                Ok(connection) => {
                    tracing::info!(%remote, multipath = connection.is_multipath(), "connected");
                    server.serve(connection).await;
                }
                Err(error) => tracing::info!(%remote, "ended in the handshake: {error}"),
            }
        });
    }
}
