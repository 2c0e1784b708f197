//! Runs plait and its peers in turns over loopback, each end a process on a core of its own, and tells what they took.

mod plan;
mod process;
mod round;
mod table;

use std::path::Path;
use std::process::ExitCode;

use plan::Plan;
use round::{Contestant, Identity, Joins, round};
use table::Table;

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--help" || word == "-h") {
        println!("{}", plan::USAGE);
        return ExitCode::SUCCESS;
    }
    let done = Plan::from_words(std::env::args().skip(1)).and_then(|plan| run(&plan));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Makes a certificate that all trust.
fn make_identity(folder: &Path) -> Result<Identity, String> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
        .map_err(|error| error.to_string())?;
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    write(&cert, &made.cert.pem())?;
    write(&key, &made.signing_key.serialize_pem())?;
    Ok(Identity { cert, key })
}

/// Those of the mode that the plan names; where it names none, those that always take part.
fn taking_part(plan: &Plan) -> Result<Vec<&'static Contestant>, String> {
    let all = plan.mode.contestants();
    for name in plan.only.iter().flatten() {
        if !all.iter().any(|contestant| contestant.name == name) {
            let names: Vec<_> = all.iter().map(|contestant| contestant.name).collect();
            return Err(format!(
                "there is no contestant `{name}` in {}; there are {}",
                plan.mode.name(),
                names.join(", ")
            ));
        }
    }
    let is_named = |contestant: &&Contestant| match &plan.only {
        Some(only) => only.iter().any(|name| name == contestant.name),
        None => contestant.joins == Joins::Always,
    };
    Ok(all.iter().filter(is_named).collect())
}

fn run(plan: &Plan) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let identity = make_identity(folder.path())?;
    let contestants = taking_part(plan)?;
    let mut table = Table::new(plan.mode.columns(), contestants.iter().map(|contestant| contestant.name).collect());
    for at in 1..=plan.rounds {
        for (index, contestant) in contestants.iter().enumerate() {
            eprint!("\rround {at} of {}: {:20}", plan.rounds, contestant.name);
            let figures = round(plan, contestant, &identity);
            // A peer that fails is a finding, and no reason to stop.
            if let Err(why) = &figures {
                eprintln!("\n{} failed: {why}", contestant.name);
            }
            table.add(index, figures.ok());
        }
    }
    eprintln!();
    let load = plan.mode.load(plan).join(" ");
    let loaded = if plan.is_loaded { ", both cores busy" } else { "" };
    print!("{}", table.markdown(&format!("{load}, {} rounds{loaded}", plan.rounds)));
    match &plan.csv {
        Some(file) => write(file, &table.csv(&[("load", load), ("loaded", plan.is_loaded.to_string())])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Plan, taking_part};

    fn names(words: &str) -> Vec<&'static str> {
        let plan = Plan::from_words(words.split(' ').map(str::to_owned)).unwrap();
        taking_part(&plan).unwrap().iter().map(|contestant| contestant.name).collect()
    }

    #[test]
    fn some_take_part_only_where_they_are_named() {
        assert_eq!(names("idle --rounds 1"), ["plait", "s2n-quic", "quinn", "noq"]);
        assert_eq!(names("idle --only quinn,plait-plain"), ["plait-plain", "quinn"]);
        assert!(!names("bulk --rounds 1").iter().any(|name| name.starts_with("plait-p")));
        assert_eq!(names("bulk --only plait-program,plait-plain"), ["plait-program", "plait-plain"]);
    }
}
