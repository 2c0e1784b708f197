//! The papers' figures, as far as virtual time allows: what was published next to what this engine does.

mod ack_routes;
mod asymmetry;
pub mod claim;
mod conext;
pub mod document;
mod fairness;
mod further;
mod gate;
mod goals;
mod matrix;
mod migration;
mod multiflow;
mod ns3;
mod off_design;
mod paired;
mod profiles;
mod reordering;
mod settings;
mod shared_queues;
mod startup;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plait_engine::config::NETWORK_DELAY;

use self::claim::{Claim, Reference, ReferenceKind, sources};
use crate::campaign::{Campaign, CampaignError, Doing, Row, Shard, Store};
use crate::command::{CommandError, Pictures, set_over, write_page};
use crate::plot::Plot;
use crate::policies::Policies;
use crate::report::Page;
use crate::run::Watch;
use crate::run::outcome::Outcome;
use crate::scenario::{Traces, Tree};

pub use settings::RanWith;

/// How a figure is made.
pub struct FigureRequest<'a> {
    /// Points of a design, or rounds, instead of the paper's number.
    pub points: Option<usize>,
    /// Settings over those of the figure, as `key=value`.
    pub sets: Vec<String>,
    /// Runs that go on side by side.
    pub jobs: usize,
    /// Where data and report go.
    pub out: Option<PathBuf>,
    /// What becomes of the plots besides the page.
    pub pictures: Pictures,
    /// What results belong to.
    pub commit: String,
    /// Schedulers and controllers that settings may name.
    pub policies: Policies,
    /// Set it to end early.
    pub stop: &'a AtomicBool,
    /// What its runs say that they were set to.
    pub ran: RanWith,
    /// Hears of the part, runs done and runs in all.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
}

impl FigureRequest<'_> {
    /// Seeds of each setting: as many as were asked for, else `usual`.
    fn seeds(&self, usual: u64) -> u64 {
        self.points.map_or(usual, |points| points as u64)
    }
}

/// A figure made.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What others say, and what was measured.
    pub claims: Vec<Claim>,
    /// Where we differ and why; what holds for reading it.
    pub notes: Vec<String>,
    /// The plots, in the order of the page.
    pub plots: Vec<Plot>,
    /// Tables of what one line cannot say.
    pub tables: Vec<Table>,
    /// False where a gate was not held.
    pub failed: bool,
}

impl Figure {
    /// Adds a claim.
    pub fn claim(&mut self, what: impl Into<String>, reference: Reference, ours: impl Into<String>) {
        self.claims.push(Claim { what: what.into(), reference, ours: ours.into() });
    }
}

/// A table of a figure; the first cell of each row is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    /// As Markdown has it, fit for a README.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{}\n{rows}", line(&self.head), "---|".repeat(self.head.len()))
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
    (
        "multiflow-fig6",
        "Multiflow QUIC Fig. 6: uniflows, acks by the fastest path, acks by their own",
        multiflow::routes,
    ),
    ("multiflow-sweep", "The second path's way up gets worse: where uniflows begin to pay", asymmetry::sweep),
    ("ns3-fig7", "ns-3 MPQUIC Fig. 7: one, two and four paths", ns3::scaling),
    ("ns3-fig8", "ns-3 MPQUIC Fig. 8: congestion windows of NewReno and OLIA", ns3::windows),
    ("ns3-fig9", "ns-3 MPQUIC Fig. 9: completion time by scheduler, stable", |r| ns3::schedulers(r, ns3::Case::Stable)),
    ("ns3-fig10", "ns-3 MPQUIC Fig. 10: completion time by scheduler, unstable", |r| {
        ns3::schedulers(r, ns3::Case::Unstable)
    }),
    ("ns3-fig11", "ns-3 MPQUIC Fig. 11: bytes per path by scheduler, stable", |r| ns3::shares(r, ns3::Case::Stable)),
    ("ns3-fig12", "ns-3 MPQUIC Fig. 12: bytes per path, paths swapped after 4 s", |r| {
        ns3::shares(r, ns3::Case::Swapped)
    }),
    ("ns3-fig13", "ns-3 MPQUIC Fig. 13: bytes per path by scheduler, unstable", |r| {
        ns3::shares(r, ns3::Case::Unstable)
    }),
    ("fairness", "Two paths through one queue take no more than a single-path flow beside them", fairness::fairness),
    ("ack-routes", "What a path takes of its queue, by the route of acknowledgements", ack_routes::ack_routes),
    ("shared-queues", "auto and bbr behind queues of all kinds, shared and not", shared_queues::shared_queues),
    ("goals", "The three goals of RFC 6356, for coupled and uncoupled controllers", goals::goals),
    ("never-worse", "The gate: several paths are never slower than the best of them", gate::never_worse),
    (
        "profiles",
        "The gate: sixteen pairs of paths as hosts have them, both next to the better one alone",
        profiles::profiles,
    ),
    ("further", "The gate: networks that no other gate has, both paths next to the better one alone", further::further),
    (
        "off-design",
        "The gate: networks that broke a build once, all paths next to the best one alone",
        off_design::off_design,
    ),
    ("matrix", "Every scheduler with every controller over 29 networks: what the defaults lose", matrix::matrix),
    ("migration", "The gate: a change of address costs little more than a slow start", migration::migration),
    ("reordering", "The gate: late packets on a path that loses none cost little", reordering::reordering),
    ("startup", "The gate: slow start sends little twice and costs no time", startup::startup),
];

/// Every figure: name and what it shows.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    FIGURES.iter().map(|(name, title, _)| (*name, *title))
}

/// A figure with what was written of it.
#[derive(Clone, Debug)]
pub struct FigureFiles {
    /// The name that it is called by.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What its runs were set to, on one line; none where nothing ran.
    pub settings: Option<String>,
    /// The figure as it was made.
    pub figure: Figure,
    /// The files that were written.
    pub files: Vec<PathBuf>,
}

/// Text as a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

impl FigureFiles {
    /// False where a gate was not held.
    pub fn held(&self) -> bool {
        !self.figure.failed
    }

    /// What is printed for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        self.settings.iter().for_each(|line| text.push_str(&format!("  ran with {line}\n")));
        for Claim { what, reference, ours } in &self.figure.claims {
            text.push_str(&format!("  {what}\n"));
            let says = ReferenceKind::ALL.into_iter().map(|source| (source.name(), source.of(reference)));
            for (name, said) in says.filter(|(_, said)| !said.is_empty()) {
                text.push_str(&format!("      {name}: {said}\n"));
            }
            text.push_str(&format!("      here: {ours}\n"));
        }
        self.figure.tables.iter().for_each(|table| text.push_str(&format!("\n{}\n", table.markdown())));
        self.figure.notes.iter().for_each(|note| text.push_str(&format!("  note: {note}\n")));
        self.files.iter().for_each(|file| text.push_str(&format!("  wrote {}\n", file.display())));
        text
    }

    /// Rows of a Markdown table, each claim with its figure: see [`MARKDOWN_HEAD`].
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for Claim { what, reference, ours } in &self.figure.claims {
            let said = ReferenceKind::ALL.map(|source| cell(source.of(reference))).join(" | ");
            text.push_str(&format!("| `{}` | {} | {said} | {} |\n", self.name, cell(what), cell(ours)));
        }
        if let Some(settings) = &self.settings {
            text.push_str(&format!("| `{}` | what the runs were set to | | | | {} |\n", self.name, cell(settings)));
        }
        let notes = self.figure.notes.iter().map(|note| cell(note)).collect::<Vec<_>>().join("; ");
        if !notes.is_empty() {
            text.push_str(&format!("| `{}` | where we differ, and why | | | | {notes} |\n", self.name));
        }
        text
    }
}

/// Head of the table that [`FigureFiles::markdown`] gives the rows of.
pub const MARKDOWN_HEAD: &str =
    "| figure | of what | published | others' code, elsewhere | asked for | here |\n|---|---|---|---|---|---|\n";

/// What stands in captions for [`NETWORK_DELAY`].
const TRIES_AFTER: &str = "{NETWORK_DELAY}";

/// Where a family of figures differs from the paper's by its making, and what its figures allow for.
fn caption(name: &str) -> Option<String> {
    let tries_after = format!("{} ms", NETWORK_DELAY.as_millis());
    differences(name).map(|text| text.replace(TRIES_AFTER, &tries_after))
}

/// The words of [`caption`].
fn differences(name: &str) -> Option<&'static str> {
    Some(match name.split('-').next()? {
        "conext" if name == "conext-fig11" => {
            "the paper ran its Go code in Mininet, one run; here is this engine in virtual time, without processing time"
        }
        "conext" => {
            "the paper ran its Go code and the kernel's TCP and MPTCP in Mininet, three runs a point; here is this \
             engine in virtual time, over its own space-filling design of the same ranges and size: no processing time, \
             and none of the kernel's halves of the figure"
        }
        "multiflow" => {
            "the paper's code may send on a uniflow that was never validated; here each is, before it carries data"
        }
        "ns3" => {
            "the module's clock starts 1 s early, and it has no cryptography; here a run counts when every byte has arrived"
        }
        "never" => {
            "pairs have one network, transfer and seed, and networks count alike however many seeds they have; allowed for, where \
             the initial path is the worse one: that a start over it is later, as runs over either path alone show it (the first \
             byte of a download, the handshake and a round trip of an upload), and at most by what the client waits before it \
             tries the next path: {NETWORK_DELAY}, and twice that where its handshake is done before one over the next path could be; in brackets \
             nothing is"
        }
        "ack" => {
            "one path through a queue of 20 Mbit/s and 60 ms beside a flow of its RTT, the other over 20 Mbit/s of its own; medians of \
             bytes over the flow's, 60 s from the start, jitter 4 ms; how two such flows share differs from seed to seed"
        }
        "migration" => {
            "a fresh start is what a transfer takes beyond its bytes at the rate that it reaches: handshake, request and slow \
             start; a change of address costs what it takes longer than without, in the median of five moments; allowed for: where a NAT changed, what is on \
             its way is lost, and nobody knows for a probe time-out: four round trips, a full queue and 25 ms; in brackets nothing is. \
             A median below 0 is a change that cost less than is allowed for"
        }
        "further" => {
            "seconds are medians, of requests of the time that one answer in twenty exceeds; percentages are medians and the worst of the \
             runs against those of the same seed over the better one of the first two paths; allowed for, where the initial path is the worse \
             one, is a later start as in `never-worse`; in brackets nothing is"
        }
        "off" => {
            "medians over the pairs of a seed: how much longer all paths take than the best one alone; of requests the time that one answer in \
             twenty exceeds counts; nothing is allowed for"
        }
        "profiles" => {
            "pairs have one network, transfer and seed; the better path is the one with the smaller median alone; in brackets what is \
             raw, else a start over the worse path is allowed for as late as runs over either path alone show it: the first byte of \
             a download, the handshake and a round trip of an upload, and at most what the client waits before it tries the next \
             path: {NETWORK_DELAY}, and twice that where its handshake is done before one over the next path could be; of requests the time is \
             the one that one answer in twenty exceeds; gain is rate that comes to that of the better path, all other percentages are time that does"
        }
        "startup" => {
            "CUBIC, 20 MB over one clean link of 10 to 100 Mbit/s, RTT 10 to 80 ms, drop-tail queue of 0.5 to 3 times what the \
             link holds, at least 15 kB; what is sent twice includes what CUBIC loses later on"
        }
        _ => return None,
    })
}

/// Makes a figure.
///
/// # Errors
/// There is no such figure, results cannot be written, or it was interrupted.
pub fn figure(name: &str, request: &FigureRequest<'_>) -> Result<FigureFiles, CommandError> {
    let Some((name, title, make)) = FIGURES.iter().find(|(known, _, _)| *known == name) else {
        let names: Vec<_> = list().map(|(name, _)| name).collect();
        let problem = format!("there is no figure `{name}`; accepted: {}, all", names.join(", "));
        return Err(CommandError::Usage(problem));
    };
    let mut figure = make(request)?;
    let settings = request.ran.take();
    figure.notes.extend(caption(name));
    let mut files = Vec::new();
    if let Some(out) = &request.out {
        files.extend(write_page(out, name, &page(title, settings.as_deref(), &figure), request.pictures)?);
    }
    Ok(FigureFiles { name, title, settings, figure, files })
}

/// The page of a figure.
pub fn page(title: &str, settings: Option<&str>, figure: &Figure) -> Page {
    let mut page = Page::new(title);
    if let Some(settings) = settings {
        page.text(&format!("Ran with {settings}."));
    }
    page.plots(&figure.plots);
    if figure.plots.iter().any(Plot::has_boxes) {
        page.text("Boxes: least, quartiles, median (the number above) and most of the complete runs.");
    }
    let said = sources(&figure.claims);
    let row = |Claim { what, reference, ours }: &Claim| {
        let said = said.iter().map(|source| source.of(reference).to_owned());
        [what.clone()].into_iter().chain(said).chain([ours.clone()]).collect()
    };
    let head: Vec<&str> = [""].into_iter().chain(said.iter().map(|source| source.name())).chain(["here"]).collect();
    page.table(&head, &figure.claims.iter().map(row).collect::<Vec<_>>());
    for table in &figure.tables {
        page.table(&table.head.iter().map(String::as_str).collect::<Vec<_>>(), &table.rows);
    }
    page.notes(&figure.notes);
    page
}

/// The scenario of a figure with the request's settings over it.
fn tree(request: &FigureRequest<'_>, name: &str, text: &str) -> Result<Tree, CommandError> {
    let mut tree = Tree::parse(name, text)?;
    set_over(&mut tree, &request.sets)?;
    Ok(tree)
}

/// One run of a figure with the scenario's own seed, for its time series.
fn one(request: &FigureRequest<'_>, name: &str, text: &str, watch: Watch<'_>) -> Result<Outcome, CommandError> {
    let campaign = Campaign::plan_with(tree(request, name, text)?, Traces::default(), 1, request.policies.clone())?;
    let Some(job) = campaign.jobs.first() else { return Err(CommandError::Usage("there is nothing to run".into())) };
    let outcome = campaign.one(job, Watch { stop: Some(request.stop), ..watch })?;
    if outcome.was_stopped() {
        return Err(CampaignError::Interrupted { done: 0, total: 1, kept: request.out.is_some() }.into());
    }
    request.ran.note(&[campaign.row(job, &request.commit, &outcome)?]);
    Ok(outcome)
}

/// Runs one campaign of a figure; its rows are kept under its name where there is a folder.
fn rows(request: &FigureRequest<'_>, name: &str, text: &str, seeds: u64) -> Result<Vec<Row>, CommandError> {
    let tree = tree(request, name, text)?;
    let campaign = Campaign::plan_with(tree, Traces::default(), seeds, request.policies.clone())?;
    let folder = request.out.as_ref().map(|out| Path::join(out, name));
    let store = folder.map(|folder| Store::open(&folder, &campaign, &request.commit, Shard::WHOLE)).transpose()?;
    let progress = |done: usize, total: usize| (request.progress)(name, done, total);
    let doing = Doing {
        threads: request.jobs,
        shard: Shard::WHOLE,
        commit: &request.commit,
        stop: request.stop,
        qlog: None,
        store: store.as_ref(),
        progress: &progress,
    };
    let rows = campaign.run(&doing)?;
    request.ran.note(&rows);
    store.map(|store| store.write(&rows)).transpose()?;
    Ok(rows)
}
