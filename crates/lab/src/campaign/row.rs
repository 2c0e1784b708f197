//! A run as a row of a result file: the columns of the simulator's, and a few of the laboratory's own.

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
    found.note(&campaign.scenario(simulated)?, &mut row);
    let mut put = |name: &str, value: String| row.cells.push((format!("lab_{name}"), value));
    put("beside", circumstances.beside.to_string());
    put("retries", circumstances.retries.to_string());
    Ok(row)
}
