//! Reads the two directions of a link, and what changes of them at random.

use std::time::Duration;

use plait_netsim::link::{Rate, Service};

use super::error::ScenarioError;
use super::link::{LinkEdit, LinkPlan};
use super::reader::Reader;
use super::traces::Traces;
use super::{DuplexPlan, Vary};

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
        if let Err(error) = link.config(Service::Planned).check() {
            return Err(table.complain(side, error.to_string(), "see the ranges of each key"));
        }
    }
    Ok(plan)
}

/// What the tables `up` and `down` of a table set.
pub(super) fn read_directions(reader: &Reader<'_>, traces: &Traces) -> Result<(LinkEdit, LinkEdit), ScenarioError> {
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

/// Reads a table `vary`.
pub(super) fn read_vary(vary: Reader<'_>) -> Result<Vary, ScenarioError> {
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
