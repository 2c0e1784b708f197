//! Prints what the source amounts to: sizes, public items, circles of imports, comments. `--list` names the offenders.

use plait_tidy::house::{FLOORS, circles_in, crowded_names, table, terse_docs};
use plait_tidy::modules::Modules;
use plait_tidy::public::unnamed_items;
use plait_tidy::sources;

fn main() {
    let sources = sources();
    print!("{}", table(&sources));
    if !std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let all = plait_tidy::all_sources();
    for (krate, _) in FLOORS {
        for circle in circles_in(krate, &sources) {
            println!("\ncircle in {krate}:");
            let inside = |file: &&str| circle.iter().any(|f| f == file);
            for (file, named) in Modules::of(krate, &sources).edges().into_iter().filter(|(file, _)| inside(file)) {
                let named: Vec<&str> = named.into_iter().filter(inside).collect();
                println!("  {file} -> {}", named.join(", "));
            }
        }
        let unnamed = unnamed_items(krate, &all);
        println!("\n{krate}: {} public items that nothing outside names", unnamed.len());
        unnamed.iter().for_each(|i| println!("  {} {}", i.at, i.name));
    }
    println!("\nnames of several types:");
    crowded_names(&sources).iter().for_each(|(name, count)| println!("  {name} {count}"));
    println!("\nshort documentation:");
    terse_docs(&sources).iter().for_each(|place| println!("  {place}"));
}
