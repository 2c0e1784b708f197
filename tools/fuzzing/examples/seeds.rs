//! Writes the seeds of all targets as files for the fuzzer, and prints each target with its longest input:
//! `seeds [DIR]`.

use std::path::Path;

use plait_fuzzing::TARGETS;

fn main() -> std::io::Result<()> {
    let root = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_owned());
    for target in TARGETS {
        println!("{} {}", target.name, target.max_len);
        let dir = Path::new(&root).join(target.name);
        std::fs::create_dir_all(&dir)?;
        for (n, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{n:02}")), seed)?;
        }
    }
    Ok(())
}
