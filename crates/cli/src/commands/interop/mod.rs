//! `plait interop`: an endpoint of the public QUIC interop runner, told what to do by its environment.

mod case;
mod client;
mod server;

use std::path::PathBuf;

use crate::error::CliError;
use case::Case;

/// The environment, read once. Folders and the port have the runner's names unless a variable says otherwise.
#[derive(Clone, Debug)]
struct Setting {
    case: Case,
    /// URLs that the client is to download.
    requests: Vec<String>,
    /// Files that the server serves.
    www: PathBuf,
    /// Where the client writes.
    downloads: PathBuf,
    /// `cert.pem`, `priv.key` and, for clients, perhaps `ca.pem`.
    certs: PathBuf,
    qlog: Option<PathBuf>,
    port: u16,
    /// Further words for our side, from `CLIENT_PARAMS` or `SERVER_PARAMS`.
    params: Vec<String>,
}

impl Setting {
    fn read(case: Case, params: &str) -> Result<Self, CliError> {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let folder = |name: &str, usual: &str| PathBuf::from(text(name).unwrap_or_else(|| usual.to_owned()));
        let words = |name: &str| text(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let port = text("PORT").unwrap_or_else(|| "443".to_owned());
        Ok(Self {
            case,
            requests: words("REQUESTS"),
            www: folder("WWW", "/www"),
            downloads: folder("DOWNLOADS", "/downloads"),
            certs: folder("CERTS", "/certs"),
            qlog: text("QLOGDIR").map(PathBuf::from),
            port: port.parse().map_err(|_| CliError::usage(format!("PORT={port} is not a port")))?,
            params: words(params),
        })
    }

    /// The word after this one among the parameters.
    fn param(&self, name: &str) -> Option<&str> {
        let at = self.params.iter().position(|word| word == name)?;
        self.params.get(at + 1).map(String::as_str)
    }
}

/// Does what the environment says.
pub(crate) async fn run() -> Result<(), CliError> {
    let name = std::env::var("TESTCASE").unwrap_or_default();
    let role = std::env::var("ROLE").unwrap_or_default();
    let case = Case::parse(&name).ok_or_else(|| CliError::Unsupported(name.clone()))?;
    match role.as_str() {
        "client" => client::run(&Setting::read(case, "CLIENT_PARAMS")?).await,
        "server" => server::run(&Setting::read(case, "SERVER_PARAMS")?).await,
        other => Err(CliError::usage(format!("ROLE={other}: it must be client or server"))),
    }
}
