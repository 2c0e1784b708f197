//! Where a body goes: hashed on a thread of its own, to a file that appears when it is whole, to standard output, or
//! nowhere.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use plait_sim::files::remedy;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::connect::off_thread;
use crate::error::CliError;
use crate::options::Destination;
use crate::pattern::hex;

/// Pieces that may wait for the writer.
const QUEUE_PIECES: usize = 256;

/// What the network hands to the writer.
#[derive(Debug)]
enum BodyPart {
    Data(Bytes),
    /// The body is whole. A queue that closes without this leaves nothing behind.
    End,
}

/// The digest of a body that arrived whole, and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digested {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

/// Takes a body in. Dropped early, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Sink {
    pieces: mpsc::Sender<BodyPart>,
    arrived: Arc<AtomicU64>,
    writer: JoinHandle<Result<Digested, CliError>>,
}

impl Sink {
    /// Opens the destination; a pipe waits for its reader.
    pub(crate) async fn open(to: &Destination) -> Result<Self, CliError> {
        let to = to.clone();
        let mut target = off_thread(move || Target::open(&to)).await?;
        let (pieces, mut queue) = mpsc::channel(QUEUE_PIECES);
        let writer = tokio::task::spawn_blocking(move || {
            let (mut hash, mut bytes) = (Sha256::new(), 0);
            while let Some(piece) = queue.blocking_recv() {
                match piece {
                    // Nobody waits for the rest.
                    _ if queue.is_closed() => break,
                    BodyPart::Data(data) => {
                        hash.update(&data);
                        target.write(&data, bytes)?;
                        bytes += data.len() as u64;
                    }
                    BodyPart::End => {
                        target.finish()?;
                        return Ok(Digested { sha256: hex(hash), bytes });
                    }
                }
            }
            Err(CliError::Interrupted)
        });
        Ok(Self { pieces, arrived: Arc::default(), writer })
    }

    /// Bytes of the body that it was given, also once it is gone.
    pub(crate) fn arrived(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.arrived)
    }

    /// The next piece of the body.
    pub(crate) async fn push(&mut self, data: Bytes) -> Result<(), CliError> {
        self.arrived.fetch_add(data.len() as u64, Ordering::Relaxed);
        match self.pieces.send(BodyPart::Data(data)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure().await),
        }
    }

    /// The body is whole.
    pub(crate) async fn finish(mut self) -> Result<Digested, CliError> {
        if self.pieces.send(BodyPart::End).await.is_err() {
            return Err(self.failure().await);
        }
        joined(self.writer.await)
    }

    async fn failure(&mut self) -> CliError {
        joined((&mut self.writer).await).err().unwrap_or(CliError::Interrupted)
    }
}

fn joined(result: Result<Result<Digested, CliError>, tokio::task::JoinError>) -> Result<Digested, CliError> {
    result.unwrap_or_else(|error| Err(CliError::Running(format!("the writer stopped: {error}"))))
}

/// Standard output without a buffer: what is left in one is written when the process ends, and waits for a reader who may never come.
#[cfg(unix)]
type StandardOutput = fs::File;
#[cfg(not(unix))]
type StandardOutput = io::Stdout;

fn standard_output() -> io::Result<StandardOutput> {
    #[cfg(unix)]
    return std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned().map(fs::File::from);
    #[cfg(not(unix))]
    Ok(io::stdout())
}

/// What is written to.
#[derive(Debug)]
enum Target {
    Nothing,
    Stdout(StandardOutput),
    /// A pipe or device that is there already: it cannot be renamed into place.
    Device {
        file: fs::File,
        path: PathBuf,
    },
    File {
        temporary: NamedTempFile,
        path: PathBuf,
    },
}

impl Target {
    fn open(to: &Destination) -> Result<Self, CliError> {
        match to {
            Destination::Discard => Ok(Self::Nothing),
            Destination::Stdout => standard_output().map(Self::Stdout).map_err(|error| unprinted(&error)),
            Destination::File(path) if path.is_dir() => {
                Err(CliError::running(format!("{} is a folder", path.display()), "give a file name with -o"))
            }
            Destination::File(path) => {
                // A link stays one; what it names is replaced.
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let special = path.metadata().is_ok_and(|meta| !meta.is_file());
                let opened = if special {
                    fs::OpenOptions::new().write(true).open(&path).map(|file| Self::Device { file, path: path.clone() })
                } else {
                    temporary_beside(&path).map(|temporary| Self::File { temporary, path: path.clone() })
                };
                opened.map_err(|error| {
                    let what = format!("{} cannot be written ({error})", path.display());
                    CliError::running(what, format!("{}, or name another file with -o", remedy(&error)))
                })
            }
        }
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<(), CliError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Stdout(out) => {
                if offset == 0 && out.is_terminal() && data.contains(&0) {
                    return Err(CliError::running(
                        "the body is binary and standard output is a terminal",
                        "use -o FILE, -o - in a pipe, or --discard",
                    ));
                }
                out.write_all(data).map_err(|error| unprinted(&error))
            }
            Self::Device { file, path } => file.write_all(data).map_err(|error| broken(path, &error)),
            Self::File { temporary, path } => temporary.write_all(data).map_err(|error| broken(path, &error)),
        }
    }

    fn finish(self) -> Result<(), CliError> {
        match self {
            Self::Nothing | Self::Device { .. } => Ok(()),
            Self::Stdout(mut out) => out.flush().map_err(|error| unprinted(&error)),
            Self::File { temporary, path } => match temporary.persist(&path) {
                Ok(_) => Ok(()),
                Err(error) => Err(broken(&path, &error.error)),
            },
        }
    }
}

fn unprinted(error: &io::Error) -> CliError {
    let hint =
        if error.kind() == io::ErrorKind::BrokenPipe { "does its reader still run?" } else { "is the disk full?" };
    CliError::running(format!("standard output: {error}"), hint)
}

fn broken(path: &Path, error: &io::Error) -> CliError {
    CliError::running(format!("{}: {error}", path.display()), remedy(error))
}

/// A file in the same folder, so that renaming it is one step; it has the rights of the old one or of any new file.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".plait-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let temporary = builder.tempfile_in(folder)?;
    if let Ok(before) = path.metadata() {
        temporary.as_file().set_permissions(before.permissions())?;
    }
    Ok(temporary)
}

/// The file that a destination names, however it is spelled; none for what is no file.
pub(crate) fn place_of(to: &Destination) -> Option<PathBuf> {
    let Destination::File(path) = to else { return None };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    Some(path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[tokio::test]
    async fn whole_bodies_appear_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("body");
        let mut sink = Sink::open(&Destination::File(file.clone())).await.unwrap();
        sink.push(Bytes::from_static(b"ab")).await.unwrap();
        assert!(!file.exists());
        sink.push(Bytes::from_static(b"c")).await.unwrap();
        let digested = sink.finish().await.unwrap();
        assert_eq!(digested.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((digested.bytes, fs::read(&file).unwrap().as_slice()), (3, &b"abc"[..]));
        assert_eq!(entries(dir.path()), 1);
    }

    #[tokio::test]
    async fn broken_bodies_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = Sink::open(&Destination::File(dir.path().join("body"))).await.unwrap();
        sink.push(Bytes::from_static(b"ab")).await.unwrap();
        let Sink { pieces, writer, .. } = sink;
        drop(pieces);
        assert_eq!(writer.await.unwrap(), Err(CliError::Interrupted));
        assert_eq!(entries(dir.path()), 0);
    }

    #[tokio::test]
    async fn impossible_places() {
        let dir = tempfile::tempdir().unwrap();
        let open = async |path: PathBuf| Sink::open(&Destination::File(path)).await.unwrap_err().to_string();
        assert!(open(dir.path().to_owned()).await.contains("is a folder"));
        assert!(open(dir.path().join("none/body")).await.contains("cannot be written"));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn full_disks_and_places_that_cannot_be_written_say_what_to_try() {
        let mut full = Sink::open(&Destination::File("/dev/full".into())).await.unwrap();
        full.push(Bytes::from_static(b"ab")).await.unwrap();
        let error = full.finish().await.unwrap_err().to_string();
        assert!(error.contains("No space left") && error.contains("; make room on its disk"), "{error}");
        let nowhere = Sink::open(&Destination::File("/proc/none/body".into())).await.unwrap_err().to_string();
        assert!(nowhere.contains("; check that its folder exists and may be written, or name another"), "{nowhere}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn devices_stay_devices() {
        let mut sink = Sink::open(&Destination::File("/dev/null".into())).await.unwrap();
        sink.push(Bytes::from_static(b"ab")).await.unwrap();
        assert_eq!(sink.finish().await.unwrap().bytes, 2);
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn rights_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("body"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("body", &link).unwrap();
        let mut sink = Sink::open(&Destination::File(link.clone())).await.unwrap();
        sink.push(Bytes::from_static(b"new")).await.unwrap();
        sink.finish().await.unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        let place = |path: PathBuf| place_of(&Destination::File(path));
        assert_eq!(place(link), place(file));
        assert_eq!(place(dir.path().join("new")), place(dir.path().join("./new")));
    }

    #[tokio::test]
    async fn nowhere() {
        let sink = Sink::open(&Destination::Discard).await.unwrap();
        assert_eq!(sink.finish().await.unwrap().bytes, 0);
    }
}
