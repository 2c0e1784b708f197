//! `plait lab figure`: the papers' figures in real time, with kernels' stacks and others' beside ours.

use std::sync::atomic::AtomicBool;

use plait_lab::campaign::{self, LabFigureRequest, RunsWanted};
use plait_sim::figures::{self, FigureFiles};
use serde_json::json;

use super::args::LabFigureArgs;
use crate::clock::Clock;
use crate::commands::sim::{self, RunProgress};
use crate::error::CliError;
use crate::output::{print_json, print_text};

/// The figures and contenders that there are.
pub(super) fn list() -> Result<(), CliError> {
    let mut text = String::from("figures (plait lab figure NAME):\n");
    campaign::list().for_each(|(name, title)| text.push_str(&format!("  {name:<18} {title}\n")));
    text.push_str("contenders (--contenders A,B):\n");
    for (name, about) in plait_lab::contenders() {
        text.push_str(&format!("  {name:<18} {about}\n"));
    }
    text.push_str("  plait:KEY=VALUE    ours with another scheduler, congestion, ack_path, reinjection or extension; several joined by +\n");
    print_text(&text)
}

/// Makes the figures that were asked for, and tells of them once, for people or for programs.
pub(super) fn make(args: &LabFigureArgs, stop: &AtomicBool) -> Result<(), CliError> {
    let (mut made, mut seconds) = (Vec::new(), Vec::new());
    let done = try_make(args, stop, &mut made, &mut seconds);
    if args.show.is_json() {
        let (figures, error) = (sim::claims(&made, &seconds), done.as_ref().err().map(ToString::to_string));
        print_json(&json!({ "command": "lab figure", "ok": error.is_none(), "figures": figures, "error": error }))?;
    } else if args.markdown {
        let claims: String = made.iter().map(FigureFiles::markdown).collect();
        let tables = made.iter().flat_map(|made| &made.figure.tables).map(|table| format!("\n{}", table.markdown()));
        print_text(&format!("{}{claims}{}", figures::MARKDOWN_HEAD, tables.collect::<String>()))?;
    }
    done
}

/// The figures that were asked for; `all` stands for each of them.
fn wanted(names: &[String]) -> Result<Vec<&str>, CliError> {
    let known: Vec<&str> = campaign::list().map(|(name, _)| name).collect();
    if let Some(other) = names.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
        return Err(CliError::usage(format!("there is no figure `{other}`; accepted: {}, all", known.join(", "))));
    }
    if names.iter().any(|name| name == "all") {
        return Ok(known);
    }
    Ok(names.iter().map(String::as_str).collect())
}

fn try_make(
    args: &LabFigureArgs,
    stop: &AtomicBool,
    made: &mut Vec<FigureFiles>,
    seconds: &mut Vec<f64>,
) -> Result<(), CliError> {
    let names = wanted(&args.names)?;
    let progress = RunProgress::new(args.show);
    let request = LabFigureRequest {
        points: args.points,
        repetitions: args.repetitions,
        contenders: (!args.contenders.is_empty()).then(|| args.contenders.clone()),
        sets: args.sets.clone(),
        runs: if args.so_far { RunsWanted::SoFar } else { RunsWanted::All },
        scheduling: args.scheduling.wanted(),
        seed: args.seed,
        jobs: args.jobs,
        budget_mbps: args.budget_mbps,
        host_turn: args.host_turn_ms,
        out: args.out.clone(),
        pictures: sim::pictures(args.png),
        commit: sim::commit()?,
        stop,
        progress: &|part: &str, done, total| progress.on_run(Some(part), done, total),
    };
    for name in names {
        let clock = Clock::start();
        let figure = campaign::figure(name, &request)?;
        seconds.push(clock.seconds());
        if !args.show.is_json() && !args.markdown {
            let text = format!("{}  took {:.0} s\n", figure.text(), clock.seconds());
            progress.suspend(|| print_text(&text))?;
        }
        made.push(figure);
    }
    progress.finish();
    Ok(())
}
