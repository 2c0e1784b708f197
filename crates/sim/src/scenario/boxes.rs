//! What meddles on the way: NATs of paths, and middleboxes that treat packets by rule.

use std::ops::Range;
use std::time::Duration;

use plait_base::Instant;
use plait_netsim::{Filtering, Header, Mapping, Treat, When};

use super::error::ScenarioError;
use super::reader::{Reader, SECONDS_MAX};
use super::topology::{Place, read_place};

/// Rules that a scenario may have.
const RULES_MAX: usize = 256;

/// The NAT in front of a client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatPlan {
    /// A mapping ends when nothing leaves through it for this long.
    pub timeout: Duration,
    /// How ports are given out.
    pub mapping: Mapping,
    /// Whom it lets in.
    pub filtering: Filtering,
}

/// What changes when a NAT forgets its mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebind {
    /// Only the port changes.
    Port,
    /// The address too.
    Address,
}

/// Which directions a rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// Both; each counts its packets by itself.
    #[default]
    Both,
    /// From servers to clients.
    Down,
    /// From clients to servers.
    Up,
}

/// A middlebox before a link.
#[derive(Clone, Debug, PartialEq)]
pub struct RulePlan {
    /// Before which link.
    pub place: Place,
    /// In which directions.
    pub sides: Sides,
    /// For which packets.
    pub when: When,
    /// What it does with them.
    pub treat: Treat,
}

const FILTERINGS: [(&str, Filtering); 3] =
    [("address-and-port", Filtering::AddressAndPort), ("address", Filtering::Address), ("open", Filtering::Open)];

/// Reads the NAT of a path.
pub(super) fn read_nat(nat: &Reader<'_>) -> Result<NatPlan, ScenarioError> {
    let plan = NatPlan {
        timeout: nat.seconds("timeout_s", 0.001..=SECONDS_MAX)?.unwrap_or(Duration::from_secs(300)),
        mapping: nat
            .choice("mapping", &[("per-source", Mapping::PerSource), ("per-remote", Mapping::PerRemote)])?
            .unwrap_or(Mapping::PerSource),
        filtering: nat.choice("filtering", &FILTERINGS)?.unwrap_or(Filtering::AddressAndPort),
    };
    nat.finish()?;
    Ok(plan)
}

/// Reads every `[[rule]]`.
pub(super) fn read_rules(top: &Reader<'_>, paths: usize, names: &[&str]) -> Result<Vec<RulePlan>, ScenarioError> {
    let tables = top.tables("rule")?;
    if tables.len() > RULES_MAX {
        return Err(top.complain("rule", format!("there are {}", tables.len()), format!("0 to {RULES_MAX}")));
    }
    let read = |table: &Reader<'_>| {
        let place = read_place(table, paths, names)?;
        let directions = [("both", Sides::Both), ("down", Sides::Down), ("up", Sides::Up)];
        let sides = table.choice("direction", &directions)?.unwrap_or_default();
        let (when, treat) = (read_when(table)?, read_treat(table)?);
        table.finish()?;
        Ok(RulePlan { place, sides, when, treat })
    };
    tables.iter().map(read).collect()
}

fn read_when(table: &Reader<'_>) -> Result<When, ScenarioError> {
    let bytes = |key| table.whole(key, 0..=65_535, "bytes (UDP payload)");
    let (larger, smaller) = (bytes("larger_than_bytes")?, bytes("smaller_than_bytes")?);
    let bytes = larger.map_or(0, |n| n as usize + 1)..smaller.map_or(usize::MAX, |n| n as usize);
    let at = |time: Option<Duration>| time.map(|time| Instant::ZERO + time);
    let from = at(table.seconds("from_s", 0.0..=SECONDS_MAX)?).unwrap_or(Instant::ZERO);
    let to = at(table.seconds("to_s", 0.0..=SECONDS_MAX)?).unwrap_or(Instant::from_nanos(u64::MAX));
    let count = |key, first| table.whole(key, first..=1 << 50, "packets");
    let skip = count("skip", 0)?.unwrap_or(0);
    let position = skip..count("count", 1)?.map_or(u64::MAX, |count| skip + count);
    let headers = [("any", Header::Any), ("long", Header::Long), ("short", Header::Short)];
    let header = table.choice("header", &headers)?.unwrap_or(Header::Any);
    let nothing = |range: bool, key: &str, other: &str| {
        let accepted = format!("a value that leaves something between it and {other}");
        if range { Err(table.complain(key, "leaves nothing", accepted)) } else { Ok(()) }
    };
    nothing(Range::is_empty(&bytes), "smaller_than_bytes", "larger_than_bytes")?;
    nothing(Range::is_empty(&(from..to)), "to_s", "from_s")?;
    Ok(When {
        time: from..to,
        bytes,
        position,
        every: count("every", 1)?.unwrap_or(1),
        header,
        share: table.number("share", 0.0..=1.0, "")?.unwrap_or(1.0),
    })
}

fn read_treat(table: &Reader<'_>) -> Result<Treat, ScenarioError> {
    let delay = table.millis("delay_ms", 0.0..=60_000.0)?.unwrap_or(Duration::from_millis(10));
    let bytes = table.whole("to_bytes", 0..=65_535, "bytes")?.unwrap_or(100);
    let actions = [
        ("drop", Treat::Drop),
        ("delay", Treat::Delay(delay)),
        ("duplicate", Treat::Duplicate),
        ("flip-bit", Treat::FlipBit),
        ("scramble", Treat::Scramble),
        ("truncate", Treat::Truncate(bytes as usize)),
        ("clear-ecn", Treat::Mark(None)),
        ("mark-ce", Treat::Congest),
    ];
    Ok(table.choice("action", &actions)?.unwrap_or(Treat::Drop))
}
