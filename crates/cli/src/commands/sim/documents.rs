//! Markdown files that figures are written into: read before the first run, so that a wrong name costs no hour.

use std::path::{Path, PathBuf};

use plait_sim::figures::{FigureFiles, document};
use plait_sim::files::{read_text, write_whole};

use crate::error::CliError;

use super::args::SimFigureArgs;

/// A file and what it says.
pub(super) struct Document {
    path: PathBuf,
    text: String,
}

fn unusable(path: &Path, problem: impl std::fmt::Display) -> CliError {
    CliError::usage(format!("--into {}: {problem}", path.display()))
}

/// The files, each with a block for one of the figures at least.
pub(super) fn read(paths: &[PathBuf], names: &[&str]) -> Result<Vec<Document>, CliError> {
    let read = |path: &PathBuf| {
        let text = read_text(path).map_err(|error| unusable(path, error))?;
        if !document::wanted_by(&text).any(|wanted| names.contains(&wanted)) {
            let name = names.first().unwrap_or(&"NAME");
            let problem =
                format!("no line `<!-- figure {name} -->` with `<!-- end {name} -->` after it to write between");
            return Err(unusable(path, problem));
        }
        Ok(Document { path: path.clone(), text })
    };
    paths.iter().map(read).collect()
}

/// Writes what was made into each file; `command` says what makes a figure.
pub(super) fn write(
    documents: &[Document],
    made: &[FigureFiles],
    command: &dyn Fn(&str) -> String,
) -> Result<(), CliError> {
    for Document { path, text } in documents {
        let mut text = text.clone();
        for figure in made {
            text = document::fill(&text, figure, &command(figure.name)).map_err(|problem| unusable(path, problem))?;
        }
        write_whole(path, text.as_bytes()).map_err(|error| {
            CliError::running(format!("{}: {error}", path.display()), "choose another file with --into")
        })?;
    }
    Ok(())
}

/// What makes one figure as these arguments do.
pub(super) fn command(args: &SimFigureArgs, name: &str) -> String {
    let points = args.points.map(|points| format!(" --points {points}")).unwrap_or_default();
    let sets: String = args.sets.iter().map(|set| format!(" --set {set}")).collect();
    format!("plait sim figure {name}{points}{sets}")
}
