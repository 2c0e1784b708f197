//! From a tree of values to a scenario, every key checked.

use std::time::Duration;

use plait_engine::crypto::Protection;
use plait_engine::path::ack_route;
use plait_engine::{congestion, schedule};

use super::reader::Reader;
use super::{Endpoints, EventPlan, Extension, LinkEdit, LinkPlan, PATHS_MAX, PathPlan, Scenario, ScenarioError};
use super::{Traces, Tree, Vary};
use crate::host::app::Load;

/// Longest run, virtual seconds.
const SECONDS_MAX: f64 = 1e6;
/// Smallest request: its head.
const REQUEST_BYTES_MIN: u64 = 16;

impl Scenario {
    /// Reads a scenario; a `[sweep]` must have been taken out before.
    ///
    /// # Errors
    /// Names the first key that is unknown, of the wrong kind or out of range.
    pub fn read(tree: &Tree, traces: &Traces) -> Result<Self, ScenarioError> {
        let top = Reader::new(&tree.0, "")?;
        let name = top.text("name")?.unwrap_or("unnamed").to_owned();
        let seed = top.whole("seed", 0..=i64::MAX as u64, "")?.unwrap_or(1);
        let time_limit = top.seconds("time_limit_s", 0.001..=SECONDS_MAX)?.unwrap_or(Duration::from_secs(3600));
        let paths = top.tables("path")?.iter().map(|path| read_path(path, traces)).collect::<Result<Vec<_>, _>>()?;
        if paths.is_empty() || paths.len() > PATHS_MAX {
            return Err(top.complain("path", format!("there are {} paths", paths.len()), format!("1 to {PATHS_MAX}")));
        }
        let mut events = Vec::new();
        for event in top.tables("event")? {
            events.push(read_event(&event, paths.len(), traces)?);
            event.finish()?;
        }
        events.sort_by_key(|event| event.at);
        let load = match top.table("transfer")? {
            Some(transfer) => read_load(transfer)?,
            None => return Err(top.complain("transfer", "is missing", "a table [transfer] with a kind")),
        };
        let endpoints = match top.table("endpoints")? {
            Some(endpoints) => read_endpoints(endpoints, paths.len())?,
            None => Endpoints::default(),
        };
        top.finish()?;
        Ok(Self { name, seed, time_limit, paths, events, load, endpoints })
    }
}

fn read_path(path: &Reader<'_>, traces: &Traces) -> Result<PathPlan, ScenarioError> {
    let both = LinkEdit::read(path, traces)?.with_rtt(path.millis("rtt_ms", 0.0..=120_000.0)?);
    let (up, down) = read_directions(path, traces)?;
    let vary = path.table("vary")?.map(read_vary).transpose()?;
    let has_rate = |side: &'static str| {
        let side = path.table(side)?;
        Ok(side.is_some_and(|side| side.has("rate_mbps") || side.has("trace")))
    };
    let everywhere = path.has("rate_mbps") || path.has("trace") || vary.is_some_and(|v: Vary| v.rate_mbps.is_some());
    let each_has_one = has_rate("up")? && has_rate("down")?;
    if !(everywhere || each_has_one) {
        return Err(path.complain("rate_mbps", "is missing", "rate_mbps or trace, for both directions or for each"));
    }
    let plan = |edit: &LinkEdit| {
        let mut plan = LinkPlan::default();
        both.apply(&mut plan);
        edit.apply(&mut plan);
        plan
    };
    let plan = PathPlan { up: plan(&up), down: plan(&down), vary };
    for (side, link) in [("up", &plan.up), ("down", &plan.down)] {
        if let Err(error) = link.config(plait_link::Service::Planned).check() {
            return Err(path.complain(side, error.to_string(), "see the ranges of each key"));
        }
    }
    path.finish()?;
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

fn read_event(event: &Reader<'_>, paths: usize, traces: &Traces) -> Result<EventPlan, ScenarioError> {
    let Some(at) = event.seconds("at_s", 0.0..=SECONDS_MAX)? else {
        return Err(event.complain("at_s", "is missing", format!("0 to {SECONDS_MAX} s")));
    };
    let last = paths as u64 - 1;
    let path = event.whole("path", 0..=last, "(the paths of this file)")?;
    let Some(path) = path else {
        return Err(event.complain("path", "is missing", format!("0 to {last} (the paths of this file)")));
    };
    let both = LinkEdit::read(event, traces)?.with_rtt(event.millis("rtt_ms", 0.0..=120_000.0)?);
    let (up, down) = read_directions(event, traces)?;
    let vary = event.table("vary")?.map(read_vary).transpose()?;
    Ok(EventPlan { at, path: path as usize, up: both.clone().over(up), down: both.over(down), vary })
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
            scheduler: schedule::NAMES[0],
            congestion: None,
            ack_path: "fastest",
            protection: Protection::Tls,
            receive_window_bytes: 16_000_000,
            duplicate_until_rtt: true,
        }
    }
}

fn read_endpoints(reader: Reader<'_>, paths: usize) -> Result<Endpoints, ScenarioError> {
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
    let endpoints = Endpoints {
        initial_path: reader.whole("initial_path", 0..=last, "(the paths of this file)")?.unwrap_or(0) as usize,
        extension,
        scheduler: reader.word("scheduler", &schedule::NAMES)?.unwrap_or(default.scheduler),
        congestion: reader.word("congestion", &congestion::NAMES)?,
        ack_path: reader.word("ack_path", &ack_route::NAMES)?.unwrap_or(default.ack_path),
        protection,
        receive_window_bytes: reader
            .whole("receive_window_bytes", 10_000..=1 << 40, "bytes")?
            .unwrap_or(default.receive_window_bytes),
        duplicate_until_rtt: reader.flag("duplicate_until_rtt")?.unwrap_or(default.duplicate_until_rtt),
    };
    reader.finish()?;
    Ok(endpoints)
}
