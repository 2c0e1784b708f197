//! A run as a row of a result file: the columns of the simulator's, and a few of the laboratory's own.

use std::time::Duration;

use plait_sim::campaign::Row;

use super::plan::{Company, Job, Plan};
use crate::error::LabError;
use crate::run::Ran;

/// Columns that the simulator does not have, after those that name the run.
const OWN: [&str; 3] = ["contender", "repetition", "company"];

/// How it came to the row that is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances {
    /// Others that ran when it began.
    pub(crate) beside: usize,
    /// How often it was done again because the machine was too busy.
    pub(crate) retries: u32,
}

/// The row of a job.
///
/// # Errors
/// The scenario is wrong.
pub(crate) fn row(
    plan: &Plan,
    job: &Job,
    commit: &str,
    found: &Ran,
    circumstances: Circumstances,
) -> Result<Row, LabError> {
    let (campaign, simulated) = plan.simulated(job).ok_or_else(|| LabError::Usage("there is no such run".into()))?;
    let mut row = campaign.row(simulated, commit, &found.told(&campaign.scenario(simulated)?))?;
    row.index = job.index;
    let contender = plan.contenders.get(job.contender).map_or("", |contender| contender.name());
    let company = if job.company == Company::Alone { "alone" } else { "beside" };
    let own = [contender.to_owned(), job.repetition.to_string(), company.to_owned()];
    for (name, value) in &mut row.cells {
        if name == "run" {
            *value = job.index.to_string();
        }
    }
    let at = row.cells.iter().position(|(name, _)| name == "commit").map_or(0, |at| at + 1);
    let own = OWN.iter().map(|name| (*name).to_owned()).zip(own);
    row.cells.splice(at..at, own);
    found.note(&mut row);
    let mut put = |name: &str, value: String| row.cells.push((format!("lab_{name}"), value));
    put("beside", circumstances.beside.to_string());
    put("retries", circumstances.retries.to_string());
    put("delays_ms", delays(found));
    Ok(row)
}

/// Each request with the time of its making and the delay of its answer, `-` without one.
fn delays(found: &Ran) -> String {
    let Ok(answer) = &found.result else { return String::new() };
    let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    let one = |(at, delay): &(Duration, Option<Duration>)| {
        format!("{}:{}", ms(*at + answer.handshake.unwrap_or_default()), delay.map_or("-".to_owned(), ms))
    };
    answer.requests.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// What a cell of delays says: time and delay of each request in ms, infinite without an answer.
pub(crate) fn read_delays(cell: &str) -> Vec<(f64, f64)> {
    let one = |word: &str| {
        let (at, delay) = word.split_once(':')?;
        Some((at.parse().ok()?, delay.parse().unwrap_or(f64::INFINITY)))
    };
    cell.split(' ').filter_map(one).collect()
}
