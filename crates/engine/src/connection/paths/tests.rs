//! Paths without a connection: what happens to them, and the news that come of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plait_base::observe::PathState;
use plait_base::{CloseCode, ConnectionId, FourTuple, Instant, PathId, Random, ResetToken, Side, Space};
use plait_path::table::TableConfig;
use plait_path::{FourTupleRole, PacketInfo, PathAddresses, PathStatus, TimerFired};
use plait_wire::SentFrame;
use plait_wire::frame::{CidForm, NewCid};
use plait_wire::params::TransportParameters;

use super::*;
use crate::config::{EndpointConfig, TransportConfig};

const START: Instant = Instant::ZERO;

fn tuple(local: u8) -> FourTuple {
    FourTuple { local: ([10, 0, 0, local], 1000).into(), remote: ([10, 0, 1, 1], 443).into() }
}

fn cid(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

struct Client {
    paths: PathControl,
    random: Random,
}

impl Client {
    /// A client whose handshake is confirmed, with a proven path 0 and an id of the peer for path 1.
    fn confirmed() -> Self {
        let mut random = Random::from_u64(1);
        let mut table = Paths::new(TableConfig {
            side: Side::Client,
            cid_limit: 4,
            initial_max_path_id: Some(1),
            max_sending_uniflow_id: None,
            announcements: Default::default(),
            address_scope: plait_path::AddressScope::Any,
            max_validations: 4,
        });
        table.set_local_initial(cid(1), ResetToken([1; 16]));
        table.set_remote_initial(cid(2), None);
        let transport = Arc::new(TransportConfig::default());
        let mut plan = PathPlan::new(transport.paths.policy.build());
        plan.add_peer(tuple(1).remote);
        let own_cids = OwnCids::new(8, Arc::new(EndpointConfig::from_random(&mut random)), None);
        let mut paths = PathControl::new(table, plan, PathSettings::new(transport), own_cids, Side::Client);
        paths.open_first(START, PathAddresses::opened(tuple(1)), HandshakeState::AwaitingServer, &mut random);
        let params = TransportParameters { initial_max_path_id: Some(PathId(1)), ..TransportParameters::default() };
        paths.on_peer_params(&params, cid(2));
        assert!(paths.on_handshake_complete(START));
        paths.on_handshake_packet();
        paths.on_handshake_confirmed(START, &mut random);
        let new = NewCid {
            form: CidForm::Path,
            path: PathId(1),
            sequence: 0,
            retire_prior_to: 0,
            cid: cid(3),
            token: ResetToken([3; 16]),
        };
        paths.on_new_cid(&new).unwrap();
        let mut client = Self { paths, random };
        client.news();
        client
    }

    fn open(&mut self) -> PathId {
        self.paths.open(START, tuple(2), PathStatus::Available, &mut self.random).unwrap()
    }

    /// A packet leaves and is never answered: the time of its probe time-out.
    fn lose_packet(&mut self, now: Instant, id: PathId) -> Instant {
        let packet = PacketInfo {
            bytes: 100,
            ack_eliciting: true,
            in_flight: true,
            ecn_marked: false,
            mtu_probe: false,
            app_limited: true,
            repeats: false,
            elsewhere: false,
        };
        let PathControl { table, feedback, .. } = &mut self.paths;
        let path = table.path_mut(id).unwrap();
        path.on_packet_sent(now, (Space::Data, FourTupleRole::Current), &packet, &[SentFrame::Ping], feedback);
        let due = table.packet_deadline().unwrap();
        let fired = self.paths.on_packet_timer(due, id, 0);
        assert!(matches!(fired, TimerFired::Pto { space: Space::Data, .. }), "{fired:?}");
        self.paths.on_probe_timeout(due, id, &mut self.random);
        due
    }

    fn news(&mut self) -> Vec<PathNews> {
        std::iter::from_fn(|| self.paths.poll_news()).collect()
    }

    fn events(&mut self) -> Vec<PathEvent> {
        let news = self.news().into_iter();
        news.filter_map(|news| if let PathNews::Application(event) = news { Some(event) } else { None }).collect()
    }
}

fn states(news: &[PathNews]) -> Vec<(PathId, PathState)> {
    news.iter()
        .filter_map(|n| if let PathNews::State { id, state, .. } = n { Some((*id, *state)) } else { None })
        .collect()
}

#[test]
fn a_path_opens_then_is_proven() {
    let mut client = Client::confirmed();
    let id = client.open();
    assert_eq!(states(&client.news()), [(id, PathState::Validating)]);
    client.paths.table.path_mut(id).unwrap().on_address_proven();
    client.paths.on_validated(id);
    let news = client.news();
    assert_eq!(states(&news), [(id, PathState::Active)]);
    assert!(news.iter().any(|n| matches!(n, PathNews::Application(PathEvent::Established { .. }))), "{news:?}");
    // RFC 10069 3.2: the peer allows no further id
    let third = client.paths.open(START, tuple(3), PathStatus::Available, &mut client.random);
    assert_eq!(third, Err(PathError::Open(OpenError::PeerLimit)));
}

#[test]
fn a_silent_path_fails_beside_one_that_works() {
    let mut client = Client::confirmed();
    let other = client.open();
    client.paths.table.path_mut(other).unwrap().on_address_proven();
    client.news();
    client.lose_packet(START, PathId::ZERO);
    let news = client.news();
    let sent_again =
        |n: &PathNews| matches!(n, PathNews::SendAgain { id: PathId::ZERO, frames } if frames == &[SentFrame::Ping]);
    assert!(news.iter().any(sent_again), "{news:?}");
    assert_eq!(states(&news), [(PathId::ZERO, PathState::Failed)]);
    assert!(client.paths.table.recover(PathId::ZERO));
    client.paths.on_recovered(PathId::ZERO);
    assert_eq!(client.events(), [PathEvent::Recovered { id: PathId::ZERO }]);
}

#[test]
fn the_last_path_never_fails_but_an_outage_begins() {
    let mut client = Client::confirmed();
    let now = client.lose_packet(START, PathId::ZERO);
    assert_eq!(client.events(), []);
    client.lose_packet(now, PathId::ZERO);
    assert_eq!(client.events(), [PathEvent::AllFailed { last: PathId::ZERO }]);
    assert_eq!(client.paths.table.slot(PathId::ZERO).unwrap().state(), PathState::Active);
    client.paths.end_outage(PathId::ZERO);
    assert_eq!(client.events(), [PathEvent::Restored { id: PathId::ZERO }]);
}

#[test]
fn without_a_path_the_connection_waits_then_closes() {
    // RFC 10069 3.4
    let mut client = Client::confirmed();
    let code = CloseCode::APPLICATION_ABANDON_PATH;
    client.paths.abandon(START, PathId::ZERO, code, &mut client.random).unwrap();
    assert_eq!(client.events(), [PathEvent::Abandoned { id: PathId::ZERO, code }]);
    let until = client.paths.deadline().unwrap();
    client.paths.check_no_path(until - Duration::from_nanos(1));
    assert!(client.news().is_empty());
    client.paths.check_no_path(until);
    let news = client.news();
    assert!(matches!(&news[..], [PathNews::Close(error)] if error.code == CloseCode::NO_VIABLE_PATH), "{news:?}");
}

#[test]
fn a_path_that_opens_in_time_saves_the_connection() {
    let mut client = Client::confirmed();
    let code = CloseCode::APPLICATION_ABANDON_PATH;
    client.paths.abandon(START, PathId::ZERO, code, &mut client.random).unwrap();
    let until = client.paths.deadline().unwrap();
    client.open();
    client.news();
    client.paths.check_no_path(until);
    assert!(client.news().is_empty());
}

#[test]
fn the_peer_is_told_of_addresses_that_the_machine_has() {
    let mut client = Client::confirmed();
    let plan = &mut client.paths.plan;
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let own = [at("10.0.0.1:1000"), at("10.0.0.2:1000"), at("127.0.0.1:7")];
    plan.set_local(&own);
    assert_eq!(plan.concrete_local(), own, "the machine says nothing");
    // The socket of the second stays, its address went; the system does not list all that loopback has.
    plan.set_machine(&[own[0].ip()]);
    assert_eq!(plan.concrete_local(), [own[0], own[2]]);
    plan.set_machine(&[own[0].ip(), own[1].ip()]);
    assert_eq!(plan.concrete_local(), own);
}

#[test]
fn a_wildcard_stands_for_what_leads_here_from_elsewhere() {
    let mut client = Client::confirmed();
    let plan = &mut client.paths.plan;
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    plan.set_local(&["[::]:443".parse().unwrap(), "0.0.0.0:443".parse().unwrap()]);
    plan.set_machine(&["127.0.0.1", "::1", "10.0.0.1", "fe80::1", "2001:db8::1"].map(ip));
    let told: Vec<IpAddr> = plan.concrete_local().iter().map(SocketAddr::ip).collect();
    assert_eq!(told, ["2001:db8::1", "10.0.0.1"].map(ip));
}
