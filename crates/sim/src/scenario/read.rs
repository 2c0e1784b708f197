//! From a tree of values to a scenario, every key checked.

use std::time::Duration;

use plait_engine::crypto::Protection;
use plait_engine::path::ack_route;
use plait_engine::schedule::reinject;
use plait_netsim::InterfaceState;
use plait_netsim::link::Rate;

use super::ScenarioError;
use super::boxes::{Rebind, read_nat, read_rules};
use super::reader::Reader;
use super::topology::{read_cross, read_links, read_place};
use super::{DuplexPlan, Endpoints, EventPlan, Extension, LinkEdit, LinkPlan, PATHS_MAX, PathPlan, Scenario};
use super::{Traces, Tree, Vary};
use crate::host::app::Load;
use crate::policies::Policies;

/// Longest run, virtual seconds.
pub(super) const SECONDS_MAX: f64 = 1e6;
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

/// Both directions of a link; without a `base` for its rate it must have one of its own.
pub(super) fn read_duplex(
    table: &Reader<'_>,
    base: Option<Rate>,
    traces: &Traces,
) -> Result<DuplexPlan, ScenarioError> {
    let both = LinkEdit::read(table, traces)?.with_rtt(table.millis("rtt_ms", 0.0..=120_000.0)?);
    let (up, down) = read_directions(table, traces)?;
    let vary = table.table("vary")?.map(read_vary).transpose()?;
    let has_rate = |side: &'static str| {
        let side = table.table(side)?;
        Ok(side.is_some_and(|side| side.has("rate_mbps") || side.has("trace")))
    };
    let everywhere = table.has("rate_mbps") || table.has("trace") || vary.is_some_and(|v: Vary| v.rate_mbps.is_some());
    let each_has_one = has_rate("up")? && has_rate("down")?;
    if !(everywhere || each_has_one || base.is_some()) {
        return Err(table.complain("rate_mbps", "is missing", "rate_mbps or trace, for both directions or for each"));
    }
    let delay = if base.is_some() { Duration::ZERO } else { LinkPlan::default().delay };
    let first = LinkPlan { rate: base.unwrap_or(LinkPlan::default().rate), delay, ..LinkPlan::default() };
    let plan = |edit: &LinkEdit| {
        let mut plan = first.clone();
        both.apply(&mut plan);
        edit.apply(&mut plan);
        plan
    };
    let plan = DuplexPlan { up: plan(&up), down: plan(&down), vary };
    for (side, link) in [("up", &plan.up), ("down", &plan.down)] {
        if let Err(error) = link.config(plait_netsim::link::Service::Planned).check() {
            return Err(table.complain(side, error.to_string(), "see the ranges of each key"));
        }
    }
    Ok(plan)
}

fn read_directions(reader: &Reader<'_>, traces: &Traces) -> Result<(LinkEdit, LinkEdit), ScenarioError> {
    let side = |key: &'static str| match reader.table(key)? {
        None => Ok(LinkEdit::default()),
        Some(side) => {
            let edit = LinkEdit::read(&side, traces)?;
            side.finish()?;
            Ok(edit)
        }
    };
    Ok((side("up")?, side("down")?))
}

fn read_vary(vary: Reader<'_>) -> Result<Vary, ScenarioError> {
    let plan = Vary {
        interval: vary.millis("interval_ms", 1.0..=3_600_000.0)?.unwrap_or(Duration::from_millis(100)),
        rate_mbps: vary.span("rate_mbps", 0.001..=1_000_000.0, "Mbit/s")?,
        delay_ms: vary.span("delay_ms", 0.0..=60_000.0, "ms")?,
        loss: vary.span("loss", 0.0..=1.0, "")?,
        loss_per_byte: vary.span("loss_per_byte", 0.0..=1.0, "")?,
        whole_ms: vary.flag("whole_ms")?.unwrap_or(false),
    };
    vary.finish()?;
    Ok(plan)
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
    let interface = event.word("interface", &["up", "down"])?;
    if interface.is_some() && place.0 >= paths.len() {
        return Err(event.complain("interface", "a link has none", "an event with a path"));
    }
    let interface = interface.map(|word| if word == "up" { InterfaceState::Up } else { InterfaceState::Down });
    let rebind = event.word("rebind", &["port", "address"])?;
    if rebind.is_some() && paths.get(place.0).is_none_or(|path| path.nat.is_none()) {
        return Err(event.complain("rebind", "there is no NAT", "an event with a path that has a nat"));
    }
    let rebind = rebind.map(|word| if word == "port" { Rebind::Port } else { Rebind::Address });
    Ok(EventPlan { at, place, up: both.clone().over(up), down: both.over(down), vary, interface, rebind })
}

fn read_load(transfer: Reader<'_>) -> Result<Load, ScenarioError> {
    const KINDS: [&str; 4] = ["download", "upload", "request-response", "bulk-for"];
    let Some(kind) = transfer.word("kind", &KINDS)? else {
        return Err(transfer.complain("kind", "is missing", KINDS.join(", ")));
    };
    let bytes = || Ok::<_, ScenarioError>(transfer.whole("bytes", 0..=1 << 50, "bytes")?.unwrap_or(1_000_000));
    let load = match kind {
        "download" => Load::Download { bytes: bytes()? },
        "upload" => Load::Upload { bytes: bytes()? },
        "bulk-for" => {
            let duration = transfer.seconds("seconds", 0.001..=SECONDS_MAX)?.unwrap_or(Duration::from_secs(10));
            Load::DownloadFor { duration }
        }
        _ => {
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
            initial_path: 0,
            extension: Extension::Multipath,
            scheduler: Policies::default_scheduler(),
            congestion: None,
            ack_path: "fastest",
            protection: Protection::Tls,
            receive_window_bytes: 16_000_000,
            duplicate_until_rtt: true,
            keep_alive: None,
            reinjection: reinject::NAMES[0],
            max_burst_bytes: None,
        }
    }
}

fn read_endpoints(reader: Reader<'_>, paths: usize, policies: &Policies) -> Result<Endpoints, ScenarioError> {
    let default = Endpoints::default();
    let last = paths as u64 - 1;
    let extension = match reader.word("extension", &["multipath", "none"])? {
        Some("none") => Extension::None,
        _ => Extension::Multipath,
    };
    let protection = match reader.word("protection", &["tls", "null"])? {
        Some("null") => Protection::NullAfterHandshake,
        _ => Protection::Tls,
    };
    let scheduler = reader.word("scheduler", &policies.scheduler_names())?;
    let congestion = reader.word("congestion", &policies.controller_names())?;
    let endpoints = Endpoints {
        initial_path: reader.whole("initial_path", 0..=last, "(the paths of this file)")?.unwrap_or(0) as usize,
        extension,
        scheduler: scheduler.and_then(|name| policies.scheduler(name)).unwrap_or(default.scheduler),
        congestion: congestion.and_then(|name| policies.controller(name)),
        ack_path: reader.word("ack_path", &ack_route::NAMES)?.unwrap_or(default.ack_path),
        protection,
        receive_window_bytes: reader
            .whole("receive_window_bytes", 10_000..=1 << 40, "bytes")?
            .unwrap_or(default.receive_window_bytes),
        duplicate_until_rtt: reader.flag("duplicate_until_rtt")?.unwrap_or(default.duplicate_until_rtt),
        keep_alive: reader.seconds("keep_alive_s", 0.001..=SECONDS_MAX)?,
        reinjection: reader.word("reinjection", &reinject::NAMES)?.unwrap_or(default.reinjection),
        max_burst_bytes: reader.whole("max_burst_bytes", 1200..=1 << 30, "bytes")?.map(|bytes| bytes as u32),
    };
    reader.finish()?;
    Ok(endpoints)
}
