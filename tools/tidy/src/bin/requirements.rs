//! Prints every MUST of the RFCs with the lines of code and the tests that cite it; `--summary` prints the counts alone.
//!
//! Exits with 1 when one has neither code and test nor a reason, or when a citation names what no RFC holds.

use std::process::ExitCode;

use plait_tidy::requirements::{citations, faults, lists, rows, summary};

fn main() -> ExitCode {
    let lists = lists();
    let citations = citations(&lists);
    let rows = rows(&lists, &citations);
    if !std::env::args().any(|arg| arg == "--summary") {
        println!("requirement | who, word, what | code | test | why not");
        rows.iter().for_each(|row| println!("{row}"));
        println!();
    }
    print!("{}", summary(&rows));
    let faults = faults(&lists, &citations);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
