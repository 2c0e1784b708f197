//! Policies asked for: as words, as answers, and as what a server sends then.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use plait::{Endpoint, EndpointConfig, TransportConfig};
use plait_netsim::link::LinkConfig;

use super::*;
use crate::http::FILES;
use crate::http::client::fetch;
use crate::http::server::FileServer;
use crate::http::sink::Sink;
use crate::meter::Meter;
use crate::options::{ClientTls, Destination, Suites, TransportPlan, Trust};
use crate::relay::{Relay, RelayConfig};
use crate::tls::Shown;
use crate::{commands, identity, transport};

/// A name as somebody types it.
fn typed<Name: ValueEnum>(name: &str) -> Name {
    Name::from_str(name, false).unwrap()
}

#[test]
fn wishes_travel() {
    let wish = Wish {
        scheduler: Some(typed("redundant")),
        congestion: Some(typed("coupled-cubic")),
        ack_path: Some(typed("all")),
        reinjection: Some(typed("none")),
        placement: Some(StreamPlacement::Pinned),
    };
    let query = "scheduler=redundant&congestion=coupled-cubic&ack_path=all&reinjection=none&placement=pinned";
    let path = PATH;
    assert_eq!(wish.target(), format!("{path}?{query}"));
    assert_eq!(Wish::parse(query), Some(wish));
    assert_eq!((Wish::default().target().as_str(), Wish::parse("")), (PATH, Some(Wish::default())));
    for odd in [
        "scheduler",
        "scheduler=best",
        "scheduler=",
        "window=1",
        "scheduler=MINRTT",
        "=",
        "scheduler=blest&x=y",
        "placement=shard",
    ] {
        assert_eq!(Wish::parse(odd), None, "{odd}");
    }
}

#[test]
fn answers_are_believed_when_they_look_like_names() {
    let answer = |scheduler: &str| {
        let policies = Policies { scheduler: "s", congestion: "c", ack_route: "a", reinjection: "r" };
        let named = Named { scheduler: scheduler.into(), ..Named::from(policies) };
        Named::read(serde_json::to_string(&named).unwrap().as_bytes())
    };
    assert_eq!(answer("own-one_2.0").unwrap().scheduler, "own-one_2.0");
    for odd in ["", "a b", "\u{1b}[31m", &"x".repeat(41)] {
        assert_eq!(answer(odd), None, "{odd:?}");
    }
    assert_eq!(Named::read(b"<html>"), None);
    assert_eq!(Named::read(b"{\"scheduler\":\"minrtt\"}"), None);
}

/// A server and a client with two links of 40 Mbit/s and 4 ms between them.
struct Scene {
    server: Endpoint,
    client: Endpoint,
    relays: [Relay; 2],
}

impl Scene {
    fn set(terms: Terms) -> Self {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let carriage: Arc<TransportConfig> = Arc::new(transport::config(&TransportPlan::usual(4)));
        let shown = Shown::self_signed(&identity::fresh().unwrap(), &[], []).unwrap();
        let mut config = transport::server_config(FILES, shown, Suites::All).unwrap();
        config.transport_config(carriage.clone());
        let server = Endpoint::server(config, any_port).unwrap();
        let address = server.local_addr().unwrap();
        let relays = [1, 2].map(|seed| {
            let link = LinkConfig::new(40_000_000, Duration::from_millis(2));
            let config = RelayConfig { listen: any_port, server: address, up: link.clone(), down: link, seed };
            Relay::start(config).unwrap()
        });
        let locals = [any_port, SocketAddr::from(([127, 0, 0, 2], 0))];
        let client = Endpoint::new(EndpointConfig::fresh().unwrap(), None, locals).unwrap();
        let mut config = transport::client_config(&ClientTls::new(FILES, Trust::Anybody)).unwrap();
        config.transport_config(carriage);
        client.set_default_client_config(config);
        let (site, endpoint) = (Arc::new(FileServer::new(None, terms)), server.clone());
        tokio::spawn(async move { commands::serve::accept(&endpoint, &site).await });
        Self { server, client, relays }
    }

    async fn connect(&self) -> Connection {
        let [a, b] = &self.relays;
        let connection = self.client.connect(a.address(), "localhost").unwrap().await.unwrap();
        let second: std::net::IpAddr = [127, 0, 0, 2].into();
        connection.open_path((second, b.address())).await.unwrap();
        connection
    }

    /// Bytes of STREAM frames that came for each byte of a body.
    async fn carried(&self, connection: &Connection) -> f64 {
        const BODY: u64 = 2_000_000;
        let carried = || connection.stats().paths.iter().map(|path| path.stream_bytes_received).sum::<u64>();
        let before = carried();
        let sink = Sink::open(&Destination::Discard).await.unwrap();
        let got = fetch(connection, &format!("/bytes/{BODY}"), sink, &Meter::start()).await.unwrap();
        assert_eq!(got.bytes, BODY);
        (carried() - before) as f64 / BODY as f64
    }
}

/// After as many, a scheduler that sends all twice has shown it.
const BODIES_AT_MOST: usize = 20;

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_server_sends_as_it_was_asked_to() {
    let scene = Scene::set(Terms::Negotiable);
    let connection = scene.connect().await;
    let usual = scene.carried(&connection).await;
    let wish = Wish { scheduler: Some(typed("redundant")), ..Wish::default() };
    let told = ask(&connection, &wish, PATIENCE).await.unwrap().named;
    assert_eq!((told.scheduler.as_str(), told.congestion.as_str()), ("redundant", "auto"));
    // The first bodies find windows that are small, and a busy machine may hold back one path for a while.
    let mut doubled = 0.0_f64;
    for _ in 0..BODIES_AT_MOST {
        doubled = doubled.max(scene.carried(&connection).await);
        if doubled > 1.3 {
            break;
        }
    }
    assert!(usual < 1.2 && doubled > 1.3, "{usual} {doubled}");
    // Our own side is as it was, and another connection too.
    assert_eq!(connection.policies().scheduler, "minrtt");
    let other = scene.connect().await;
    assert_eq!(ask(&other, &Wish::default(), PATIENCE).await.unwrap().named.scheduler, "minrtt");
    scene.server.close(0, b"");
}

#[tokio::test]
async fn one_wish_a_connection_is_granted() {
    let scene = Scene::set(Terms::Negotiable);
    let connection = scene.connect().await;
    let of = |congestion| Wish { congestion: Some(congestion), ..Wish::default() };
    assert_eq!(ask(&connection, &of(typed("bbr")), PATIENCE).await.unwrap().named.congestion, "bbr");
    assert_eq!(ask(&connection, &of(typed("cubic")), PATIENCE).await, None);
    assert_eq!(ask(&connection, &Wish::default(), PATIENCE).await.unwrap().named.congestion, "bbr");
}

#[tokio::test]
async fn a_server_may_keep_its_own() {
    let scene = Scene::set(Terms::Fixed);
    let connection = scene.connect().await;
    let wish = Wish { scheduler: Some(typed("redundant")), ..Wish::default() };
    assert_eq!(ask(&connection, &wish, PATIENCE).await, None);
    assert_eq!(ask(&connection, &Wish::default(), PATIENCE).await.unwrap().named.scheduler, "minrtt");
}
