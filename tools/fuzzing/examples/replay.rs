//! Runs a target on files, with the stable compiler: `replay TARGET FILE...`, to look at what the fuzzer found.

use plait_fuzzing::targets;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some(target) = targets::by_name(&name) else {
        return Err(std::io::Error::other(format!("no target named {name:?}")));
    };
    for file in args {
        let bytes = std::fs::read(&file)?;
        println!("{name} {file}: {} bytes", bytes.len());
        (target.run)(&bytes);
    }
    Ok(())
}
