//! The papers' figures, as far as virtual time allows: what was published next to what this engine does.

mod conext;
mod gate;
mod multiflow;
mod ns3;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub use gate::{GateResult, judge};

use crate::campaign::{Campaign, Doing, Row, Shard, Store};
use crate::command::{CommandError, write};
use crate::plot::Plot;
use crate::report::Page;
use crate::scenario::{Traces, Tree};

/// How a figure is made.
pub struct FigureRequest<'a> {
    /// Points of a design, or rounds, instead of the paper's number.
    pub points: Option<usize>,
    /// Settings over those of the figure, as `key=value`.
    pub sets: Vec<String>,
    /// Threads.
    pub jobs: usize,
    /// Where data and report go.
    pub out: Option<PathBuf>,
    /// What results belong to.
    pub commit: String,
    /// Set it to end early.
    pub stop: &'a AtomicBool,
    /// Hears of the part, runs done and runs in all.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
}

/// What was published and what we measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Of what.
    pub what: String,
    /// In the paper, or measured with its code.
    pub published: String,
    /// Here.
    pub ours: String,
}

/// A figure made.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Published and measured.
    pub claims: Vec<Claim>,
    /// Where we differ and why; what holds for reading it.
    pub notes: Vec<String>,
    /// The plots.
    pub plots: Vec<Plot>,
    /// False where a gate was not held.
    pub failed: bool,
}

impl Figure {
    fn claim(&mut self, what: impl Into<String>, published: impl Into<String>, ours: impl Into<String>) {
        self.claims.push(Claim { what: what.into(), published: published.into(), ours: ours.into() });
    }
}

type Make = fn(&FigureRequest<'_>) -> Result<Figure, CommandError>;

/// Name, what it shows, and how it is made.
const FIGURES: &[(&str, &str, Make)] = &[
    ("conext-fig3", "CoNEXT'17 Fig. 3: completion time, low BDP, no loss", |r| conext::times(r, "low-bdp-no-loss")),
    ("conext-fig4", "CoNEXT'17 Fig. 4: aggregation benefit, low BDP, no loss", |r| {
        conext::benefit(r, "low-bdp-no-loss")
    }),
    ("conext-fig5", "CoNEXT'17 Fig. 5: completion time, low BDP, losses", |r| conext::times(r, "low-bdp-loss")),
    ("conext-fig6", "CoNEXT'17 Fig. 6: aggregation benefit, low BDP, losses", |r| conext::benefit(r, "low-bdp-loss")),
    ("conext-fig7", "CoNEXT'17 Fig. 7: aggregation benefit, high BDP, no loss", |r| {
        conext::benefit(r, "high-bdp-no-loss")
    }),
    ("conext-fig8", "CoNEXT'17 Fig. 8: aggregation benefit, high BDP, losses", |r| conext::benefit(r, "high-bdp-loss")),
    ("conext-fig9", "CoNEXT'17 Fig. 9: completion time of 256 KB, low BDP, no loss", conext::short_times),
    ("conext-fig10", "CoNEXT'17 Fig. 10: aggregation benefit of 256 KB, low BDP, no loss", conext::short_benefit),
    ("conext-fig11", "CoNEXT'17 Fig. 11: network handover", conext::handover),
    ("multiflow-fig4", "Multiflow QUIC Fig. 4: a very asymmetric second path", multiflow::satellite),
    ("multiflow-fig5", "Multiflow QUIC Fig. 5: speed-up by a second path", multiflow::speedup),
    ("multiflow-fig6", "Multiflow QUIC Fig. 6: acks by the fastest path against acks by their own", multiflow::routes),
    ("ns3-fig7", "ns-3 MPQUIC Fig. 7: one, two and four paths", ns3::scaling),
    ("ns3-fig8", "ns-3 MPQUIC Fig. 8: congestion windows of NewReno and OLIA", ns3::windows),
    ("ns3-fig9", "ns-3 MPQUIC Fig. 9: completion time by scheduler, stable", |r| ns3::schedulers(r, ns3::Case::Stable)),
    ("ns3-fig10", "ns-3 MPQUIC Fig. 10: completion time by scheduler, unstable", |r| {
        ns3::schedulers(r, ns3::Case::Unstable)
    }),
    ("ns3-fig11", "ns-3 MPQUIC Fig. 11: bytes per path by scheduler, stable", |r| ns3::shares(r, ns3::Case::Stable)),
    ("ns3-fig12", "ns-3 MPQUIC Fig. 12: bytes per path, paths swapped at 5 s", |r| ns3::shares(r, ns3::Case::Swapped)),
    ("ns3-fig13", "ns-3 MPQUIC Fig. 13: bytes per path by scheduler, unstable", |r| {
        ns3::shares(r, ns3::Case::Unstable)
    }),
    ("never-worse", "The gate: several paths are never slower than the best of them", gate::never_worse),
];

/// Every figure: name and what it shows.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIGURES.iter().map(|(name, title, _)| (*name, *title))
}

/// Makes a figure: its text, the files written, and whether a gate held.
///
/// # Errors
/// There is no such figure, results cannot be written, or it was interrupted.
pub fn figure(name: &str, request: &FigureRequest<'_>) -> Result<(String, Vec<PathBuf>, bool), CommandError> {
    let Some((name, title, make)) = FIGURES.iter().find(|(known, _, _)| *known == name) else {
        let names: Vec<_> = list().map(|(name, _)| name).collect();
        return Err(CommandError::Usage(format!("there is no figure `{name}`; accepted: {}", names.join(", "))));
    };
    let figure = make(request)?;
    let mut text = format!("{title}\n");
    for Claim { what, published, ours } in &figure.claims {
        text.push_str(&format!("  {what}\n      published: {published}\n      here:      {ours}\n"));
    }
    figure.notes.iter().for_each(|note| text.push_str(&format!("  note: {note}\n")));
    let mut files = Vec::new();
    if let Some(out) = &request.out {
        files.push(write(out, &format!("{name}.html"), &page(title, &figure))?);
    }
    files.iter().for_each(|file| text.push_str(&format!("  wrote {}\n", file.display())));
    Ok((text, files, !figure.failed))
}

fn page(title: &str, figure: &Figure) -> String {
    let mut page = Page::new();
    page.plots(&figure.plots);
    let rows = figure.claims.iter().map(|c| vec![c.what.clone(), c.published.clone(), c.ours.clone()]);
    page.table(&["", "published", "here"], &rows.collect::<Vec<_>>());
    figure.notes.iter().for_each(|note| {
        page.text(note);
    });
    page.html(title)
}

/// Runs one campaign of a figure; its rows are kept under its name where there is a folder.
fn rows(request: &FigureRequest<'_>, name: &str, text: &str, seeds: u64) -> Result<Vec<Row>, CommandError> {
    let mut tree = Tree::parse(name, text)?;
    for set in &request.sets {
        let (key, value) =
            set.split_once('=').ok_or_else(|| CommandError::Usage(format!("`{set}` is not key=value")))?;
        tree.set(key.trim(), value.trim(), "--set")?;
    }
    let campaign = Campaign::plan(tree, Traces::default(), seeds)?;
    let folder = request.out.as_ref().map(|out| Path::join(out, name));
    let store = folder.map(|folder| Store::open(&folder, &campaign, &request.commit, Shard::WHOLE)).transpose()?;
    let progress = |done: usize, total: usize| (request.progress)(name, done, total);
    let doing = Doing {
        threads: request.jobs,
        shard: Shard::WHOLE,
        stop: request.stop,
        qlog: None,
        store: store.as_ref(),
        progress: &progress,
    };
    let rows = campaign.run(&doing)?;
    store.map(|store| store.write(&rows)).transpose()?;
    Ok(rows)
}
