//! `plait serve`: files and synthetic bodies for anyone who asks, until stopped.

use std::sync::Arc;
use std::time::Duration;

use plait::Endpoint;

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::http::FILES;
use crate::http::root::Root;
use crate::http::server::FileServer;
use crate::listen;

/// Serves until stopped.
pub(crate) async fn run(args: ServeArgs) -> Result<(), CliError> {
    let root = match &args.root {
        None => None,
        Some(path) => Some(Root::new(path).map_err(|error| {
            CliError::running(format!("--root {}: {error}", path.display()), "name a folder that exists")
        })?),
    };
    let site = FileServer::new(root, args.listen.terms()).patience(Duration::from_secs(args.listen.patience.into()));
    let site = Arc::new(site);
    let endpoint = listen::open(&args.listen, FILES).await?.endpoint;
    listen::until_stopped(endpoint.clone(), accept(&endpoint, &site)).await
}

/// Takes every connection that comes.
pub(crate) async fn accept(endpoint: &Endpoint, site: &Arc<FileServer>) {
    while let Some(incoming) = endpoint.accept().await {
        let site = Arc::clone(site);
        tokio::spawn(async move {
            let remote = incoming.remote_address();
            match incoming.await {
                Ok(connection) => {
                    tracing::info!(%remote, multipath = connection.is_multipath(), "connected");
                    let watched = connection.clone();
                    site.serve(connection).await;
                    tracing::info!(%remote, "ended: {}", watched.closed().await);
                }
                Err(error) => tracing::info!(%remote, "ended in the handshake: {error}"),
            }
        });
    }
}
