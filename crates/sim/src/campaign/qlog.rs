//! The qlog files of a run: a folder that appears once all are whole, and what went wrong while they were written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plait_base::observe::{Observer, ObserverFactory};
use plait_qlog::QlogObserver;

use super::Job;
use super::store::{self, StoreError};

/// The ends of a run. The first connection of each is written to a file of its name, others of a race of handshakes to
/// `client-2.sqlog` and so on.
const ENDS: [&str; 2] = ["client", "server"];

/// Who makes the observers of both ends.
pub type Observers = (Arc<dyn ObserverFactory>, Arc<dyn ObserverFactory>);

type Fault = Arc<Mutex<Option<StoreError>>>;

/// The qlog files of one run while it lasts.
#[derive(Debug)]
pub struct QlogFiles {
    part: PathBuf,
    whole: PathBuf,
    fault: Fault,
}

/// The folder of a job.
fn folder_of(qlog: &Path, job: &Job) -> PathBuf {
    qlog.join(format!("run-{}-seed-{}", job.index, job.seed))
}

/// The file of the connection that so many others of its end came before.
fn name_of(end: &str, before: usize) -> String {
    if before == 0 { format!("{end}.sqlog") } else { format!("{end}-{}.sqlog", before + 1) }
}

/// True where the files of a job are there, or where none are wanted.
pub(crate) fn is_logged(qlog: Option<&Path>, job: &Job) -> bool {
    qlog.is_none_or(|qlog| ENDS.iter().all(|end| folder_of(qlog, job).join(name_of(end, 0)).is_file()))
}

impl QlogFiles {
    /// Opens the files of a job, where a folder for them is given.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn open(qlog: Option<&Path>, job: &Job) -> Result<(Option<Observers>, Option<Self>), StoreError> {
        let Some(qlog) = qlog else { return Ok((None, None)) };
        let whole = folder_of(qlog, job);
        let files = Self { part: whole.with_extension("part"), whole, fault: Fault::default() };
        fs::create_dir_all(&files.part).map_err(store::io(&files.part))?;
        let [client, server] = ENDS.map(|end| EndFiles::open(end, &files));
        Ok((Some((Arc::new(client?), Arc::new(server?))), Some(files)))
    }

    /// The run is over, its observers are gone: the files take their names.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> Result<(), StoreError> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(fault) = fault {
            return Err(fault);
        }
        if self.whole.exists() {
            fs::remove_dir_all(&self.whole).map_err(store::io(&self.whole))?;
        }
        fs::rename(&self.part, &self.whole).map_err(store::io(&self.whole))
    }
}

impl Drop for QlogFiles {
    fn drop(&mut self) {
        // What is left of a run without a result; gone already where it finished.
        let _ = fs::remove_dir_all(&self.part);
    }
}

/// Makes the files of one end's connections.
#[derive(Debug)]
struct EndFiles {
    end: &'static str,
    folder: PathBuf,
    fault: Fault,
    opened: Mutex<Attempts>,
}

/// The file of the first connection waits for it, so that every end has one.
#[derive(Debug)]
struct Attempts {
    first: Option<Noting>,
    count: usize,
}

impl EndFiles {
    fn open(end: &'static str, files: &QlogFiles) -> Result<Self, StoreError> {
        let (folder, fault) = (files.part.clone(), files.fault.clone());
        let first = Some(Noting::create(folder.join(name_of(end, 0)), &fault)?);
        Ok(Self { end, folder, fault, opened: Mutex::new(Attempts { first, count: 1 }) })
    }

    fn next(&self) -> Result<Noting, StoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = opened.first.take() {
            return Ok(first);
        }
        opened.count += 1;
        Noting::create(self.folder.join(name_of(self.end, opened.count - 1)), &self.fault)
    }
}

impl ObserverFactory for EndFiles {
    fn observer(&self) -> Box<dyn Observer> {
        let writer: Box<dyn Write + Send> = match self.next() {
            Ok(file) => Box::new(BufWriter::new(file)),
            Err(error) => {
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(error);
                Box::new(io::sink())
            }
        };
        Box::new(QlogObserver::to_writer(writer))
    }
}

/// Remembers the first failure to write: observers cannot complain.
#[derive(Debug)]
struct Noting {
    file: File,
    path: PathBuf,
    fault: Fault,
}

impl Noting {
    fn create(path: PathBuf, fault: &Fault) -> Result<Self, StoreError> {
        let file = File::create(&path).map_err(store::io(&path))?;
        Ok(Self { file, path, fault: fault.clone() })
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let error = io::Error::new(error.kind(), error.to_string());
                let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(StoreError::Io { path: self.path.clone(), error });
            }
        })
    }
}

impl Write for Noting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.note(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_is_told() {
        let qlog = std::env::temp_dir().join(format!("plait-sim-qlog-{}", std::process::id()));
        let _ = fs::remove_dir_all(&qlog);
        let job = Job { index: 3, settings: Arc::default(), seed: 7 };
        let (observers, files) = QlogFiles::open(Some(&qlog), &job).unwrap();
        let fault = files.as_ref().unwrap().fault.clone();
        let mut full = Noting { file: File::create("/dev/full").unwrap(), path: "full".into(), fault };
        assert!(full.write_all(b"x").is_err());
        drop(observers);
        assert!(files.unwrap().finish().unwrap_err().to_string().contains("full: No space left"));
        assert!(!is_logged(Some(&qlog), &job) && is_logged(None, &job));
        assert_eq!(fs::read_dir(&qlog).unwrap().count(), 0);
        let (observers, files) = QlogFiles::open(Some(&qlog), &job).unwrap();
        let (client, _) = observers.unwrap();
        drop([client.observer(), client.observer()]);
        files.unwrap().finish().unwrap();
        assert!(is_logged(Some(&qlog), &job));
        let mut names: Vec<_> =
            fs::read_dir(folder_of(&qlog, &job)).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["client-2.sqlog", "client.sqlog", "server.sqlog"]);
        fs::remove_dir_all(&qlog).unwrap();
    }
}
