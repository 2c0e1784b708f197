//! What lies between the ends besides the paths' own links: named links that are shared, and traffic that crosses them.

use std::time::Duration;

use plait_engine::congestion;

use super::duplex::read_duplex;
use super::error::ScenarioError;
use super::reader::{Reader, SECONDS_MAX};
use super::{DuplexPlan, Traces};

/// Named links that a scenario may have.
const LINKS_MAX: usize = 64;
/// Sources of cross traffic that a scenario may have.
const CROSS_MAX: usize = 64;

/// Names one link of a scenario: the paths' own links come first, in the order of the paths, then the named ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub usize);

impl Place {
    /// The own link of a path.
    pub fn path(path: usize) -> Self {
        Self(path)
    }

    /// A named link, in a scenario with so many paths.
    pub fn link(paths: usize, link: usize) -> Self {
        Self(paths + link)
    }
}

/// A link that paths and cross traffic may share.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedLink {
    /// The name that paths call it by.
    pub name: String,
    /// The settings of its two directions.
    pub duplex: DuplexPlan,
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// From the servers to the clients.
    #[default]
    Down,
    /// From the clients to the servers.
    Up,
}

/// Packets that heed nobody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets {
    /// Bits a second while on, headers included.
    pub rate_bps: u64,
    /// Payload of each.
    pub packet_bytes: u64,
    /// Seconds on and seconds off, each drawn anew from its range; none sends all the time.
    pub on_off: Option<((f64, f64), (f64, f64))>,
}

/// What a source of cross traffic sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CrossLoad {
    /// Packets at a rate.
    Packets(Packets),
    /// A connection of its own on one path.
    Flow {
        /// The name of its congestion controller.
        congestion: &'static str,
        /// How much it sends; none sends as long as the run lasts.
        bytes: Option<u64>,
        /// Round trip of its own, beside what the links add.
        rtt: Duration,
        /// Spread of a uniform jitter on its own way to the links, each way; packets stay in order.
        jitter: Duration,
    },
}

/// A source of cross traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossPlan {
    /// What columns and curves call it: `cross_NAME`, or `cross0` by its place where it has no name.
    pub label: String,
    /// What it sends.
    pub load: CrossLoad,
    /// Through which links, in the order from clients to servers.
    pub via: Vec<Place>,
    /// Which way its data goes.
    pub direction: Direction,
    /// When it begins.
    pub start: Duration,
    /// When it ends; none goes on as long as the run lasts.
    pub stop: Option<Duration>,
}

/// Whether columns may be called so.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Reads every `[[link]]`.
pub(super) fn read_links(top: &Reader<'_>, traces: &Traces) -> Result<Vec<NamedLink>, ScenarioError> {
    let mut links: Vec<NamedLink> = Vec::new();
    for link in top.tables("link")? {
        let accepted = "a name that no other link has, of letters, digits, - and _";
        let Some(name) = link.text("name")? else { return Err(link.complain("name", "is missing", accepted)) };
        if !is_plain(name) || links.iter().any(|other| other.name == name) {
            return Err(link.complain("name", format!("`{name}` cannot be the name of this link"), accepted));
        }
        let duplex = read_duplex(&link, None, traces)?;
        link.finish()?;
        links.push(NamedLink { name: name.to_owned(), duplex });
        if links.len() > LINKS_MAX {
            return Err(top.complain("link", "there are too many", format!("0 to {LINKS_MAX} links")));
        }
    }
    Ok(links)
}

/// The one link that `path` or `link` of a table names.
pub(super) fn read_place(table: &Reader<'_>, paths: usize, names: &[&str]) -> Result<Place, ScenarioError> {
    let last = paths as u64 - 1;
    let path = table.whole("path", 0..=last, "(the paths of this file)")?;
    match (path, table.names("link", names)?.as_deref()) {
        (Some(path), None) => Ok(Place::path(path as usize)),
        (None, Some([link])) => Ok(Place::link(paths, *link)),
        (None, None) => {
            Err(table.complain("path", "is missing", format!("0 to {last} (the paths of this file), or a link")))
        }
        (None, Some(_)) => Err(table.complain("link", "is not one link", "the name of one link")),
        (Some(_), Some(_)) => Err(table.complain("link", "there is a path too", "one of path and link")),
    }
}

/// Reads every `[[cross]]`.
pub(super) fn read_cross(top: &Reader<'_>, paths: usize, names: &[&str]) -> Result<Vec<CrossPlan>, ScenarioError> {
    let tables = top.tables("cross")?;
    if tables.len() > CROSS_MAX {
        return Err(top.complain("cross", format!("there are {}", tables.len()), format!("0 to {CROSS_MAX}")));
    }
    let mut labels: Vec<String> = Vec::new();
    let mut read = |(index, table): (usize, &Reader<'_>)| {
        let accepted = "a name that no other source has, of letters, digits, - and _";
        let label = match table.text("name")? {
            None => format!("cross{index}"),
            Some(name) if is_plain(name) => format!("cross_{name}"),
            Some(name) => return Err(table.complain("name", format!("`{name}` is no name"), accepted)),
        };
        if labels.contains(&label) {
            return Err(table.complain("name", "is that of another source", accepted));
        }
        labels.push(label.clone());
        let via = match table.names("via", names)? {
            Some(via) if table.has("link") || table.has("path") || via.is_empty() => {
                return Err(table.complain("via", "does not say alone where it goes", "one of path, link and via"));
            }
            Some(via) => via.into_iter().map(|link| Place::link(paths, link)).collect(),
            None => vec![read_place(table, paths, names)?],
        };
        let directions = [("down", Direction::Down), ("up", Direction::Up)];
        let direction = table.choice("direction", &directions)?.unwrap_or_default();
        let start = table.seconds("start_s", 0.0..=SECONDS_MAX)?.unwrap_or_default();
        let stop = table.seconds("stop_s", 0.0..=SECONDS_MAX)?;
        if stop.is_some_and(|stop| stop <= start) {
            return Err(table.complain("stop_s", "is not after the start", "a time after start_s"));
        }
        let load = read_load(table)?;
        table.finish()?;
        Ok(CrossPlan { label, load, via, direction, start, stop })
    };
    tables.iter().enumerate().map(&mut read).collect()
}

/// The words of cross traffic's `kind`.
#[derive(Clone, Copy)]
enum CrossKind {
    Constant,
    OnOff,
    Flow,
}

fn read_load(table: &Reader<'_>) -> Result<CrossLoad, ScenarioError> {
    let kinds = [("constant", CrossKind::Constant), ("on-off", CrossKind::OnOff), ("flow", CrossKind::Flow)];
    match table.required_choice("kind", &kinds)? {
        CrossKind::Constant => read_packets(table, None),
        CrossKind::OnOff => {
            let span = |key| Ok(table.span(key, 0.001..=SECONDS_MAX, "s")?.unwrap_or((1.0, 1.0)));
            read_packets(table, Some((span("on_s")?, span("off_s")?)))
        }
        CrossKind::Flow => Ok(CrossLoad::Flow {
            congestion: table.word("congestion", &congestion::NAMES)?.unwrap_or(congestion::DEFAULT),
            bytes: table.whole("bytes", 1..=1 << 50, "bytes")?,
            rtt: table.millis("rtt_ms", 0.0..=120_000.0)?.unwrap_or_default(),
            jitter: table.millis("jitter_ms", 0.0..=60_000.0)?.unwrap_or_default(),
        }),
    }
}

/// Reads packets at a rate, which come all the time or as `on_off` says.
fn read_packets(table: &Reader<'_>, on_off: Option<((f64, f64), (f64, f64))>) -> Result<CrossLoad, ScenarioError> {
    let Some(mbps) = table.number("rate_mbps", 0.001..=1_000_000.0, "Mbit/s (10^6 bit/s)")? else {
        return Err(table.complain("rate_mbps", "is missing", "0.001 to 1000000 Mbit/s (10^6 bit/s)"));
    };
    let packet_bytes = table.whole("packet_bytes", 1..=65_000, "bytes")?.unwrap_or(1200);
    Ok(CrossLoad::Packets(Packets { rate_bps: (mbps * 1e6) as u64, packet_bytes, on_off }))
}
