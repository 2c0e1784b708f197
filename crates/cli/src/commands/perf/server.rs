//! `plait perf server`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plait::Endpoint;

use crate::error::CliError;
use crate::listen::{self, Opened};
use crate::output::eprint_line;
use crate::perf::args::PerfServerArgs;
use crate::perf::server::PerfServer;
use crate::perf::tcp::{self, TakenOn, TcpHost};
use crate::service::{Receiver, Service};

/// Ports that are tried where the kernel chooses one.
const PORT_CHOICES: u32 = 8;

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
    let (opened, host) = open(&args, service).await?;
    let endpoint = opened.endpoint;
    let over_tcp = async {
        let server = Arc::clone(&server);
        let take = move |taken_on: TakenOn| Arc::clone(&server).serve_tcp(taken_on);
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

/// Opens the sockets for QUIC, and at the same addresses for TCP where that is asked for. A port that the kernel chose may be
/// taken for TCP, since it knows of the first alone: then it chooses anew.
async fn open(args: &PerfServerArgs, service: Service) -> Result<(Opened, Option<TcpHost>), CliError> {
    let is_chosen = args.listen.listen.iter().any(|address| address.port() == 0);
    let mut choices = if is_chosen { PORT_CHOICES } else { 1 };
    loop {
        let opened = listen::open(&args.listen, service).await?;
        let Some(kernel) = args.also.kernel() else { return Ok((opened, None)) };
        choices -= 1;
        match tcp::listen(kernel, &opened.endpoint.local_addrs(), args.listen.transport.cc) {
            Ok(listeners) => {
                let host = TcpHost::new(listeners, opened.shown.clone())?;
                return Ok((opened, Some(host)));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && choices > 0 => {}
            Err(error) => {
                let what = format!("cannot listen for {}: {error}", kernel.name());
                return Err(CliError::running(
                    what,
                    if error.kind() == io::ErrorKind::Other { "see --cc" } else { "see --listen" },
                ));
            }
        }
    }
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
