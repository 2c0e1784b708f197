//! From a tree of values to a scenario, every key checked.

use std::time::Duration;

use plait_engine::config::StreamPlacement;
use plait_engine::crypto::Protection;
use plait_engine::path::{ack_route, policy};
use plait_engine::schedule::reinject;
use plait_netsim::InterfaceState;
use plait_netsim::link::Rate;

use super::ScenarioError;
use super::boxes::{Rebind, read_nat, read_rules};
use super::duplex::{read_directions, read_duplex, read_vary};
use super::reader::{Reader, SECONDS_MAX};
use super::topology::{read_cross, read_links, read_place};
use super::workers::{read_fault, read_workers};
use super::{
    AckFrequency, Endpoints, EventPlan, Extension, HandshakePlan, LinkEdit, PATHS_MAX, PathPlan, Scenario, TURN_MAX,
    Wishes,
};
use super::{Traces, Tree};
use crate::host::app::Load;
use crate::policies::Policies;

/// The words for extensions.
const EXTENSIONS: [(&str, Extension); 3] =
    [("multipath", Extension::Multipath), ("multiflow", Extension::Multiflow), ("none", Extension::None)];

/// Largest seed: TOML has no larger numbers.
pub(crate) const SEED_MAX: u64 = i64::MAX as u64;
/// Smallest request: its head.
const REQUEST_BYTES_MIN: u64 = 16;

impl Scenario {
    /// Reads a scenario with the engine's policies; a `[sweep]` must have been taken out before.
    ///
    /// # Errors
    /// Names the first key that is unknown, of the wrong kind or out of range.
    pub fn read(tree: &Tree, traces: &Traces) -> Result<Self, ScenarioError> {
        Self::read_with(tree, traces, &Policies::default())
    }

    /// Reads a scenario that may name any of `policies`.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_with(tree: &Tree, traces: &Traces, policies: &Policies) -> Result<Self, ScenarioError> {
        let top = Reader::new(&tree.0, "")?;
        let name = top.text("name")?.unwrap_or("unnamed").to_owned();
        let seed = top.whole("seed", 0..=SEED_MAX, "")?.unwrap_or(1);
        let time_limit = top.seconds("time_limit_s", 0.001..=SECONDS_MAX)?.unwrap_or(Duration::from_secs(3600));
        let links = read_links(&top, traces)?;
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let paths = top.tables("path")?;
        let paths = paths.iter().map(|path| read_path(path, &names, traces)).collect::<Result<Vec<_>, _>>()?;
        if paths.is_empty() || paths.len() > PATHS_MAX {
            return Err(top.complain("path", format!("there are {} paths", paths.len()), format!("1 to {PATHS_MAX}")));
        }
        let mut events = Vec::new();
        for event in top.tables("event")? {
            events.push(read_event(&event, &paths, &names, traces)?);
            event.finish()?;
        }
        let rules = read_rules(&top, paths.len(), &names)?;
        let cross = read_cross(&top, paths.len(), &names)?;
        events.sort_by_key(|event| event.at);
        let load = match top.table("transfer")? {
            Some(transfer) => read_load(transfer)?,
            None => return Err(top.complain("transfer", "is missing", "a table [transfer] with a kind")),
        };
        let endpoints = match top.table("endpoints")? {
            Some(endpoints) => read_endpoints(endpoints, paths.len(), policies)?,
            None => Endpoints::default(),
        };
        if top.table("sweep")?.is_some() {
            return Err(top.complain("sweep", "is there still", "a campaign, which takes the sweep apart"));
        }
        top.finish()?;
        Ok(Self { name, seed, time_limit, paths, links, cross, rules, events, load, endpoints })
    }
}

fn read_path(path: &Reader<'_>, names: &[&str], traces: &Traces) -> Result<PathPlan, ScenarioError> {
    let via = path.names("via", names)?.unwrap_or_default();
    // Beyond a path's own link there may be others that set the rate.
    let base = if via.is_empty() { None } else { Some(Rate::Unlimited) };
    let own = read_duplex(path, base, traces)?;
    let nat = path.table("nat")?.map(|nat| read_nat(&nat)).transpose()?;
    path.finish()?;
    Ok(PathPlan { own, via, nat })
}

fn read_event(
    event: &Reader<'_>,
    paths: &[PathPlan],
    names: &[&str],
    traces: &Traces,
) -> Result<EventPlan, ScenarioError> {
    let Some(at) = event.seconds("at_s", 0.0..=SECONDS_MAX)? else {
        return Err(event.complain("at_s", "is missing", format!("0 to {SECONDS_MAX} s")));
    };
    let place = read_place(event, paths.len(), names)?;
    let both = LinkEdit::read(event, traces)?.with_rtt(event.millis("rtt_ms", 0.0..=120_000.0)?);
    let (up, down) = read_directions(event, traces)?;
    let vary = event.table("vary")?.map(read_vary).transpose()?;
    let interface = event.choice("interface", &[("up", InterfaceState::Up), ("down", InterfaceState::Down)])?;
    if interface.is_some() && place.0 >= paths.len() {
        return Err(event.complain("interface", "a link has none", "an event with a path"));
    }
    let rebind = event.choice("rebind", &[("port", Rebind::Port), ("address", Rebind::Address)])?;
    if rebind.is_some() && paths.get(place.0).is_none_or(|path| path.nat.is_none()) {
        return Err(event.complain("rebind", "there is no NAT", "an event with a path that has a nat"));
    }
    let worker = read_fault(event)?;
    if worker.is_some() && place.0 >= paths.len() {
        return Err(event.complain("worker_dies", "a link has no worker", "an event with a path"));
    }
    let (up, down) = (both.clone().over(up), both.over(down));
    let none = LinkEdit::default();
    if up == none && down == none && vary.is_none() && interface.is_none() && rebind.is_none() && worker.is_none() {
        return Err(event.complain("path", "nothing happens to it", "a key that changes, such as rate_mbps or state"));
    }
    Ok(EventPlan { at, place, up, down, vary, interface, rebind, worker })
}

/// The words of a transfer's `kind`.
#[derive(Clone, Copy)]
enum LoadKind {
    Download,
    Upload,
    Requests,
    BulkFor,
}

fn read_load(transfer: Reader<'_>) -> Result<Load, ScenarioError> {
    let kind = transfer.required_choice(
        "kind",
        &[
            ("download", LoadKind::Download),
            ("upload", LoadKind::Upload),
            ("request-response", LoadKind::Requests),
            ("bulk-for", LoadKind::BulkFor),
        ],
    )?;
    let bytes = || Ok::<_, ScenarioError>(transfer.whole("bytes", 0..=1 << 50, "bytes")?.unwrap_or(1_000_000));
    let load = match kind {
        LoadKind::Download => Load::Download { bytes: bytes()? },
        LoadKind::Upload => Load::Upload { bytes: bytes()? },
        LoadKind::BulkFor => {
            let duration = transfer.seconds("seconds", 0.001..=SECONDS_MAX)?.unwrap_or(Duration::from_secs(10));
            Load::DownloadFor { duration }
        }
        LoadKind::Requests => {
            let size = transfer.whole("request_bytes", REQUEST_BYTES_MIN..=1 << 30, "bytes")?.unwrap_or(750);
            Load::Requests {
                request_bytes: size,
                response_bytes: transfer.whole("response_bytes", 1..=1 << 30, "bytes")?.unwrap_or(size),
                interval: transfer.millis("interval_ms", 0.1..=3_600_000.0)?.unwrap_or(Duration::from_millis(400)),
                count: transfer.whole("count", 1..=1_000_000, "requests")?.unwrap_or(25),
            }
        }
    };
    transfer.finish()?;
    Ok(load)
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            handshake: HandshakePlan { initial_path: 0, first_path_only: true },
            extension: Extension::Multipath,
            scheduler: Policies::default_scheduler(),
            congestion: None,
            ack_path: ack_route::DEFAULT,
            protection: Protection::Tls,
            receive_window_bytes: 16_000_000,
            duplicate_until_rtt: true,
            keep_alive: None,
            reinjection: reinject::DEFAULT,
            path_policy: "fullmesh",
            max_burst_bytes: None,
            wishes: Wishes::default(),
            placement: StreamPlacement::Pooled,
            workers: None,
            turn: Duration::ZERO,
        }
    }
}

/// Which acks the ends ask each other for.
fn read_ack_frequency(reader: &Reader<'_>) -> Result<Option<AckFrequency>, ScenarioError> {
    let packets = reader.whole("ack_frequency_packets", 1..=1 << 20, "packets")?;
    let delay = reader.millis("ack_frequency_delay_ms", 1.0..=16_383.0)?;
    if delay.is_some() && packets.is_none() {
        let why = "no acks are asked for";
        return Err(reader.complain("ack_frequency_delay_ms", why, "it with ack_frequency_packets"));
    }
    Ok(packets.map(|packets| AckFrequency { packets: packets as u32, delay }))
}

fn read_endpoints(reader: Reader<'_>, paths: usize, policies: &Policies) -> Result<Endpoints, ScenarioError> {
    let default = Endpoints::default();
    let last = paths as u64 - 1;
    let extension = reader.choice("extension", &EXTENSIONS)?;
    let protections = [("tls", Protection::Tls), ("null", Protection::NullAfterHandshake)];
    let protection = reader.choice("protection", &protections)?;
    let scheduler = reader.word("scheduler", &policies.scheduler_names())?;
    let congestion = reader.word("congestion", &policies.controller_names())?;
    let endpoints = Endpoints {
        handshake: HandshakePlan {
            initial_path: reader.whole("initial_path", 0..=last, "(the paths of this file)")?.unwrap_or(0) as usize,
            first_path_only: reader.flag("first_path_only")?.unwrap_or(default.handshake.first_path_only),
        },
        extension: extension.unwrap_or(default.extension),
        scheduler: scheduler.and_then(|name| policies.scheduler(name)).unwrap_or(default.scheduler),
        congestion: congestion.and_then(|name| policies.controller(name)),
        ack_path: reader.word("ack_path", &ack_route::NAMES)?.unwrap_or(default.ack_path),
        protection: protection.unwrap_or(default.protection),
        receive_window_bytes: reader
            .whole("receive_window_bytes", 10_000..=1 << 40, "bytes")?
            .unwrap_or(default.receive_window_bytes),
        duplicate_until_rtt: reader.flag("duplicate_until_rtt")?.unwrap_or(default.duplicate_until_rtt),
        keep_alive: reader.seconds("keep_alive_s", 0.001..=SECONDS_MAX)?,
        reinjection: reader.word("reinjection", &reinject::NAMES)?.unwrap_or(default.reinjection),
        path_policy: reader.word("path_policy", &policy::NAMES)?.unwrap_or(default.path_policy),
        max_burst_bytes: reader.whole("max_burst_bytes", 1200..=1 << 30, "bytes")?.map(|bytes| bytes as u32),
        wishes: Wishes {
            tell_paths: reader.flag("tell_paths")?.unwrap_or(default.wishes.tell_paths),
            uniflow_nonces: reader.flag("uniflow_nonces")?.unwrap_or(default.wishes.uniflow_nonces),
            ack_frequency: read_ack_frequency(&reader)?,
        },
        placement: reader.choice("placement", &StreamPlacement::NAMES)?.unwrap_or(default.placement),
        workers: read_workers(&reader)?,
        turn: reader.millis("turn_ms", 0.0..=TURN_MAX.as_secs_f64() * 1e3)?.unwrap_or_default(),
    };
    reader.finish()?;
    if endpoints.wishes.uniflow_nonces && endpoints.extension != Extension::Multiflow {
        return Err(reader.complain("uniflow_nonces", "there are no uniflows", "it with extension = \"multiflow\""));
    }
    if !endpoints.turn.is_zero() && endpoints.workers.is_some() {
        return Err(reader.complain("turn_ms", "turns of workers are drawn", "it without workers"));
    }
    Ok(endpoints)
}
