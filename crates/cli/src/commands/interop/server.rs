//! The runner's server: files of a folder over HTTP/0.9, with the habit that the test case wants.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use plait::{Bind, Endpoint, RetryPolicy, ServerConfig, Version};

use super::Setting;
use super::case::Case;
use crate::commands::serve;
use crate::error::CliError;
use crate::http::FILES;
use crate::http::policies::Terms;
use crate::http::root::Root;
use crate::http::server::FileServer;
use crate::options::{Suites, TransportPlan};
use crate::output::print_json;
use crate::output::summary::Listening;
use crate::tls::Shown;
use crate::{listen, stop, transport};

/// Paths of a multipath connection.
const PATHS: u32 = 8;

/// Serves until stopped.
pub(super) async fn run(setting: &Setting) -> Result<(), CliError> {
    let root = Root::new(&setting.www)
        .map_err(|error| CliError::running(format!("{}: {error}", setting.www.display()), "set WWW to a folder"))?;
    let shown = Shown::read(&setting.certs.join("cert.pem"), &setting.certs.join("priv.key"))?;
    let suites = if setting.case == Case::ChaCha20 { Suites::ChaCha20 } else { Suites::All };
    let mut config = transport::server_config(FILES, shown, suites)?;
    let paths = if setting.case == Case::Multipath { PATHS } else { 1 };
    let mut carriage = transport::config(&TransportPlan::usual(paths));
    transport::log_to(&mut carriage, setting.qlog.as_ref())?;
    config.transport_config(Arc::new(carriage));
    if setting.case == Case::Retry {
        config.retry_policy(RetryPolicy::Always);
    }
    if setting.case == Case::SecondVersion {
        config.preferred_versions(vec![Version::V2, Version::V1]);
    }
    let mut further = setting.param("--also-listen").map(address).transpose()?;
    if setting.case == Case::Migration {
        let preferred = match setting.param("--preferred") {
            Some(text) => vec![address(text)?],
            None => own_addresses(setting.port.saturating_add(1)).await,
        };
        further = prefer(&mut config, &preferred);
    }
    let endpoint = listen(config, setting, further)?;
    let addresses = endpoint.local_addrs().iter().map(SocketAddr::to_string).collect();
    print_json(&Listening { event: "listening", addresses })?;
    let site = Arc::new(FileServer::new(Some(root), Terms::Fixed));
    tokio::select! {
        () = serve::accept(&endpoint, &site) => {}
        () = stop::asked() => {}
    }
    endpoint.close(0, b"");
    // A client that does not hear it times out.
    let _ = tokio::time::timeout(listen::CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, CliError> {
    text.parse().map_err(|_| CliError::usage(format!("`{text}` is not an address with a port")))
}

/// Addresses of this machine that others can reach, one of each family.
async fn own_addresses(port: u16) -> Vec<SocketAddr> {
    let found = plait::usable_addresses().await.unwrap_or_default();
    let first = |v4: bool| found.iter().map(|local| local.ip).find(|ip| ip.is_ipv4() == v4);
    [first(true), first(false)].into_iter().flatten().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// Announces these addresses; gives the one to listen on for them.
fn prefer(config: &mut ServerConfig, preferred: &[SocketAddr]) -> Option<SocketAddr> {
    for address in preferred {
        match address {
            SocketAddr::V4(v4) => config.preferred_address_v4(Some(*v4)),
            SocketAddr::V6(v6) => config.preferred_address_v6(Some(*v6)),
        };
    }
    match preferred {
        [] => None,
        [only] => Some(*only),
        // Both families at once.
        [first, ..] => Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), first.port())),
    }
}

fn listen(config: ServerConfig, setting: &Setting, further: Option<SocketAddr>) -> Result<Endpoint, CliError> {
    let fail =
        |error: &dyn std::fmt::Display| CliError::running(format!("cannot listen: {error}"), "set PORT to a free port");
    let every = |ip: IpAddr| SocketAddr::new(ip, setting.port);
    let endpoint = match setting.param("--listen").map(address).transpose()? {
        Some(address) => Endpoint::server(config, address),
        // Where there is no IPv6, IPv4 has to do.
        None => Endpoint::server(config.clone(), every(Ipv6Addr::UNSPECIFIED.into()))
            .or_else(|_| Endpoint::server(config, every(Ipv4Addr::UNSPECIFIED.into()))),
    };
    let endpoint = endpoint.map_err(|error| fail(&error))?;
    if let Some(address) = further {
        endpoint.add_socket(Bind::from(address)).map_err(|error| fail(&error))?;
    }
    Ok(endpoint)
}
