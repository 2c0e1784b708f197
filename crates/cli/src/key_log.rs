//! The file that `SSLKEYLOGFILE` names: TLS writes its secrets there by itself, and is silent where it cannot.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::Path;

use crate::command_line::Command;
use crate::connect::Verbosity;
use crate::output::eprint_line;
use crate::perf::args::PerfCommand;

/// The variable, as other programs call it too.
const VARIABLE: &str = "SSLKEYLOGFILE";

/// Says once that no secrets will be in the file that is asked for, where `command` has secrets and cannot write there.
pub(crate) fn warn_where_unwritable(command: &Command) {
    if verbosity(command) == Some(Verbosity::Normal)
        && let Some(remark) = remark(std::env::var_os(VARIABLE))
    {
        eprint_line(&remark);
    }
}

/// Whether a command may say so; none for those that leave no secrets there.
fn verbosity(command: &Command) -> Option<Verbosity> {
    let is_quiet = match command {
        Command::Demo(args) => args.output.quiet,
        Command::Get(args) => args.show.quiet,
        Command::Serve(args) => args.listen.quiet,
        Command::Perf(PerfCommand::Server(args)) => args.listen.quiet,
        Command::Perf(PerfCommand::Client(args)) => args.show.quiet,
        Command::Interop => false,
        // The programs that it runs say it themselves.
        _ => return None,
    };
    Some(if is_quiet { Verbosity::Quiet } else { Verbosity::Normal })
}

/// What is wrong with the file, in words that help; none where all is well, or nothing is asked for.
fn remark(named: Option<OsString>) -> Option<String> {
    let named = named.filter(|name| !name.is_empty())?;
    let path = Path::new(&named);
    // A pipe waits for its reader, which is no fault and none of our business.
    if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        return None;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let error = options.open(path).err()?;
    Some(format!(
        "plait: {VARIABLE} names {}, which cannot be written ({error}): TLS secrets are not logged; name a file in a folder that \
         exists and may be written",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_cannot_be_written_are_remarked_on() {
        let dir = tempfile::tempdir().unwrap();
        let of = |path: &Path| remark(Some(path.into()));
        let file = dir.path().join("keys");
        std::fs::write(&file, "before\n").unwrap();
        assert_eq!((remark(None), remark(Some(OsString::new())), of(&file)), (None, None, None));
        assert_eq!(std::fs::read(&file).unwrap(), b"before\n");
        for wrong in [dir.path().to_owned(), dir.path().join("none/keys"), file.join("keys")] {
            let text = of(&wrong).unwrap();
            assert!(text.contains("SSLKEYLOGFILE names") && text.contains("name a file in a folder"), "{text}");
        }
        if cfg!(unix) {
            assert_eq!(of(Path::new("/dev/null")), None);
        }
    }
}
